"""CLUE: other thresholds need no new densities."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from daskclust.accessor import ClustAccessor
from daskclust.app.parameters import Parameter, rounded
from daskclust.app.systems._base import System, Values, coordinates, is_timepix, matrix, unit_of
from daskclust.app.systems._decision import Decision
from daskclust.app.systems._ground import Ground
from daskclust.app.systems._scale import lengths


class Clue(System):
    """CLUE with one density threshold; thresholds are tried on densities that are kept."""

    name = "clue"
    title = "CLUE"
    needs = "x and y"

    def __init__(self, ds: xr.Dataset) -> None:
        super().__init__(ds)
        axes = coordinates(ds)
        layer = next((ds[name].values for name in ("event", "layer") if name in ds.variables), None)
        if "event" in ds.variables and "layer" in ds.variables:
            layer = _joined(ds["event"].values, ds["layer"].values)
        small, usual, _ = lengths(matrix(ds, axes), layer)
        dc = rounded(usual, 2)
        length = unit_of(ds, axes[0])
        reach = rounded(10 * dc)
        self._fit: Any = None
        self._fitted: tuple[Any, ...] = ()
        self._decision: Decision | None = None
        self._reach = 4 * dc
        weights = ds[self.weight].values if self.weight else np.ones(1)
        light = float(weights[weights > 0].min(initial=np.inf))
        light = light if np.isfinite(light) else 1.0
        density = self._of(dc, 4 * dc, "flat").density_ if ds[axes[0]].size else np.ones(1)
        rhoc = rounded(max(float(np.quantile(density, 0.7)), light), 2)
        most = rounded(max(10 * float(density.max()), 2 * rhoc))
        unit = unit_of(ds, self.weight) if self.weight else ""
        low = rounded(min(small, dc) / 4)
        self.parameters = (
            Parameter("dc", "log", dc, low, reach, unit=length, doc="radius of the density"),
            Parameter("rhoc", "log", rhoc, rounded(light / 2), most, unit=unit, doc="density of seeds"),
            Parameter("delta_c", "log", dc, low, reach, unit=length, doc="separation of seeds"),
            Parameter("delta_o", "log", 2 * dc, low, reach, unit=length, doc="separation of outliers"),
            Parameter(
                "kernel", "choice", "flat", choices=("flat", "gaussian", "exponential"), doc="weight of neighbours"
            ),
        )
        self.axes = (axes[0], axes[1])
        self.side_axes = ("z", axes[1]) if "z" in ds.variables else None

    @staticmethod
    def suits(ds: xr.Dataset) -> bool:
        """Return whether a data set has what the system needs."""
        return {"x", "y"} <= set(ds.variables) and not is_timepix(ds)

    def run(self, values: Values) -> xr.Dataset:
        """Return the data set with the results of CLUE."""
        fit = self._of(values["dc"], max(values["delta_c"], values["delta_o"]), values["kernel"])
        thresholds = {name: values[name] for name in ("rhoc", "delta_c", "delta_o")}
        return ClustAccessor(self.ds).assign(fit.rethreshold(**thresholds))

    def ground(self, values: Values) -> Decision:
        """Return what the decision plot draws, the same object as long as densities are."""
        fit = self._of(values["dc"], max(values["delta_c"], values["delta_o"]), values["kernel"])
        if self._decision is None or self._decision.density is not fit.density_:
            self._decision = Decision(fit.density_, fit.delta_, float(fit.delta_c))
        return self._decision

    def lines(self, values: Values, name: str = "result") -> list[str]:
        """Return the Python lines that make the result, and call it `name`, from ``ds``."""
        given = ", ".join(f"{each}={values[each]!r}" for each in ("dc", "rhoc", "delta_c", "delta_o", "kernel"))
        return [f"{name} = ds.clust.clue({given})"]

    def ground_lines(self, values: Values, ground: Ground, name: str) -> list[str]:
        """Return the Python lines that make a result with the distances of the decision plot, as far as these go."""
        assert isinstance(ground, Decision)
        given = f"dc={values['dc']!r}, rhoc={values['rhoc']!r}, delta_c={ground.reach!r}, kernel={values['kernel']!r}"
        return [f"{name} = ds.clust.clue({given})"]

    def _of(self, dc: float, reach: float, kernel: str) -> Any:
        """Return a fit with these densities, in which nearest highers are known as far as `reach`."""
        from daskclust.clue.estimator import CLUE

        key = (dc, kernel)
        if self._fitted != key or self._fit.delta_c < reach:
            # one step up when a separation grows, so that it may go on to grow
            self._reach = max(self._reach, 1.5 * reach if reach > self._reach else reach)
            # `event`, `layer` and weights as ds.clust.clue finds them
            self._fit = CLUE(dc, 1.0, delta_c=self._reach, kernel=kernel).fit(self.ds)
            self._fitted = key
        return self._fit


def _joined(event: Any, layer: Any) -> Any:
    return event.astype(np.int64) * (int(layer.max(initial=0)) + 1) + layer
