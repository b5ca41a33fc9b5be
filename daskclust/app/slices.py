"""Slices of a data set that are looked at one by one: layers of a calorimeter, stretches of time of a detector."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.app.selection import Range
from daskclust.app.systems._base import is_timepix

_HITS = 2_000  # of a stretch of time, at least
_MOST = 1_000  # stretches


class Slices(NamedTuple):
    """What slices are called, which one each point is in, which there are, and which one is shown at first."""

    name: str
    of_point: npt.NDArray[Any]
    numbers: list[int]
    first: int | None
    column: str  # the variable that tells slices apart
    values: npt.NDArray[Any]

    def range(self, number: int) -> Range:
        """Return the values of the column in a slice."""
        mine = self.values[self.of_point == number]
        return Range(self.column, mine.min().item(), mine.max().item())


def slices_of(ds: xr.Dataset) -> Slices | None:
    """Return the slices of a data set: its layers, or stretches of time with as many hits each; None if it has none."""
    if "layer" in ds.variables:
        layer = ds["layer"].values
        return Slices("layer", layer, np.unique(layer).tolist(), None, "layer", layer)
    if not is_timepix(ds):
        return None
    n = ds["toa"].size
    frame = np.empty(n, np.int32)
    toa = ds["toa"].values
    frame[np.argsort(toa, kind="stable")] = np.arange(n) // max(_HITS, -(-n // _MOST))
    return Slices("time", frame, list(range(int(frame.max()) + 1)), 0, "toa", toa)
