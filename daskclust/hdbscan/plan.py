"""The spanning tree of dask arrays: blocks with a narrow halo, and few questions to all of them.

1. Core distances: a block knows those of most of its points; the others are asked (`far_neighbours`).
2. Each block makes the tree of its points and its halo. Kruskal's algorithm on the edges of all blocks makes a forest,
   of which all edges shorter than the halo are those of the tree (`block_trees`).
3. Components by these short edges, other than the largest one, may be joined by other edges. Their points that may be
   ends of such edges go to one worker, which makes the tree of them alone, and to each block, which gives for each
   component the first edge to its own points of the largest one. Kruskal's algorithm once more makes the tree.

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
from daskclust.core.device.arrays import device_of, on_device_of, to_host
from daskclust.core.merge.own_ids import OwnIds
from daskclust.core.run import steps as work
from daskclust.core.run.division import divide
from daskclust.core.run.engine import Lazy, attributes
from daskclust.core.run.graph import ChunkSteps
from daskclust.core.run.merging import at_once
from daskclust.core.run.plan import Cost, Plan
from daskclust.core.space.grid import NARROWER, along_axes, wrap_positions
from daskclust.core.space.partition import Chunk, Division, Partition
from daskclust.hdbscan import block_trees, far_neighbours
from daskclust.hdbscan.block_trees import ComponentBoxes, ComponentSlice, Forest, Outsiders, TreeOfBlock
from daskclust.hdbscan.far_neighbours import Answers, IdPoints, Near, is_own
from daskclust.hdbscan.kernels.first_edges import Edges
from daskclust.hdbscan.spanning_tree import SpanningTree

_SAMPLED = 10_000  # points that tell how wide the halo is
_FAR = 0.99  # of the points have their neighbours within the halo, by a sample


class LazyTree(NamedTuple):
    """A spanning tree as dask arrays."""

    edges: Any  # (n - 1, 2) int64, of one chunk, as of `SpanningTree`
    weight: Any  # (n - 1,) float64, of one chunk
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

    Parameters
    ----------
    X : dask array of float32 or float64, shape (n, d)
        IdPoints.
    min_samples, period, alpha
        As of `spanning_tree`; of fewer points than `min_samples` weights and core distances are infinite.
    partition : {"auto", "space"} or Partition, default "auto"
        How X is divided into blocks: a sample of it is computed now, unless it has one chunk or planes are given.

    Returns
    -------
    LazyTree

    Raises
    ------
    ValueError
        For another partition, and, when it is computed, for points that are not finite.
    """
    n = X.shape[0]
    check_count(n)
    few, columns = n < min_samples, {"X": X}
    plan = TreePlan(n, 1 if few else min_samples, alpha, period or (0.0,) * X.shape[1], few)
    division = divide(plan, columns, partition)
    blocks = TreeSteps(plan, reach_of(division))
    if plan.min_samples > 1:
        columns["core"] = core = _core_distances(blocks, Lazy(columns, division, plan))
    else:
        core = map_points(_same, X, np.inf if few else 0.0, dtype=np.float64)
    return _tree(blocks, Lazy(columns, division, plan), core)


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

    def halo_by(self, sample: Any) -> float:
        """Return how wide a halo is best, given some of the points: nearly all have their neighbours in it."""
        from scipy.spatial import cKDTree

        some = wrap_positions(sample[:: 1 + len(sample) // _SAMPLED].astype(np.float64), self.period)
        k = min(max(self.min_samples, 2), len(some))
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


# ---------------------------------------------------------------------------------------------------------- on a worker
@dataclass(frozen=True)
class TreeSteps:
    """What workers do."""

    plan: TreePlan
    reach: float

    def near(self, chunk: Chunk) -> Near:
        """Return what a chunk knows of its core distances."""
        return far_neighbours.near_core(chunk, self.plan.min_samples, self.reach, self.plan.period)

    def asking(self, parts: list[IdPoints], *_turn: Any) -> IdPoints:
        """Return the points that ask all chunks for neighbours."""
        return far_neighbours.joined(parts)

    def answers(self, chunk: Chunk, asking: IdPoints) -> Answers:
        """Return a chunk's answers."""
        return far_neighbours.answers(chunk, asking, self.plan.min_samples, self.plan.period)

    def asked(self, parts: list[Answers], _number: int, asking: IdPoints) -> IdPoints:
        """Return the points that asked with their core distances."""
        return far_neighbours.asked_core(asking, parts, self.plan.min_samples)

    def core(self, near: Near, asked: IdPoints) -> work.PointResults:
        """Return the core distances of a chunk's own points."""
        core = on_device_of(near.like, far_neighbours.known_core(near, asked))
        return work.PointResults(OwnIds.of(device_of(core).from_host(near.ids)), {"core": core})

    def local(self, chunk: Chunk) -> TreeOfBlock:
        """Return what a chunk sends of its tree."""
        points, X = IdPoints.of(chunk, self.plan.period), to_host(chunk.columns["X"])
        return block_trees.tree_of(X, points, is_own(chunk), self._limit, self.plan.period, self.plan.alpha)

    def forest(self, found: list[TreeOfBlock], *_turn: Any) -> Forest:
        """Return the forest of the edges of all chunks."""
        return block_trees.forest_of(found, self._limit, self.plan.period, self.plan.alpha)

    def boxes(self, chunk: Chunk, mine: ComponentSlice, block: int) -> ComponentBoxes:
        """Return where a chunk has points of the components."""
        return block_trees.boxes_of(self._own(chunk), mine, block)

    def outsiders(
        self, chunk: Chunk, mine: ComponentSlice, boxes: list[ComponentBoxes], between: Any, block: int
    ) -> Outsiders:
        """Return a chunk's points that may be ends of edges to other components in other chunks."""
        own, plan = self._own(chunk), self.plan
        return block_trees.outsiders_of(own, mine, block, boxes, between, plan.period, plan.alpha)

    def links(self, chunk: Chunk, mine: ComponentSlice, outsiders: Outsiders, between: Any) -> list[Edges]:
        """Return the first edges from components to a chunk's points of larger ones."""
        own, plan = self._own(chunk), self.plan
        out = far_neighbours.from_faces(own, chunk)
        return block_trees.links_of(own, mine, outsiders, between, out, plan.period, plan.alpha)

    def tree(self, forest: Forest, outsiders: Outsiders, links: list[list[Edges]]) -> SpanningTree:
        """Return the tree of all points."""
        plan = self.plan
        tree = block_trees.tree_of_all(forest.edges, outsiders, links, plan.size, plan.period, plan.alpha)
        return tree._replace(weight=np.full(len(tree.weight), np.inf)) if plan.few else tree

    @property
    def _limit(self) -> float:
        """Below which squared weight blocks know all edges."""
        return (self.reach / self.plan.alpha) ** 2

    def _own(self, chunk: Chunk) -> IdPoints:
        return IdPoints.of(chunk, self.plan.period).at(is_own(chunk))


# ---------------------------------------------------------------------------------------------------------------- steps
def _core_distances(blocks: TreeSteps, lazy: Lazy) -> Any:
    """Return the squared core distances of all points, a dask array (n,) with their chunks."""
    steps, chunks = lazy.steps(f"{blocks.plan.name}-core", blocks)
    near = steps.each("near", blocks.near, chunks)
    asking = at_once(steps, "asking", blocks.asking, steps.each("open", operator.attrgetter("open"), near))
    asked = steps.in_groups("asked", blocks.asked, steps.each("answers", blocks.answers, chunks, asking), after=asking)
    known = steps.each("known", blocks.core, near, asked)
    return lazy.of_points(steps, "core", work.part_of, (known,), {"core": np.float64})["core"]


def _tree(blocks: TreeSteps, lazy: Lazy, core: Any) -> LazyTree:
    """Return the tree, given the core distances."""
    steps, chunks = lazy.steps(blocks.plan.name, blocks)
    local = steps.each("local", blocks.local, chunks)
    forest = at_once(steps, "merge", blocks.forest, local)
    # tasks of their own: Dask would do them within those of the chunks, and send all edges of the forest there
    slices, between = steps.in_groups("slices", _slices, forest), steps.in_groups("between", _between, forest)
    mine = steps.each("slice", work.cut_slice, slices, local, numbered=True)
    boxes = at_once(steps, "all-boxes", _as_list, steps.each("boxes", blocks.boxes, chunks, mine, numbered=True))
    asking = steps.each("outsiders", blocks.outsiders, chunks, mine, boxes, between, numbered=True)
    outsiders = at_once(steps, "all-outsiders", block_trees.joined_outsiders, asking)
    links = steps.each("links", blocks.links, chunks, mine, outsiders, between)
    links = at_once(steps, "all-links", _as_list, links)
    return lazy_tree(steps.each("tree", blocks.tree, forest, outsiders, links), blocks.plan.size, core)


def lazy_tree(tree: Any, n: int, core: Any) -> LazyTree:
    """Return a tree of n points that one worker makes."""
    edges = max(n - 1, 0)
    arrays = attributes(tree, {"edges": ((edges, 2), np.int64), "weight": ((edges,), np.float64)})
    return LazyTree(**arrays, core=core, one=tree)


def _slices(forest: list[Forest], _: int) -> list[ComponentSlice]:
    return forest[0].slices


def _between(forest: list[Forest], _: int) -> Any:
    return forest[0].between


def _as_list(values: list[Any], *_turn: Any) -> list[Any]:
    return values


def _same(X: Any, value: float) -> Any:
    return device_of(X).full(len(X), value, np.float64)


def _as_attributes(function: Callable[[SpanningTree], dict[str, Any]], tree: SpanningTree) -> SimpleNamespace:
    return SimpleNamespace(**function(tree))
