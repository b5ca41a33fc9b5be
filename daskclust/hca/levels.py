"""One level of the hierarchy: sets of clusters, each of which is merged down to one.

The points of apriori clusters are such sets, and so are the roots of apriori clusters at the last level. On a GPU the
arrays that kernels work on are parts of few allocations, filled by one copy.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import HOST, Cuda, Host, is_cuda, multiprocessors
from daskclust.core.device.threads import in_threads, one_thread, thread_count
from daskclust.hca.clusters import LevelClusters, are_rows, on_device
from daskclust.hca.equal_clusters import merge_equal_clusters, with_equal
from daskclust.hca.kernels.blocks import SIDE
from daskclust.hca.kernels.clusters import Clusters
from daskclust.hca.kernels.layout import arrange, principal_axes
from daskclust.hca.kernels.loop import merge_down_to
from daskclust.hca.kernels.search import find_all
from daskclust.hca.kernels.sets import close_set, place
from daskclust.hca.kernels.shapes import Rule, Shapes, numbers_for_shape
from daskclust.hca.kernels.teams import OFFER, TeamScratch, TeamSets, link_sets, shape_roots
from daskclust.hca.kernels.union import ALIVE, REACHED, SWITCHED, Merges

FEW = 256  # clusters that are not given new slots any more
# Clusters of a set whose pairs are all looked at. With bounds instead 100 points take 1.04 ms and not 0.76, but 1000
# take 5.4 ms and not 14.6 (8 channels, one thread).
SMALL = 160
BATCH = 1 << 14  # clusters of small sets that are one task
SETS = 1024  # sets that are one task, or on a device, at once: each has room of its own to work in
THREADS = 256  # of a block
LARGE = 4096  # clusters of a set that takes a whole device
CUDA_BATCH = 1 << 20  # clusters of sets that are on a device at once
BLOCK_MEMORY = 48 << 10  # bytes that every GPU gives a block
ALIGNED = 128  # bytes that a GPU reads at once
_ONE_GRID = threading.Lock()

Parts = dict[str, tuple[tuple[int, ...], Any]]
"""Shapes and dtypes by name."""


class TreeLevel(NamedTuple):
    """What became of the sets of a level."""

    pairs: NDArray[np.int64]  # (m - sets, 2): ids counted within the set, the older one first
    heights: NDArray[np.float64]  # (m - sets,)
    total: NDArray[np.float64]  # (sets, d): of the roots
    scatter: NDArray[np.float64]  # (sets, p)
    first: NDArray[np.int64]  # (sets,)
    last: NDArray[np.int64]  # (sets,)


def link_level(start: LevelClusters, begin: NDArray[np.int64], rule: Rule, device: Host | Cuda) -> TreeLevel:
    """Merge sets of clusters, set i being clusters begin[i] to begin[i + 1], each down to one cluster."""
    merged = merge_equal_clusters(start, begin, rule, device)
    if merged is None:
        return _link_all(start, begin, rule, device)
    found = _link_all(merged.clusters, merged.begin, rule, device)
    pairs, heights = with_equal(merged, begin, found.pairs, found.heights)
    return found._replace(pairs=pairs, heights=heights)


def _link_all(start: LevelClusters, begin: NDArray[np.int64], rule: Rule, device: Host | Cuda) -> TreeLevel:
    """Merge sets of clusters, part by part."""
    parts = [*_parts(np.diff(begin), device), len(begin) - 1]
    count = len(parts) - 1
    threads = min(thread_count(), count) if device is HOST else 1
    levels: list[Any] = [None] * count

    def link(k: int) -> None:
        with one_thread() if threads > 1 else nullcontext():
            levels[k] = _link_part(start, begin[parts[k] : parts[k + 1] + 1], rule, device)

    in_threads(link, count, threads)
    return TreeLevel(*(np.concatenate(arrays) for arrays in zip(*levels, strict=True)))


def _parts(sizes: NDArray[np.int64], device: Host | Cuda) -> list[int]:
    """Return the first sets of the parts that are worked on at once: a large set alone, small ones together."""
    least, most = (SMALL, BATCH) if device is HOST else (LARGE, CUDA_BATCH)
    parts, filled = [0], 0
    for i, size in enumerate(sizes.tolist()):
        is_large = size > least
        if i and (is_large or filled + size > most or i - parts[-1] == SETS):
            parts.append(i)
            filled = 0
        filled += most if is_large else size
    return parts


def _link_part(start: LevelClusters, begin: NDArray[np.int64], rule: Rule, device: Host | Cuda) -> TreeLevel:
    sets, m, d = len(begin) - 1, int(begin[-1] - begin[0]), start.points.shape[1]
    wanted: Parts = {
        "pairs": ((m - sets, 2), np.int64), "heights": ((m - sets,), np.float64), "total": ((sets, d), np.float64),
        "scatter": ((sets, d * (d + 1) // 2), np.float64), "ends": ((sets, 2), np.int64),
    }  # fmt: skip
    answer = device.empty(size_of(wanted), np.uint8)
    found = parts_of(answer, wanted)
    # on CUDA a block takes a set, or all of them one large set
    blocks, threads = (1, 1) if device is HOST else (multiprocessors() if sets == 1 and m > LARGE else 1, THREADS)
    tables = tables_of(start, begin, rule, device, found["pairs"], found["heights"], blocks, threads)
    roots = found["total"], found["scatter"], found["ends"]
    if isinstance(device, Cuda):
        # two grids that wait for their own blocks would wait for each other's place
        with _ONE_GRID if blocks > 1 else nullcontext():
            _link_on_cuda(tables, rule, device, roots)
            answer = device.to_host(answer)
    else:
        _link_on_host(tables, rule, roots)
    found = parts_of(answer, wanted)
    first, last = found["ends"].T
    return TreeLevel(found["pairs"], found["heights"], found["total"], found["scatter"], first, last)


def _link_large(tables: Tables, rule: Rule) -> Tables:
    """Merge one set on the CPU, with bounds for most distances; return its tables with new slots."""
    _, clusters, shapes, merges, *_ = tables
    merges = merges._replace(state=merges.state[0])
    m = len(clusters.ident)
    axes = principal_axes(clusters.center)
    clusters, blocks = arrange(clusters, np.full(m, np.inf), np.full(m, -1), axes)
    find_all.run(len(clusters.ident), rule, clusters, shapes, blocks, grain=64)
    least = blocks.near.reshape(-1, SIDE).min(axis=1)
    blocks.block_near[: len(least)] = least
    blocks.node_near[:] = np.minimum.reduceat(least, np.arange(0, len(least), SIDE))
    left = len(merges.heights) + 1
    while left > 1:
        left = int(0.6 * left) if left > FEW else 1
        merge_down_to.run(1, left, rule, clusters, shapes, blocks, merges)
        if left > 1:
            clusters, blocks = arrange(clusters, blocks.near, blocks.partner, axes)
    sets = tables.sets._replace(begin=np.array([0, len(merges.heights) + 1]))
    return tables._replace(sets=sets, clusters=clusters)


def _link_on_cuda(tables: Tables, rule: Rule, device: Cuda, roots: tuple[Any, ...]) -> None:
    """Merge sets on the current device and write what is left of each."""
    sets, desk = len(tables.sets.begin) - 1, tables.desk
    shared = 0 if len(tables.shapes.memory) else 8 * desk.numbers
    if tables.has_shapes:
        device.run_teams(shape_roots, sets, desk.blocks, desk.threads, rule, *tables[:5], shared=shared)
    device.run_teams(link_sets, sets, desk.blocks, desk.threads, rule, *tables[:5], shared=shared)
    device.run_teams(close_set, sets, 1, desk.threads, *tables[:5], *roots)


def _link_on_host(tables: Tables, rule: Rule, roots: tuple[Any, ...]) -> None:
    """Merge sets on the CPU and write what is left of each."""
    sets = len(tables.sets.begin) - 1
    if tables.has_shapes:
        shape_roots.run(sets, rule, *tables[:5], grain=1)
    if sets == 1 and len(tables.clusters.ident) > SMALL:
        tables = _link_large(tables, rule)
    else:
        link_sets.run(sets, rule, *tables[:5], grain=1)
    close_set.run(sets, *tables[:5], *roots, grain=1)


# -------------------------------------------------------------------------------------- arrays that the kernels work on
class Tables(NamedTuple):
    """The arrays that kernels work on, for some sets."""

    sets: TeamSets
    clusters: Clusters
    shapes: Shapes
    merges: Merges
    desk: TeamScratch
    has_shapes: bool  # whether there are clusters of more than a point


def tables_of(
    start: LevelClusters, begin: NDArray[np.int64], rule: Rule, device: Host | Cuda, pairs: Any, heights: Any,
    blocks: int, threads: int,
) -> Tables:  # fmt: skip
    """Return the arrays to start from, for teams of so many blocks and threads."""
    own = slice(begin[0], begin[-1])
    size, begin = start.size[own], begin - begin[0]
    m, sets, d = len(size), len(begin) - 1, start.points.shape[1]
    is_union = start.ref[own] < 0
    row, rows, free, unused = _matrix_rows(is_union, size, begin, rule)
    scatter = np.empty((rows[-1], d * (d + 1) // 2))
    before = np.count_nonzero(start.ref[: own.start] < 0)
    known = start.scatter[before : before + np.count_nonzero(is_union)]
    scatter[row[is_union]] = known
    base = np.repeat(begin[:-1], np.diff(begin))
    given = _sent(
        device, scatter=scatter, free=free, unused=unused, state=_first_state(size, begin, rule), begin=begin,
        rows=rows, arrived=np.zeros((sets, 1), np.int32), slot_of=np.full(2 * m, -1), base=base,
        ident=np.arange(m) - base, size=size, total=start.total[own], first=start.first[own], last=start.last[own],
        row=row, is_row=are_rows(start.ref[own], known),
    )  # fmt: skip
    numbers = numbers_for_shape(d) + OFFER * threads
    is_near = device is not HOST and 8 * numbers <= BLOCK_MEMORY
    works: Parts = {
        "whiten": (scatter.shape, np.float64), "memory": ((0 if is_near else sets * blocks * numbers,), np.float64),
        "offers": ((2 * OFFER * blocks,), np.float64), "near": ((m,), np.float64), "partner": ((m,), np.int64),
        "ident": ((m,), np.int64), "size": ((m,), np.int64), "total": ((m, d), np.float64),
        "center": ((m, d) if device is HOST else (d, m), np.float64), "first": ((m,), np.int64),
        "last": ((m,), np.int64), "row": ((m,), np.int64), "stretch": ((m,), np.float64), "is_shaped": ((m,), np.bool_),
    }  # fmt: skip
    work = _room(device, works)
    if device is not HOST:
        work["center"] = work["center"].T  # neighbouring threads read neighbouring numbers
    clusters = Clusters(
        **{name: work[name] for name in Clusters._fields if name in work}, slot_of=given["slot_of"],
        follower=on_device(device, start.follower), points=on_device(device, start.points),
    )  # fmt: skip
    items = [given[name] for name in ("base", "ident", "size", "total", "first", "last", "row", "is_row")]
    device.run(place, m, *items, clusters)
    shapes = Shapes(given["scatter"], work["whiten"], given["free"], given["unused"], work["memory"])
    slots = TeamSets(given["begin"], given["rows"], work["near"], work["partner"])
    desk = TeamScratch(work["offers"], given["arrived"], blocks, threads, numbers)
    return Tables(slots, clusters, shapes, Merges(pairs, heights, given["state"]), desk, bool(is_union.any()))


def _matrix_rows(
    has_row: NDArray[np.bool_], size: NDArray[np.int64], begin: NDArray[np.int64], rule: Rule
) -> tuple[NDArray[np.int64], ...]:
    """Return the row of each cluster, -1 for none, where the rows of each set begin, the free ones and their number."""
    of_set = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
    given = np.add.reduceat(has_row, begin[:-1], dtype=np.int64)
    # a cluster that gets its row later takes as many points as that needs
    least = max(rule.smallest, 3 if rule.mixes else int(min(np.ceil(rule.threshold), 2.0**62)))
    points = np.add.reduceat(np.where(has_row, 0, size), begin[:-1])
    rows = np.concatenate([[0], np.cumsum(given + np.minimum(points // least, np.diff(begin) - given) + 2)])
    number = np.cumsum(has_row) - 1 - (np.cumsum(given) - given)[of_set]
    row = np.where(has_row, rows[:-1][of_set] + number, -1)
    # the first rows of each set are given; the list of free ones has the others first, and takes from its end
    unused = np.diff(rows) - given
    of_set = np.repeat(np.arange(len(given)), np.diff(rows))
    place = np.arange(rows[-1]) - rows[:-1][of_set]
    free = rows[:-1][of_set] + np.where(place < unused[of_set], place + given[of_set], place - unused[of_set])
    return row, rows, free, unused


def _first_state(size: NDArray[np.int64], begin: NDArray[np.int64], rule: Rule) -> NDArray[np.int64]:
    """Return `Merges.state` of each set before any merge."""
    left = np.diff(begin)
    reached = np.add.reduceat((size >= rule.threshold) & (size >= rule.smallest), begin[:-1], dtype=np.int64)
    state: NDArray[np.int64] = np.zeros((len(left), 4), np.int64)
    state[:, ALIVE], state[:, REACHED] = left, reached
    state[:, SWITCHED] = (rule.threshold <= 1.0) | (reached == left)
    return state


def size_of(parts: Parts) -> int:
    """Return how many bytes arrays take that lie one after the other."""
    return sum(_bytes_of(*part) for part in parts.values())


def parts_of(buffer: Any, parts: Parts) -> dict[str, Any]:
    """Return arrays that lie one after the other in a buffer of bytes."""
    found, at = {}, 0
    for name, (shape, dtype) in parts.items():
        length = int(np.prod(shape)) * np.dtype(dtype).itemsize
        found[name] = buffer[at : at + length].view(dtype).reshape(shape)
        at += _bytes_of(shape, dtype)
    return found


def _bytes_of(shape: tuple[int, ...], dtype: Any) -> int:
    """Return how many bytes an array takes, and what is left free after it."""
    return -(-int(np.prod(shape)) * int(np.dtype(dtype).itemsize) // ALIGNED) * ALIGNED


def _room(device: Host | Cuda, parts: Parts) -> dict[str, Any]:
    """Return empty arrays: on the host each its own, so that it can be given back alone."""
    if device is HOST:
        return {name: np.empty(shape, dtype) for name, (shape, dtype) in parts.items()}
    return parts_of(device.empty(size_of(parts), np.uint8), parts)


def _sent(device: Host | Cuda, **arrays: Any) -> dict[str, Any]:
    """Return arrays on a device; those of the host go there in one copy."""
    if device is HOST:
        return arrays
    parts = {name: (array.shape, array.dtype) for name, array in arrays.items() if not is_cuda(array)}
    buffer = np.empty(size_of(parts), np.uint8)
    for name, part in parts_of(buffer, parts).items():
        part[...] = arrays[name]
    sent = parts_of(device.from_host(buffer), parts)
    return {name: sent.get(name, array) for name, array in arrays.items()}
