"""Event building; a smallest number of hits needs no new clusters. Hits of noisy pixels are left out on demand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.accessor import ClustAccessor
from daskclust.app.parameters import Parameter
from daskclust.app.systems._base import ExplorerSystem, Values, is_timepix
from daskclust.core.data.quote import argument
from daskclust.core.merge.labels import NOISE

_MOST_PIXELS = 1 << 26  # that are counted one by one


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
        self._pixel = [name for name in ("chip", "x", "y") if name in ds.variables]
        self._hits = _pixel_hits([ds[name].values.astype(np.int64) for name in self._pixel])
        most = float(self._hits.max(initial=1))
        words = "pixels with more are hidden"
        self.parameters = (*Events.parameters, Parameter("max_pixel_hits", "log", most, 1.0, most, doc=words))

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

    def lines(self, values: Values, name: str = "result") -> list[str]:
        return super().lines({key: value for key, value in values.items() if key != self.hides}, name)

    def hiding_lines(self, values: Values) -> list[str]:
        if values["max_pixel_hits"] >= self._hits.max(initial=1):
            return []
        of_pixel = f'ds[{self._pixel}].to_dataframe().groupby({self._pixel})["x"].transform("size").values'
        few = f"hits <= {values['max_pixel_hits']!r}"
        return [f"hits = {of_pixel}", f"ds = ds.isel({argument(self.ds['toa'].dims[0], few)})"]


def _pixel_hits(places: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int32]:
    """Return the number of hits of the pixel of each hit, of chips, columns and rows of pixels."""
    shape = [int(each.max(initial=0)) + 1 for each in places]
    number = np.ravel_multi_index(tuple(places), shape)
    if math.prod(shape) > _MOST_PIXELS:
        number = np.unique(number, return_inverse=True)[1]
    return np.bincount(number).astype(np.int32)[number]
