"""Sort points into blocks on the CPU, coordinates and all: first to buckets of cells, then within the cache."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import Reused
from daskclust.core.device.kernels import body, kernel
from daskclust.core.space.bucket_sort import WayBack, sort_points
from daskclust.dbscan.kernels.blocks import (
    BUNDLE,
    ONE,
    BlockGrid,
    Blocks,
    is_inside,
    place_in_filter,
    reach_table,
)
from daskclust.dbscan.kernels.distances import span_of, write_boxes

_WORD = 64  # bits of the bitmap's words
_BITS_A_POINT, _FEW_BITS = 256, 1 << 22  # of the bitmap of blocks, at most


def sorted_blocks(
    X: Any, grid: BlockGrid, eps: float, keys: Any, span: int, row_key: Any, rows: int
) -> tuple[Blocks, Reused, WayBack]:
    """Return the points ``X`` (n, d) in blocks, memory, and the way of labels back to the order of the input.

    ``keys`` (n,) are their cells, below `span`. There is a table of `rows`, those that `row_key` names or all; 0 for
    none.
    """
    (n, d), bits, memory = X.shape, grid.bits * X.shape[1], Reused()
    numbers = np.empty(0, np.int64)
    found = sort_points(X, grid.period, keys, span, bits, memory)
    if found is None:
        numbers, rank = np.unique(keys >> bits, return_inverse=True)
        keys, span = rank.reshape(-1) << bits | keys & ((1 << bits) - 1), len(numbers) << bits
        found = sort_points(X, grid.period, keys, span, bits, memory)
    assert found is not None  # ranks of blocks, cells and places fit 64 bits
    n_cells, n_blocks = found.heads.sum(axis=1).tolist()
    places, words = grid.groups * math.prod(grid.blocks), 0
    if rows and len(row_key) == 0 and places <= _BITS_A_POINT * n + _FEW_BITS:
        words = places // _WORD + 2
    blocks = Blocks(
        grid,
        reach_table(grid, eps),
        found.positions,
        memory.empty((2 * d, -(-n // BUNDLE)), X.dtype),
        found.order,
        memory.empty(n_cells + 1, np.int32),
        np.empty(0, np.int64),
        memory.empty(n_blocks + 1, np.int32),
        memory.empty(n_blocks, np.int64),
        found.way_back.slot,
        memory.empty(n_blocks + 1, np.int32),
        memory.empty(n_blocks, np.uint64),
        memory.empty((n_blocks, 2 * d), X.dtype),
        memory.empty(n_blocks, np.int32),
        memory.empty(n_blocks, np.int32 if grid.blocks[2] < 2**31 - 1 else np.int64),
        memory.empty(rows + 1, np.int32),
        row_key,
        np.empty(0, np.uint64),
        np.zeros(words, np.uint64),
        memory.empty(words, np.int32),
        memory.empty(n_blocks if words else 0, np.int64),
        np.empty(0, np.int32),
    )
    lines = np.empty(0 if rows else n_blocks, np.int64)
    up_to = np.pad(found.heads.cumsum(axis=1), ((0, 0), (1, 0)))
    write_blocks.run(found.heads.shape[1], found.cuts, up_to, keys, numbers, lines, blocks, grain=1)
    memory.add(keys)
    blocks.start[up_to[0]], blocks.first_cell[n_blocks], blocks.first[n_blocks] = found.cuts, n_cells, n
    if rows:
        blocks.row_first[blocks.row[n_blocks - 1] + 1 :] = n_blocks
    else:
        is_new = np.diff(lines, prepend=-1) != 0
        np.cumsum(is_new[1:], out=blocks.row[1:])
        blocks.row[0] = 0
        row_first = np.append(np.flatnonzero(is_new), n_blocks).astype(np.int32)
        blocks = blocks._replace(row_key=lines[is_new], row_first=row_first)
    if len(blocks.row_key) > 0:
        blocks = blocks._replace(row_filter=_empty_filter(len(blocks.row_key)))
        write_row_filter.run(1, blocks)
    write_boxes.run(blocks.boxes.shape[1], n, blocks, grain=1024)
    return blocks, memory, found.way_back


def _empty_filter(rows: int) -> NDArray[np.uint64]:
    """Return a filter for so many rows, with 16 to 32 bits for each."""
    return np.zeros(1 << max(0, rows.bit_length() - 2), np.uint64)


@kernel
def write_blocks(piece, cuts, up_to, keys, numbers, lines, blocks):
    """Write the cells and blocks of a piece of sorted points, the first of which are ``up_to[:, piece]``.

    A block's number is among `numbers`, or if these are empty in its cells' keys. `lines`, unless it is empty, gets
    the row of each block.
    """
    grid = blocks.grid
    bits, columns = grid.bits * len(grid.period), grid.blocks[2]
    i, end = cuts[piece], cuts[piece + 1]
    cell, block = up_to[0, piece], up_to[1, piece]
    line = number_at(i - 1, keys, bits, numbers) // columns if i > 0 else np.int64(-1)
    while i < end:
        first, first_cell, own, before = i, cell, keys[i] >> bits, np.int64(-1)
        occupied, heads = np.int64(0), np.uint64(0)
        while i < end and keys[i] >> bits == own:  # without branches: few cells hold as many points as the one before
            key = keys[i]
            blocks.start[cell] = i  # goes on if it is no first point of a cell
            cell += key != before
            heads |= np.uint64(key != before) << np.uint64((i - first) & 63)
            occupied |= np.int64(1) << (key & ((1 << bits) - 1))
            before = key
            i += 1
        number = number_at(first, keys, bits, numbers)
        if number - line * columns >= columns:
            above, line = line, number // columns
            for row in range(above + 1, line + 1 if len(lines) == 0 else above + 1):
                blocks.row_first[row] = block
        if len(lines) > 0:
            lines[block] = line
        blocks.row[block], blocks.column[block] = line, number - line * columns
        blocks.first[block], blocks.first_cell[block] = first, first_cell
        blocks.occupied[block], blocks.heads[block] = occupied, heads if i - first <= 64 else np.uint64(0)
        if len(blocks.bitmap) > 0:
            blocks.inside[block] = number if is_inside(block, blocks) else ~number
            word = number >> 6
            if blocks.bitmap[word] == 0:
                blocks.rank[word] = block
            blocks.bitmap[word] |= ONE << np.uint64(number & 63)
        if i - first > 1:
            axes = len(grid.period)
            for k in range(axes):
                blocks.box[block, k], blocks.box[block, axes + k] = span_of(first, i, k, blocks)
        block += 1


@body
def number_at(i, keys, bits, numbers):
    """Return the number of the block that sorted point i is in."""
    number = keys[i] >> bits
    return numbers[number] if len(numbers) > 0 else number


@kernel
def write_labels(piece, way_back, found, labels, is_core):
    """Write the labels of a piece of the input, and which of its points are core points, see `clusters.as_found`."""
    begins = way_back.begins
    n, pieces, place = len(way_back.bucket), len(begins), begins[piece]
    for i in range(np.uint64(n * piece // pieces), np.uint64(n * (piece + 1) // pieces)):
        bucket = np.uint64(way_back.bucket[i])
        value = found[np.uint64(place[bucket])]
        place[bucket] += 1
        labels[i] = value if value >= -1 else -2 - value
        is_core[i] = value >= 0


@kernel
def write_row_filter(_once, blocks):
    """Set the bits of the rows that hold points."""
    for row in blocks.row_key:
        word, bit = place_in_filter(row, blocks)
        blocks.row_filter[word] |= bit
