"""CLUE: other thresholds need no new densities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.accessor import ClustAccessor
from daskclust.app.parameters import Parameter, rounded
from daskclust.app.systems._base import ExplorerSystem, Ground, Values, Workload, coordinates, is_timepix, matrix
from daskclust.app.systems._scale import ScalePairs, lengths
from daskclust.core.data.columns import group_number
from daskclust.plot._data import unit_of

DENSITY, DELTA = "log density", "log delta"  # axes of the decision plot: logarithms to base 10
_PAIR_SECONDS = {"flat": 2e-10, "gaussian": 1.2e-9, "exponential": 1.2e-9}  # of a density; measured on two cores


@dataclass(frozen=True, eq=False)
class Decision(Ground):
    """Densities and distances to nearest highers, which were looked for as far as `reach`: the decision plot's."""

    density: npt.NDArray[Any]
    delta: npt.NDArray[Any]
    reach: float
    title: ClassVar[str] = "decision plot"

    @property
    def level(self) -> float:
        """Distance at which points without a nearest higher are drawn."""
        return 1.6 * self.reach

    @cached_property
    def floors(self) -> tuple[float, float]:
        """Lower limits of density and distance, where values that are not positive are drawn."""
        return _least(self.density), _least(self.delta)

    @cached_property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        delta = np.minimum(self.delta, self.level)
        return {
            DENSITY: np.log10(np.maximum(self.density, self.floors[0])),
            DELTA: np.log10(np.maximum(delta, self.floors[1])),
        }

    def expressions(self, source: str) -> dict[str, str]:
        density, delta = f'{source}["density"].values', f'{source}["delta"].values'
        return {
            DENSITY: f"np.log10(np.maximum({density}, {self.floors[0]!r}))",
            DELTA: f"np.log10(np.maximum(np.minimum({delta}, {self.level!r}), {self.floors[1]!r}))",
        }


class Clue(ExplorerSystem):
    """CLUE with one density threshold; thresholds are tried on densities that are kept."""

    name = "clue"
    _decision: Decision
    title = "CLUE"
    needs = "x and y"
    point_seconds = 1e-7

    def __init__(self, ds: xr.Dataset) -> None:
        super().__init__(ds)
        axes = coordinates(ds)
        groups = [ds[name].values for name in ("event", "layer") if name in ds.variables]
        group = group_number(*groups) if len(groups) == 2 else next(iter(groups), None)
        X = matrix(ds, axes)
        small, usual = lengths(X, group)
        self._pairs = ScalePairs(X, group)
        dc = rounded(usual, 2)
        self._reach = 4 * dc
        weights = ds[self.weight].values if self.weight else np.ones(1)
        light = float(weights[weights > 0].min(initial=np.inf))
        light = light if np.isfinite(light) else 1.0
        density = self._of(dc, 4 * dc, "flat").density_ if ds[axes[0]].size else np.ones(1)
        rhoc = rounded(max(float(np.quantile(density, 0.7)), light), 2)
        ends = rounded(light / 2), rounded(max(10 * float(density.max()), 2 * rhoc))
        low, high = rounded(min(small, dc) / 4), rounded(10 * dc)
        span: dict[str, Any] = {"low": low, "high": high, "unit": unit_of(ds[axes[0]])}
        unit = unit_of(ds[self.weight]) if self.weight else ""
        self.parameters = (
            Parameter("dc", "log", dc, **span, doc="radius of the density"),
            Parameter("rhoc", "log", rhoc, *ends, unit=unit, doc="density of seeds"),
            Parameter("delta_c", "log", dc, **span, doc="separation of seeds"),
            Parameter("delta_o", "log", 2 * dc, **span, doc="separation of outliers"),
            Parameter("kernel", "choice", "flat", choices=tuple(_PAIR_SECONDS), doc="weight of neighbours"),
        )
        self.axes = (axes[0], axes[1])
        self.side_axes = ("z", axes[1]) if "z" in ds.variables else None

    @staticmethod
    def suits(ds: xr.Dataset) -> bool:
        return {"x", "y"} <= set(ds.variables) and not is_timepix(ds)

    def given(self, parameters: Values) -> dict[str, Any]:
        """Let separations follow from `dc`, as the estimator's defaults do."""
        if "dc" not in parameters:
            return dict(parameters)
        delta_c = parameters.get("delta_c", parameters["dc"])
        return {"delta_c": delta_c, "delta_o": delta_c, **parameters}

    def run(self, values: Values) -> xr.Dataset:
        thresholds = {name: values[name] for name in ("rhoc", "delta_c", "delta_o")}
        return ClustAccessor(self.ds).assign(self._fit(values).rethreshold(**thresholds))

    def is_kept(self, values: Values) -> bool:
        key, fit = self._kept
        return bool(key == self._key(values) and fit.delta_c >= _reach(values))

    def work(self, values: Values) -> Workload:
        pairs = self._pairs.within(values["dc"])
        seconds = super().work(values).seconds + _PAIR_SECONDS[values["kernel"]] * pairs
        return Workload(seconds, f"{pairs:.0e} pairs".replace("e+", "e"))

    def _key(self, values: Values) -> Any:
        return values["dc"], values["kernel"]

    def ground(self, values: Values) -> Decision:
        self._fit(values)
        return self._decision

    def ground_lines(self, values: Values, ground: Ground, name: str) -> list[str]:
        assert isinstance(ground, Decision)
        given = {name: values[name] for name in ("dc", "rhoc", "kernel")}
        return self.lines({**given, "delta_c": ground.reach}, name)

    def _fit(self, values: Values) -> Any:
        return self._of(values["dc"], _reach(values), values["kernel"])

    def _of(self, dc: float, reach: float, kernel: str) -> Any:
        """Return a fit with these densities, and nearest highers within `reach`."""
        from daskclust.clue.estimator import CLUE

        key, fit = self._kept
        if key != (dc, kernel) or fit.delta_c < reach:
            # one step up when a separation grows, so that it may go on to grow
            self._reach = max(self._reach, 1.5 * reach if reach > self._reach else reach)
            # `event`, `layer` and weights as ds.clust.clue finds them
            fit = CLUE(dc, 1.0, delta_c=self._reach, kernel=kernel).fit(self.ds)
            self._kept = ((dc, kernel), fit)
            self._decision = Decision(fit.density_, fit.delta_, self._reach)
        return fit


def _reach(values: Values) -> float:
    return float(max(values["delta_c"], values["delta_o"]))


def _least(values: npt.NDArray[Any]) -> float:
    """Return half of the least positive value, or the least one where all are positive."""
    positive = values[values > 0]
    least = float(positive.min(initial=np.inf))
    if not np.isfinite(least):
        return 1.0
    return least if positive.size == values.size else least / 2
