"""Sort points into blocks of cells: number the cells, cut gaps where these are too many, and sort by the numbers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.arrays import HOST, Cuda, Host
from daskclust.core.device.kernels import body, kernel
from daskclust.core.space.grid import lower_bound, within_period
from daskclust.dbscan.kernels import bucket_sort, sort_on_cuda
from daskclust.dbscan.kernels.blocks import BlockGrid, Blocks, with_blocks

_MOST_KEYS = 2**62
_MOST_SHORT = 2**31 - 1  # numbers of rows and columns that int32 holds


class Gaps(NamedTuple):
    """Where all cells are too many to number: those along each axis that hold points, and what becomes of them."""

    kept: tuple[Any, ...]  # cells that hold points, ascending, an array for each axis; empty where all are numbered
    moved: tuple[Any, ...]  # their numbers without the wide gaps


def sort_into_blocks(
    device: Host | Cuda, X: Any, grid: BlockGrid, eps: float, group: Any = None
) -> tuple[Blocks, Any, Any]:
    """Return the points ``X`` (n, d), n > 0, sorted into the blocks of `grid`, and where to get memory (`empty`).

    ``group`` (n,) are numbers from 0, where the grid has several. The last is the `WayBack` of labels; CUDA needs none.
    """
    n, d = X.shape
    rank = row_key = device.empty(0, np.int64)
    group = rank if group is None else group
    gaps = Gaps((rank,) * d, (rank,) * d)
    if _span(grid) >= _MOST_KEYS or grid.blocks[2] >= _MOST_SHORT:
        grid, gaps = _without_gaps(device, X, grid, gaps)
    if _span(grid) >= _MOST_KEYS:
        rank, row_key = _ranked_rows(device, X, group, grid, gaps)
    rows = len(row_key) or grid.groups * grid.blocks[0] * grid.blocks[1]
    is_table = len(row_key) > 0 or rows <= min(4 * n + 65536, _MOST_SHORT)
    span, keys = rows * grid.blocks[2] << (grid.bits * d), device.scratch(n, np.int64)
    bits = 0 if device is HOST else sort_on_cuda.place_bits(n, span)
    device.run(write_keys, n, X, group, grid, gaps, rank, bits, keys)
    del rank
    given = X, grid, eps, keys, span, row_key, rows if is_table else 0
    if isinstance(device, Cuda):
        return sort_on_cuda.sorted_blocks(device, bits, *given), device, None
    return bucket_sort.sorted_blocks(*given)


def _span(grid: BlockGrid) -> int:
    return grid.groups * math.prod(grid.blocks) << (grid.bits * len(grid.cells))


# ---------------------------------------------------------------------------------------------------------------- keys
@body
def cell_along(axis, x, grid, gaps):
    """Return the cell of coordinate `x` along `axis`."""
    before = 0 if grid.period[axis] > 0.0 else 1 << grid.bits  # cells of the block before the first
    cell = np.int64((np.float64(x) - grid.low[axis]) * grid.inverse[axis])
    if len(gaps.kept[axis]) > 0:
        return before + gaps.moved[axis][lower_bound(gaps.kept[axis], len(gaps.kept[axis]), cell)]
    return before + min(cell, grid.cells[axis] - 1 - 2 * before)


@body
def group_at(i, group):
    """Return the group of point i, 0 where there are none."""
    return np.int64(group[i]) if len(group) > 0 else np.int64(0)


@kernel
def write_keys(i, X, group, grid, gaps, rank, own_bits, keys):
    """Write the number of point i's cell, row by row and block by block; `rank` numbers its row, unless it is empty.

    The point's own number follows in the lowest `own_bits` bits, if there are any.
    """
    axes = len(grid.inverse)
    bits = grid.bits
    block, within = group_at(i, group), np.int64(0)
    for k in range(axes):
        cell = cell_along(k, within_period(X[i, k], grid.period[k]), grid, gaps)
        if k == axes - 1 and len(rank) > 0:
            block = rank[i]
        block = block * grid.blocks[3 - axes + k] + (cell >> bits)
        within = (within << bits) | (cell & ((1 << bits) - 1))
    key = (block << (grid.bits * len(grid.cells))) | within
    keys[i] = (key << own_bits) | np.int64(i) if own_bits > 0 else key


def _without_gaps(device: Host | Cuda, X: Any, grid: BlockGrid, gaps: Gaps) -> tuple[BlockGrid, Gaps]:
    """Return the grid with its open axes cut short where no point is: only near cells need to keep their distance."""
    positions, kept, moved, cells = device.to_host(X), list(gaps.kept), list(gaps.moved), list(grid.cells)
    width = 1 << grid.bits
    for axis in range(len(grid.cells)):
        if not grid.period[axis]:
            x = positions[:, axis].astype(np.float64)
            at = np.unique(((x - grid.low[axis]) * grid.inverse[axis]).astype(np.int64))
            steps = np.minimum(np.diff(at), 4)  # cells four apart are out of reach
            numbers = np.concatenate([[0], np.cumsum(steps)])
            kept[axis], moved[axis] = device.from_host(at), device.from_host(numbers)
            cells[axis] = int(numbers[-1]) + 1 + 2 * width
    return with_blocks(grid._replace(cells=tuple(cells))), Gaps(tuple(kept), tuple(moved))


def _ranked_rows(device: Host | Cuda, X: Any, group: Any, grid: BlockGrid, gaps: Gaps) -> tuple[Any, Any]:
    """Return the number of each point's row, of those that hold points, and which rows these are."""
    if grid.groups * grid.blocks[0] * grid.blocks[1] >= _MOST_KEYS:
        raise ValueError(
            f"boxsize {' x '.join(f'{period:g}' for period in grid.period)} is "
            f"{' x '.join(f'{count:.3g}' for count in grid.blocks)} blocks of cells wide, too many to be numbered; "
            "use a larger eps, or boxsize=None along axes where no neighbours lie across the faces"
        )
    keys = device.empty(len(X), np.int64)
    device.run(write_rows, len(X), X, group, grid, gaps, keys)
    rows, rank = np.unique(device.to_host(keys), return_inverse=True)
    if len(rows) * (grid.blocks[2] << (grid.bits * len(grid.cells))) >= _MOST_KEYS:
        raise ValueError(
            f"the points lie in {len(rows)} rows of {grid.blocks[2]} blocks of cells, too many to be numbered; use a "
            "larger eps, or fewer points at a time (chunks of a dask array)"
        )
    return device.from_host(rank.reshape(-1).astype(np.int64)), device.from_host(rows)


@kernel
def write_rows(i, X, group, grid, gaps, keys):
    """Write the number of the row of blocks that point i is in."""
    axes = len(grid.inverse)
    row = group_at(i, group)
    for k in range(axes - 1):
        cell = cell_along(k, within_period(X[i, k], grid.period[k]), grid, gaps)
        row = row * grid.blocks[3 - axes + k] + (cell >> grid.bits)
    keys[i] = row
