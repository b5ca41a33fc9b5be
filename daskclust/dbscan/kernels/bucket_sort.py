"""Sort points by their cell on the CPU, coordinates and all: first to buckets of cells, then within the cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskclust.core.device.kernels import kernel
from daskclust.core.device.radix import BUCKET, DIGIT, bucket_begins, sort_records
from daskclust.core.space.grid import within_period


def sort_points(X: Any, period: tuple[float, ...], keys: Any, bits: int, span: int, order: Any, positions: Any) -> None:
    """Sort points ``X`` (n, d) by their cells, below `span`, which `keys` (n,) has above the lowest `bits` bits.

    Write the place of each sorted point in the input to `order` (n + PAD,), its coordinates to `positions`
    (d, n + PAD).
    """
    n, numbers = len(X), keys.view(np.uint64)
    high = bits + (span - 1).bit_length()
    shift = max(bits, high - (n // BUCKET).bit_length())
    begins = bucket_begins(numbers, shift, high)
    spare, place, moved = np.empty_like(numbers), np.empty(n, np.int32), np.empty_like(X, order="C")
    move_to_buckets.run(len(begins), X, period, numbers, bits, shift, begins, place, moved, spare, grain=1)
    counters = np.empty((len(begins), 1 << DIGIT), np.int32)
    args = bits, shift - bits, period, spare, numbers, counters, place, moved, order, positions
    sort_buckets.run(len(begins), begins[-1], *args, grain=1)
    order[n:], positions[:, n:] = -1, 0  # vectors may read the padding, no result depends on it


@kernel
def move_to_buckets(piece, X, period, numbers, bits, shift, begins, place, moved, spare):
    """Move a piece's points to their buckets, where the lowest bits of a number become the place that it stands at."""
    n, pieces = len(numbers), len(begins)
    for i in range(n * piece // pieces, n * (piece + 1) // pieces):
        number = numbers[i]
        bucket = np.uint64(number >> np.uint64(shift))
        p = np.uint64(begins[piece, bucket])
        begins[piece, bucket] += 1
        spare[p] = (number >> np.uint64(bits) << np.uint64(bits)) | p
        place[p] = i
        for k in range(len(period)):
            moved[p, k] = X[i, k]


@kernel
def sort_buckets(piece, ends, bits, key_bits, period, spare, numbers, counters, place, moved, order, positions):
    """Sort a piece's share of the buckets of `spare` into `numbers`, and gather their points."""
    n, pieces = len(ends), len(counters)
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    for bucket in range(n * piece // pieces, n * (piece + 1) // pieces):
        begin = ends[bucket - 1] if bucket > 0 else np.int64(0)
        mine, result = spare[begin : ends[bucket]], numbers[begin : ends[bucket]]
        if sort_records(mine, result, len(mine), bits, key_bits, counters[piece]) == 0:
            for k in range(len(mine)):
                result[k] = mine[k]
        for i in range(np.uint64(begin), np.uint64(ends[bucket])):
            p = numbers[i] & mask
            order[i] = place[p]
            for k in range(len(period)):
                positions[k, i] = within_period(moved[p, k], period[k])
