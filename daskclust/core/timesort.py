"""Stable sorting by time: least-significant-digit radix sort, on pieces that stay in a core's cache.

Times of a readout are sorted but for a small disorder, so high digits move little and low digits stay within a short
stretch of memory.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from daskclust.core.jit import body, kernel

DIGIT = 11
"""Most bits of a digit: its counters stay in the first-level cache."""


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
            counts[np.int64((source[k] >> low) & mask)] += np.int32(1)
        begin = np.int32(0)
        for k in range(size):
            number = counts[k]
            counts[k] = begin
            begin += number
        for k in range(n):
            record = source[k]
            bucket = np.int64((record >> low) & mask)
            target[np.int64(counts[bucket])] = record
            counts[bucket] += np.int32(1)
        moved = np.int64(1) - moved
    return moved


@kernel
def _sort_piece(i, ticks, least, bits, shift, records, other, counts, order):
    """Write the stable order of all ticks."""
    n = len(ticks)
    for k in range(n):
        records[k] = (np.uint64(ticks[k] - least) << np.uint64(shift)) | np.uint64(k)
    moved = sort_records(records, other, np.int64(n), shift, bits, counts)
    mask = (np.uint64(1) << np.uint64(shift)) - np.uint64(1)
    source = records if moved == 0 else other
    for k in range(n):
        order[k] = np.int32(source[k] & mask)


def order_of_ticks(ticks: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Return the order that sorts times, earlier elements first among equal ones.

    Parameters
    ----------
    ticks : numpy.ndarray of int64, shape (n,)
        Times in any unit, in any order; fewer than 2**31.

    Returns
    -------
    numpy.ndarray of int32, shape (n,)
        As of ``numpy.argsort(ticks, kind="stable")``.

    Notes
    -----
    Linear in n times the digits of the range of times. Where the range of times and the number of elements together
    need more than 64 bits, NumPy sorts.

    Examples
    --------
    >>> order_of_ticks(np.array([30, 10, 20, 10]))
    array([1, 3, 2, 0], dtype=int32)
    """
    ticks = np.ascontiguousarray(ticks, dtype=np.int64)
    n = len(ticks)
    if n < 2:
        return np.zeros(n, dtype=np.int32)
    least = int(ticks.min())
    bits, shift = (int(ticks.max()) - least).bit_length(), (n - 1).bit_length()
    if bits + shift > 64:
        return np.argsort(ticks, kind="stable").astype(np.int32)
    order = np.empty(n, dtype=np.int32)
    records, other = np.empty((2, n), dtype=np.uint64)
    _sort_piece.run(1, ticks, least, bits, shift, records, other, np.empty(1 << DIGIT, dtype=np.int32), order)
    return order
