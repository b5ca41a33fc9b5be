"""Hits near the borders of a chunk in time, whose clusters may go on in other chunks; on the host.

A chunk's hits are on its device. Only those near a border come to the host, and all of them where a rule needs a chain.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import HOST, Cuda, Host, device_of
from daskclust.core.space.partition import Chunk
from daskclust.events.kernels import rules
from daskclust.events.kernels.pixels import Hits

Ids = NDArray[np.int64]


class Sorted(NamedTuple):
    """Hits of a chunk in the order of time, and their clusters where these do not depend on other chunks."""

    chunk: Chunk
    order: Any  # (n,) place of each sorted hit in the chunk; None where the chunk is sorted
    hits: Hits
    labels: Any  # (n,) int64 number of each sorted hit's cluster in the chunk; None for a rule that needs a chain
    n_clusters: int
    firsts: Any = None  # (n_clusters,) first hit of each; None in memory


class Open(NamedTuple):
    """Hits that later chunks may touch, in the order of time, on the host."""

    hits: Hits
    root: Ids  # (k,) id of the first hit of each one's cluster, as far as the chunks before know it
    latest: float  # time of the latest hit of all chunks before


NO_IDS = np.empty(0, np.int64)
NOTHING = Open(Hits(NO_IDS, NO_IDS, NO_IDS, np.empty(0)), NO_IDS, -np.inf)


def on_host(measures: Sorted, part: slice = slice(None)) -> Hits:
    """Return a part of a chunk's hits, on the host."""
    device = device_of(measures.chunk.columns["toa"])
    return Hits(*[device.to_host(values[part] if len(values) else values) for values in measures.hits])


def time_of(measures: Sorted, at: int) -> float:
    """Return the time of the first hit, 0, or the last, -1."""
    return float(on_host(measures, slice(at, at + 1 or None)).toa[0])


def place_of(measures: Sorted, time: float, side: Literal["left", "right"] = "left") -> int:
    """Return how many hits are earlier than `time`, or, on its right side, not later."""
    device = device_of(measures.chunk.columns["toa"])
    at = device.from_host(np.array([time]))
    return int(np.searchsorted(measures.hits.toa, at, side=side)[0])


def ids_in_time(measures: Sorted) -> Any:
    """Return the global ids of a chunk's hits in the order of time."""
    ids = measures.chunk.ids
    return ids if measures.order is None else ids[measures.order]


def first_hits(device: Host | Cuda, labels: Any, count: int) -> Any:
    """Return the first hit of each cluster; clusters are numbered by it."""
    if device is HOST:
        firsts = np.empty(count + 1, np.int64)
        device.run(rules.list_firsts, 1, labels, firsts)
        return firsts[:count]
    firsts = device.full(count, len(labels), np.int64)
    device.run(rules.find_first, len(labels), labels, firsts)
    return firsts


def part_of(hits: Hits, places: Any) -> Hits:
    """Return the hits at some places."""
    return Hits(*[values[places] if len(values) else values for values in hits])


def concatenated(a: Hits, b: Hits) -> Hits:
    """Return the hits of both, one after the other."""
    if len(a.toa) == 0:
        return b
    return Hits(*[np.concatenate(pair) for pair in zip(a, b, strict=True)])


def distinct_pairs(known: Ids, roots: NDArray[np.int32]) -> Ids:
    """Return the distinct pairs of ids that fell together: of each hit's cluster, and of its root's."""
    pairs = np.stack([known, known[roots]], axis=1)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
