"""The spanning tree of dask arrays: blocks with a narrow halo, and few questions to all of them.

1. Core distances: a block knows those of most of its points; the others are asked (`far_neighbours`).
2. Each block makes the tree of its points and its halo. Most edges are final there and stay; Kruskal's algorithm on the
   others of all blocks makes a forest, of which more edges are final (`block_trees`).
3. Components by final edges, other than the largest one, may be joined by other edges. Their points that may be ends of
   such edges go to one worker, which makes the tree of them alone, and to each block, which gives for each component
   the first edge to its own points of the largest one. Kruskal's algorithm once more makes the other edges of the tree.
4. The edges of all blocks are put in order, in ranges where they are many (`edge_ranges`).

Why that is exact is on the page docs/explanation/spanning_tree.md. The halo decides about time alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.data.checks import check_count
from daskclust.core.data.lazy import map_points
from daskclust.core.device.arrays import device_of
from daskclust.core.run import steps as work
from daskclust.core.run.division import divide
from daskclust.core.run.engine import Lazy, attributes
from daskclust.core.run.exchange import all_to_all
from daskclust.core.run.graph import ChunkSteps, keys_of
from daskclust.core.run.merging import at_once
from daskclust.core.run.plan import Cost, Plan
from daskclust.core.space.grid import NARROWER, along_axes, wrap_positions
from daskclust.core.space.partition import Division, Partition
from daskclust.hdbscan import block_trees, edge_ranges, far_neighbours
from daskclust.hdbscan.block_trees import ComponentSlice, Forest, TreeOfBlock
from daskclust.hdbscan.far_neighbours import BlockSetting
from daskclust.hdbscan.kernels.first_edges import Edges
from daskclust.hdbscan.spanning_tree import SpanningTree

EDGES = 1 << 22  # of a chunk of a tree, at most
_SAMPLED = 10_000  # points that tell how wide the halo is
_LEAST = 6  # nearest, itself counted, that a halo has at least: of fewer neighbours far more points ask
_FAR = 0.99  # of the points have their neighbours within the halo, by a sample


class LazyTree(NamedTuple):
    """A spanning tree as dask arrays."""

    edges: Any  # (n - 1, 2) int64, as of `SpanningTree`, of chunks of up to `EDGES`
    weight: Any  # (n - 1,) float64, of such chunks, too
    core: Any  # (n,) float64, with the chunks of the points
    one: Any  # (1, 1) the tree, without core distances, on one worker

    def results(self, function: Callable[[SpanningTree], dict[str, Any]], kinds: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a function makes of the tree on one worker: arrays of one chunk, of these shapes and dtypes."""
        steps = ChunkSteps("hdbscan-", self.one.name, function)
        return attributes(steps.each("results", partial(_as_attributes, function), self.one), kinds)


def spanning_tree_of(
    X: Any,
    min_samples: int = 1,
    period: tuple[float, ...] = (),
    alpha: float = 1.0,
    partition: str | Partition = "auto",
) -> LazyTree:
    """Return the minimum spanning tree of a dask array (n, d), which is that of `spanning_tree`.

    A sample of it is computed now, unless it has one chunk or planes are given. Of fewer points than `min_samples`
    weights and core distances are infinite.
    """
    n = X.shape[0]
    check_count(n)
    few, columns = n < min_samples, {"X": X}
    plan = TreePlan(n, 1 if few else min_samples, alpha, period or (0.0,) * X.shape[1], few)
    division = divide(plan, columns, partition)
    setting = BlockSetting(plan.min_samples, reach_of(division), plan.period, alpha)
    if plan.min_samples > 1:
        columns["core"] = core = _core_distances(setting, plan, Lazy(columns, division, plan))
    else:
        core = map_points(_same, X, np.inf if few else 0.0, dtype=np.float64)
    return _tree(setting, plan, Lazy(columns, division, plan), core)


@dataclass(frozen=True)
class TreePlan(Plan):
    """Parameters of a spanning tree."""

    size: int  # of the data set
    min_samples: int
    alpha: float
    period: tuple[float, ...]
    few: bool = False  # whether points are too few to be dense
    name: str = "hdbscan"
    divisions: tuple[str, ...] = ("space",)

    @property
    def cost(self) -> Cost:
        """What a point costs a task."""
        return Cost(seconds=1.8e-6, size=160)  # of a million in memory, min_samples=10

    def piece(self, parts: list[Edges]) -> SpanningTree:
        """Return edges in order, without core distances."""
        edges = edge_ranges.in_order(parts)
        weight = np.full(len(edges.weight), np.inf) if self.few else edges.weight
        return SpanningTree(np.column_stack([edges.low, edges.high]), weight, np.empty(0))

    def halo_by(self, sample: Any) -> float:
        """Return how wide a halo is best, given some of the points: nearly all have their neighbours in it."""
        from scipy.spatial import cKDTree

        some = wrap_positions(sample[:: 1 + len(sample) // _SAMPLED].astype(np.float64), self.period)
        k = min(max(self.min_samples, _LEAST), len(some))
        if not k:
            return 1.0
        far = cKDTree(some, boxsize=self.period).query(some, [k])[0]
        far = np.quantile(far[far > 0], _FAR) if far.any() else 1.0
        return float(far * (len(some) / self.size) ** (1 / some.shape[1]))


def reach_of(division: Division) -> float:
    """Return up to which distance blocks surely have all points around their own."""
    partition = division.partition
    if partition is None or not partition.cuts:
        return np.inf
    return min(along_axes(partition.halo, len(partition.cuts))) * NARROWER


# ---------------------------------------------------------------------------------------------------------------- steps
def _core_distances(setting: BlockSetting, plan: TreePlan, lazy: Lazy) -> Any:
    """Return the squared core distances of all points, a dask array (n,) with their chunks."""
    steps, chunks = lazy.steps(f"{plan.name}-core", plan, setting)
    near = steps.each("near", partial(far_neighbours.near_core, setting), chunks)
    asking = at_once(steps, "asking", far_neighbours.joined, steps.each("open", operator.attrgetter("open"), near))
    answers = steps.each("answers", partial(far_neighbours.answers, setting), chunks, asking)
    asked = steps.of_all("asked", partial(far_neighbours.asked_core, setting), answers, asking)
    known = steps.each("known", far_neighbours.known_core, near, asked)
    return lazy.of_points(steps, "core", work.part_of, (known,), {"core": np.float64})["core"]


def _tree(setting: BlockSetting, plan: TreePlan, lazy: Lazy, core: Any) -> LazyTree:
    """Return the tree, given the core distances."""
    steps, chunks = lazy.steps(plan.name, plan, setting)
    local = steps.each("local", partial(block_trees.tree_of, setting), chunks)
    final, parts, sent = (steps.each(name, operator.attrgetter(name), local) for name in TreeOfBlock._fields)
    meeting = at_once(steps, "meeting", partial(block_trees.meeting_of, setting), sent)
    named = steps.each("named", block_trees.named, sent, parts, meeting)
    forest = at_once(steps, "merge", block_trees.forest_of, named)
    # tasks of their own, as `joints`: Dask would do them within those of the chunks, and send the forest there
    slices, between = steps.of_all("slices", _slices, forest), steps.of_all("between", _between, forest)
    mine = steps.each("slice", work.cut_slice, slices, parts, numbered=True)
    open_points = partial(block_trees.open_points, setting)
    points = steps.each("open", open_points, chunks, parts, mine, between, numbered=True)
    boxes = at_once(steps, "all-boxes", list, steps.each("boxes", operator.attrgetter("boxes"), points))
    outsiders_of = partial(block_trees.outsiders_of, setting)
    asking = steps.each("outsiders", outsiders_of, points, boxes, between, numbered=True)
    outsiders = at_once(steps, "all-outsiders", block_trees.joined_outsiders, asking)
    links = steps.each("links", partial(block_trees.links_of, setting), points, outsiders, between)
    found = forest, outsiders, at_once(steps, "all-links", list, links)
    joints_of = partial(block_trees.joints_of, setting)
    joints = steps.from_tasks("joints", [(joints_of, *(keys_of(each)[0] for each in found))], *found)
    edges = steps.each("edges", edge_ranges.with_joints, final, joints, numbered=True)
    return lazy_tree(steps, plan, edges, core)


def lazy_tree(steps: ChunkSteps, plan: TreePlan, edges: Any, core: Any) -> LazyTree:
    """Return the tree of the edges of all chunks, each in order."""
    one = at_once(steps, "tree", plan.piece, edges)
    return LazyTree(**_arrays(steps, plan, edges, one), core=core, one=one)


def _arrays(steps: ChunkSteps, plan: TreePlan, edges: Any, one: Any) -> dict[str, Any]:
    """Return the edges of all chunks in order, and their weights, as arrays of as many chunks as they need."""
    n = max(plan.size - 1, 0)
    ends = np.linspace(0, n, max(1, -(-n // EDGES)) + 1).astype(np.int64)
    ranks, pieces = ends[1:-1], one
    if len(ranks):
        some = steps.each("some", edge_ranges.some_of, edges)
        near = steps.of_all("ends-near", partial(edge_ranges.ends_near, ranks=ranks), some)
        near = steps.each("near-ends", edge_ranges.near_ends, edges, near)
        last = steps.of_all("ends", partial(edge_ranges.ends_of, ranks=ranks), near)
        parts = steps.each("pieces", edge_ranges.pieces_of, edges, last, row=len(ranks) + 1)
        pieces = steps.each("piece", plan.piece, all_to_all(parts))
    likes = {"edges": np.empty((0, 2), np.int64), "weight": np.empty(0)}
    return steps.by_name(pieces, tuple(np.diff(ends).tolist()), likes, getattr)


def _slices(forest: list[Forest]) -> list[ComponentSlice]:
    return forest[0].slices


def _between(forest: list[Forest]) -> Any:
    return forest[0].between


def _same(X: Any, value: float) -> Any:
    return device_of(X).full(len(X), value, np.float64)


def _as_attributes(function: Callable[[SpanningTree], dict[str, Any]], tree: SpanningTree) -> SimpleNamespace:
    return SimpleNamespace(**function(tree))
