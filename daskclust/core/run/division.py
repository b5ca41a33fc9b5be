"""How dask arrays are divided for a plan: as they are, by groups, or into blocks of space; points that make a task.

Blocks of space need a pass over the coordinates, which takes a sample of points and the extents of chunks.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.data.lazy import collected, map_points, meta_of
from daskclust.core.device.arrays import device_of, is_cuda
from daskclust.core.run.plan import Cost, Plan
from daskclust.core.run.workers import MOST, SECONDS, SHORTEST, Workers, dividing_size, find_workers, points_per_task
from daskclust.core.space.extent import survey
from daskclust.core.space.grid import along_axes, wrap_positions
from daskclust.core.space.partition import Division, Halo, Partition

_log = logging.getLogger(__name__)
_OF_GROUP = 8  # a group of chunks may have points of one part in so many of a worker's memory
_HALO = 0.05  # points of halos for each point, that fewer pairs of chunks may cost
_LOOKED_AT = 20_000  # points that tell along which axes to cut
_CHUNKS = 128  # that are looked at first, where there are more
_CHUNKS_COUNTED = 128  # chunks that tell the same, and whether many have points for a block
# Points of a sample: for each block, and at least and at most for all. With a thousand, blocks differ by a thirtieth.
_OF_BLOCK, _SAMPLED, _MOST_SAMPLED = 1024, 1 << 16, 1 << 21
HaloBy = Halo | Callable[[Any], Halo]
_ERROR = 0.2  # of a block's number of points, relative, above which all chunks are looked at


def divide(plan: Plan, columns: dict[str, Any], asked: str | Partition) -> Division:
    """Return the division of `columns`, dask arrays, that a user asks for."""
    workers = find_workers()
    return for_exchange(_divide(plan, columns, asked, workers), columns, workers)


def for_exchange(division: Division, columns: dict[str, Any], workers: Workers) -> Division:
    """Return a division with as many groups of chunks as give each thread work, and fit into memory."""
    size = _row_size(columns) * next(iter(columns.values())).shape[0]
    return division._replace(groups=max(workers.threads, math.ceil(_OF_GROUP * size / workers.memory)))


def _row_size(columns: dict[str, Any]) -> int:
    """Return the bytes of a point in all columns."""
    return sum(math.prod(each.shape[1:]) * each.dtype.itemsize for each in columns.values())


def _divide(plan: Plan, columns: dict[str, Any], asked: str | Partition, workers: Workers) -> Division:
    X, has_groups = columns[plan.positions], plan.group in columns
    rows = rows_per_task(X, plan.cost, workers)
    if asked == "auto":
        asked = next(name for name in plan.divisions if has_groups or name != "layers")
    tell_of_large_chunks(columns, workers, plan.cost.size if asked == "chunks" else None)
    if isinstance(asked, Partition):
        if asked.groups > 1 and not has_groups:
            raise ValueError(
                f"the partition has {asked.groups} groups of {plan.group}s, but the points have no {plan.group}; "
                f"give {plan.group}=, or a partition without groups"
            )
        return Division(_with_halo(asked, plan), rows)
    if not isinstance(asked, str) or asked not in plan.divisions:
        known = ", ".join(f'"{name}"' for name in ("auto", *plan.divisions))
        raise ValueError(f"partition must be {known} or a Partition, got {asked!r}")
    if asked == "layers":
        if not has_groups:
            raise ValueError(f'partition="layers" needs {plan.group}=; give it, or use partition="space"')
        return Division(Partition(groups=task_count(X, rows)), rows)
    if asked == "chunks":
        if X.numblocks[0] > 1 and np.any(plan.reach) and not has_groups:
            raise ValueError(
                f'partition="chunks" needs one chunk, X has {X.numblocks[0]}, which share neighbours; use "space", or '
                "X.rechunk((-1, -1))"
            )
        return Division(None, rows_per_task(X, plan.cost, workers, SHORTEST))  # to join chunks is to copy them
    points = X if X.ndim == 2 else X[:, None]
    return blocks_of_space(points, task_count(X, rows), plan.period, plan.halo_by or plan.halo, rows)


def _with_halo(partition: Partition, plan: Plan) -> Partition:
    """Return a user's partition with a halo that has what rounding needs; refuse one that does not fit the points."""
    cut, period = len(partition.cuts), plan.period
    if not cut:
        return partition
    if cut > len(period) or tuple(partition.period[:cut]) != period[:cut]:
        raise ValueError(
            f"the partition cuts {cut} axes of periods {partition.period}; the points have {len(period)} axes, of "
            f"periods {period} (0: open): make a partition for these"
        )
    given, wanted, wide = (along_axes(halo, cut) for halo in (partition.halo, plan.reach, plan.halo))
    if any(own < least for own, least in zip(given, wanted, strict=True)):
        got, least = (" and ".join(f"{length:g}" for length in np.ravel(halo)) for halo in (partition.halo, plan.reach))
        raise ValueError(f"the partition has a halo of {got}; it must be at least {least}, {plan.reach_name}")
    return replace(partition, halo=tuple(map(max, given, wide)))


def task_count(X: Any, rows: int) -> int:
    """Return into how many chunks of about `rows` points to divide a dask array (n, ...); 0: as many as it has."""
    count = max(1, math.ceil(X.shape[0] / rows)) if rows else int(X.numblocks[0])
    if rows and count > MOST:
        _log.warning(
            "%.3g points are divided into %d chunks of %d, because workers have no memory for larger ones; the "
            "scheduler takes minutes for so many chunks: give workers more memory, or fewer threads",
            *(X.shape[0], count, rows),
        )
    return count


def rows_per_task(X: Any, cost: Cost, workers: Workers, most: float = math.inf) -> int:
    """Return how many points of a dask array (n, ...) a task of at most so many seconds is given; 0: all of a chunk.

    That is so for CUDA arrays, and where dask's configuration has 0 seconds for ``daskclust.task-seconds``.
    """
    import dask

    seconds = min(most, float(dask.config.get("daskclust.task-seconds", SECONDS)))
    return 0 if is_cuda(meta_of(X)) or seconds <= 0 else points_per_task(X.shape[0], cost, workers, seconds)


def tell_of_large_chunks(columns: dict[str, Any], workers: Workers, size: float | None = None) -> None:
    """Warn of a chunk that takes more memory than workers have: `size` bytes a point, by default for dividing it."""
    from dask.utils import format_bytes

    X = next(iter(columns.values()))
    if size is None:
        size = dividing_size(_row_size(columns))
    most = max(X.chunks[0])
    if most * size > workers.memory and not is_cuda(meta_of(X)):
        _log.warning(
            "a chunk has %d points and needs about %d bytes for each, %s, but workers have only about %s free for each "
            "thread, and may be killed for lack of memory: make chunks smaller, with chunks= where files are opened or "
            "X.rechunk(), or start workers with more memory or fewer threads",
            *(most, size, format_bytes(int(most * size)), format_bytes(int(workers.memory))),
        )


# ------------------------------------------------------------------------------------------------------- whole groups
def divide_groups(
    columns: dict[str, Any], group: Any, nobody: int, name: str, cost: Callable[[NDArray[np.int64]], Cost]
) -> tuple[dict[str, Any], Division]:
    """Return dask arrays with one more, the number of each point's pack of whole groups, and their division by it.

    This computes: one pass over `group` counts sizes of groups. Points of the group `nobody` may go anywhere; `name` is
    that of the new column, and `cost` returns what a point costs by the sizes of groups.
    """
    import dask
    import dask.array as da

    X, workers = next(iter(columns.values())), find_workers()
    tell_of_large_chunks(columns, workers)
    labels, sizes = dask.compute(*da.unique(group, return_counts=True))
    labels, sizes = labels[labels != nobody], sizes[labels != nobody]
    rows = rows_per_task(X, cost(sizes), workers)
    packs = task_count(X, rows)
    pack = map_points(_pack_of, group, labels, pack_groups(labels, sizes, packs), nobody)
    columns = {**columns, name: pack}
    return columns, for_exchange(Division(Partition(groups=packs), rows), columns, workers)


def pack_groups(labels: NDArray[np.int64], sizes: NDArray[np.int64], packs: int) -> NDArray[np.int64]:
    """Return the pack of each group, so that packs take about as long: the largest go first, time is size^2.

    Ties go to smaller labels and packs, so that the answer is always the same; results do not depend on it.
    """
    load = [(0.0, k) for k in range(packs)]
    pack = np.empty(len(labels), np.int64)
    for k in np.lexsort((labels, -sizes)):
        least, pack[k] = load[0]
        heapq.heapreplace(load, (least + float(sizes[k]) ** 2, int(pack[k])))
    return pack


def _pack_of(label: Any, labels: Any, pack: Any, nobody: int) -> Any:
    """Return the pack of each point; points in no group go anywhere, evenly."""
    if not len(labels):
        return np.arange(len(label))
    place = np.minimum(np.searchsorted(labels, label), len(labels) - 1)
    return np.where(label == nobody, np.arange(len(label)), pack[place])


# ----------------------------------------------------------------------------------------------------- blocks of space
def blocks_of_space(X: Any, count: int, period: tuple[float, ...], halo: HaloBy, rows: int = 0) -> Division:
    """Return a division of a dask array (n, d) into `count` blocks of space with as many points each.

    Blocks are as cubic as they can be; where points come in the order of space, they are slabs or columns instead, if
    these need few of the chunks of X and halos stay small. Many small chunks go together, up to `rows` points.

    This computes, unless `count` is 1: a sample of points comes from up to 128 chunks of X. All chunks are read where
    these have points for few blocks, as in data in the order of space, to know for which; and where these differ so
    much that they do not tell how many points each block has.
    """
    if count == 1:
        return Division(None, X.shape[0])
    lengths, period = X.chunks[0], period or (0.0,) * X.shape[1]
    wanted = min(max(_SAMPLED, _OF_BLOCK * count), _MOST_SAMPLED)
    numbers, weights = some_chunks(lengths)
    seen = look(X, numbers, period, wanted)
    sample, chunk = seen.sample(weights, wanted)
    partition, few = _balanced(sample, seen, count, period, halo)
    is_all = len(numbers) == len(lengths)
    if not is_all and (few or not are_alike(chunk, _block_of_each(sample, partition), weights, _ERROR)):
        seen = seen.together(look(X, np.setdiff1d(np.arange(len(lengths)), numbers), period, wanted))
        partition, few = _balanced(seen.sample(lengths, wanted)[0], seen, count, period, halo)
    return Division(partition, rows, partition.reached(seen.low, seen.high) if few else None)


def _balanced(sample: Any, seen: Looked, count: int, period: tuple[float, ...], halo: HaloBy) -> tuple[Partition, bool]:
    """Return blocks with as many points each, and whether chunks have points for less than half of them."""
    halo = halo(sample) if callable(halo) else halo
    extents = [ends[:: max(1, len(ends) // _CHUNKS_COUNTED)] for ends in (seen.low, seen.high)]
    axes = _axes_to_cut(sample[:: max(1, len(sample) // _LOOKED_AT)], extents, count, period, halo)
    partition = _blocks(sample, axes, count, period, halo)
    return partition, sum(map(len, partition.reached(*extents))) <= len(extents[0]) * len(partition) / 2


def _axes_to_cut(sample: Any, extents: list[Any], count: int, period: tuple[float, ...], halo: Halo) -> tuple[int, ...]:
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


def _blocks(sample: Any, axes: tuple[int, ...], count: int, period: tuple[float, ...], halo: Halo) -> Partition:
    """Return blocks with as many points each, cut along some axes, and as cubic as they can be."""
    blocks = [1] * (axes[-1] + 1)
    extent = [np.ptp(sample[:, axis]) if len(sample) else 0.0 for axis in axes]
    while math.prod(blocks) < count:
        widest = int(np.argmax([length / blocks[axis] for length, axis in zip(extent, axes, strict=True)]))
        blocks[axes[widest]] += 1
    return Partition(cuts=balanced_cuts(sample, tuple(blocks), period, count), period=period, halo=halo)


def _block_of_each(sample: Any, partition: Partition) -> Any:
    block = np.empty(len(sample), np.int64)
    for number, part in enumerate(replace(partition, halo=0.0).split({"X": sample}, 0)):
        block[part.ids[part.owned]] = number
    return block


# ------------------------------------------------------------------------------------------ a look at the coordinates
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
    one = {"adjust_chunks": {"a": 1}, "dtype": object, "meta": meta, "concatenate": False, "align_arrays": False}
    looks = da.blockwise(_look, "a", X, "ab", stride, None, period, None, token="daskclust-sample", **one)
    points, low, high = zip(*collected(looks.blocks[numbers.tolist()]), strict=True)
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
    (block,) = block  # of one column of blocks
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
