"""The merge of all chunks as steps of a graph: one step where chunks are few, else a tree and ranges of ids."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from daskclust.core.merge import tree as merge_tree
from daskclust.core.run import steps as work
from daskclust.core.run.exchange import Layout, all_to_all
from daskclust.core.run.graph import ChunkSteps
from daskclust.core.run.plan import Plan, WholePlan
from daskclust.core.space.partition import Partition

WIDTH = 64  # chunks that one step merges
NODE = 16  # 4 x 4 chunks, or nodes, that lie together: a worker of 1 GiB has memory for what reaches out of them


def merge_width() -> int:
    """Return the most chunks that one step merges, by dask's configuration."""
    import dask

    wanted = int(dask.config.get("daskclust.merge-width", WIDTH))
    if wanted < 2:
        raise ValueError(f"daskclust.merge-width of dask's configuration must be at least 2, got {wanted}")
    return wanted


def merged(steps: ChunkSteps, plan: WholePlan, found: Any) -> tuple[Any, Any]:
    """Add the merge of all frontiers on one worker; return what it gives, and the frontiers."""
    frontiers = steps.each("frontiers", work.frontier, found)  # dask takes "frontier", of 8 letters, for a hash
    if plan.carry:
        return steps.of_all("merge", plan.merge, frontiers), frontiers
    return at_once(steps, "merge", plan.merge, frontiers), frontiers


def at_once(steps: ChunkSteps, step: str, function: Callable[..., Any], values: Any) -> Any:
    """Add a step that is given the list of all values, which are made in the order of their chunks."""
    # Of chunks that one step needs, dask begins with any, and keeps what it has read for the others. A chain of steps
    # that do nothing leads it through them in order; they wait for each other, and chunks do not.
    return steps.of_all(step, partial(work.in_turn, function), values, steps.chain("turn", work.wait_in_order, values))


def slices(steps: ChunkSteps, plan: Plan, found: Any, layout: Layout, width: int) -> tuple[Any, Any]:
    """Add the steps from local results, with their frontiers, to each chunk's slice and the number of clusters.

    `width` is 2 or more.
    """
    if plan.min_size is None or found.shape[0] <= width:
        table, frontiers = merged(steps, plan, found)
        # with its frontier as a second argument a slice is cut where the table is: the scheduler takes steps that need
        # nothing but the table for the first ones of a graph, spreads them, and sends all of the table everywhere
        return steps.each("slice", work.cut_slice, table, frontiers, numbered=True), steps.each(
            "count", _of_first, table
        )
    if layout.partition is None:
        return _counted(steps, plan.min_size, found)
    has_tree, node = layout.partition.cuts, min(NODE, width)
    firsts = _firsts(steps, plan.min_size, found, layout.partition, node) if has_tree else None
    return _ranked(steps, plan.min_size, found, firsts, layout)


def _counted(steps: ChunkSteps, min_size: int, found: Any) -> tuple[Any, Any]:
    """Add the numbering of clusters in chunks that follow each other and share none."""
    counts = steps.each("merge-count", partial(merge_tree.count_own, min_size), found)
    before = steps.of_all("merge-before", merge_tree.own_before, counts)
    slices = steps.each("merge-slice", partial(merge_tree.slice_of_own, min_size), found, before, numbered=True)
    return slices, steps.each("count", operator.itemgetter(-1), before)


def _firsts(steps: ChunkSteps, min_size: int, found: Any, partition: Partition, width: int) -> Any:
    """Join sets in a tree, from groups of chunks that lie together to the group of all; return what each goes by."""
    its = steps.shared("merge-partition", partition)
    level = steps.each("merge-border", merge_tree.borders_of, found, its, numbered=True)
    nodes: list[Any] = []
    sizes, size = [], 1
    while not nodes or level.shape[0] > 1:
        sizes.append([min(width, level.shape[0] - a) for a in range(0, level.shape[0], width)])
        size *= width
        nodes.append(steps.in_groups("merge-join", partial(merge_tree.join_borders, min_size, size), level, width))
        level = steps.each("merge-above", operator.itemgetter(1), nodes[-1])
    above: list[Any] = []
    for node, below in zip(reversed(nodes), reversed(sizes), strict=True):
        above = [steps.apart("merge-part", steps.each("merge-down", merge_tree.hand_down, node, *above, column=below))]
    return above[0]


def _ranked(steps: ChunkSteps, min_size: int, found: Any, firsts: Any, layout: Layout) -> tuple[Any, Any]:
    """Add the numbering of clusters by ranges of the ids that they go by."""
    known = [found] if firsts is None else [found, firsts]
    starts = layout.ranges()
    ranges = steps.shared("merge-ranges", starts)
    reports = steps.each("merge-report", partial(merge_tree.report, min_size), ranges, *known, row=len(starts) - 1)
    ranked = steps.each("merge-rank", merge_tree.rank, all_to_all(reports))
    counts = steps.each("merge-ranked", operator.itemgetter(0), ranked)
    before = steps.of_all("merge-before", merge_tree.first_ranks, counts)
    ranks = steps.each("merge-ranks", operator.itemgetter(1), ranked, row=found.shape[0])
    slices = steps.each("merge-slice", partial(merge_tree.slice_of, min_size), all_to_all(ranks), before, *known)
    return slices, steps.each("count", operator.itemgetter(-1), before)


def _of_first(slices: list[Any]) -> int:
    """Return the number of clusters, which any slice tells."""
    return int(slices[0].n_clusters)
