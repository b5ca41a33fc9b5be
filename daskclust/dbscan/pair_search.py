"""The searches that DBSCAN is made of, on CUDA for more than three dimensions: all pairs of points."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskclust.core.device.arrays import Cuda, Host
from daskclust.core.device.unionfind import start
from daskclust.core.space.grid import PAD
from daskclust.dbscan.kernels import all_pairs
from daskclust.dbscan.kernels.core_points import forget_far

_MOST_AXES = 10


def check_axes(d: int) -> None:
    """Refuse more coordinates than are supported."""
    if d > _MOST_AXES:
        raise ValueError(
            f"X has {d} coordinates; on a CUDA device up to {_MOST_AXES} are supported: pass it as a NumPy array, "
            "e.g. cupy.asnumpy(X)"
        )


class PairSearch:
    """Points ``X`` (n, d) on a device; each point is a cell of its own, see `BlockSearch`."""

    way_back: Any = None  # labels are written by point

    def __init__(self, device: Host | Cuda, X: Any, eps: float, period: tuple[float, ...], extent: Any) -> None:
        n, d = X.shape
        self._device, self.memory, self._period, self.n_cells, self.in_order = device, device, period, n, True
        self.positions = device.empty((d, n + PAD), X.dtype)
        self.order, start_of = device.empty(n + PAD, np.int32), device.empty(n + PAD, np.int32)
        device.run(all_pairs.start_points, n + PAD, X, period, self.positions, self.order, start_of)
        self.start, self.stop = start_of[: n + 1], start_of[1 : n + 1]
        self._given = n, self.positions, period, eps * eps

    def find_core(self, enough: int, weight: Any, exact_zone: Any) -> None:
        """Find the points with `enough` neighbours."""
        device, n, count = self._device, self.n_cells, self._device.empty(self.n_cells, np.int32)
        least = np.int32(enough if weight is None else 1)
        if weight is None:
            device.run(all_pairs.count_all, n, *self._given, least, count)
        else:
            device.run(all_pairs.weigh_all, n, *self._given, float(enough), *weight, count)
        if exact_zone is not None:
            low, high, reach = exact_zone
            device.run(forget_far, n, self.positions, low, high, self._period, reach, count)
        self.stop = device.empty(n, np.int32)
        device.run(all_pairs.keep_core, n, count, least, self.stop)

    def link(self) -> Any:
        """Return the parent of each point in the sets of core points within eps."""
        parent = self._device.empty(self.n_cells, np.int32)
        self._device.run(start, self.n_cells, parent)
        self._device.run(all_pairs.link_all, self.n_cells, *self._given, self.stop, parent)
        return parent

    def label_border(self, number: Any, above: Any, label: Any) -> None:
        """Write the smallest number, above that in `above`, of a core point within eps of each other point."""
        self._device.run(all_pairs.label_border_all, self.n_cells, *self._given, self.stop, number, above, label)
