"""DBSCAN and friends-of-friends."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from daskclust.app.parameters import Parameter, rounded
from daskclust.app.systems._base import ExplorerSystem, coordinates, is_plain, matrix
from daskclust.app.systems._scale import lengths
from daskclust.plot._data import unit_of


class _Points(ExplorerSystem):
    """Points of one to three dimensions, maybe in a box."""

    needs = "x, and neither layer nor toa"
    weights = ("energy", "mass")
    suits = staticmethod(is_plain)

    def __init__(self, ds: xr.Dataset) -> None:
        super().__init__(ds)
        names = coordinates(ds)
        self.axes = (names[0], names[1])
        self.side_axes = (names[0], names[2]) if len(names) > 2 else None
        self._is_box = ds.attrs.get("boxsize") is not None

    def _length(self, name: str, doc: str) -> Parameter:
        names = coordinates(self.ds)
        small, usual = lengths(matrix(self.ds, names))
        ends = rounded(small / 4), rounded(10 * usual)
        return Parameter(name, "log", rounded(usual, 2), *ends, unit=unit_of(self.ds[names[0]]), doc=doc)

    @property
    def measured(self) -> tuple[str, dict[str, Any]]:
        # in a box centres may be across its faces
        return ("halo_table", {}) if self._is_box else super().measured


class Dbscan(_Points):
    """DBSCAN."""

    name = "dbscan"
    title = "DBSCAN"

    def __init__(self, ds: xr.Dataset) -> None:
        super().__init__(ds)
        eps = self._length("eps", "largest distance of neighbours")
        self.parameters = (eps, Parameter("min_samples", "whole", 5, 1, 100, doc="neighbours of core points"))


class Fof(_Points):
    """Friends-of-friends; fewer or more members need no new links."""

    name = "fof"
    title = "Friends-of-friends"
    cut = "min_members"

    def __init__(self, ds: xr.Dataset) -> None:
        super().__init__(ds)
        is_closed = self._is_box and all(np.ravel(ds.attrs["boxsize"]))  # None or 0 along an open axis
        by_mean = Parameter("b", "linear", 0.2, 0.05, 0.5, doc="length by mean separation")
        length = by_mean if is_closed else self._length("linking_length", "largest distance of friends")
        self.parameters = (length, Parameter("min_members", "whole", 2, 2, 500, doc="members of a group, at least"))
