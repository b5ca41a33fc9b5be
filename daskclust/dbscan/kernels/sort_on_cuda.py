"""Sort points into blocks on a CUDA device: one sort of keys with places, and a look at where they change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daskclust.core.device.arrays import Cuda, copy
from daskclust.core.device.kernels import kernel
from daskclust.core.space.grid import PAD, lower_bound, within_period
from daskclust.dbscan.kernels.blocks import BUNDLE, CELL_BITS, BlockGrid, Blocks, reach_table
from daskclust.dbscan.kernels.distances import write_boxes

_KEY_BITS = 63


def place_bits(n: int, span: int) -> int:
    """Return the bits of a place beside a key below `span`, to be sorted as one number; 0 where they are too long."""
    bits = max(1, (n - 1).bit_length())
    return bits if (span - 1).bit_length() + bits <= _KEY_BITS else 0


def sorted_blocks(
    device: Cuda, bits: int, X: Any, grid: BlockGrid, eps: float, keys: Any, span: int, row_key: Any, rows: int
) -> Blocks:
    """Return the points ``X`` (n, d) in blocks; the lowest `bits` bits of `keys` are their places, if there are any.

    The other arguments are those of `bucket_sort.sorted_blocks`.
    """
    n, d = X.shape
    order, per_row, is_table = device.empty(n + PAD, np.int32), grid.blocks[2] << CELL_BITS, rows > 0
    if bits > 0:
        device.sort(keys, bits, bits + (span - 1).bit_length())
    else:
        places = device.order_of(keys)
        device.run(copy, n, places, order)
        keys = device.take_at(keys, places)
    pieces = -(-n // 16)
    heads, up_to = device.empty((3, pieces), np.int32), device.empty(3 * pieces, np.int32)
    device.run(count_heads, pieces, keys, bits, per_row, is_table, order[:n], heads)
    device.running_sum(heads.reshape(-1), up_to)
    if is_table:  # the host does not wait to know: arrays are as long as they may need to be
        n_blocks = min(n, grid.groups * math.prod(grid.blocks))
        n_cells, n_rows = min(n, n_blocks << CELL_BITS), rows
    else:
        n_cells, n_blocks, n_rows = np.diff(device.to_host(up_to[pieces - 1 :: pieces]), prepend=np.int32(0)).tolist()
    no_mask, no_number = device.empty(0, np.uint64), device.empty(0, np.int32)
    blocks = Blocks(
        grid,
        device.from_host(reach_table(grid, eps)),
        device.empty((d, n + PAD), X.dtype),
        device.empty((2 * d, -(-n // BUNDLE)), X.dtype),
        order,
        device.empty(n_cells + 1, np.int32),
        device.empty(n_cells, np.int64),
        device.empty(n_blocks + 1, np.int32),
        device.empty(n_blocks, np.int64),
        no_number,
        no_number,
        no_mask,
        device.empty((0, 2 * d), X.dtype),
        device.empty(n_blocks, np.int32),
        device.empty(n_blocks, np.int32 if grid.blocks[2] < 2**31 - 1 else np.int64),
        device.empty(n_rows + 1, np.int32),
        row_key if is_table else device.empty(n_rows, np.int64),
        no_mask,
        no_mask,
        no_number,
        device.empty(0, np.int64),
        device.empty(2, np.int32),
    )
    device.run(write_heads, pieces, keys, bits, per_row, heads, up_to, is_table, blocks)
    device.run(write_positions, n + PAD, X, blocks)
    device.run(find_row_firsts, len(blocks.row_first), blocks)
    device.run(write_cells, n_cells, n, keys, bits, blocks)
    device.run(write_boxes, blocks.boxes.shape[1], n, blocks)
    return blocks


@kernel
def count_heads(piece, keys, bits, per_row, is_table, order, heads):
    """Count the points of a piece that are the first of their cell, their block and, unless `is_table`, their row.

    Where the lowest `bits` bits of keys are the points' numbers, write these to `order`.
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
    if bits > 0:
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
            blocks.place[cell] = ((np.int64(block) - 1) << CELL_BITS) | (key & ((1 << CELL_BITS) - 1))
            cell += 1
        before = key
    if end == n:
        blocks.start[cell] = n
        blocks.first_cell[block] = cell
        blocks.counts[0], blocks.counts[1] = cell, block


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
        mask = np.int64(0)
        for cell in range(blocks.first_cell[i], blocks.first_cell[i + 1]):
            mask |= np.int64(1) << ((keys[blocks.start[cell]] >> bits) & 63)
        blocks.occupied[i] = mask


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
