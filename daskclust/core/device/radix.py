"""Parts of stable radix sorts on the CPU: to buckets by the highest bits, then each bucket digit by digit in the cache.

A number has a key in its higher bits and the place it stood at below, so that only the bits of the key are looked at.
NumPy sorts int64 with AVX-512 where it can, which is slow on AMD's Zen 4: measured there, a million
numbers of 30 bits and their places take 51 ns each by NumPy, and 7 here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.threads import thread_count

DIGIT = 11
"""Most bits of a digit: its counters stay in the first-level cache."""
BUCKET = 1 << 13
"""Numbers of a bucket, about: twice as many stay in a core's second-level cache."""


@body
def digits_of(bits):
    """Return how many digits cover `bits`, and the bits of each."""
    count = (bits + np.int64(DIGIT - 1)) // np.int64(DIGIT)
    width = np.int64(1)
    if count > 0:
        width = (bits + count - 1) // count
    return count, width


@body
def sort_records(records, other, n, shift, bits, counts):
    """Sort `n` unsigned records by their `bits` above `shift`, stably; return whether the result is in `other`.

    `counts` holds at least ``1 << DIGIT`` int32.
    """
    digits, width = digits_of(bits)
    size = np.int64(1) << width
    mask = np.uint64(size - 1)
    moved = np.int64(0)
    for digit in range(digits):
        low = np.uint64(shift + digit * width)
        for k in range(size):
            counts[k] = 0
        source, target = (records, other) if moved == 0 else (other, records)
        for k in range(n):
            counts[(source[k] >> low) & mask] += np.int32(1)
        begin = np.int32(0)
        for k in range(size):
            number = counts[k]
            counts[k] = begin
            begin += number
        for k in range(n):
            record = source[k]
            bucket = (record >> low) & mask
            target[np.uint64(counts[bucket])] = record
            counts[bucket] += np.int32(1)
        moved = np.int64(1) - moved
    return moved


def bucket_begins(numbers: Any, shift: int, high: int) -> Any:
    """Return where the numbers of each piece of `numbers` (n,) begin in each bucket, one of the bits from `shift` up.

    The result is int64 (pieces, buckets); as numbers are put there it moves on, so that at last its last row is where
    the buckets end.
    """
    threads = thread_count()
    pieces = 4 * threads if threads > 1 and len(numbers) > 8 * BUCKET else 1
    counts = np.zeros((pieces, 1 << (high - shift)), np.int64)
    _count.run(pieces, numbers, shift, counts, grain=1)
    ends = counts.T.cumsum().reshape(counts.T.shape)  # of each piece in each bucket: earlier numbers come first
    return (ends - counts.T).T.copy()


@kernel
def _count(piece, numbers, shift, counts):
    """Count a piece's numbers by their bits from `shift` up."""
    n, pieces = len(numbers), len(counts)
    for i in range(n * piece // pieces, n * (piece + 1) // pieces):
        counts[piece, np.uint64(numbers[i] >> np.uint64(shift))] += 1
