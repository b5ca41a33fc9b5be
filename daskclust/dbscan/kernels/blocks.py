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
from daskclust.core.device.operations import count_bits, lowest_bit
from daskclust.core.space.grid import lower_bound

CELL_BITS = 6  # at most 64 cells a block
BUNDLE = 64  # sorted points that share a box
SELF = 13  # the code of a block itself among the 27 around it
PARTS = 5  # rows of blocks that hold those behind a block: its own and four more
ONE = np.uint64(1)
BEHIND = np.uint64((1 << 27) - (2 << SELF))  # codes of blocks behind a block, as bits


class BlockGrid(NamedTuple):
    """A grid of cells; `blocks`, `lowest` and `highest` always have three entries, the others one for each axis."""

    inverse: tuple[float, ...]  # cells for each unit of length
    low: tuple[float, ...]  # coordinate where the first cell begins
    cells: tuple[int, ...]  # number of cells
    period: tuple[float, ...]  # period of the axis, 0 where it is open
    blocks: tuple[int, ...]  # number of blocks
    lowest: tuple[int, ...]  # the first and the last of the blocks that touch a block, counted from it
    highest: tuple[int, ...]
    bits: int  # 2**bits cells of a block stand side by side along each axis
    always_wraps: bool  # whether a period is so short that any two blocks may meet around it
    groups: int = 1  # of points, each of which has a grid of its own: its rows come behind those of the one before


class Blocks(NamedTuple):
    """Points sorted by block and cell, padded by `PAD`."""

    grid: BlockGrid
    reach: Any  # (cells of a block, 27) int64: the cells of each neighbouring block within reach of a cell
    positions: Any  # (d, n + PAD) coordinates, periodic ones within [0, period)
    boxes: Any  # (2 d, n / BUNDLE) the lowest, then the highest coordinates of BUNDLE points each
    order: Any  # (n + PAD,) int32: where the point stands in the input
    start: Any  # (cells + 1,) int32: where each cell's points begin
    place: Any  # (cells,) int64: CELL_BITS times shifted, the block of each cell, and its bit there; empty on the CPU
    first_cell: Any  # (blocks + 1,) int32: where each block's cells begin
    occupied: Any  # (blocks,) int64: a bit for each cell that holds points
    slot: Any  # (n,) int32: where each stood in the buckets of `WayBack`; this and the next three are empty on CUDA
    first: Any  # (blocks + 1,) int32: where each block's points begin
    heads: Any  # (blocks,) uint64: a bit for each of its points that is the first of a cell; 0 for more than 64 points
    box: Any  # (blocks, 2 d): the lowest, then the highest coordinates of its points; only where there are several
    row: Any  # (blocks,) int32: the row of each block
    column: Any  # (blocks,) int32, or int64 where that is too short: its place in the row
    row_first: Any  # (rows + 1,) int32: where each row's blocks begin
    row_key: Any  # (rows,) int64: which row it is, where only those with points are kept; else empty
    row_filter: Any  # uint64: bits that such rows set, so that most of the others need no search; empty on CUDA
    bitmap: Any  # uint64, a bit for each block of the grid, set where it holds points; empty on CUDA, and if too many
    rank: Any  # int32: blocks before those of each of its words
    inside: Any  # (blocks,) int64: which bit each block is, ~ of it for those that a period is beside
    counts: Any  # (2,) int32: how many cells and blocks there are; on CUDA arrays of them may be longer


def make_grid(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    eps: float,
    period: tuple[float, ...],
    most_bits: int,
    groups: int = 1,
) -> BlockGrid:
    """Return the grid that covers the box from `low` to `high`, and a block more on each side of it.

    Of a periodic axis it covers the period. Blocks are up to ``2**most_bits`` cells wide, at most 64 cells together.
    """
    d = len(period)
    bits = min(CELL_BITS // d, most_bits)
    width = 1 << bits
    extent = max(cycle or b - a for a, b, cycle in zip(low, high, period, strict=True))
    # points of a cell are neighbours after all rounding, of the cell's number too where there are very many
    side = eps / (math.sqrt(d) * (1 + 1e-6 + extent / eps * 2.0**-49))
    inverse, begin, cells = [], [], []
    for a, b, cycle in zip(low, high, period, strict=True):
        # blocks tile a period
        count = width * math.ceil(cycle / side / width) if cycle else math.floor((b - a) / side) + 1 + 2 * width
        inverse.append(count / cycle if cycle else 1.0 / side)
        begin.append(0.0 if cycle else float(a))
        cells.append(count)
    axes = tuple(inverse), tuple(begin), tuple(cells), tuple(period)
    return with_blocks(BlockGrid(*axes, (), (), (), bits, False, groups))


def with_blocks(grid: BlockGrid) -> BlockGrid:
    """Return the grid with the blocks that its number of cells makes."""
    d, width = len(grid.cells), 1 << grid.bits
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
    return _reach_table(steps, rings, grid.bits)


@functools.cache
def _reach_table(steps: tuple[int, ...], rings: tuple[int, ...], bits: int) -> NDArray[np.int64]:
    """Return `reach_table` of cells so many steps apart; `rings` are the blocks of short periods, else 0."""
    d, width = len(steps), 1 << bits
    places = np.stack(np.unravel_index(np.arange(width**d), (width,) * d), axis=1)
    offsets = np.stack(np.meshgrid(*[np.arange(-s, s + 1) for s in steps], indexing="ij"), axis=-1).reshape(-1, d)
    block, place = np.divmod(places[:, None] + offsets, width)
    for axis, count in enumerate(rings):
        if count:
            block[..., axis] %= count
    weights = 3 ** np.arange(d)[::-1]
    code = SELF + block @ weights
    bit = (place @ (width ** np.arange(d)[::-1])).astype(np.uint64)
    table = np.zeros((width**d, 27), np.uint64)
    np.bitwise_or.at(table, (np.arange(width**d)[:, None], code), np.uint64(1) << bit)
    return table.view(np.int64)


# ----------------------------------------------------------------------------------------------------------------- rows
@body
def row_bounds(row, blocks):
    """Return where the blocks of row number `row` begin and end; both 0 where it has none."""
    if len(blocks.row_key) > 0:
        if len(blocks.row_filter) > 0:
            word, bit = place_in_filter(row, blocks)
            if blocks.row_filter[word] & bit == 0:
                return np.int64(0), np.int64(0)
        rank = lower_bound(blocks.row_key, len(blocks.row_key), row)
        if rank == len(blocks.row_key) or blocks.row_key[rank] != row:
            return np.int64(0), np.int64(0)
        return np.int64(blocks.row_first[rank]), np.int64(blocks.row_first[rank + 1])
    return np.int64(blocks.row_first[row]), np.int64(blocks.row_first[row + 1])


@body
def place_in_filter(row, blocks):
    """Return the word and the bit that a row sets; rows side by side are in one word, and few others in the same."""
    scattered = (np.uint64(row) >> np.uint64(6)) * np.uint64(0x9E3779B97F4A7C15)
    return (scattered >> np.uint64(40)) & np.uint64(len(blocks.row_filter) - 1), ONE << (np.uint64(row) & np.uint64(63))


@body
def row_of(block, blocks):
    """Return the two coordinates of a block's row; the first counts on from group to group."""
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
    before = before_group(x, grid)
    x += dx - before
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
    return np.int64((before + x) * along + y), wraps


@body
def before_group(x, grid):
    """Return where rows of the group begin that those at `x` are of."""
    if grid.groups == 1:
        return np.int64(0)
    across = np.uint64(grid.blocks[0])
    return np.int64(np.uint64(x) // across * across)


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
def fold_behind(state, a, blocks, context):
    """Fold `meet` over the blocks that touch block `a` and stand behind it, so that each pair is met once.

    Where a period is two blocks long, each of them stands behind the other, and they meet twice.
    """
    for part in range(PARTS):
        state = fold_part(state, a, part, 1, blocks, context)
    return state


@body
def fold_part(state, a, part, lowest_of_own, blocks, context):
    """Fold `meet` over the blocks of one row behind block `a`; part 0 is its own row.

    There it begins with column `lowest_of_own`, counted from that of the block.
    """
    grid = blocks.grid
    dx = 1 if part > 1 else 0
    dy = part if dx == 0 else part - 3
    if dx <= grid.highest[0] and dy <= grid.highest[1] and (dx == 0 or dy >= grid.lowest[1]):
        x, y = row_of(a, blocks)
        row, wraps = row_beside(x, y, dx, dy, grid)
        if row >= 0:
            lowest = lowest_of_own if part == 0 else grid.lowest[2]
            state = fold_row(state, a, row, code_of(dx, dy), lowest, wraps, blocks, context)
    return state


# --------------------------------------------------------------------------------------------- neighbours, on the CPU
@body
def is_inside(block, blocks):
    """Return whether no block around a block lies around a period."""
    grid, axes = blocks.grid, len(blocks.grid.period)
    has_periods = False
    for k in range(axes):
        has_periods = has_periods or grid.period[k] > 0.0
    if not has_periods or grid.always_wraps:
        return not grid.always_wraps
    x, y = row_of(block, blocks)
    at = (x - before_group(x, grid), y, np.int64(blocks.column[block]))
    inside = True
    for k in range(axes):
        if grid.period[k] > 0.0:
            inside = inside and 0 < at[3 - axes + k] < grid.blocks[3 - axes + k] - 1
    return inside


@body
def fold_near(state, a, bitmap, blocks, context):
    """As `fold_around`, of the blocks of a bitmap where block `a` is inside the grid."""
    if len(blocks.inside) == 0 or blocks.inside[a] < 0:
        return fold_around(state, a, blocks, context)
    return fold_codes(state, a, codes_around(blocks.inside[a], bitmap, blocks.grid), blocks, context)


@body
def fold_near_behind(state, a, bitmap, blocks, context):
    """As `fold_behind`, of the blocks of a bitmap where block `a` is inside the grid."""
    if len(blocks.inside) == 0 or blocks.inside[a] < 0:
        return fold_behind(state, a, blocks, context)
    return fold_codes(state, a, codes_around(blocks.inside[a], bitmap, blocks.grid) & BEHIND, blocks, context)


@body
def fold_codes(state, a, codes, blocks, context):
    """Fold `meet` over the blocks whose codes are bits of `codes`."""
    while codes != 0:
        code = np.int64(lowest_bit(codes))
        codes &= codes - ONE
        state = meet(state, a, block_seen(a, code, blocks), code, False, context)
    return state


@body
def block_seen(a, code, blocks):
    """Return the block that is seen from block `a`, which is inside the grid, with this code."""
    if code == SELF:
        return np.int64(a)
    row = code // 3
    step = row_step(row // 3 - 1, row % 3 - 1, blocks.grid) + code - 3 * row - 1
    return block_at(np.uint64(blocks.inside[a] + step), blocks)


@body
def block_at(place, blocks):
    """Return the block that is bit `place` of the bitmap."""
    word = place >> np.uint64(6)
    before = blocks.bitmap[word] & ((ONE << (place & np.uint64(63))) - ONE)
    return np.int64(blocks.rank[word]) + np.int64(count_bits(before))


@body
def codes_around(place, bitmap, grid):
    """Return a bit for the code of each of the 27 blocks around bit `place` of a bitmap that are set there."""
    axes = len(grid.period)
    codes = np.uint64(0)
    for dx in range(-1 if axes > 2 else 0, 2 if axes > 2 else 1):
        for dy in range(-1 if axes > 1 else 0, 2 if axes > 1 else 1):
            at = np.uint64(place + row_step(dx, dy, grid) - 1)
            word, bit = at >> np.uint64(6), at & np.uint64(63)
            columns = bitmap[word] >> bit | bitmap[word + ONE] << ONE << (np.uint64(63) - bit)
            codes |= (columns & np.uint64(7)) << np.uint64(code_of(dx, dy) - 1)
    return codes


@body
def row_step(dx, dy, grid):
    """Return how many bits of the bitmap lie between a block and that (dx, dy) rows away."""
    return (dx * grid.blocks[1] + dy) * grid.blocks[2]
