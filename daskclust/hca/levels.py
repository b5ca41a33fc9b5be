"""One level of the hierarchy: sets of clusters, each of which is merged down to one.

The points of apriori clusters are such sets, and so are the roots of apriori clusters at the last level.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import HOST, Cuda, Host, multiprocessors
from daskclust.core.device.threads import in_threads, one_thread, thread_count
from daskclust.hca.clusters import LevelClusters
from daskclust.hca.equal_clusters import merge_equal_clusters, with_equal
from daskclust.hca.kernels.blocks import SIDE
from daskclust.hca.kernels.layout import arrange, principal_axes
from daskclust.hca.kernels.loop import merge_down_to
from daskclust.hca.kernels.search import find_all
from daskclust.hca.kernels.sets import close_set
from daskclust.hca.kernels.shapes import Rule
from daskclust.hca.kernels.teams import link_sets, shape_roots
from daskclust.hca.tables import Parts, Tables, parts_of, size_of, tables_of

FEW = 256  # clusters that are not given new slots any more
# Clusters of a set whose pairs are all looked at. With bounds instead 100 points take 1.04 ms and not 0.76, but 1000
# take 5.4 ms and not 14.6 (8 channels, one thread).
SMALL = 160
BATCH = 1 << 14  # clusters of small sets that are one task
SETS = 1024  # sets that are one task, or on a device, at once: each has room of its own to work in
THREADS = 256  # of a block
LARGE = 4096  # clusters of a set that takes a whole device
CUDA_BATCH = 1 << 20  # clusters of sets that are on a device at once
_ONE_GRID = threading.Lock()


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
