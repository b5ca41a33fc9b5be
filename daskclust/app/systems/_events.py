"""Event building; a smallest number of hits needs no new clusters. Hits of noisy pixels are left out on demand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

from daskclust.accessor import ClustAccessor
from daskclust.app.parameters import Parameter
from daskclust.app.systems._base import ExplorerSystem, Values, is_timepix
from daskclust.core.merge.labels import NOISE
from daskclust.properties._noisy import hits_of_pixels


class Events(ExplorerSystem):
    """Event building of pixel hits."""

    name = "events"
    title = "Event building"
    needs = "x, y and toa"
    cut, hides = "min_hits", "max_pixel_hits"
    point_seconds = 5e-8
    axes, side_axes = ("x", "y"), ("toa", "x")
    parameters: tuple[Parameter, ...] = (
        Parameter("dt_max", "log", 200.0, 1.0, 10_000.0, unit="ns", doc="largest difference of times"),
        Parameter("min_hits", "whole", 1, 1, 100, doc="hits of a cluster, at least"),
        Parameter("variant", "choice", "local", choices=("local", "global", "static"), doc="what a cluster is"),
        Parameter("connectivity", "choice", 8, choices=(8, 4), doc="touching pixels"),
    )
    suits = staticmethod(is_timepix)
    measured = ("cluster_table", {})

    def __init__(self, ds: xr.Dataset) -> None:
        super().__init__(ds)
        self._hits = hits_of_pixels(ds)
        most = float(self._hits.max(initial=1))
        words = "pixels with more are hidden"
        own = [each for each in Events.parameters if each.name != "dt_max" or "frame" not in ds.variables]
        self.parameters = (*own, Parameter("max_pixel_hits", "log", most, 1.0, most, doc=words))

    def _run(self, how: dict[str, Any]) -> xr.Dataset:
        """Return the events of pixels that are not noisy; hits of the others are noise."""
        noisy = self._hits > how.pop("max_pixel_hits")
        if not noisy.any():
            return super()._run(how)
        dim = self.ds["toa"].dims[0]
        found = ClustAccessor(self.ds.isel({dim: ~noisy})).events(**how)
        label = np.full(len(noisy), NOISE)
        label[~noisy] = found["label"].values
        results = {"label": (dim, label, found["label"].attrs), "is_noisy": (dim, noisy)}
        return self.ds.assign(results).assign_attrs(found.attrs)

    def table(self, result: xr.Dataset) -> xr.Dataset:
        if "is_noisy" in result:
            result = result.isel({result["label"].dims[0]: ~result["is_noisy"].values})
        return super().table(result)

    def hiding_lines(self, values: Values) -> list[str]:
        if values["max_pixel_hits"] >= self._hits.max(initial=1):
            return []
        return [f"ds = properties.mask_noisy_pixels(ds, {math.floor(values['max_pixel_hits'])})"]
