"""The merge of all chunks as steps of a graph: one step where chunks are few, else a tree and ranges of ids."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.merge import tree as merge_tree
from daskclust.core.run import steps
from daskclust.core.run.exchange import exchange, take_from
from daskclust.core.run.graph import Tasks
from daskclust.core.run.layout import Layout, Ranges
from daskclust.core.run.plan import Plan, WholePlan
from daskclust.core.space.partition import Partition

WIDTH = 64  # 4 x 4 x 4 or 8 x 8 chunks, or nodes, that lie together


def merge_width() -> int:
    """Return the most chunks that one step merges, by dask's configuration."""
    import dask

    wanted = int(dask.config.get("daskclust.merge-width", WIDTH))
    if wanted < 2:
        raise ValueError(f"daskclust.merge-width of dask's configuration must be at least 2, got {wanted}")
    return wanted


def merged(tasks: Tasks, plan: WholePlan, locals_: list[Any]) -> tuple[Any, list[Any]]:
    """Add the merge of all frontiers on one worker; return its key, and those of the frontiers."""
    frontiers = [tasks.add("frontier", steps.frontier, local) for local in locals_]
    # Of chunks that one step needs, dask begins with any, and keeps what it has read for the others. A chain of steps
    # that do nothing leads it through them in order; they wait for each other, and chunks do not.
    last = None
    for frontier in frontiers:
        last = tasks.add("turn", steps.turn, last, frontier)
    return tasks.add("merge", steps.merge, plan, frontiers, last), frontiers


def slices(tasks: Tasks, plan: Plan, locals_: list[Any], layout: Layout, width: int) -> list[Any]:
    """Add the steps from local results, with their frontiers, to each chunk's slice; `width` is 2 or more."""
    if plan.min_size is not None and len(locals_) > width:
        return _Spread(tasks, plan, locals_, width).slices(layout.partition, layout.ranges)
    table, frontiers = merged(tasks, plan, locals_)
    # with its frontier as a second argument a slice is cut where the table is: the scheduler takes steps that need
    # nothing but the table for the first ones of a graph, spreads them, and sends all of the table everywhere
    return [tasks.add("slice", steps.cut_slice, table, k, one) for k, one in enumerate(frontiers)]


class _Tree(NamedTuple):
    """Keys of nodes: levels from groups of chunks, which go along the partition's curve, to the group of all."""

    order: list[int]
    levels: list[list[Any]]


class _Spread:
    """The steps of a merge on all workers."""

    def __init__(self, tasks: Tasks, plan: Plan, locals_: list[Any], width: int) -> None:
        self._tasks, self._min_size, self._width = tasks, plan.min_size, width
        self._fragments = [tasks.add("frontier", operator.getitem, local, 1) for local in locals_]

    def slices(self, partition: Partition | None, ranges: Ranges) -> list[Any]:
        """Add all of them, and return the slices."""
        nothing = [None] * len(self._fragments)
        tree = self._tree(partition) if partition is not None and partition.cuts else None
        firsts = self._down(tree, [[None] * len(level) for level in tree.levels]) if tree else nothing
        ranges = ranges.together(runs_in_range(self._width))
        numbers, before = self._numbered(firsts, ranges, as_given=partition is None)
        of_borders = self._down(tree, self._up(tree, numbers)) if tree else nothing
        given = zip(self._fragments, numbers, of_borders, strict=True)
        return [self._tasks.add("slice", merge_tree.slice_of, *each, before) for each in given]

    def _add(self, step: str, function: Any, *args: Any) -> Any:
        return self._tasks.add(f"merge-{step}", function, *args)

    def _exchange(self, step: str, lists: list[Any], targets: Sequence[Sequence[int]], count: int) -> list[Any]:
        name = f"merge-{step}"
        return exchange(self._tasks, name, take_from(self._tasks, name, lists), targets, count)

    # ------------------------------------------------------------------------------------------------------- the tree
    def _tree(self, partition: Partition) -> _Tree:
        """Add what joins sets, from groups of chunks to the group of all."""
        its = self._add("partition", steps.itself, partition)  # a step of its own goes once to each worker
        order = np.argsort(partition.along_curve).tolist()
        level = [self._add("border", merge_tree.borders_of, self._fragments[k], its, k) for k in order]
        levels: list[list[Any]] = []
        size = 1
        while not levels or len(level) > 1:
            size *= self._width
            groups = enumerate(self._groups(level))
            both = [
                self._add("join", merge_tree.join_borders, g, k * size, k * size + size, self._min_size)
                for k, g in groups
            ]
            levels.append([self._add("node", operator.getitem, each, 0) for each in both])
            level = [self._add("above", operator.getitem, each, 1) for each in both]
        return _Tree(order, levels)

    def _groups(self, keys: list[Any]) -> list[list[Any]]:
        return [keys[a : a + self._width] for a in range(0, len(keys), self._width)]

    def _up(self, tree: _Tree, numbers: list[Any]) -> list[list[Any]]:
        """Add what brings the numbers that chunks know to joined sets; return these for the nodes of each level."""
        parts = [self._add("of-border", merge_tree.border_numbers, self._fragments[k], numbers[k]) for k in tree.order]
        known = []
        for level in tree.levels:
            given = list(zip(level, self._groups(parts), strict=True))
            known.append([self._add("known", merge_tree.numbers_within, *pair) for pair in given])
            parts = [self._add("up", merge_tree.numbers_up, *pair) for pair in zip(level, known[-1], strict=True)]
        return known

    def _down(self, tree: _Tree, known: list[list[Any]]) -> list[Any]:
        """Add what brings values of joined sets down the tree; return those of each chunk's border sets."""
        above: list[Any] = [None]
        for depth in reversed(range(len(tree.levels))):
            given = zip(tree.levels[depth], known[depth], above, strict=True)
            down = [self._add("down", merge_tree.hand_down, *each) for each in given]
            below = range(len(tree.levels[depth - 1] if depth else tree.order))
            above = [self._add("part", operator.getitem, down[k // self._width], k % self._width) for k in below]
        of_chunk = dict(zip(tree.order, above, strict=True))
        return [of_chunk[k] for k in range(len(above))]

    # ---------------------------------------------------------------------------------------------------- the numbers
    def _numbered(self, firsts: list[Any], ranges: Ranges, *, as_given: bool) -> tuple[list[Any], Any]:
        """Add what numbers clusters by ranges of ids; return each chunk's numbers, and the first of each range."""
        reached = [np.array(numbers) for numbers in ranges.reached]
        ends = np.stack([ranges.starts[:-1], ranges.starts[1:]], axis=1)
        min_size = self._min_size
        known = list(zip(self._fragments, firsts, reached, strict=True))
        reports = [self._add("report", merge_tree.report, each, ids, min_size, ends[its]) for each, ids, its in known]
        asked = self._exchange("asked", reports, ranges.reached, len(ranges.among))
        ranked = [self._add("rank", merge_tree.rank, bundles) for bundles in asked]
        counts, ranks = ([self._add("ranked", operator.getitem, each, k) for each in ranked] for k in range(2))
        groups = [self._add("groups", operator.attrgetter("groups"), each) for each in self._fragments if as_given]
        before = self._add("before", merge_tree.first_ranks, counts, groups)
        back = self._exchange("back", ranks, ranges.among, len(reports))
        given = zip(known, back, strict=True)
        numbers = [
            self._add("number", merge_tree.number, *each[:2], min_size, ranks, each[2], before) for each, ranks in given
        ]
        return numbers, before


def runs_in_range(width: int) -> int:
    """Return how many runs of the input's chunks are ranked together: less steps than for each, and not much in one."""
    return math.isqrt(width)
