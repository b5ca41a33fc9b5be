"""The searches that DBSCAN is made of, on blocks of cells (up to three dimensions)."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskclust.core.device.arrays import HOST, Cuda, Host
from daskclust.core.device.unionfind import flatten, start
from daskclust.core.space.extent import survey
from daskclust.core.space.grid import PAD
from daskclust.dbscan.kernels import core_points, links
from daskclust.dbscan.kernels.blocking import sort_into_blocks, write_boxes
from daskclust.dbscan.kernels.blocks import make_grid


class BlockSearch:
    """Points ``X`` (n, d), n > 0 and d <= 3, sorted so that their neighbours within `eps` are at hand.

    `order` is where each sorted point stands in the input; core points stand at the front of their cell, which begins
    at `start` and whose core points end at `stop`.
    """

    def __init__(self, device: Host | Cuda, X: Any, eps: float, period: tuple[float, ...], extent: Any) -> None:
        self._device, self._n = device, len(X)
        grid = make_grid(extent[0], extent[1], eps, period)
        self.blocks = sort_into_blocks(device, X, grid, eps)
        self.limits = squared_limits(eps, X.dtype.type)
        self.order, self.start, self.positions = self.blocks.order, self.blocks.start, self.blocks.positions
        self.stop, self._held = self.start[1:], self.blocks.occupied
        self._rows, self._is_near = len(self.blocks.row_first) - 1, device.empty(0, np.bool_)

    @property
    def _n_blocks(self) -> int:
        return len(self.blocks.row)

    @property
    def n_cells(self) -> int:
        """Number of cells that hold points."""
        return len(self.start) - 1

    def find_core(self, enough: int, weight: Any, exact_zone: Any) -> None:
        """Find the points with `enough` neighbours; the others are no core points.

        `weight` is None or two columns, the sums of which are the weights, the second empty for zeros; `exact_zone` are
        the faces and the reach of the block whose points have all their neighbours here, or None where all have.
        """
        device, blocks = self._device, self.blocks
        count = device.empty(self._n + PAD, np.int32)
        if weight is None:
            population = device.empty(self._n_blocks, np.int32)
            device.run(core_points.start_population, self._n_blocks, blocks, population)
            self._by_pairs(core_points.spread_population, core_points.spread_population_of, blocks, population)
            least = np.int32(enough)
            device.run(
                core_points.count_neighbours, self._n_blocks, blocks, self.limits, least, population, count, grain=512
            )
        else:
            least = np.int32(1)
            low, *_ = survey(device, weight[0].reshape(self._n, 1))
            is_negative = bool(low[0] < 0)
            args = blocks, self.limits, float(enough), is_negative, *weight, count
            device.run(core_points.weigh_neighbours, self._n_blocks, *args, grain=512)
        if exact_zone is not None:
            low, high, reach = exact_zone
            device.run(core_points.forget_far, self._n, blocks.positions, low, high, blocks.grid.period, reach, count)
        self.stop = device.empty(self.n_cells, np.int32)
        self._held = device.empty(self._n_blocks, np.int64)
        device.run(core_points.gather_core, self._n_blocks, blocks, least, count, self.stop, self._held)
        device.run(write_boxes, blocks.boxes.shape[1], self._n, blocks, grain=1024)

    def link(self) -> Any:
        """Return the root of the set of cells that each cell belongs to: sets whose core points are within eps."""
        device, blocks = self._device, self.blocks
        parent = device.empty(self.n_cells, np.int32)
        device.run(start, self.n_cells, parent)
        is_whole = device.empty(self._n_blocks, np.bool_)
        self._is_near = device.empty(self._n_blocks, np.bool_)
        args = blocks, self.stop, self.limits, self._held, is_whole, self._is_near, parent
        device.run(links.link_within, self._n_blocks, *args, grain=1024)
        self._by_pairs(links.link_row, links.link_block, *args)
        device.run(flatten, self.n_cells, parent)
        return parent

    def label_border(self, number: Any, above: Any, label: Any) -> None:
        """Write the smallest number of cells with a core point within eps to `label` for points that are not core.

        Only numbers beyond those of `above` (n,) count, unless it is empty; where there is none, it is `links.NONE`.
        """
        args = self.blocks, self.stop, self.limits, self._held, self._is_near, number, above, label
        self._device.run(links.label_border, self._n_blocks, *args, grain=512)

    def _by_pairs(self, by_row: Any, by_block: Any, *args: Any) -> None:
        """Run a kernel over pairs of blocks: CPU threads walk along rows, on CUDA each block is a thread."""
        if self._device is HOST:
            self._device.run(by_row, self._rows, *args, grain=256)
        else:
            self._device.run(by_block, self._n_blocks, *args)


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
