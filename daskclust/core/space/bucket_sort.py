"""Sort points by their cell on the CPU, coordinates and all: first to buckets of cells, then within the cache."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.arrays import Reused
from daskclust.core.device.kernels import kernel
from daskclust.core.device.radix import DIGIT, bucket_begins, sort_records
from daskclust.core.space.grid import PAD, within_period

PLACE = 2  # of the words of a record, the one that says where the point stands in the input
_WORD = 64  # bits of the numbers that are sorted
_BUCKET, _MOST_BITS = 2048, 10  # points of a bucket, about; 64 to 128 buckets take twice as long as 256 to 1024
_ONE = np.uint64(1)


class Records(NamedTuple):
    """Points in buckets, all of one side by side, so that each bucket is written as one stream."""

    words: Any  # (n, m) uint32
    cells: Any  # (n, m / 2) uint64: the first is the cell
    reals: Any  # the coordinates are among these, from `first_real` on
    first_real: int


class WayBack(NamedTuple):
    """How labels of sorted points come back to the order of the input: by the buckets, so within the cache."""

    slot: Any  # (n,) int32: where each sorted point stood in the buckets
    bucket: Any  # (n,) uint16: the bucket of each point of the input
    begins: Any  # (pieces, buckets) int64: where the points of each piece of the input begin in each bucket


def in_one_bucket(order: Any) -> WayBack:
    """Return the way back of points that stood at `order` (n,) in the input."""
    return WayBack(order, np.zeros(len(order), np.uint16), np.zeros((1, 1), np.int64))


class SortedPoints(NamedTuple):
    """Points sorted by their cell."""

    order: Any  # (n + PAD,) int32: where each stands in the input
    positions: Any  # (d, n + PAD)
    way_back: WayBack
    cuts: Any  # (pieces + 1,) int64: where pieces of whole buckets begin, so of whole blocks
    heads: Any  # (2, pieces) int64: how many cells and blocks each has


def sort_points(
    X: Any, period: tuple[float, ...], keys: Any, span: int, bits: int, memory: Reused, dtype: Any = None
) -> SortedPoints | None:
    """Sort ``keys`` (n,), the cells, below `span`, of points ``X`` (n, d), and the points with them, stably.

    The lowest `bits` bits of a cell tell it from others of its block. `memory` is given arrays that have served, and
    sorted coordinates are of `dtype`, by default X's. None where a cell and a place in a bucket do not fit 64 bits.
    """
    (n, d), cells = X.shape, keys.view(np.uint64)
    high = (span - 1).bit_length()
    shift = max(bits + 6, high - min((n // _BUCKET).bit_length(), _MOST_BITS))  # 64 blocks have one bucket
    begins, records = bucket_begins(cells, shift, max(high, shift)), _empty_records(X, memory)
    way_back = WayBack(memory.empty(n, np.int32), memory.empty(n, np.uint16), begins.copy())
    move_to_buckets.run(len(begins), X, period, cells, shift, begins, records, way_back.bucket, grain=1)
    ends = begins[-1]
    sizes, pieces = np.diff(ends, prepend=0), min(len(begins), len(ends))
    if shift + int(sizes.max()).bit_length() > _WORD:
        return None
    most = np.maximum.reduceat(sizes, len(ends) * np.arange(pieces) // pieces)
    room = np.concatenate([[0], most.cumsum()])
    cuts = np.append(0, ends)[len(ends) * np.arange(pieces + 1) // pieces]
    order, positions = memory.empty(n + PAD, np.int32), memory.empty((d, n + PAD), dtype or X.dtype)
    found = SortedPoints(order, positions, way_back, cuts, np.empty((2, pieces), np.int64))
    order[n:], positions[:, n:] = -1, 0  # vectors may read the padding, no result depends on it
    spare, counters = np.empty((2, room[-1]), np.uint64), np.empty((pieces, 1 << DIGIT), np.int32)
    given = ends, int(most.max()).bit_length(), shift, bits, period, records
    sort_buckets.run(pieces, *given, room, spare, counters, cells, found, grain=1)
    memory.add(records.words)
    return found


def _empty_records(X: Any, memory: Reused) -> Records:
    """Return records for points ``X`` (n, d)."""
    n, d = X.shape
    wide = X.dtype.itemsize // 4
    first_real = -(-(PLACE + 1) // wide)
    size = (first_real + d) * wide
    words = memory.empty((n, size + size % 2), np.uint32)
    return Records(words, words.view(np.uint64), words.view(X.dtype), first_real)


@kernel
def move_to_buckets(piece, X, period, cells, shift, begins, records, home):
    """Move a piece's points to their buckets."""
    n, pieces, place = len(cells), len(begins), begins[piece]
    for i in range(np.uint64(n * piece // pieces), np.uint64(n * (piece + 1) // pieces)):
        bucket = cells[i] >> np.uint64(shift)
        p = np.uint64(place[bucket])
        place[bucket] += 1
        home[i] = bucket
        records.cells[p, 0], records.words[p, PLACE] = cells[i], i
        for k in range(len(period)):
            records.reals[p, records.first_real + k] = X[i, k]


@kernel
def sort_buckets(piece, ends, place_bits, shift, block_bits, period, records, room, spare, counters, cells, found):
    """Sort a piece's share of the buckets, by the bits of a cell below `shift`, and gather their points."""
    pieces = len(counters)
    bits, block_bits = np.uint64(place_bits), np.uint64(block_bits)
    low, mask = _ONE << np.uint64(shift), (_ONE << bits) - _ONE
    n_cells = n_blocks = 0
    for bucket in range(len(ends) * piece // pieces, len(ends) * (piece + 1) // pieces):
        begin = np.uint64(ends[bucket - 1] if bucket > 0 else 0)
        size = np.uint64(ends[bucket]) - begin
        at = np.uint64(room[piece])
        one, other = spare[0, at : at + size], spare[1, at : at + size]
        base = np.uint64(bucket) << np.uint64(shift)
        for k in range(size):
            one[k] = (records.cells[begin + k, 0] & (low - _ONE)) << bits | k
        if sort_records(one, other, size, place_bits, shift, counters[piece]) != 0:
            one = other
        before = ~np.uint64(0)
        for k in range(size):
            p, i = begin + (one[k] & mask), begin + k
            cell = base | one[k] >> bits
            n_cells += cell != before
            n_blocks += cell >> block_bits != before >> block_bits
            before = cell
            cells[i], found.order[i], found.way_back.slot[i] = cell, records.words[p, PLACE], p
            for axis in range(len(period)):
                found.positions[axis, i] = within_period(records.reals[p, records.first_real + axis], period[axis])
    found.heads[0, piece], found.heads[1, piece] = n_cells, n_blocks
