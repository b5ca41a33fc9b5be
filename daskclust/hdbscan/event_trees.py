"""Spanning trees of events, each by itself, joined by edges of infinite weight.

Small events lie apart along one axis more, so that one search finds the trees of all: distances within an event are the
same to the bit, because its points differ by 0 there, and edges between events are too heavy to be looked at. On dask
a chunk has whole events.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import device_of, on_device_of, to_host
from daskclust.core.merge.own_ids import OwnIds
from daskclust.core.run import steps as work
from daskclust.core.run.division import divide
from daskclust.core.run.engine import Lazy
from daskclust.core.run.merging import at_once
from daskclust.core.space.extent import extent_of
from daskclust.core.space.grid import wrap_positions
from daskclust.core.space.partition import Chunk, Partition
from daskclust.hdbscan.edge_ranges import in_order, with_joints
from daskclust.hdbscan.kernels.first_edges import Edges
from daskclust.hdbscan.plan import LazyTree, TreePlan, lazy_tree
from daskclust.hdbscan.spanning_tree import SpanningTree, spanning_tree

_ALONE = 5000  # points of an event that has a search of its own
_FARTHEST = 1e150  # squares of distances between events are finite


class EventTrees(NamedTuple):
    """The trees of several events."""

    edges: Edges  # in order, between rows or ids
    core: NDArray[np.float64]
    firsts: NDArray[np.int64]  # the first row or id of each event


def event_trees(X: Any, event: Any, min_samples: int, period: tuple[float, ...], alpha: float) -> EventTrees:
    """Return the trees of points (n, d) of the same event; weights are infinite where it has too few points."""
    device, X = device_of(X), to_host(X)
    order = np.argsort(event, kind="stable")
    _, begins, sizes = np.unique(event[order], return_index=True, return_counts=True)
    gap, most = _apart(X, period, alpha)
    is_few = sizes < min_samples
    is_alone = (sizes >= _ALONE) | (len(sizes) * gap > _FARTHEST)
    groups = [np.array([k]) for k in np.flatnonzero(is_alone)]
    groups += [np.flatnonzero(~is_alone & few) for few in (is_few, ~is_few)]
    edges, weights, core = [np.empty((0, 2), np.int64)], [np.empty(0)], np.empty(len(order))
    for group in filter(len, groups):
        rows = np.concatenate([order[begins[k] : begins[k] + sizes[k]] for k in group])
        few = is_few[group[0]]
        points, periods, limit = X[rows], period, math.inf
        if len(group) > 1:
            points = np.column_stack(
                [wrap_positions(points, period), gap * np.repeat(np.arange(len(group)), sizes[group])]
            )
            periods, limit = (*(period or (0.0,) * X.shape[1]), 0.0), most
        tree = spanning_tree(device.from_host(points), 1 if few else min_samples, periods, alpha, most=limit)
        tree = tree.on_host()
        edges.append(rows[tree.edges])
        weights.append(np.full(len(tree.weight), np.inf) if few else tree.weight)
        core[rows] = np.inf if few else tree.core
    weight = np.concatenate(weights)
    return EventTrees(in_order([Edges(weight, weight, *np.concatenate(edges).T)]), core, order[begins])


def joined(trees: EventTrees) -> SpanningTree:
    """Return the trees as one: edges of infinite weight join the first points of events."""
    edges = in_order([trees.edges, joints_of([trees.firsts])])
    return SpanningTree(np.column_stack([edges.low, edges.high]), edges.weight, trees.core)


def joints_of(firsts: list[NDArray[np.int64]]) -> Edges:
    """Return edges of infinite weight from the first of all points to those of events."""
    first = np.sort(np.concatenate(firsts))
    weight = np.full(len(first) - 1, np.inf)
    return Edges(weight, weight, np.full(len(first) - 1, first[0]), first[1:])


def _apart(X: Any, period: tuple[float, ...], alpha: float) -> tuple[float, float]:
    """Return a gap between events, and a squared weight between those of edges within events and of all others."""
    spans = X.max(axis=0, initial=0.0).astype(np.float64) - X.min(axis=0, initial=0.0)
    reach = math.hypot(*np.maximum(spans, period or 0.0).tolist())
    gap = 2.0 ** math.ceil(math.log2(4 * reach * max(1.0, alpha))) if reach else 1.0  # times whole numbers it is exact
    return gap, 2 * (reach * max(1.0, 1 / alpha)) ** 2


# ---------------------------------------------------------------------------------------------------------- dask arrays
def lazy_event_trees(
    X: Any, event: Any, min_samples: int, period: tuple[float, ...], alpha: float, partition: str | Partition
) -> LazyTree:
    """Return the same joined trees of dask arrays."""
    plan = EventTreesPlan(X.shape[0], min_samples, alpha, period)
    columns = {"X": X, plan.group: event}
    lazy = Lazy(columns, divide(plan, columns, partition), plan)
    steps, chunks = lazy.steps(plan.name, plan)
    local = steps.each("local", plan.trees, chunks)
    final, known, firsts = (steps.each(name, operator.attrgetter(name), local) for name in TreesOfChunk._fields)
    core = lazy.of_points(steps, "core", work.part_of, (known,), {"core": np.float64})["core"]
    joints = at_once(steps, "joints", joints_of, firsts)
    return lazy_tree(steps, plan, steps.each("edges", with_joints, final, joints, numbered=True), core)


class TreesOfChunk(NamedTuple):
    """What a chunk finds, of ids."""

    final: Edges
    known: work.PointResults  # core distances
    firsts: NDArray[np.int64]


@dataclass(frozen=True)
class EventTreesPlan(TreePlan):
    """Parameters of the trees of events."""

    divisions: tuple[str, ...] = ("layers",)

    def trees(self, chunk: Chunk) -> TreesOfChunk:
        """Return the trees of a chunk's events."""
        extent_of(chunk)
        X, event, ids = chunk.columns[self.positions], to_host(chunk.columns[self.group]), chunk.ids_on_host()
        found = event_trees(X, event, self.min_samples, self.period, self.alpha)
        core = on_device_of(X, found.core)
        known = work.PointResults(OwnIds.of(device_of(core).from_host(ids)), {"core": core})
        weight, _, low, high = found.edges
        return TreesOfChunk(Edges(weight, weight, ids[low], ids[high]), known, ids[found.firsts])
