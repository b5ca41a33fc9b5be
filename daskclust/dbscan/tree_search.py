"""The searches that DBSCAN is made of, on the CPU for more than three dimensions: on scikit-learn's tree, in batches.

The tree proposes neighbours, a little beyond eps; distances in float64 decide. Batches are so small that their
neighbours fit a fixed number of pairs, so memory is linear in the number of points.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import Cuda, Host
from daskclust.core.device.unionfind import flatten, start, unite_edges
from daskclust.core.space.grid import PAD, wrap_positions
from daskclust.dbscan.kernels import links
from daskclust.dbscan.kernels.core_points import forget_far
from daskclust.dbscan.kernels.pairs import check_near, weigh

_PAIRS = 1 << 21  # neighbours in a batch
_QUERIES = 1 << 14


class TreeSearch:
    """Points ``X`` (n, d) with a tree; each point is a cell of its own, see `BlockSearch`."""

    def __init__(self, _host: Host | Cuda, X: Any, eps: float, period: tuple[float, ...], extent: Any) -> None:
        from sklearn.neighbors import KDTree

        self._eps, self._period = eps, np.array(period)
        self._points = wrap_positions(X, period).astype(np.float64, copy=False)
        self._tree = KDTree(self._points)
        self.n_cells = n = len(X)
        self.start = np.arange(n + 1, dtype=np.int32)
        self.order = np.arange(n + PAD, dtype=np.int32)
        self.stop, self.in_order = self.start[1:], True
        self.positions = self._points.T
        self._candidates = np.concatenate(
            [self._count_candidates(rows) for rows in np.array_split(np.arange(n), -(-n // _QUERIES))]
        )

    def find_core(self, enough: int, weight: Any, exact_zone: Any) -> None:
        """Find the points with `enough` neighbours."""
        n = self.n_cells
        count = np.zeros(n, np.int32)
        queries = np.arange(n) if weight is not None else np.flatnonzero(self._candidates >= enough)
        for rows, begin, neighbours in self._neighbours(queries):
            if weight is None:
                count[rows] = np.diff(begin)
            else:
                is_enough = np.empty(len(rows), np.int32)
                weigh.run(len(rows), begin, neighbours, *weight, float(enough), is_enough)
                count[rows] = is_enough
        if exact_zone is not None:
            low, high, reach = exact_zone
            period = tuple(self._period)
            forget_far.run(n, self.positions, low, high, period, reach, count)
        self.stop = self.start[:-1] + (count >= (enough if weight is None else 1)).astype(np.int32)

    def link(self) -> Any:
        """Return the root of the set of each point: sets of core points within eps."""
        n = self.n_cells
        parent = np.empty(n, np.int32)
        start.run(n, parent)
        is_core = self.stop > self.start[:-1]
        for rows, begin, neighbours in self._neighbours(np.flatnonzero(is_core)):
            one = np.repeat(rows, np.diff(begin))
            linked = is_core[neighbours] & (neighbours > one)
            unite_edges.run(int(linked.sum()), one[linked], neighbours[linked], parent)
        flatten.run(n, parent)
        return parent

    def label_border(self, number: Any, above: Any, label: Any) -> None:
        """Write the smallest number, above that in `above`, of a core point within eps of each other point."""
        is_core = self.stop > self.start[:-1]
        border = ~is_core
        if len(above):
            border &= above != links.NONE
        label[~is_core] = links.NONE
        for rows, begin, neighbours in self._neighbours(np.flatnonzero(border)):
            one = np.repeat(rows, np.diff(begin))
            counts = is_core[neighbours]
            if len(above):
                counts &= number[neighbours] > above[one]
            np.minimum.at(label, one[counts], number[neighbours[counts]])

    def _images(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return places in `rows` and where to look for the neighbours of each: at its images beyond faces, too."""
        place, at = np.arange(len(rows)), self._points[rows]
        for axis in np.flatnonzero(self._period):
            cycle, reach = self._period[axis], self._eps * (1 + 1e-6)
            for shift, beyond in ((cycle, at[:, axis] < reach), (-cycle, at[:, axis] >= cycle - reach)):
                image = at[: len(beyond)][beyond]
                image[:, axis] += shift
                place, at = np.concatenate([place, place[: len(beyond)][beyond]]), np.concatenate([at, image])
        return place, at

    def _count_candidates(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        place, at = self._images(rows)
        counts = self._tree.query_radius(at, self._eps * (1 + 1e-9), count_only=True)
        return np.bincount(place, counts, len(rows)).astype(np.int64)

    def _neighbours(
        self, queries: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """Yield batches of `queries`, where the neighbours of each begin and end, and the neighbours."""
        total = np.cumsum(self._candidates[queries])
        begin = 0
        while begin < len(queries):
            before = total[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(total, before + _PAIRS, side="right")))
            yield self._batch(queries[begin : min(end, begin + _QUERIES)])
            begin = min(end, begin + _QUERIES)

    def _batch(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        place, at = self._images(rows)
        found = self._tree.query_radius(at, self._eps * (1 + 1e-9))
        which = np.repeat(place, [len(each) for each in found])
        neighbours = np.concatenate(found)
        if len(place) > len(rows):  # at half a period a neighbour is met from both sides
            which, neighbours = np.divmod(np.unique(which * self.n_cells + neighbours), self.n_cells)
        is_near = np.empty(len(which), np.bool_)
        check_near.run(len(which), rows[which], neighbours, self.positions, self._period, self._eps**2, is_near)
        which, neighbours = which[is_near], neighbours[is_near]
        order = np.argsort(which, kind="stable")
        begin = np.searchsorted(which[order], np.arange(len(rows) + 1))
        return rows, begin, neighbours[order]
