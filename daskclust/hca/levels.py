"""One level of the hierarchy: sets of clusters, each of which is merged down to one.

The points of apriori clusters are such sets, and so are the roots of apriori clusters at the last level.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import HOST, Cuda, Host, multiprocessors
from daskclust.core.device.threads import in_threads, one_thread, thread_count
from daskclust.hca.clusters import LevelClusters, are_rows, on_device
from daskclust.hca.equal_clusters import merge_equal_clusters, with_equal
from daskclust.hca.kernels.blocks import SIDE
from daskclust.hca.kernels.clusters import Clusters
from daskclust.hca.kernels.layout import arrange, principal_axes
from daskclust.hca.kernels.loop import merge_down_to
from daskclust.hca.kernels.search import find_all
from daskclust.hca.kernels.sets import close_set, place, shape_roots
from daskclust.hca.kernels.shapes import Rule, Shapes
from daskclust.hca.kernels.teams import Desk, Sets, link_sets
from daskclust.hca.kernels.union import ALIVE, REACHED, SWITCHED, Merges

FEW = 256  # clusters that are not given new slots any more
SMALL = 160  # clusters of a set whose pairs are all looked at
BATCH = 1 << 14  # clusters of small sets that are one task
SETS = 1024  # sets that are one task, or on a device, at once: each has room of its own to work in
THREADS = 256  # of a block
LARGE = 4096  # clusters of a set that takes a whole device
CUDA_BATCH = 1 << 20  # clusters of sets that are on a device at once
_ONE_GRID = threading.Lock()


class Level(NamedTuple):
    """What became of the sets of a level."""

    pairs: NDArray[np.int64]  # (m - sets, 2): ids counted within the set, the older one first
    heights: NDArray[np.float64]  # (m - sets,)
    total: NDArray[np.float64]  # (sets, d): of the roots
    scatter: NDArray[np.float64]  # (sets, p)
    first: NDArray[np.int64]  # (sets,)
    last: NDArray[np.int64]  # (sets,)


class Tables(NamedTuple):
    """The arrays that kernels work on, for some sets."""

    sets: Sets
    clusters: Clusters
    shapes: Shapes
    merges: Merges
    has_shapes: bool  # whether there are clusters of more than a point


def link_level(start: LevelClusters, begin: NDArray[np.int64], rule: Rule, device: Host | Cuda) -> Level:
    """Merge sets of clusters, set i being clusters begin[i] to begin[i + 1], each down to one cluster."""
    merged = merge_equal_clusters(start, begin, rule, device)
    if merged is None:
        return _link_all(start, begin, rule, device)
    found = _link_all(merged.clusters, merged.begin, rule, device)
    pairs, heights = with_equal(merged, begin, found.pairs, found.heights)
    return found._replace(pairs=pairs, heights=heights)


def _link_all(start: LevelClusters, begin: NDArray[np.int64], rule: Rule, device: Host | Cuda) -> Level:
    """Merge sets of clusters, part by part."""
    parts = _parts(np.diff(begin), device)
    levels: list[Any] = [None] * len(parts)

    def link(k: int) -> None:
        chosen = begin[parts[k] : parts[k + 1] + 1] if k + 1 < len(parts) else begin[parts[k] :]
        levels[k] = _link_part(start, chosen, rule, device)

    threads = min(thread_count(), len(parts)) if device is HOST else 1
    if threads > 1:

        def alone(k: int) -> None:
            with one_thread():
                link(k)

        in_threads(alone, len(parts), threads)
    else:
        for k in range(len(parts)):
            link(k)
    return Level(*(np.concatenate(arrays) for arrays in zip(*levels, strict=True)))


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


def _link_part(start: LevelClusters, begin: NDArray[np.int64], rule: Rule, device: Host | Cuda) -> Level:
    tables = _tables(start, begin, rule, device)
    sets = len(begin) - 1
    if tables.has_shapes:
        device.run(shape_roots, sets, rule, *tables[:4], grain=1)
    if isinstance(device, Cuda):
        _link_on_cuda(tables, rule, device)
    elif sets == 1 and begin[1] - begin[0] > SMALL:
        tables = _link_large(tables, rule)
    else:
        nobody = np.empty(0, np.int64)
        desk = Desk(np.empty(0), nobody, nobody, np.empty((sets, 1), np.int32), 1, 1)
        link_sets.run(sets, rule, *tables[:4], desk, grain=1)
    total = device.empty((sets, start.total.shape[1]), np.float64)
    scatter = device.empty((sets, tables.shapes.scatter.shape[1]), np.float64)
    ends = device.empty((sets, 2), np.int64)
    device.run(close_set, sets, *tables[:4], total, scatter, ends, grain=1)
    ends = device.to_host(ends)
    found = [device.to_host(array) for array in (*tables.merges[:2], total, scatter)]
    return Level(found[0], found[1], found[2], found[3], ends[:, 0], ends[:, 1])


def _link_large(tables: Tables, rule: Rule) -> Tables:
    """Merge one set on the CPU, with bounds for most distances; return its tables with new slots."""
    _, clusters, shapes, merges, _ = tables
    shapes = shapes._replace(matrix=shapes.matrix[0], factor=shapes.factor[0], spare=shapes.spare[0])
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


def _tables(start: LevelClusters, begin: NDArray[np.int64], rule: Rule, device: Host | Cuda) -> Tables:
    """Return the arrays to start from."""
    own = slice(begin[0], begin[-1])
    size, begin = start.size[own], begin - begin[0]
    m, sets, d = len(size), len(begin) - 1, start.points.shape[1]
    base = np.repeat(begin[:-1], np.diff(begin))
    is_union = start.ref[own] < 0
    row, rows, free, unused = _matrix_rows(is_union, size, begin, rule)
    scatter = np.empty((rows[-1], d * (d + 1) // 2))
    before = np.count_nonzero(start.ref[: own.start] < 0)
    known = start.scatter[before : before + np.count_nonzero(is_union)]
    scatter[row[is_union]] = known
    clusters = _room_for_clusters(m, start, device)
    is_row = are_rows(start.ref[own], known)
    given = (base, np.arange(m) - base, size, start.total[own], start.first[own], start.last[own], row, is_row)
    device.run(place, m, *(on_device(device, array) for array in given), clusters)
    shapes = Shapes(
        scatter=device.from_host(scatter),
        whiten=device.empty(scatter.shape, np.float64),
        unscale=device.empty(len(scatter), np.float64),
        free=device.from_host(free),
        unused=device.from_host(unused),
        matrix=device.empty((sets, d, d), np.float64),
        factor=device.empty((sets, d, d), np.float64),
        spare=device.empty((sets, d, d), np.float64),
    )
    state = device.from_host(_first_state(size, begin, rule))
    merges = Merges(device.empty((m - sets, 2), np.int64), device.empty(m - sets, np.float64), state)
    near, partner = device.empty(m, np.float64), device.empty(m, np.int64)
    slots = Sets(device.from_host(begin), device.from_host(rows), near, partner)
    return Tables(slots, clusters, shapes, merges, bool(is_union.any()))


def _room_for_clusters(m: int, start: LevelClusters, device: Host | Cuda) -> Clusters:
    d = start.points.shape[1]
    return Clusters(
        ident=device.empty(m, np.int64),
        size=device.empty(m, np.int64),
        total=device.empty((m, d), np.float64),
        center=device.empty((m, d), np.float64),
        first=device.empty(m, np.int64),
        last=device.empty(m, np.int64),
        row=device.empty(m, np.int64),
        is_shaped=device.empty(m, np.bool_),
        stretch=device.empty(m, np.float64),
        slot_of=device.full(2 * m, -1, np.int64),
        follower=on_device(device, start.follower),
        points=on_device(device, start.points),
    )


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


def _link_on_cuda(tables: Tables, rule: Rule, device: Cuda) -> None:
    """Merge sets on the current device, a block each; one large set on the whole of it."""
    sets = len(tables.sets.begin) - 1
    blocks, threads = 1, THREADS
    if sets == 1 and len(tables.clusters.ident) > LARGE:
        blocks = multiprocessors()
    seats = 4 * sets * blocks * threads
    desk = Desk(
        device.empty(seats, np.float64), device.empty(seats, np.int64), device.empty(seats, np.int64),
        device.from_host(np.zeros((sets, 1), np.int32)), blocks, threads,
    )  # fmt: skip
    with _ONE_GRID:  # two grids that wait for their own blocks would wait for each other's place
        device.run_teams(link_sets, sets, blocks, threads, rule, *tables[:4], desk)
        if blocks > 1:
            device.to_host(tables.merges.state)
