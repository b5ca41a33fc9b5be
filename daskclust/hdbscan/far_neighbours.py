"""Core distances in blocks: those that the halo does not tell are asked of the points of all blocks.

A point's k-th neighbour in its block and halo is its k-th of all where it is nearer than the way out of the halo. For
the others the squared distance to it is a bound: every block answers with its own points that are nearer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import HOST, device_of, on_device_of, to_host
from daskclust.core.merge.own_ids import OwnIds
from daskclust.core.run.steps import PointResults
from daskclust.core.space.extent import extent_of
from daskclust.core.space.grid import wrap_positions
from daskclust.core.space.partition import Chunk
from daskclust.hdbscan.kernels.first_edges import Edges, find_first
from daskclust.hdbscan.spanning_tree import leaf_tree, spanning_tree

SURELY = 1 - 2.0**-40  # of a length: what is shorter is so however it was rounded


class BlockSetting(NamedTuple):
    """What all blocks have to know."""

    min_samples: int
    reach: float  # up to which distance a block surely has all points around its own
    period: tuple[float, ...]
    alpha: float

    @property
    def limit(self) -> float:
        """Below which squared weight a block knows all edges."""
        return (self.reach / self.alpha) ** 2


class IdPoints(NamedTuple):
    """Points on the host, ascending by id."""

    ids: NDArray[np.int64]
    x: NDArray[np.float64]  # (n, d), periodic coordinates within [0, period)
    core: NDArray[np.float64]  # squared core distances, or bounds of these

    @classmethod
    def of(cls, chunk: Chunk, period: tuple[float, ...]) -> IdPoints:
        """Return those of a chunk, which are finite."""
        extent_of(chunk)
        x = wrap_positions(to_host(chunk.columns["X"]), period).astype(np.float64)
        core = to_host(chunk.columns["core"]) if "core" in chunk.columns else np.zeros(len(x))
        return cls(chunk.ids_on_host(), x, core)

    def at(self, rows: Any) -> IdPoints:
        """Return some of them."""
        return IdPoints(*(values[rows] for values in self))


def joined(parts: list[IdPoints]) -> IdPoints:
    """Return the points of several chunks."""
    every = IdPoints(*map(np.concatenate, zip(*parts, strict=True)))
    return every.at(np.argsort(every.ids))


def owned(chunk: Chunk) -> NDArray[np.bool_]:
    """Return which points a chunk owns."""
    return np.ones(len(chunk.columns["X"]), np.bool_) if chunk.owned is None else to_host(chunk.owned)


class Near(NamedTuple):
    """What a chunk knows of the core distances of its own points."""

    ids: NDArray[np.int64]
    core: NDArray[np.float64]
    open: IdPoints  # those of which it knows bounds
    like: Any  # an empty array of the class of the points


def near_core(setting: BlockSetting, chunk: Chunk) -> Near:
    """Return what a chunk knows of its core distances."""
    k, reach, period, _ = setting
    own, points = owned(chunk), IdPoints.of(chunk, period)
    if len(points.x) >= k:
        core = to_host(spanning_tree(chunk.columns["X"], k, period, most=-1.0).core)
    else:
        core = np.full(len(points.x), np.inf)
    mine = points.at(own)._replace(core=core[own])
    is_open = ~(mine.core < out_of(mine, chunk, reach) ** 2)
    return Near(mine.ids, mine.core, mine.at(is_open), chunk.columns["X"][:0])


def out_of(own: IdPoints, chunk: Chunk, reach: float = 0.0) -> NDArray[np.float64]:
    """Return how far a chunk's own points surely are from any that is not within `reach` of its block on each axis."""
    out = np.full(len(own.x), np.inf)
    for axis, (low, high) in enumerate(chunk.region):
        out = np.minimum(out, np.minimum(own.x[:, axis] - low, high - own.x[:, axis]))
    return SURELY * (out + reach)


class Answers(NamedTuple):
    """The least squared distances from points that ask to those of a chunk."""

    rows: NDArray[np.int64]  # which of the points that ask
    least: NDArray[np.float64]  # (m, k)


def answers(setting: BlockSetting, chunk: Chunk, asking: IdPoints) -> Answers:
    """Return the distances from points to a chunk's own ones that may be below their bounds."""
    k, _, period, _ = setting
    mine = IdPoints.of(chunk, period).at(owned(chunk))
    rows = _within(asking, asking.core, mine, period)
    # points that ask are less than their bound from a face, or outside
    most = 2 * np.sqrt(asking.core[rows].max(initial=0.0))
    mine = mine.at(out_of(mine, chunk) <= most)
    first = Edges(*(np.empty((len(rows), k), dtype) for dtype in (np.float64, np.float64, np.int64, np.int64)))
    first.weight[:] = first.length[:] = asking.core[rows, None]
    first.low[:] = first.high[:] = -1
    asks = asking.at(rows)._replace(core=np.zeros(len(rows)))
    search(asks, np.arange(len(rows) + 1), mine._replace(core=np.zeros(len(mine.x))), first, period)
    return Answers(rows, first.weight)


def asked_core(setting: BlockSetting, parts: list[Answers], asking: IdPoints) -> IdPoints:
    """Return points with their core distances, given the answers of all chunks."""
    m, k = len(asking.ids), setting.min_samples
    row = np.concatenate([np.arange(m).repeat(k), *(part.rows.repeat(k) for part in parts)])
    least = np.concatenate([asking.core.repeat(k), *(part.least.ravel() for part in parts)])
    order = np.lexsort((least, row))
    return asking._replace(core=least[order][np.searchsorted(row[order], np.arange(m)) + k - 1])


def known_core(near: Near, asked: IdPoints) -> PointResults:
    """Return the core distances of a chunk's own points."""
    known = near.core.copy()
    known[np.searchsorted(near.ids, near.open.ids)] = asked.core[np.searchsorted(asked.ids, near.open.ids)]
    core = on_device_of(near.like, known)
    return PointResults(OwnIds.of(device_of(core).from_host(near.ids)), {"core": core})


# ---------------------------------------------------------------------------------------------------------- the search
def search(
    asking: IdPoints, begins: Any, among: IdPoints, first: Edges, period: tuple[float, ...], alpha: float = 1.0
) -> None:
    """Find the first edges from each group of points, which begin at `begins`, to some points: see `find_first`."""
    if not len(asking.ids) or not len(among.ids):
        return
    tree = leaf_tree(among.x, period)
    among = among.at(tree.order[: len(among.ids)])
    HOST.run(find_first, len(begins) - 1, begins, asking, among, tree, alpha * alpha, first)


def gaps2(x: Any, low: Any, high: Any, period: tuple[float, ...]) -> NDArray[np.float64]:
    """Return squared distances of points (n, d) from a box: as rounded, no point in it is nearer."""
    total = np.zeros(len(x))
    for axis in range(x.shape[1]):
        below, above = low[axis] - x[:, axis], x[:, axis] - high[axis]
        gap = np.maximum(np.maximum(below, above), 0.0)
        if period and period[axis]:
            farthest = np.maximum(high[axis] - x[:, axis], x[:, axis] - low[axis])
            gap = np.minimum(gap, np.maximum(period[axis] - farthest, 0.0))
        total += gap * gap
    return total


def _within(asking: IdPoints, bound: Any, mine: IdPoints, period: tuple[float, ...]) -> NDArray[np.int64]:
    """Return which points may have some of a chunk's own within a squared bound."""
    if not len(mine.ids):
        return np.empty(0, np.int64)
    return np.flatnonzero(gaps2(asking.x, mine.x.min(axis=0), mine.x.max(axis=0), period) <= bound)
