"""Sort points by their cell on the CPU, coordinates and all: first to buckets of cells, then within the cache."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.arrays import Reused
from daskclust.core.device.kernels import kernel
from daskclust.core.device.radix import BUCKET, DIGIT, bucket_begins, sort_records
from daskclust.core.space.grid import within_period

_WORD = 64  # bits of the numbers that are sorted
PLACE = 2  # of the words of a record, the one that says where the point stands in the input


class Records(NamedTuple):
    """Points in buckets, all of one side by side, so that each bucket is written as one stream."""

    words: Any  # (n, m) uint32
    cells: Any  # (n, m / 2) uint64: the first is the cell
    reals: Any  # the coordinates are among these, from `first_real` on
    first_real: int


def sort_points(
    X: Any, period: tuple[float, ...], keys: Any, span: int, order: Any, positions: Any, memory: Reused
) -> bool:
    """Sort ``keys`` (n,), the cells, below `span`, of points ``X`` (n, d), and the points with them, stably.

    Write the place of each sorted point in the input to `order` (n + PAD,), its coordinates to `positions`
    (d, n + PAD), and give `memory` arrays that have served. Return whether it was done: not where a cell and a place
    in a bucket do not fit 64 bits.
    """
    n, cells = len(X), keys.view(np.uint64)
    high = (span - 1).bit_length()
    shift = max(0, high - (n // BUCKET).bit_length())
    begins, records = bucket_begins(cells, shift, high), _empty_records(X)
    move_to_buckets.run(len(begins), X, period, cells, shift, begins, records, grain=1)
    ends, spare = begins[-1], np.empty(n, np.uint64)
    memory.add(records.words)
    memory.add(spare)
    bits = int(np.diff(ends, prepend=0).max()).bit_length()
    if shift + bits > _WORD:
        return False
    counters = np.empty((len(begins), 1 << DIGIT), np.int32)
    args = ends, bits, shift, period, records, spare, counters, cells, order, positions
    sort_buckets.run(len(begins), *args, grain=1)
    order[n:], positions[:, n:] = -1, 0  # vectors may read the padding, no result depends on it
    return True


def _empty_records(X: Any) -> Records:
    """Return records for points ``X`` (n, d)."""
    n, d = X.shape
    wide = X.dtype.itemsize // 4
    first_real = -(-(PLACE + 1) // wide)
    size = (first_real + d) * wide
    words = np.empty((n, size + size % 2), np.uint32)
    return Records(words, words.view(np.uint64), words.view(X.dtype), first_real)


@kernel
def move_to_buckets(piece, X, period, cells, shift, begins, records):
    """Move a piece's points to their buckets."""
    n, pieces, place = len(cells), len(begins), begins[piece]
    for i in range(np.uint64(n * piece // pieces), np.uint64(n * (piece + 1) // pieces)):
        bucket = cells[i] >> np.uint64(shift)
        p = np.uint64(place[bucket])
        place[bucket] += 1
        records.cells[p, 0], records.words[p, PLACE] = cells[i], i
        for k in range(len(period)):
            records.reals[p, records.first_real + k] = X[i, k]


@kernel
def sort_buckets(piece, ends, bits, shift, period, records, spare, counters, cells, order, positions):
    """Sort a piece's share of the buckets, by the bits of a cell below `shift`, and gather their points."""
    n, pieces = len(ends), len(counters)
    low, mask = (np.uint64(1) << np.uint64(shift)) - np.uint64(1), (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    for bucket in range(n * piece // pieces, n * (piece + 1) // pieces):
        begin = np.uint64(ends[bucket - 1] if bucket > 0 else 0)
        size = np.uint64(ends[bucket]) - begin
        one, other = cells[begin : begin + size], spare[begin : begin + size]
        for k in range(size):
            one[k] = (records.cells[begin + k, 0] & low) << np.uint64(bits) | k
        moved = sort_records(one, other, size, bits, shift, counters[piece])
        for k in range(size):
            p = begin + ((one[k] if moved == 0 else other[k]) & mask)
            cells[begin + k], order[begin + k] = records.cells[p, 0], records.words[p, PLACE]
            for axis in range(len(period)):
                positions[axis, begin + k] = within_period(records.reals[p, records.first_real + axis], period[axis])
