"""What estimators do with dask arrays beside running a plan: blocks of space, arrays beside the points, counts."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from daskclust.core.data.inputs import on_device_of
from daskclust.core.device.arrays import device_of, is_cuda
from daskclust.core.run.chunk_sizes import SECONDS, Cost, Workers, points_per_task
from daskclust.core.space.extent import survey
from daskclust.core.space.partition import Division, Partition
from daskclust.core.space.planes import balanced_cuts

_HALO = 0.05  # points of halos for each point, that fewer pairs of chunks may cost
_LOOKED_AT = 20_000  # points that tell along which axes to cut


def blocks_of_space(X: Any, count: int, period: tuple[float, ...], halo: float, rows: int = 0) -> Division:
    """Return a division of a dask array (n, d) into `count` blocks of space with as many points each.

    Blocks are as cubic as they can be; where points come in the order of space, they are slabs or columns instead, if
    these need few of the chunks of X and halos stay small.

    This computes, unless `count` is 1: one pass over X takes a sample and the extent of each of its chunks.

    Parameters
    ----------
    X : dask array, shape (n, d)
        Points.
    count : int
        Number of blocks.
    period : tuple of float
        Period of each axis, 0 where it is open.
    halo : float
        How far around its block a chunk reaches.
    rows : int, default 0
        Up to how many points of consecutive chunks of X are taken together.

    Returns
    -------
    Division
        Without a partition for one block.
    """
    if count == 1:
        return Division(None, X.shape[0])
    sample, *extents = _sampled(X, period)
    sample = sample[np.isfinite(sample).all(axis=1)]
    axes = _axes_to_cut(sample[:: max(1, len(sample) // _LOOKED_AT)], extents, count, period, halo)
    partition = _blocks(sample, axes, count, period, halo)
    return Division(partition, rows, partition.reached(*extents))


def _axes_to_cut(
    sample: Any, extents: list[Any], count: int, period: tuple[float, ...], halo: float
) -> tuple[int, ...]:
    """Return the axes that space is cut along: all, or fewer where that halves the pairs of chunks and blocks."""
    axes = range(min(sample.shape[1], 3))
    every = itertools.chain.from_iterable(itertools.combinations(axes, k + 1) for k in reversed(axes))
    ways = {some: _blocks(sample, some, count, period, halo) for some in every}
    pairs = {some: sum(map(len, way.reached(*extents))) for some, way in ways.items()}
    cubic = tuple(axes)
    fewer = [some for some in ways if pairs[some] <= pairs[cubic] / 2]
    share = {some: ways[some].halo_share(sample) for some in ([cubic, *fewer] if fewer else [])}
    good = [some for some in fewer if share[some] <= min(share.values()) + _HALO]
    return min(good, key=lambda some: (pairs[some], share[some]), default=cubic)


def _blocks(sample: Any, axes: tuple[int, ...], count: int, period: tuple[float, ...], halo: float) -> Partition:
    """Return blocks with as many points each, cut along some axes."""
    cuts = balanced_cuts(sample, _blocks_along(axes, count, sample), period, count)
    return Partition(cuts=cuts, period=period, halo=halo)


def _blocks_along(axes: tuple[int, ...], count: int, sample: Any) -> tuple[int, ...]:
    """Return how many blocks to make along each axis, 1 but along `axes`, so that they are as cubic as they can be."""
    blocks = [1] * (axes[-1] + 1)
    extent = [np.ptp(sample[:, axis]) if len(sample) else 0.0 for axis in axes]
    while math.prod(blocks) < count:
        widest = int(np.argmax([length / blocks[axis] for length, axis in zip(extent, axes, strict=True)]))
        blocks[axes[widest]] += 1
    return tuple(blocks)


def task_count(X: Any, rows: int) -> int:
    """Return into how many chunks of about `rows` points to divide a dask array (n, ...); 0: as many as it has."""
    return max(1, math.ceil(X.shape[0] / rows)) if rows else int(X.numblocks[0])


def rows_per_task(X: Any, cost: Cost) -> int:
    """Return how many points of a dask array (n, ...) a task is given; 0: as many as chunks have.

    That is so for CUDA arrays, and where dask's configuration has 0 seconds for ``daskclust.task-seconds``.
    """
    import dask

    seconds = float(dask.config.get("daskclust.task-seconds", SECONDS))
    return 0 if is_cuda(X._meta) or seconds <= 0 else points_per_task(X.shape[0], cost, _workers(), seconds)


def _workers() -> Workers:
    """Return the workers of the cluster that would compute now, or this process and its cores."""
    from dask.base import get_scheduler

    client: Any = getattr(get_scheduler(), "__self__", None)  # a client's method, where there is one
    if hasattr(client, "scheduler_info"):
        found = client.scheduler_info(n_workers=-1)["workers"].values()
        shares = [each["memory_limit"] / each["nthreads"] for each in found if each["memory_limit"]]
        return Workers(max(1, sum(each["nthreads"] for each in found)), min(shares, default=math.inf))
    threads = len(os.sched_getaffinity(0))
    return Workers(threads, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / threads)


def _sampled(X: Any, period: tuple[float, ...]) -> tuple[Any, Any, Any]:
    """Return points of all chunks, and lowest and highest coordinates (chunks, d), NaN for chunks with such points.

    Around a period the lowest may be negative: the other half of such a chunk is at the other end of the axis.
    """
    import dask.array as da

    # an array, not delayed blocks: dask would optimise their graph in another way than that of the results, and a
    # cluster that still knows of the one warns of two tasks of one name
    meta = np.empty((0,), object)
    one = {"chunks": ((1,) * X.numblocks[0],), "drop_axis": 1, "dtype": object, "meta": meta}
    boxes = da.map_blocks(_look, X, period, token="daskclust-sample", **one).compute()
    samples, low, high = zip(*boxes, strict=True)
    return np.concatenate(samples), np.stack(low), np.stack(high)


def whole(result: Any, function: Callable[..., Any], shape: tuple[int, ...], dtype: Any) -> Any:
    """Return ``function(result)``, an array, as a dask array of one chunk; `result` is delayed or a dask array."""
    import dask
    import dask.array as da

    if not isinstance(result, da.Array):
        return da.from_delayed(dask.delayed(function)(result), shape, dtype=dtype)
    # not delayed: dask would optimise the array's graph on its own, and share no step of it with other results
    axes = tuple(range(len(shape)))
    given = tuple(range(len(shape), len(shape) + result.ndim))
    sizes = dict(zip(axes, shape, strict=True))
    meta = np.empty((0,) * len(shape), dtype)
    return da.blockwise(function, axes, result, given, new_axes=sizes, concatenate=True, dtype=dtype, meta=meta)


def beside_points(array: Any, X: Any) -> Any:
    """Return a dask array (n,) of one chunk on the host as one with the chunks and the class of X's blocks."""
    import dask.array as da

    meta = X._meta.ravel()[:0].astype(array.dtype)
    return da.map_blocks(_like_block, array.rechunk((X.chunks[0],)), X._meta, dtype=array.dtype, meta=meta)


def map_points(function: Callable[..., Any], X: Any, *args: Any, dtype: Any = np.int64) -> Any:
    """Return ``function(block, *args)``, a number for each point, for the blocks of a dask array (n,) or (n, d)."""
    import dask.array as da

    meta = X._meta.ravel()[:0].astype(dtype)
    return da.map_blocks(function, X, *args, drop_axis=list(range(1, X.ndim)), dtype=dtype, meta=meta)


def map_rows(function: Callable[..., Any], labels: Any, *args: Any) -> Any:
    """Return ``function(block, *args)``, int64 of the same shape on the host, for the blocks of a dask array (n, k)."""
    import dask.array as da

    return da.map_blocks(function, labels, *args, dtype=np.int64, meta=np.empty((0, 0), np.int64))


def count_values(column: Any) -> tuple[Any, Any]:
    """Return the values of a dask array (n,) of integers, ascending, and how often each is there.

    This computes: one pass over the column.
    """
    import dask

    counts = dask.compute(*[dask.delayed(_counted)(block) for block in column.to_delayed().ravel()])
    values, number = np.unique(np.concatenate([value for value, _ in counts]), return_inverse=True)
    times = np.zeros(len(values), np.int64)
    np.add.at(times, number, np.concatenate([count for _, count in counts]))
    return values, times


# ---------------------------------------------------------------------------------------------------------- on a worker
def _look(block: Any, period: tuple[float, ...]) -> Any:
    """Return, in an array of one element, up to 8192 points, evenly spaced, on the host, and the extent of all."""
    device = device_of(block)
    points = device.to_host(device.argument(block[:: max(1, len(block) // 8192)]))
    ends = np.full((2, block.shape[1]), np.nan)
    if len(block):
        low, high, bad = survey(device, device.argument(block))
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


def _like_block(values: Any, like: Any) -> Any:
    return on_device_of(like, values)


def _counted(values: Any) -> tuple[Any, Any]:
    found: tuple[Any, Any] = np.unique(values, return_counts=True)
    return found
