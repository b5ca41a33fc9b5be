"""The pass over coordinates before space is divided: a sample of points, the extents of chunks, and planes by these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import device_of
from daskclust.core.space.extent import survey
from daskclust.core.space.grid import wrap_positions

_CHUNKS = 128  # that are looked at first, where there are more


class Looked(NamedTuple):
    """What was seen of some chunks."""

    numbers: NDArray[np.int64]  # of the chunks, ascending
    points: list[NDArray[Any]]  # (m, d) evenly spaced rows of each
    low: NDArray[np.float64]  # (chunks, d) lowest coordinates; NaN where some are not finite, or there are no points
    high: NDArray[np.float64]

    def together(self, other: Looked) -> Looked:
        """Return what was seen of these chunks and of others."""
        numbers = np.concatenate([self.numbers, other.numbers])
        order = np.argsort(numbers)
        points = self.points + other.points
        low, high = np.concatenate([self.low, other.low]), np.concatenate([self.high, other.high])
        return Looked(numbers[order], [points[k] for k in order], low[order], high[order])

    def sample(self, weights: Sequence[int] | NDArray[np.int64], wanted: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return about `wanted` finite points, of each chunk as its weight says, and which of the chunks each is of."""
        ends = np.cumsum(
            [0 if len(points) == 0 else weight for points, weight in zip(self.points, weights, strict=True)]
        )
        counts = np.diff(ends * min(wanted, sum(map(len, self.points))) // max(ends[-1], 1), prepend=0)
        rows = [
            points[((np.arange(count) + 0.5) * len(points) / count).astype(int)] if count else points[:0]
            for points, count in zip(self.points, counts, strict=True)
        ]
        points, chunk = np.concatenate(rows), np.repeat(np.arange(len(rows)), counts)
        finite = np.isfinite(points).all(axis=1)
        return points[finite], chunk[finite]


def some_chunks(lengths: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return numbers of chunks that stand for all, and how often each was drawn; all and their lengths where few.

    One is drawn at random from each of equal ranges of points: evenly spaced ones could be alike where others are not.
    """
    if len(lengths) <= _CHUNKS:
        return np.arange(len(lengths)), np.array(lengths)
    ends = np.cumsum(lengths)
    drawn = (np.arange(_CHUNKS) + np.random.default_rng(0).random(_CHUNKS)) * (ends[-1] / _CHUNKS)
    return np.unique(np.searchsorted(ends, drawn, side="right"), return_counts=True)


def look(X: Any, numbers: NDArray[np.int64], period: tuple[float, ...], wanted: int) -> Looked:
    """Return what chunks of a dask array (n, d) have, with about `wanted` points of all together.

    Around a period the lowest may be negative: the other half of such a chunk is at the other end of the axis.
    """
    import dask.array as da

    stride = max(1, int(np.array(X.chunks[0])[numbers].sum()) // wanted)
    # an array, not delayed blocks: dask would optimise their graph in another way than that of the results, and a
    # cluster that still knows of the one warns of two tasks of one name
    meta = np.empty((0,), object)
    one = {"chunks": ((1,) * X.numblocks[0],), "drop_axis": 1, "dtype": object, "meta": meta}
    looks = da.map_blocks(_look, X, stride, period, token="daskclust-sample", **one)
    points, low, high = zip(*looks.blocks[numbers.tolist()].compute(), strict=True)
    return Looked(numbers, list(points), np.stack(low), np.stack(high))


def are_alike(chunk: NDArray[np.int64], block: NDArray[np.int64], times: NDArray[np.int64], error: float) -> bool:
    """Return whether points of some chunks tell the points of each block to a relative standard error.

    `chunk` and `block` are those of each point of a sample, `times` how often a chunk was drawn.
    """
    counts = np.zeros((len(times), int(block.max(initial=0)) + 1))
    np.add.at(counts, (chunk, block), 1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    mean = np.average(shares, axis=0, weights=times)
    variance = np.average((shares - mean) ** 2, axis=0, weights=times) / times.sum()
    return bool((np.sqrt(variance) <= error * mean).all())


# ---------------------------------------------------------------------------------------------------------- on a worker
def _look(block: Any, stride: int, period: tuple[float, ...]) -> Any:
    """Return, in an array of one element, every so-many-th point on the host, and the extent of all."""
    device = device_of(block)
    points = device.to_host(block[::stride].copy())  # a view would keep the block in memory
    ends = np.full((2, block.shape[1]), np.nan)
    if len(block):
        low, high, bad = survey(device, block)
        ends = np.stack([low, high]) if bad == len(block) else ends
        for axis, cycle in enumerate(period):
            ends[:, axis] = _around(block[:, axis], points[:, axis], cycle, *ends[:, axis])
    found = np.empty(1, object)
    found[0] = points, *ends
    return found


def _around(x: Any, some: Any, period: float, low: float, high: float) -> tuple[float, float]:
    """Return the extent of coordinates, those of the upper half of a period counted back where that is much less."""
    if not (period and low >= 0 and high < period and high - low > period / 2):
        return low, high
    for each in (some, x):  # some of them tell fast that the others are not worth a look
        back = np.where(each >= period / 2, each - period, each)
        other = float(back.min()), float(back.max())
        if other[1] - other[0] > 0.75 * (high - low):
            return low, high
    return other


def balanced_cuts(
    sample: NDArray[Any], blocks: tuple[int, ...], period: tuple[float, ...], count: int | None = None
) -> tuple[Any, ...]:
    """Return planes for `Partition` that cut points into blocks of as many each, fewer where some are equal.

    Parameters
    ----------
    sample : numpy.ndarray, shape (m, d)
        Points, or some of them.
    blocks : tuple of int
        Into how many parts the first axis is cut, each of these across the second axis, and so on.
    period : tuple of float
        Period of each axis, 0 where it is open.
    count : int, optional
        Number of all blocks, where that is less than the product of `blocks`: some parts are then cut into one less.

    Returns
    -------
    tuple
    """
    parts = [(wrap_positions(sample, period).astype(np.float64), math.prod(blocks) if count is None else count)]
    cuts: list[Any] = []
    for axis, most in enumerate(blocks):
        rows, divided = [], []
        for x, wanted in parts:
            along = wanted if axis == len(blocks) - 1 else min(most, wanted)
            of_each = wanted // along + (np.arange(along) < wanted % along)
            shares = np.cumsum(of_each)[:-1] / wanted
            planes = np.unique(np.quantile(x[:, axis], shares)) if len(x) and along > 1 else np.empty(0)
            part = np.searchsorted(planes, x[:, axis], side="right")
            divided += [(x[part == k], int(of_each[k])) for k in range(len(planes) + 1)]
            rows.append(planes)
        cuts.append(rows[0] if axis == 0 else rows)
        parts = divided
    return tuple(cuts)
