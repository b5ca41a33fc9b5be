"""Sort points into blocks of cells, on the CPU or a CUDA device: keys, one sort, and a look at where they change."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import HOST, Cuda, Host, Reused, copy
from daskclust.core.device.kernels import body, kernel
from daskclust.core.space.bucket_sort import sort_points
from daskclust.core.space.grid import PAD, lower_bound, within_period
from daskclust.dbscan.kernels.blocks import (
    BUNDLE,
    CELL_BITS,
    ONE,
    BlockGrid,
    Blocks,
    is_ring,
    place_in_filter,
    reach_table,
    row_of,
    with_blocks,
)
from daskclust.dbscan.kernels.distances import span_of

_MOST_KEYS = 2**62
_MOST_SHORT = 2**31 - 1  # numbers of rows and columns that int32 holds
_KEY_BITS = 63
_BITS_A_POINT, _FEW_BITS = 64, 1 << 22  # of the bitmap of blocks, at most


class Gaps(NamedTuple):
    """Where all cells are too many to number: those along each axis that hold points, and what becomes of them."""

    kept: tuple[Any, ...]  # cells that hold points, ascending, an array for each axis; empty where all are numbered
    moved: tuple[Any, ...]  # their numbers without the wide gaps


def sort_into_blocks(device: Host | Cuda, X: Any, grid: BlockGrid, eps: float) -> tuple[Blocks, Any]:
    """Return the points ``X`` (n, d), n > 0, sorted into the blocks of `grid`, and where to get memory (`empty`)."""
    n, d = X.shape
    rank = row_key = device.empty(0, np.int64)
    gaps = Gaps((rank,) * d, (rank,) * d)
    if _span(grid) >= _MOST_KEYS or grid.blocks[2] >= _MOST_SHORT:
        grid, gaps = _without_gaps(device, X, grid, gaps)
    if _span(grid) >= _MOST_KEYS:
        rank, row_key = _ranked_rows(device, X, grid, gaps)
    per_row = grid.blocks[2] << CELL_BITS
    rows = len(row_key) or grid.blocks[0] * grid.blocks[1]
    bits = 0 if device is HOST else place_bits(n, rows * per_row)
    keys, order = device.empty(n, np.int64), device.empty(n + PAD, np.int32)
    positions = device.empty((d, n + PAD), X.dtype)
    device.run(write_keys, n, X, grid, gaps, rank, bits, keys)
    del rank
    memory: Any = Reused() if device is HOST else device
    is_moved = device is HOST and sort_points(X, grid.period, keys, rows * per_row, order, positions, memory)
    if isinstance(device, Cuda) and bits > 0:
        device.sort(keys, bits, bits + (rows * per_row - 1).bit_length())
    elif not is_moved:
        places = device.order_of(keys)
        device.run(copy, n, places, order)
        keys = device.take_at(keys, places)
    is_table = len(row_key) > 0 or rows <= min(4 * n + 65536, _MOST_SHORT)

    pieces = -(-n // (8192 if device is HOST else 16))
    heads, up_to = device.empty((3, pieces), np.int32), device.empty(3 * pieces, np.int32)
    device.run(count_heads, pieces, keys, bits, per_row, is_table, order[: 0 if is_moved else n], heads, grain=1)
    device.running_sum(heads.reshape(-1), up_to)
    if device is HOST or not is_table:
        n_cells, n_blocks, n_rows = np.diff(device.to_host(up_to[pieces - 1 :: pieces]), prepend=np.int32(0)).tolist()
    else:  # the host does not wait to know: arrays are as long as they may need to be
        n_blocks = min(n, math.prod(grid.blocks))
        n_cells, n_rows = min(n, n_blocks << CELL_BITS), rows
    bits_of_rows = rows * (grid.blocks[2] + 2)
    has_filter = device is HOST and (len(row_key) > 0 or not is_table)  # else a row's number says where it is
    has_bitmap = device is HOST and not has_filter and bits_of_rows <= _BITS_A_POINT * n + _FEW_BITS
    words = (bits_of_rows >> 6) + 2 if has_bitmap else 0
    blocks = Blocks(
        grid,
        device.from_host(reach_table(grid, eps)),
        positions,
        memory.empty((2 * d, -(-n // BUNDLE)), X.dtype),
        order,
        memory.empty(n_cells + 1, np.int32),
        memory.empty(0 if device is HOST else n_cells, np.int64),
        memory.empty(n_blocks + 1, np.int32),
        memory.empty(n_blocks, np.int64),
        memory.empty(n_blocks + 1 if device is HOST else 0, np.int32),
        memory.empty(n_blocks if device is HOST else 0, np.uint64),
        memory.empty((n_blocks if device is HOST else 0, 2 * d), X.dtype),
        memory.empty(n_blocks, np.int32),
        memory.empty(n_blocks, np.int32 if grid.blocks[2] < _MOST_SHORT else np.int64),
        memory.empty((rows if is_table else n_rows) + 1, np.int32),
        row_key if is_table else memory.empty(n_rows, np.int64),
        _empty_filter(len(row_key) or n_rows) if has_filter else memory.empty(0, np.uint64),
        np.zeros(words, np.uint64) if words else memory.empty(0, np.uint64),
        memory.empty(words, np.int32),
        memory.empty(n_blocks if words else 0, np.int64),
        memory.empty(2, np.int32),
    )
    device.run(write_heads, pieces, keys, bits, per_row, heads, up_to, is_table, blocks, grain=1)
    device.run(write_positions, 0 if is_moved else n + PAD, X, blocks)
    if device is HOST:
        device.run(describe_block, n_blocks, keys, bits, blocks)
        device.run(write_row_filter, int(has_filter), blocks)
        if is_moved:
            memory.add(keys)
    else:
        device.run(find_row_firsts, len(blocks.row_first), blocks)
        device.run(write_cells, n_cells, n, keys, bits, blocks)
    device.run(write_boxes, blocks.boxes.shape[1], n, blocks, grain=1024)
    return blocks, memory


def _empty_filter(rows: int) -> NDArray[np.uint64]:
    """Return a filter for so many rows, with 16 to 32 bits for each."""
    return np.zeros(1 << max(0, rows.bit_length() - 2), np.uint64)


def _span(grid: BlockGrid) -> int:
    return math.prod(grid.blocks) << CELL_BITS


# ---------------------------------------------------------------------------------------------------------------- keys
@body
def cell_along(axis, x, grid, gaps):
    """Return the cell of coordinate `x` along `axis`."""
    cell = np.int64((np.float64(x) - grid.low[axis]) * grid.inverse[axis])
    if len(gaps.kept[axis]) > 0:
        return gaps.moved[axis][lower_bound(gaps.kept[axis], len(gaps.kept[axis]), cell)]
    return min(cell, grid.cells[axis] - 1)


@kernel
def write_keys(i, X, grid, gaps, rank, own_bits, keys):
    """Write the number of point i's cell, row by row and block by block; `rank` numbers its row, unless it is empty.

    The point's own number follows in the lowest `own_bits` bits, if there are any.
    """
    axes = len(grid.inverse)
    bits = CELL_BITS // axes
    block, within = np.int64(0), np.int64(0)
    for k in range(axes):
        cell = cell_along(k, within_period(X[i, k], grid.period[k]), grid, gaps)
        if k == axes - 1 and len(rank) > 0:
            block = rank[i]
        block = block * grid.blocks[3 - axes + k] + (cell >> bits)
        within = (within << bits) | (cell & ((1 << bits) - 1))
    key = (block << CELL_BITS) | within
    keys[i] = (key << own_bits) | np.int64(i) if own_bits > 0 else key


def _without_gaps(device: Host | Cuda, X: Any, grid: BlockGrid, gaps: Gaps) -> tuple[BlockGrid, Gaps]:
    """Return the grid with its open axes cut short where no point is: only near cells need to keep their distance."""
    positions, kept, moved, cells = device.to_host(X), list(gaps.kept), list(gaps.moved), list(grid.cells)
    for axis in range(len(grid.cells)):
        if not grid.period[axis]:
            x = positions[:, axis].astype(np.float64)
            at = np.unique(((x - grid.low[axis]) * grid.inverse[axis]).astype(np.int64))
            steps = np.minimum(np.diff(at), 4)  # cells four apart are out of reach
            numbers = np.concatenate([[0], np.cumsum(steps)])
            kept[axis], moved[axis], cells[axis] = device.from_host(at), device.from_host(numbers), int(numbers[-1]) + 1
    return with_blocks(grid._replace(cells=tuple(cells))), Gaps(tuple(kept), tuple(moved))


def _ranked_rows(device: Host | Cuda, X: Any, grid: BlockGrid, gaps: Gaps) -> tuple[Any, Any]:
    """Return the number of each point's row, of those that hold points, and which rows these are."""
    if grid.blocks[0] * grid.blocks[1] >= _MOST_KEYS:
        raise ValueError(
            f"boxsize {' x '.join(f'{period:g}' for period in grid.period)} is "
            f"{' x '.join(f'{count:.3g}' for count in grid.blocks)} blocks of cells wide, too many to be numbered; "
            "use a larger eps, or boxsize=None along axes where no neighbours lie across the faces"
        )
    keys = device.empty(len(X), np.int64)
    device.run(write_rows, len(X), X, grid, gaps, keys)
    rows, rank = np.unique(device.to_host(keys), return_inverse=True)
    if len(rows) * (grid.blocks[2] << CELL_BITS) >= _MOST_KEYS:
        raise ValueError(
            f"the points lie in {len(rows)} rows of {grid.blocks[2]} blocks of cells, too many to be numbered; use a "
            "larger eps, or fewer points at a time (chunks of a dask array)"
        )
    return device.from_host(rank.reshape(-1).astype(np.int64)), device.from_host(rows)


@kernel
def write_rows(i, X, grid, gaps, keys):
    """Write the number of the row of blocks that point i is in."""
    axes = len(grid.inverse)
    row = np.int64(0)
    for k in range(axes - 1):
        cell = cell_along(k, within_period(X[i, k], grid.period[k]), grid, gaps)
        row = row * grid.blocks[3 - axes + k] + (cell >> (CELL_BITS // axes))
    keys[i] = row


# ---------------------------------------------------------------------------------------------------------------- sort
def place_bits(n: int, span: int) -> int:
    """Return the bits of a place beside a key below `span`, to be sorted as one number; 0 where they are too long."""
    bits = max(1, (n - 1).bit_length())
    return bits if (span - 1).bit_length() + bits <= _KEY_BITS else 0


# ------------------------------------------------------------------------------------------------- cells, blocks, rows
@kernel
def count_heads(piece, keys, bits, per_row, is_table, order, heads):
    """Count the points of a piece that are the first of their cell, their block and, unless `is_table`, their row.

    Where the lowest `bits` bits of keys are the points' numbers, write these to `order`, unless it is empty.
    """
    n, pieces = len(keys), heads.shape[1]
    begin, end = n * piece // pieces, n * (piece + 1) // pieces
    cells = blocks = rows = 0
    before = keys[begin - 1] >> bits if begin > 0 else np.int64(-1)
    for i in range(begin, end):
        key = keys[i] >> bits
        cells += key != before
        blocks += key >> CELL_BITS != before >> CELL_BITS
        before = key
    if bits > 0 and len(order) > 0:
        for i in range(begin, end):
            order[i] = keys[i] & ((np.int64(1) << bits) - 1)
    row = (keys[begin - 1] >> bits) // per_row if begin > 0 else np.int64(-1)
    for i in range(begin, end if not is_table else begin):
        key = keys[i] >> bits
        if key - row * per_row >= per_row:
            row = key // per_row
            rows += 1
    heads[0, piece], heads[1, piece], heads[2, piece] = cells, blocks, rows


@kernel
def write_heads(piece, keys, bits, per_row, heads, up_to, is_table, blocks):
    """Write where those cells and blocks begin that begin in a piece; `up_to` sums `heads`, element after element.

    Differences of sums are right in 32 bits even where the sums are not.
    """
    n, pieces = len(keys), heads.shape[1]
    begin, end = n * piece // pieces, n * (piece + 1) // pieces
    cell = np.int32(up_to[piece] - heads[0, piece])
    block = np.int32(up_to[pieces + piece] - heads[1, piece] - up_to[pieces - 1])
    row = np.int32(up_to[2 * pieces + piece] - heads[2, piece] - up_to[2 * pieces - 1])
    before = keys[begin - 1] >> bits if begin > 0 else np.int64(-1)
    line = before // per_row if begin > 0 else np.int64(-1)
    for i in range(begin, end):
        key = keys[i] >> bits
        if key != before:
            if key >> CELL_BITS != before >> CELL_BITS:
                if key - line * per_row >= per_row:
                    line = key // per_row
                    if not is_table:
                        blocks.row_key[row] = line
                        row += 1
                blocks.row[block] = line if is_table else row - 1
                blocks.column[block] = (key - line * per_row) >> CELL_BITS
                blocks.first_cell[block] = cell
                block += 1
            blocks.start[cell] = i
            if len(blocks.place) > 0:
                blocks.place[cell] = ((np.int64(block) - 1) << CELL_BITS) | (key & ((1 << CELL_BITS) - 1))
            cell += 1
        before = key
    if end == n:
        blocks.start[cell] = n
        blocks.first_cell[block] = cell
        blocks.counts[0], blocks.counts[1] = cell, block


@kernel
def describe_block(block, keys, bits, blocks):
    """Write all that is known of a block on the CPU, beside where it is and where its cells begin."""
    write_row_firsts(block, blocks)
    write_occupied(block, keys, bits, blocks)
    if len(blocks.bitmap) > 0:
        write_bitmap(block, blocks)
    first, last = blocks.first_cell[block], blocks.first_cell[block + 1]
    begin, end = blocks.start[first], blocks.start[last]
    blocks.first[block], blocks.first[block + 1] = begin, end
    heads = np.uint64(0)
    if end - begin <= 64:
        for cell in range(first, last):
            heads |= ONE << np.uint64(blocks.start[cell] - begin)
    blocks.heads[block] = heads
    if end - begin > 1:
        axes = len(blocks.grid.period)
        for k in range(axes):
            blocks.box[block, k], blocks.box[block, axes + k] = span_of(begin, end, k, blocks)


@body
def write_row_firsts(block, blocks):
    """Write where those rows begin that end at this block's row and begin behind that of the block before."""
    row, row_first = blocks.row, blocks.row_first
    for r in range(row[block - 1] + 1 if block > 0 else 0, row[block] + 1):
        row_first[r] = block
    if block == len(row) - 1:
        for r in range(row[block] + 1, len(row_first)):
            row_first[r] = len(row)


@body
def write_occupied(block, keys, bits, blocks):
    """Write the mask of the cells of a block that hold points."""
    mask = np.int64(0)
    for cell in range(blocks.first_cell[block], blocks.first_cell[block + 1]):
        mask |= np.int64(1) << ((keys[blocks.start[cell]] >> bits) & 63)
    blocks.occupied[block] = mask


@body
def bit_of(block, blocks):
    """Return which bit of the bitmap a block is."""
    return np.int64(blocks.row[block]) * (blocks.grid.blocks[2] + 2) + blocks.column[block] + 1


@body
def write_bitmap(block, blocks):
    """Write which bit a block is; if it is the first of a word, write the word and the number of blocks before."""
    bit = bit_of(block, blocks)
    blocks.inside[block] = bit if is_inside(block, blocks) else -1
    word = bit >> 6
    if block > 0 and bit_of(block - 1, blocks) >> 6 == word:
        return
    blocks.rank[word] = block
    bits, b = np.uint64(0), block
    while bit >> 6 == word:
        bits |= ONE << np.uint64(bit & 63)
        b += 1
        if b == len(blocks.row):
            break
        bit = bit_of(b, blocks)
    blocks.bitmap[word] = bits


@body
def is_inside(block, blocks):
    """Return whether no block around a block is beyond a face of the grid, but for open ends of rows."""
    axes, grid = len(blocks.grid.period), blocks.grid
    x, y = row_of(block, blocks)
    inside = not is_ring(grid) or 0 < blocks.column[block] < grid.blocks[2] - 1
    if axes > 2:
        inside = inside and 0 < x < grid.blocks[0] - 1
    if axes > 1:
        inside = inside and 0 < y < grid.blocks[1] - 1
    return inside and not grid.always_wraps


@kernel
def write_row_filter(_once, blocks):
    """Set the bits of the rows that hold points."""
    for row in blocks.row_key:
        word, bit = place_in_filter(row, blocks)
        blocks.row_filter[word] |= bit


@kernel
def find_row_firsts(row, blocks):
    """As `write_row_firsts`, by row: no thread has to fill a wide gap."""
    blocks.row_first[row] = lower_bound(blocks.row, blocks.counts[1], row)


@kernel
def write_cells(i, n, keys, bits, blocks):
    """Write the mask of block `i`, if there is one; a cell behind the last holds nothing."""
    if i >= blocks.counts[0]:
        blocks.start[i + 1] = n
    if i < blocks.counts[1]:
        write_occupied(i, keys, bits, blocks)


@kernel
def write_positions(place, X, blocks):
    """Write the coordinates of a sorted point."""
    period = blocks.grid.period
    if place < len(X):
        i = blocks.order[place]
        for k in range(len(period)):
            blocks.positions[k, place] = within_period(X[i, k], period[k])
    else:  # vectors may read the padding, no result depends on it
        blocks.order[place] = -1
        for k in range(len(period)):
            blocks.positions[k, place] = 0


@kernel
def write_boxes(bundle, n, blocks):
    """Write the box around a bundle of sorted points."""
    axes = len(blocks.grid.period)
    for k in range(axes):
        low, high = span_of(bundle * BUNDLE, min((bundle + 1) * BUNDLE, n), k, blocks)
        blocks.boxes[k, bundle], blocks.boxes[axes + k, bundle] = low, high
