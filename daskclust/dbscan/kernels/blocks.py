"""Points in small cells, 64 cells to a block: only those that hold points are kept, as bits of one word.

Cells are so small that all points of one are neighbours: their side is eps / sqrt(d). Neighbours of a point lie at most
a few cells away, so within its block or one that touches it. Blocks stand in memory row by row, rows along the last
axis. Rows are found by table, or by bisection where the space is far larger than the points fill.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.kernels import body
from daskclust.core.space.grid import lower_bound

CELL_BITS = 6  # 64 cells a block
BUNDLE = 64  # sorted points that share a box
SELF = 13  # the code of a block itself among the 27 around it


class BlockGrid(NamedTuple):
    """A grid of cells; `blocks`, `lowest` and `highest` always have three entries, the others one for each axis."""

    inverse: tuple[float, ...]  # cells for each unit of length
    low: tuple[float, ...]  # coordinate where the first cell begins
    cells: tuple[int, ...]  # number of cells
    period: tuple[float, ...]  # period of the axis, 0 where it is open
    blocks: tuple[int, ...]  # number of blocks
    lowest: tuple[int, ...]  # the first and the last of the blocks that touch a block, counted from it
    highest: tuple[int, ...]
    always_wraps: bool  # whether a period is so short that any two blocks may meet around it


class Blocks(NamedTuple):
    """Points sorted by block and cell, padded by `PAD`."""

    grid: BlockGrid
    reach: Any  # (64, 27) int64: the cells of each neighbouring block within reach of a cell
    positions: Any  # (d, n + PAD) coordinates, periodic ones within [0, period)
    boxes: Any  # (2 d, n / BUNDLE) the lowest, then the highest coordinates of BUNDLE points each
    order: Any  # (n + PAD,) int32: where the point stands in the input
    start: Any  # (cells + 1,) int32: where each cell's points begin
    place: Any  # (cells,) int64: CELL_BITS times shifted, the block of each cell, and its bit there; empty on the CPU
    first_cell: Any  # (blocks + 1,) int32: where each block's cells begin
    occupied: Any  # (blocks,) int64: a bit for each cell that holds points
    row: Any  # (blocks,) int32: the row of each block
    column: Any  # (blocks,) int32, or int64 where that is too short: its place in the row
    row_first: Any  # (rows + 1,) int32: where each row's blocks begin
    row_key: Any  # (rows,) int64: which row it is, where only those with points are kept; else empty
    counts: Any  # (2,) int32: how many cells and blocks there are; on CUDA arrays of them may be longer


def make_grid(low: NDArray[np.float64], high: NDArray[np.float64], eps: float, period: tuple[float, ...]) -> BlockGrid:
    """Return the grid that covers the box from `low` to `high`, periodic axes as a whole."""
    d = len(period)
    width = 1 << (CELL_BITS // d)
    extent = max(cycle or b - a for a, b, cycle in zip(low, high, period, strict=True))
    # points of a cell are neighbours after all rounding, of the cell's number too where there are very many
    side = eps / (math.sqrt(d) * (1 + 1e-6 + extent / eps * 2.0**-49))
    inverse, begin, cells = [], [], []
    for a, b, cycle in zip(low, high, period, strict=True):
        # blocks tile a period
        count = width * math.ceil(cycle / side / width) if cycle else math.floor((b - a) / side) + 1
        inverse.append(count / cycle if cycle else 1.0 / side)
        begin.append(0.0 if cycle else float(a))
        cells.append(count)
    return with_blocks(BlockGrid(tuple(inverse), tuple(begin), tuple(cells), tuple(period), (), (), (), False))


def with_blocks(grid: BlockGrid) -> BlockGrid:
    """Return the grid with the blocks that its number of cells makes."""
    d = len(grid.cells)
    width = 1 << (CELL_BITS // d)
    blocks = [1] * (3 - d) + [-(-count // width) for count in grid.cells]
    short = [False] * (3 - d) + [
        bool(cycle) and count <= 2 for cycle, count in zip(grid.period, blocks[3 - d :], strict=True)
    ]
    return grid._replace(
        blocks=tuple(blocks),
        # what lies to the left of one of two blocks lies to its right as well
        lowest=tuple(0 if count == 1 or is_short else -1 for count, is_short in zip(blocks, short, strict=True)),
        highest=tuple(int(count > 1) for count in blocks),
        always_wraps=any(short),
    )


def reach_table(grid: BlockGrid, eps: float) -> NDArray[np.int64]:
    """Return, for each cell of a block and each of the 27 blocks around it, the mask of the cells within `eps`."""
    d = len(grid.cells)
    steps = tuple(math.floor(eps * per_unit * (1 + 1e-9)) + 1 for per_unit in grid.inverse)
    rings = tuple(
        count if cycle and count <= 2 else 0 for cycle, count in zip(grid.period, grid.blocks[3 - d :], strict=True)
    )
    return _reach_table(steps, rings)


@functools.cache
def _reach_table(steps: tuple[int, ...], rings: tuple[int, ...]) -> NDArray[np.int64]:
    """Return `reach_table` of cells so many steps apart; `rings` are the blocks of short periods, else 0."""
    d = len(steps)
    width = 1 << (CELL_BITS // d)
    places = np.stack(np.unravel_index(np.arange(64), (width,) * d), axis=1)
    offsets = np.stack(np.meshgrid(*[np.arange(-s, s + 1) for s in steps], indexing="ij"), axis=-1).reshape(-1, d)
    block, place = np.divmod(places[:, None] + offsets, width)
    for axis, count in enumerate(rings):
        if count:
            block[..., axis] %= count
    weights = 3 ** np.arange(d)[::-1]
    code = SELF + block @ weights
    bit = (place @ (width ** np.arange(d)[::-1])).astype(np.uint64)
    table = np.zeros((64, 27), np.uint64)
    np.bitwise_or.at(table, (np.arange(64)[:, None], code), np.uint64(1) << bit)
    return table.view(np.int64)


# ----------------------------------------------------------------------------------------------------------------- rows
@body
def row_bounds(row, blocks):
    """Return where the blocks of row number `row` begin and end; both 0 where it has none."""
    if len(blocks.row_key) > 0:
        rank = lower_bound(blocks.row_key, len(blocks.row_key), row)
        if rank == len(blocks.row_key) or blocks.row_key[rank] != row:
            return np.int64(0), np.int64(0)
        return np.int64(blocks.row_first[rank]), np.int64(blocks.row_first[rank + 1])
    return np.int64(blocks.row_first[row]), np.int64(blocks.row_first[row + 1])


@body
def row_of(block, blocks):
    """Return the two coordinates of a block's row."""
    along = blocks.grid.blocks[1]
    if len(blocks.row_key) > 0:
        row = np.int64(blocks.row_key[blocks.row[block]])
        x = np.int64(np.uint64(row) // np.uint64(along))
    else:  # CUDA divides 32 bits faster
        row = np.int64(blocks.row[block])
        x = np.int64(np.uint32(row) // np.uint32(along))
    return x, row - x * along


@body
def row_beside(x, y, dx, dy, grid):
    """Return the number of the row (dx, dy) from row (x, y), -1 for none, and whether it lies around a period."""
    axes = len(grid.period)
    across, along = grid.blocks[0], grid.blocks[1]
    x += dx
    y += dy
    wraps = grid.always_wraps
    if x < 0 or x >= across:
        if axes < 3 or grid.period[0] == 0.0:
            return np.int64(-1), wraps
        x = x + across if x < 0 else x - across
        wraps = True
    if y < 0 or y >= along:
        if axes < 2 or grid.period[axes - 2] == 0.0:
            return np.int64(-1), wraps
        y = y + along if y < 0 else y - along
        wraps = True
    return np.int64(x * along + y), wraps


# ----------------------------------------------------------------------------------------------------------- neighbours
@body
def meet(state, a, b, code, wraps, context):
    """Stand for the step of a fold over pairs of blocks that touch; the folds are bound to real ones.

    `code` says where block b is seen from block a, `wraps` whether distances may go around a period.
    """
    return state


@body
def fold_around(state, a, blocks, context):
    """Fold `meet` over block `a` with itself and with each block that touches it."""
    grid = blocks.grid
    x, y = row_of(a, blocks)
    for dx in range(grid.lowest[0], grid.highest[0] + 1):
        for dy in range(grid.lowest[1], grid.highest[1] + 1):
            row, wraps = row_beside(x, y, dx, dy, grid)
            if row >= 0:
                state = fold_row(state, a, row, code_of(dx, dy), grid.lowest[2], wraps, blocks, context)
    return state


@body
def code_of(dx, dy):
    """Return the code of the block (dx, dy, 0) from a block."""
    return SELF + dx * 9 + dy * 3


@body
def fold_row(state, a, row, code, lowest, wraps, blocks, context):
    """Fold `meet` over the blocks of a row that touch block `a`, from column `lowest`, counted from its own, on."""
    first, last = row_bounds(row, blocks)
    if first == last:
        return state
    grid = blocks.grid
    for turn in range(-turns(grid), turns(grid) + 1):
        column = np.int64(blocks.column[a]) - turn * grid.blocks[2]  # as seen from there
        if column + lowest < grid.blocks[2] and column + grid.highest[2] >= 0:
            b = first_from(column + lowest, first, last, blocks)
            while b < last and blocks.column[b] <= column + grid.highest[2]:
                state = meet(state, a, b, code + blocks.column[b] - column, wraps or turn != 0, context)
                b += 1
    return state


@body
def turns(grid):
    """Return how many turns, either way, around the period of the last axis may bring two of its blocks together."""
    return 1 if is_ring(grid) else 0


@body
def is_ring(grid):
    """Return whether rows are rings of two or more blocks."""
    return grid.period[len(grid.period) - 1] > 0.0 and grid.highest[2] > 0


@body
def first_from(column, first, last, blocks):
    """Return the first of the blocks `first` to `last` - 1 that stands at `column` or behind it; `last` for none."""
    while first < last:
        middle = (first + last) >> 1
        if blocks.column[middle] < column:
            first = middle + 1
        else:
            last = middle
    return first


@body
def sweep_row(state, row, blocks, context):
    """Fold `meet` over each block of a row and those behind it that touch it, with one walk along each row there.

    So each pair is met once; where a period is two blocks long, each lies behind the other, and it is met twice.
    """
    first, last = np.int64(blocks.row_first[row]), np.int64(blocks.row_first[row + 1])
    if first == last:
        return state
    grid = blocks.grid
    x, y = row_of(first, blocks)
    for a in range(first, last):  # the row itself, which may be a ring
        b = a + 1 if a + 1 < last else first
        step = blocks.column[b] - blocks.column[a]
        if step == 1 or (is_ring(grid) and step == 1 - grid.blocks[2]):
            state = meet(state, a, b, SELF + 1, grid.always_wraps or b <= a, context)
    for dx in range(grid.highest[0] + 1):
        for dy in range(1 if dx == 0 else grid.lowest[1], grid.highest[1] + 1):
            other, wraps = row_beside(x, y, dx, dy, grid)
            if other >= 0:
                state = sweep_pair(state, first, last, other, code_of(dx, dy), wraps, blocks, context)
    return state


@body
def sweep_pair(state, first, last, other, code, wraps, blocks, context):
    """Fold `meet` over the pairs that touch of blocks `first` to `last` - 1, which are a row, and row `other`."""
    begin, end = row_bounds(other, blocks)
    if begin == end:
        return state
    grid = blocks.grid
    for turn in range(-turns(grid), turns(grid) + 1):  # around the period the ends of rows meet
        b = begin if turn >= 0 else end - 1
        for a in range(last - 1 if turn > 0 else first, first + 1 if turn < 0 else last):
            column = np.int64(blocks.column[a]) - turn * grid.blocks[2]  # as seen from there
            while b < end and blocks.column[b] < column + grid.lowest[2]:
                b += 1
            c = b
            while c < end and blocks.column[c] <= column + grid.highest[2]:
                state = meet(state, a, c, code + blocks.column[c] - column, wraps or turn != 0, context)
                c += 1
    return state
