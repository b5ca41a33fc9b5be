"""The searches that DBSCAN is made of, on the CPU for more than three dimensions: on scikit-learn's tree of boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskclust.core.device.arrays import HOST, Cuda, Host
from daskclust.core.device.unionfind import start
from daskclust.core.space.bucket_sort import in_one_bucket
from daskclust.core.space.grid import PAD, wrap_positions
from daskclust.dbscan.kernels import clusters, tree
from daskclust.dbscan.kernels.core_points import forget_far

_LEAF = 32  # points of a leaf, at least


class TreeSearch:
    """Points ``X`` (n, d) in the order of a tree; each point is a cell of its own, see `BlockSearch`."""

    def __init__(self, _host: Host | Cuda, X: Any, eps: float, period: tuple[float, ...], extent: Any) -> None:
        from sklearn.neighbors import KDTree

        points, cycle = wrap_positions(X, period).astype(np.float64, copy=False), np.array(period)
        _, order, nodes, boxes = KDTree(points, leaf_size=_LEAF).get_arrays()
        self.memory = HOST
        self.n_cells, self._period, points = len(X), period, points[order]
        self.order, self.positions, self.in_order = _and_behind(order, 0).astype(np.int32), _padded(points), True
        self.start = np.arange(len(X) + 1, dtype=np.int32)
        self.stop, self.way_back = self.start[1:], in_one_bucket(order)

        # Each scaled coordinate is rounded by up to 2**-24 of the largest, as is a period and a difference from one.
        middle = boxes[0, 0] / 2 + boxes[1, 0] / 2
        largest = float((boxes[1, 0] - middle + 2 * cycle).max())
        unit = eps if largest < 1e15 * eps else np.inf  # beyond, float32 tells nothing
        error, by = 2.0**-22 * largest / eps * len(cycle) ** 0.5, (len(cycle) + 8) * 2.0**-23  # by: of each operation
        limits = (1 - error) ** 2 * (1 - by) if error < 1 else -1.0, (1 + error) ** 2 * (1 + by)
        wide = (points - middle) / unit, cycle / unit, (boxes - middle) / unit
        scaled, *others = (array.astype(np.float32) for array in wide)
        exact = self.order, self.positions.reshape(-1), cycle, eps * eps
        spans = nodes["idx_start"].copy(), nodes["idx_end"].copy()
        self._tree = tree.PointTree(*exact, *spans, _padded(scaled).reshape(-1), *others, *map(np.float32, limits))

    def _visit(self, kernel: Any, forward: bool, *context: Any) -> None:
        HOST.run(kernel, -(-self.n_cells // PAD), self.n_cells, self._tree, forward, context, grain=8)

    def find_core(self, enough: int, weight: Any, exact_zone: Any) -> None:
        """Find the points with `enough` neighbours; the arguments are those of `BlockSearch.find_core`."""
        n = self.n_cells
        high, low = _and_behind(np.zeros(n), np.inf), np.zeros(n)
        weight = weight or (np.ones(n), np.empty(0))
        self._visit(tree.visit, False, high, low, np.inf if weight[0].min() < 0 else float(enough), *weight)
        is_core = (high[:n] >= enough).astype(np.int32)
        if exact_zone is not None:
            forget_far.run(n, self.positions, *exact_zone[:2], self._period, exact_zone[2], is_core)
        self.stop = self.start[:n] + is_core

    def link(self) -> Any:
        """Return each point's parent in the sets of core points within eps."""
        parent = np.empty(self.n_cells, np.int32)
        start.run(self.n_cells, parent)
        self._visit(tree.visit_for_links, True, _and_behind(self.stop - self.start[:-1], 0), parent)
        return parent

    def label_border(self, number: Any, above: Any, label: Any) -> None:
        """Write the smallest number, above that in `above`, of a core point within eps of each other point."""
        label[:], is_core = clusters.NONE, self.stop > self.start[:-1]
        least = _and_behind(np.where(is_core, clusters.NONE, above if len(above) else np.int32(-1)), clusters.NONE)
        self._visit(tree.visit_for_labels, False, np.where(is_core, number, clusters.NONE), least, label)


def _and_behind(values: Any, behind: Any) -> Any:
    """Return values with those that SIMD lanes may read behind them."""
    return np.append(values, np.full(PAD, behind, values.dtype))


def _padded(points: Any) -> Any:
    """Return points (n, d) as (d, n + PAD), zeros behind them."""
    columns = np.zeros((points.shape[1], len(points) + PAD), points.dtype)
    columns[:, : len(points)] = points.T
    return columns
