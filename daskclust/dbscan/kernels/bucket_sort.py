"""Sort points by their cell on the CPU, coordinates and all: first to buckets of cells, then within the cache."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import kernel
from daskclust.core.device.radix import BUCKET, DIGIT, bucket_begins, sort_records
from daskclust.core.space.grid import within_period

PLACE = 2  # of the words of a record, the one that says where the point stands in the input


class Records(NamedTuple):
    """Points in buckets: all of one side by side, so that each bucket is written as one stream."""

    words: Any  # (n, m) uint32
    numbers: Any  # (n, m / 2) uint64: the first is the cell, and below it where the record stands
    reals: Any  # the coordinates are among these, from `first_real` on
    first_real: int


def sort_points(X: Any, period: tuple[float, ...], keys: Any, bits: int, span: int, order: Any, positions: Any) -> Any:
    """Sort points ``X`` (n, d) by their cells, below `span`, which `keys` (n,) has above the lowest `bits` bits.

    Write the place of each sorted point in the input to `order` (n + PAD,), its coordinates to `positions`
    (d, n + PAD). Return an array that has served.
    """
    n, numbers = len(X), keys.view(np.uint64)
    high = bits + (span - 1).bit_length()
    shift = max(bits, high - (n // BUCKET).bit_length())
    begins = bucket_begins(numbers, shift, high)
    records = _empty_records(X)
    move_to_buckets.run(len(begins), X, period, numbers, bits, shift, begins, records, grain=1)
    ends = begins[-1]
    largest = int(np.diff(ends, prepend=0).max())
    spare = np.empty((len(begins), largest + (1 << DIGIT)), np.uint64)
    args = bits, shift - bits, period, records, spare, numbers, order, positions
    sort_buckets.run(len(begins), ends, *args, grain=1)
    order[n:], positions[:, n:] = -1, 0  # vectors may read the padding, no result depends on it
    return records.words


def _empty_records(X: Any) -> Records:
    """Return records for points ``X`` (n, d)."""
    n, d = X.shape
    wide = X.dtype.itemsize // 4
    first_real = -(-(PLACE + 1) // wide)
    size = (first_real + d) * wide
    words = np.empty((n, size + size % 2), np.uint32)
    return Records(words, words.view(np.uint64), words.view(X.dtype), first_real)


@kernel
def move_to_buckets(piece, X, period, numbers, bits, shift, begins, records):
    """Move a piece's points to their buckets, where the lowest bits of a number become the place that it stands at."""
    n, pieces = len(numbers), len(begins)
    for i in range(n * piece // pieces, n * (piece + 1) // pieces):
        number = numbers[i]
        bucket = np.uint64(number >> np.uint64(shift))
        p = np.uint64(begins[piece, bucket])
        begins[piece, bucket] += 1
        records.numbers[p, 0] = (number >> np.uint64(bits) << np.uint64(bits)) | p
        records.words[p, PLACE] = i
        for k in range(len(period)):
            records.reals[p, records.first_real + k] = X[i, k]


@kernel
def sort_buckets(piece, ends, bits, key_bits, period, records, spare, numbers, order, positions):
    """Sort a piece's share of the buckets, and gather their points."""
    n, pieces = len(ends), len(spare)
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    counts = spare[piece, len(spare[piece]) - (1 << DIGIT) :].view(np.int32)
    for bucket in range(n * piece // pieces, n * (piece + 1) // pieces):
        begin = np.uint64(ends[bucket - 1] if bucket > 0 else 0)
        size = np.uint64(ends[bucket]) - begin
        result = numbers[begin : begin + size]
        for k in range(size):
            result[k] = records.numbers[begin + k, 0]
        if sort_records(result, spare[piece], size, bits, key_bits, counts) == 1:
            for k in range(size):
                result[k] = spare[piece, k]
        for i in range(begin, begin + size):
            p = numbers[i] & mask
            order[i] = records.words[p, PLACE]
            for k in range(len(period)):
                positions[k, i] = within_period(records.reals[p, records.first_real + k], period[k])
