"""What the explorer knows: data, system, parameters, results, chosen points. No widget is known here.

`State.request` is what is wanted now; its `outcome` may be computed in another thread, and `State.outcome` is the
present one. `State.update` does all of it at once.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.app.opening import part_of
from daskclust.app.parameters import Parameter, complete
from daskclust.app.selection import Mask, Range, Selection, mask_of
from daskclust.app.slices import chips_of, slices_of
from daskclust.app.systems import ExplorerSystem, Ground, names_for, point_columns, system_for
from daskclust.core.device.machine_code.compiling import Clock
from daskclust.io import to_device


@dataclass(frozen=True)
class Request:
    """A system with values of its parameters."""

    system: ExplorerSystem
    values: Mapping[str, Any]

    def outcome(self) -> Outcome:
        """Compute it; nothing of the state is changed."""
        expected, clock = self.system.seconds(self.values).seconds, Clock()
        with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
            result, ground = self.system.run(self.values), self.system.ground(self.values)
        self.system.learn(expected, clock.seconds)
        return Outcome(self, result, ground, "; ".join(str(each.message) for each in caught))


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a request, what thresholds cut, and what follows from them, made on demand."""

    request: Request
    result: xr.Dataset
    ground: Ground | None = None
    warning: str = ""  # of the estimator, about the data

    @cached_property
    def label(self) -> npt.NDArray[np.int64]:
        """Cluster of each point."""
        return self.result["label"].values

    @cached_property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.label.max(initial=-1)) + 1

    @cached_property
    def hidden(self) -> Mask | None:
        """Hits of noisy pixels, which are in no cluster and in no picture; None without any."""
        return self.result["is_noisy"].values if "is_noisy" in self.result else None

    @cached_property
    def n_hidden(self) -> int:
        """Number of hits of noisy pixels."""
        return 0 if self.hidden is None else int(np.count_nonzero(self.hidden))

    @cached_property
    def n_noise(self) -> int:
        """Number of points in no cluster."""
        return int(np.count_nonzero(self.label < 0)) - self.n_hidden

    @cached_property
    def table(self) -> xr.Dataset:
        """A row for each cluster."""
        return self.request.system.table(self.result)

    def count(self, mask: Mask) -> npt.NDArray[np.int64]:
        """Return the number of chosen points in each cluster."""
        label = self.label[mask]
        return np.bincount(label[label >= 0], minlength=self.n_clusters)

    def rows(self, mask: Mask | None) -> xr.Dataset:
        """Return the rows of clusters with chosen points and ``selected``, their number; or all rows."""
        if mask is None:
            return self.table
        number = self.count(mask)
        rows = np.flatnonzero(number)
        selected = ("cluster", number[rows], {"long_name": "chosen points", "units": "1"})
        return self.table.isel(cluster=rows).assign(selected=selected)

    def within(
        self, axes: tuple[str, str], ends: tuple[tuple[float, float], tuple[float, float]], parts: Sequence[Range]
    ) -> Mask:
        """Return which points a picture shows whose axes have these ends: those of parts, and none that is hidden."""
        sides = [Range(name, *limits) for name, limits in zip(axes, ends, strict=True)]
        inside = mask_of([*sides, *parts], self.columns)
        return inside if self.hidden is None else inside & ~self.hidden

    @cached_property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Variables that pictures may have on their axes, and ``label``."""
        return {name: self.result[name].values for name in point_columns(self.result)}


class Chosen(NamedTuple):
    """The chosen points and their selection, or none."""

    selection: Selection | None = None
    mask: Mask | None = None
    origin: Outcome | None = None  # that was shown when points were chosen


def prepared_system(ds: xr.Dataset, request: Request | str) -> ExplorerSystem:
    """Return the system of a name, or that of a request with the caches of its run; for another process."""
    if isinstance(request, str):
        return system_for(ds, request)
    request.system.ds = ds
    request.outcome()
    return request.system


class State:
    """Data in memory, or a part of those that are larger, the system and its parameters, results, chosen points.

    By default the system is the first that suits the data, and parameters are derived from these; `source` are Python
    lines that make ``ds``, for `code`.
    """

    def __init__(
        self, ds: xr.Dataset, system: str | None = None, *, source: tuple[str, ...] = (), **parameters: Any
    ) -> None:
        ds, self.part = part_of(ds)
        self.ds = to_device(ds.compute(), "cpu")
        if not max(self.ds.sizes.values(), default=0):
            raise ValueError("the data set has no points; there is nothing to explore")
        self.source = source if self.part is None else (*source, *self.part.lines)
        self.slices, self.chips = slices_of(self.ds), chips_of(self.ds)
        self.names = names_for(self.ds)
        self._systems: dict[str, ExplorerSystem] = {}
        self._values: dict[str, dict[str, Any]] = {}
        self.chosen = Chosen()
        self.outcome: Outcome | None = None
        chosen = system_for(self.ds, system)
        self.choose(chosen, **chosen.given(parameters))

    # -------------------------------------------------------------------------------------------------------- requests
    def choose(self, system: str | ExplorerSystem, **parameters: Any) -> None:
        """Take another system; its parameters are as they were left."""
        name = system if isinstance(system, str) else system.name
        if not isinstance(system, str):
            self._systems[name] = system
        self.prepare(name)
        self.system = self._systems[name]
        given = {**self._values.get(name, {}), **parameters}
        self._values[name] = complete(self.system.parameters, given)

    def prepare(self, name: str) -> None:
        """Derive the ranges of a system's parameters from the data, if that was not done before; it may take long."""
        if not self.knows(name):
            self.take(prepared_system(self.ds, name))

    def knows(self, name: str) -> bool:
        """Return whether a system is prepared."""
        return name in self._systems

    def take(self, system: ExplorerSystem) -> None:
        """Take over a system that another process has prepared or run."""
        mine = self._systems.setdefault(system.name, system)
        mine.ds = self.ds
        mine.take(system)

    def set(self, **parameters: Any) -> None:
        """Change parameters of the system."""
        self.choose(self.system.name, **parameters)

    @property
    def values(self) -> dict[str, Any]:
        """Parameters of the system."""
        return dict(self._values[self.system.name])

    # --------------------------------------------------------------------------------------------------------- results
    def request(self, name: str | None = None) -> Request:
        """Return the present request, of the present system or another one."""
        system = self._systems[name or self.system.name]
        return Request(system, complete(system.parameters, self._values.get(system.name, {})))

    def update(self) -> Outcome:
        """Compute the present request, and return the outcome."""
        self.outcome = self.request().outcome()
        return self.outcome

    @property
    def present(self) -> Outcome:
        """The present outcome, computed if there is none yet."""
        return self.outcome or self.update()

    def twin(self) -> State:
        """Return an independent state that begins with the results of this one."""
        other, outcome = copy.copy(self), copy.copy(self.present)
        other._systems = {name: copy.copy(system) for name, system in self._systems.items()}
        for system in other._systems.values():
            system.ds = self.ds
        other._values = {name: dict(values) for name, values in self._values.items()}
        other.system, other.outcome = other._systems[self.system.name], outcome
        object.__setattr__(outcome, "request", Request(other.system, outcome.request.values))
        return other

    def parameters_of(self, system: str) -> tuple[Parameter, ...]:
        """Return the parameters of a system that was prepared; none of another one."""
        return self._systems[system].parameters if self.knows(system) else ()

    def words_of(self, part: Range) -> str:
        """Return what a slice or a chip is called."""
        slices = next(each for each in (self.slices, self.chips) if each is not None and each.column == part.name)
        return slices.words(part)

    # ------------------------------------------------------------------------------------------------------- selection
    def select(self, selection: Selection | None) -> None:
        """Choose points, or none; they stay chosen when parameters change."""
        self.chosen = self.choice(selection, self.present)

    def choice(self, selection: Selection | None, outcome: Outcome) -> Chosen:
        """Return the points of an outcome that a selection chooses."""
        columns = dict(outcome.columns) | (dict(outcome.ground.columns) if outcome.ground else {})
        mask = None if selection is None else selection.mask(columns)
        return Chosen(selection, mask if mask is None or outcome.hidden is None else mask & ~outcome.hidden, outcome)

    @property
    def mask(self) -> Mask | None:
        """Which points are chosen; None where no selection is."""
        return self.chosen.mask
