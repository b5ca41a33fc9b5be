"""The searches that DBSCAN is made of, on blocks of cells (up to three dimensions)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.arrays import HOST, Cuda, Host
from daskclust.core.device.unionfind import start
from daskclust.core.space.extent import survey
from daskclust.core.space.grid import PAD
from daskclust.dbscan.kernels import clusters, core_points, links, on_cuda
from daskclust.dbscan.kernels.blocking import sort_into_blocks
from daskclust.dbscan.kernels.blocks import CELL_BITS, PARTS, make_grid
from daskclust.dbscan.kernels.distances import write_boxes
from daskclust.dbscan.kernels.masks import CorePoints

_MOST_OF_BLOCK = 24  # points in the mean: where there are more, many blocks hold more than 64
_FEW_BITS = 2  # then a block has 4 cells along an axis
_POINTS_A_PAIR = 16  # for each place on CUDA's list of pairs of cells


class PointGroups(NamedTuple):
    """Points of different groups are no neighbours."""

    of_point: Any = None  # (n,) numbers from 0; None where all are of one
    total: int = 1


ONE_GROUP = PointGroups()


class BlockSearch:
    """Points ``X`` (n, d), n > 0 and d <= 3, sorted so that their neighbours within `eps` are at hand.

    `order` is where each sorted point stands in the input; core points stand at the front of their cell, which begins
    at `start` and whose core points end at `stop`. Arrays that do not outlive the search come from `memory`.
    """

    def __init__(
        self,
        device: Host | Cuda,
        X: Any,
        eps: float,
        period: tuple[float, ...],
        extent: Any,
        groups: PointGroups = ONE_GROUP,
    ) -> None:
        self._device, self._n = device, len(X)
        grid = make_grid(extent[0], extent[1], eps, period, CELL_BITS, groups.total)
        if device is HOST and X.shape[1] == 2 and self._n > _MOST_OF_BLOCK * grid.groups * math.prod(grid.blocks):
            grid = make_grid(extent[0], extent[1], eps, period, _FEW_BITS, groups.total)
        self.blocks, self.memory, self.way_back = sort_into_blocks(device, X, grid, eps, groups.of_point)
        self.limits = squared_limits(eps, X.dtype.type)
        self.order, self.start, self.positions = self.blocks.order, self.blocks.start, self.blocks.positions
        self.stop, self._occupied, self.in_order = self.start[1:], self.blocks.occupied, True
        self._count, self._least = device.empty(0, np.int32), np.int32(0)
        self._bitmap, self._is_whole = self.blocks.bitmap, device.empty(0, np.bool_)

    @property
    def _n_blocks(self) -> int:
        return len(self.blocks.row)

    @property
    def n_cells(self) -> int:
        """Number of cells; on CUDA some, behind those that hold points, may be empty."""
        return len(self.start) - 1

    def find_core(self, enough: int, weight: Any, exact_zone: Any) -> None:
        """Find the points with `enough` neighbours; the others are no core points.

        `weight` is None or two columns, the sums of which are the weights, the second empty for zeros; `exact_zone` are
        the faces and the reach of the block whose points have all their neighbours here, or None where all have.
        """
        device, blocks = self._device, self.blocks
        count = self.memory.empty(self._n + PAD, np.int32)
        least = np.int32(enough if weight is None else 1)
        if weight is None and device is HOST:
            args = blocks, self._core(), self.limits, least, count  # all are, so far
            device.run(core_points.count_neighbours, self._n_blocks, *args, grain=512)
        elif weight is None:
            device.run(on_cuda.count_of_point, self._n, blocks, self.limits, least, count)
        else:
            low, *_ = survey(device, weight[0].reshape(self._n, 1))
            args = blocks, self.limits, float(enough), bool(low[0] < 0), *weight, count
            if device is HOST:
                device.run(core_points.weigh_neighbours, self._n_blocks, *args, grain=512)
            else:
                device.run(on_cuda.weigh_point, self._n, *args)
        if exact_zone is not None:
            low, high, reach = exact_zone
            device.run(core_points.forget_far, self._n, blocks.positions, low, high, blocks.grid.period, reach, count)
        self.stop, self.in_order = self.memory.empty(self.n_cells, np.int32), False
        self._count, self._least = count, least
        if device is HOST:
            self._occupied = self.memory.empty(self._n_blocks, np.int64)
            self._bitmap = self.memory.zeros(len(blocks.bitmap), np.uint64)
            gathered = self.stop, self._occupied, self._bitmap
            device.run(core_points.gather_core, self._n_blocks, blocks, least, count, *gathered)
        else:
            self._occupied = device.full(self._n_blocks, 0, np.int64)
            device.run(on_cuda.gather_core_of_cell, self.n_cells, blocks, least, count, self.stop, self._occupied)
        device.run(write_boxes, blocks.boxes.shape[1], self._n, blocks, grain=1024)

    def _core(self) -> CorePoints:
        """Return which points are core points."""
        return CorePoints(self._count, self._least, self.stop, self._occupied, self._bitmap)

    def link(self) -> Any:
        """Return each cell's parent in the sets of cells whose core points are within eps.

        `clusters.first_points` finds the roots.
        """
        device, blocks, cells = self._device, self.blocks, self.n_cells
        parent = self.memory.empty(cells, np.int32)
        device.run(start, cells, parent)
        if device is HOST:
            self._is_whole = self.memory.empty(self._n_blocks, np.bool_)
            known = self._core(), self.limits, self._is_whole, parent
            device.run(links.link_within, self._n_blocks, blocks, *known, grain=1024)
            device.run(links.link_behind, self._n_blocks, blocks, *known, grain=1024)
            return parent
        most = self._n // _POINTS_A_PAIR + 1
        pairs = on_cuda.CellPairs(device.empty((most, 4), np.int32), device.full(1, 0, np.int64))
        parts = PARTS if blocks.grid.highest[0] else 1 + blocks.grid.highest[1]
        args = blocks, self.stop, self.limits, self._occupied, parent, pairs
        device.run(on_cuda.link_part, parts * cells, cells, *args)
        device.run(on_cuda.link_listed, most << on_cuda.WARP_BITS, blocks, self.stop, self.limits, parent, pairs)
        return parent

    def label_border(self, number: Any, above: Any, label: Any) -> None:
        """Write the smallest number of cells with a core point within eps to `label` for points that are not core.

        Only numbers beyond those of `above` (n,) count, unless it is empty; where there is none, it is `clusters.NONE`.
        """
        device, blocks = self._device, self.blocks
        if device is HOST:
            args = blocks, self._core(), self.limits, self._is_whole, number, above, label
            device.run(clusters.label_border, self._n_blocks, *args, grain=512)
        else:
            args = blocks, self.stop, self.limits, self._occupied, number, above, label
            device.run(on_cuda.label_border_point, self._n, *args)


def squared_limits(eps: float, dtype: Any) -> tuple[Any, Any, float]:
    """Return the squared distances, as computed in `dtype`, up to which points are surely and possibly within `eps`.

    The third is ``eps**2``, for squared distances in float64. Each of the up to three squares and their sum is rounded,
    and so is each difference: together by less than 6 units of 2**-24 in float32.
    """
    square = eps * eps
    if dtype is np.float64:
        return square, square, square
    margin = 2.0**-21
    if not 1e-35 < square < 1e38:  # beyond, float32 squares overflow or lose their digits
        return dtype(-1), dtype(np.inf), square
    return dtype(square * (1 - margin)), dtype(square * (1 + margin)), square
