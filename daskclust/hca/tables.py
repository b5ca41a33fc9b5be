"""The arrays that the kernels of a level work on: on a GPU parts of few allocations, filled by one copy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import HOST, Cuda, Host, is_cuda
from daskclust.hca.clusters import LevelClusters, are_rows, on_device
from daskclust.hca.kernels.clusters import Clusters
from daskclust.hca.kernels.sets import place
from daskclust.hca.kernels.shapes import Rule, Shapes, numbers_for_shape
from daskclust.hca.kernels.teams import OFFER, TeamScratch, TeamSets
from daskclust.hca.kernels.union import ALIVE, REACHED, SWITCHED, Merges

BLOCK_MEMORY = 48 << 10  # bytes that every GPU gives a block
ALIGNED = 128  # bytes that a GPU reads at once

Parts = dict[str, tuple[tuple[int, ...], Any]]
"""Shapes and dtypes by name."""


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
