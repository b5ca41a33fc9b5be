"""Stable sorting by time, on pieces that stay in a core's cache.

Times of a readout are sorted but for a small disorder, so high digits move little and low digits stay within a short
stretch of memory.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from daskclust.core.device.kernels import kernel
from daskclust.core.device.operations import nearest_whole
from daskclust.core.device.radix import DIGIT, sort_records

TICK = 1.5625
"""The tick of the fine clock of Timepix3 in ns, 1/640 MHz: exact in binary, so that multiples of it are, too."""

BUCKET = 1 << 14
"""Elements of a bucket, about: its records, twice, stay in a core's second-level cache."""


@kernel
def _scatter(_once, ticks, least, shift, low, begin, records):
    """Write (tick - least, place) as one number each, bucket after bucket; `begin` ends as where buckets end."""
    n, last, place = len(ticks), np.int64(0), np.int64(0)
    for k in range(n):  # times that follow each other are mostly of one bucket, whose counter stays in a register
        bucket = (ticks[k] - least) >> low
        if bucket != last:
            begin[last + 1] += place
            last, place = bucket, np.int64(0)
        place += 1
    begin[last + 1] += place
    for bucket in range(1, len(begin)):
        begin[bucket] += begin[bucket - 1]
    last, place = np.int64(0), begin[0]
    for k in range(n):
        since = ticks[k] - least
        bucket = since >> low
        if bucket != last:
            begin[last] = place
            last, place = bucket, begin[bucket]
        records[np.uint64(place)] = (np.uint64(since) << np.uint64(shift)) | np.uint64(k)
        place += 1
    begin[last] = place


@kernel
def _sort_bucket(bucket, ends, shift, low, records, other, counts, order):
    """Write the stable order of the ticks of one bucket."""
    begin = ends[bucket - 1] if bucket > 0 else np.int64(0)
    n = ends[bucket] - begin
    mine, spare = records[begin : begin + n], other[begin : begin + n]
    moved = sort_records(mine, spare, n, shift, low, counts[bucket])
    mask = (np.uint64(1) << np.uint64(shift)) - np.uint64(1)
    source = mine if moved == 0 else spare
    for k in range(n):
        order[begin + k] = np.int64(source[k] & mask)


@kernel
def _as_ticks(_once, times, ticks, exact):
    """Write times as whole numbers of ticks; exact[0] becomes 0 where one is none."""
    good = True
    for k in range(len(times)):
        tick = nearest_whole(times[k] * (1 / TICK))
        good &= tick * TICK == times[k] and abs(tick) < 2.0**52
        ticks[k] = np.int64(tick)
    exact[0] = good


def order_of_times(times: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the stable order of times in ns: by their ticks where all are multiples of one."""
    times = np.ascontiguousarray(times, dtype=np.float64)
    ticks, exact = np.empty(len(times), np.int64), np.zeros(1, np.int64)
    _as_ticks.run(1, times, ticks, exact)
    return order_of_ticks(ticks) if exact[0] else np.argsort(times, kind="stable")


def order_of_ticks(ticks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the stable order of times; NumPy's where their range and their number together need more than 64 bits.

    Elements first go to buckets of some time each: of times that are nearly sorted, each stays near its place.
    """
    ticks = np.ascontiguousarray(ticks, dtype=np.int64)
    n = len(ticks)
    if n < 2:
        return np.zeros(n, dtype=np.int64)
    least = int(ticks.min())
    bits, shift = (int(ticks.max()) - least).bit_length(), (n - 1).bit_length()
    if bits + shift > 64:
        return np.argsort(ticks, kind="stable")
    low = max(0, bits - max(0, (n // BUCKET).bit_length()))  # bits below those that tell the bucket
    buckets = ((int(ticks.max()) - least) >> low) + 1
    ends, order = np.zeros(buckets + 1, np.int64), np.empty(n, np.int64)
    records, other = np.empty((2, n), dtype=np.uint64)
    counts = np.empty((buckets, 1 << DIGIT), np.int32)
    _scatter.run(1, ticks, least, shift, low, ends, records)
    _sort_bucket.run(buckets, ends, shift, low, records, other, counts, order, grain=1)
    return order
