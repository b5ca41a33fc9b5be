"""What the explorer asks of a system, and what most systems answer alike.

A system is a subclass of `ExplorerSystem` with its name, its parameters and what it needs; `run`, Python lines and the
table follow from these. What is quicker a second time is said by `cut`, or by a `run` of its own.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust import systems as registry
from daskclust.accessor import ClustAccessor
from daskclust.app.parameters import Parameter
from daskclust.core.data.inputs import split_points
from daskclust.core.merge.labels import without_small

Values = Mapping[str, Any]


_SURE = 0.2  # seconds; what is shorter tells nothing of what is longer


class Workload(NamedTuple):
    """How long a run takes, about, and what it has to do, in words."""

    seconds: float
    words: str = ""


class Ground:
    """What thresholds go through, and the plot draws in which they are dragged; it stays while thresholds move."""

    title: ClassVar[str]  # of the view

    @property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of the view, beside the variables of the result."""
        return {}

    def expressions(self, source: str) -> dict[str, str]:
        """Return Python expressions for `columns`; `source` is what the lines call the result."""
        return {}


class ExplorerSystem:
    """A way to cluster a data set in memory: parameters with ranges that suit it, a cache of what does not change."""

    name: ClassVar[str]  # also that of the method of ``ds.clust``
    title: ClassVar[str]
    needs: ClassVar[str]  # what a data set must have, in words
    drawn = "result"  # what the lines call the data set with the columns that pictures draw
    cut: ClassVar[str | None] = None  # parameter that makes smaller clusters noise, which needs no new clusters
    hides: ClassVar[str | None] = None  # parameter that hides points; they are noise, with ``is_noisy``
    weights: ClassVar[tuple[str, ...]] = ("energy", "weight")  # variables that may weigh points
    point_seconds: ClassVar[float] = 3e-7  # of a run, for each point; measured on two cores
    parameters: tuple[Parameter, ...]
    axes: tuple[str, str]  # of the first picture
    side_axes: tuple[str, str] | None = None  # of a second picture, if it is of use

    def __init__(self, ds: xr.Dataset) -> None:
        self.ds = ds
        self._kept: tuple[Any, Any] = (None, None)
        self._pace = 1.0  # how much longer than expected the last run took

    @staticmethod
    def suits(ds: xr.Dataset) -> bool:
        """Return whether a data set has what the system needs."""
        raise NotImplementedError

    def run(self, values: Values) -> xr.Dataset:
        """Return the data set with ``label`` and other results as variables along the points."""
        key = self._key(values)
        if self._kept[0] != key:
            found = self._run(dict(key))
            data = self.ds.variables
            given = [name for name, v in found.variables.items() if name in data and v.values is data[name].values]
            self._kept = (key, found.drop_vars(given))
        mine: xr.Dataset = self._kept[1]
        found = self.ds.assign(mine.variables).assign_attrs(mine.attrs)
        return found if self.cut is None else self._without_small(found, values[self.cut])

    def _run(self, how: dict[str, Any]) -> xr.Dataset:
        found: xr.Dataset = getattr(ClustAccessor(self.ds), self.name)(**how)
        return found

    def _key(self, values: Values) -> Any:
        """Return the cache key: parameters that need a new run."""
        key = {name: value for name, value in self.options(values).items() if name != self.cut}
        return key if self.hides is None else key | {self.hides: values[self.hides]}

    # ------------------------------------------------------------------------------------------------------- long work
    @classmethod
    def seconds_to_begin(cls, ds: xr.Dataset) -> float:
        """Estimate the seconds to derive the ranges of parameters from the data."""
        return 2e-7 * max(ds.sizes.values())

    def seconds(self, values: Values) -> Workload:
        """Estimate the seconds of `run`: 0 where its results are cached, else corrected by earlier runs."""
        work = Workload(0.0) if self.is_kept(values) else self.work(values)
        return work._replace(seconds=self._pace * work.seconds)

    def is_kept(self, values: Values) -> bool:
        """Return whether the results of `run` are cached."""
        return bool(self._kept[0] == self._key(values))

    def work(self, values: Values) -> Workload:
        """Estimate the seconds of `run` on two cores where nothing is cached."""
        n = max(self.ds.sizes.values())
        return Workload(self.point_seconds * n, f"{n:,} points")

    def learn(self, expected: float, seconds: float) -> None:
        """Correct later estimates by a run that took so many seconds."""
        if min(expected, seconds) > _SURE:
            self._pace *= seconds / expected

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process: all but the data, which it has."""
        return vars(self) | {"ds": None}

    def take(self, other: ExplorerSystem) -> None:
        """Take over the caches of another process."""
        vars(self).update(vars(other) | {"ds": self.ds})

    def _without_small(self, found: xr.Dataset, least: int) -> xr.Dataset:
        """Return clusters of `least` points and more, and attributes that say so."""
        label = found["label"]
        attrs = {name: least if name == self.cut else value for name, value in label.attrs.items()}
        call = re.sub(rf"\b{self.cut}=\d+", f"{self.cut}={least}", found.attrs[self.name])
        number = without_small(label.values, least)
        return found.assign(label=(label.dims, number, attrs)).assign_attrs({self.name: call})

    def options(self, values: Values) -> dict[str, Any]:
        """Return what the method of ``ds.clust`` is given."""
        return {name: value for name, value in values.items() if name != self.hides}

    def lines(self, values: Values, name: str = "result") -> list[str]:
        """Return the Python lines that make what `run` returns, and call it `name`, from ``ds``."""
        options = ", ".join(f"{key}={value!r}" for key, value in self.options(values).items())
        return [f"{name} = ds.clust.{self.name}({options})"]

    def hiding_lines(self, values: Values) -> list[str]:
        """Return the Python lines that take hidden points out of ``ds``."""
        return []

    def ground(self, values: Values) -> Ground | None:
        """Return what thresholds cut, the same object until it changes; None where there is no such plot."""
        return None

    def ground_lines(self, values: Values, ground: Ground, name: str) -> list[str]:
        """Return the Python lines that make a result with all variables of `ground`, and call it `name`."""
        return self.lines(values, name)

    def given(self, parameters: Values) -> dict[str, Any]:
        """Return parameters that a user gives to begin with, and those that follow from them."""
        chosen = [each.when for each in self.parameters if each.when is not None and each.name in parameters]
        return {**dict(chosen), **parameters}

    def implied(self, values: Values, name: str, value: Any) -> dict[str, Any]:
        """Return the parameters that change with one that the user changes, itself included."""
        return {name: value}

    def is_given(self, name: str) -> bool:
        """Return whether a variable is in the data set."""
        return name in self.ds.variables

    def expression(self, name: str, source: str) -> str:
        """Return the Python expression for a variable; `source` is what the lines call the data set that has it."""
        return f"{source}[{name!r}].values"

    @property
    def measured(self) -> tuple[str, dict[str, Any]]:
        """The function of `daskclust.properties` that makes the table, and its options."""
        return "cluster_table", {"weight": self.weight}

    @property
    def weight(self) -> str | None:
        """Variable that weighs points."""
        return next((name for name in self.weights if name in self.ds.variables), None)

    def table(self, result: xr.Dataset) -> xr.Dataset:
        """Return a row for each cluster."""
        from daskclust import properties

        function, options = self.measured
        table: xr.Dataset = getattr(properties, function)(result, **options)
        return table

    def table_lines(self, source: str = "result", name: str = "table") -> list[str]:
        """Return the Python lines that make the table, and call it `name`, of the result `source`."""
        function, options = self.measured
        arguments = [source, *(f"{key}={value!r}" for key, value in options.items())]
        return [f"{name} = properties.{function}({', '.join(arguments)})"]


def default_of(system: str, name: str) -> Any:
    """Return the default of an estimator's parameter."""
    return inspect.signature(registry.SYSTEMS[system].estimator).parameters[name].default


def point_columns(ds: xr.Dataset) -> list[str]:
    """Return the names of numeric variables along the points."""
    dim = ds["x"].dims if "x" in ds.variables else next((v.dims for v in ds.variables.values() if v.ndim == 1), ())
    return [str(name) for name, v in ds.variables.items() if v.dims == dim and len(dim) == 1 and v.dtype.kind in "fiub"]


def matrix(ds: xr.Dataset, names: Sequence[str]) -> npt.NDArray[Any]:
    """Return variables in one unit side by side (n, d)."""
    return np.asarray(split_points(ds, (), names).X)


def coordinates(ds: xr.Dataset) -> list[str]:
    """Return what ``ds.clust`` takes as coordinates."""
    return [name for name in ("x", "y", "z") if name in ds.variables and not (name == "z" and "layer" in ds.variables)]


def is_timepix(ds: xr.Dataset) -> bool:
    """Return whether points are pixel hits."""
    return {"x", "y", "toa"} <= set(ds.variables)


def is_plain(ds: xr.Dataset) -> bool:
    """Return whether points have positions, and neither times nor layers."""
    return {"x", "y"} <= set(ds.variables) and not is_timepix(ds) and "layer" not in ds.variables
