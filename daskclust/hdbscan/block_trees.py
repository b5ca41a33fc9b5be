"""Spanning trees of blocks, and the forest of all that they make: components, and what is asked between them.

Edges of a tree below a limit are known where every block has them. The components that they make are joined by few
edges more. A block's own point may be an end of one where another block has points of another component, not farther
than the heaviest edge on the way between these components that is known already.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import HOST
from daskclust.core.merge.own_ids import OwnIds
from daskclust.hdbscan.far_neighbours import SURELY, IdPoints, gaps2, joined, search
from daskclust.hdbscan.kernels.first_edges import Edges
from daskclust.hdbscan.kernels.kruskal import find_homes, mark_forest
from daskclust.hdbscan.spanning_tree import SpanningTree, spanning_tree

Periods = tuple[float, ...]
_LARGE = 256  # so many components at most count as large, each with one such part of all points
_SOME = 256  # points of a block that tell how far others are, about


# -------------------------------------------------------------------------------------------------------------- a block
class TreeOfBlock(NamedTuple):
    """What a block sends up."""

    edges: Edges  # shorter ones where it owns the point of the smaller id
    ids: OwnIds  # of its own points
    some: IdPoints  # of these: edges between them join all blocks


def tree_of(X: Any, points: IdPoints, own: Any, limit: float, periods: Periods, alpha: float) -> TreeOfBlock:
    """Return the tree of a chunk's points; edges of a squared weight below `limit` are of one block alone."""
    tree = spanning_tree(X, 1, periods, alpha, core=points.core)
    sent = own[tree.edges[:, 0]] | (tree.weight >= limit)
    mine = points.at(own)
    some = mine.at(slice(None, None, 1 + len(mine.ids) // _SOME))
    return TreeOfBlock(edges_of(points, tree.edges[sent], tree.weight[sent], periods), OwnIds.of(mine.ids), some)


def whole_tree_of(points: IdPoints, periods: Periods, alpha: float) -> Edges:
    """Return the tree of points, ascending by id."""
    tree = spanning_tree(points.x, 1, periods, alpha, core=points.core)
    return edges_of(points, tree.edges, tree.weight, periods)


def edges_of(points: IdPoints, ends: Any, weight: Any, period: Periods) -> Edges:
    """Return edges between points as such between ids, with their lengths."""
    length = np.zeros(len(ends))
    for axis, cycle in enumerate(period or (0.0,) * points.x.shape[1]):
        step = abs(points.x[ends[:, 0], axis] - points.x[ends[:, 1], axis])
        step = np.minimum(step, cycle - step) if cycle else step
        length += step * step
    return Edges(weight, length, points.ids[ends[:, 0]], points.ids[ends[:, 1]])


# ----------------------------------------------------------------------------------------------------------- all blocks
class ComponentSlice(NamedTuple):
    """What a chunk must know of its own points that are not of the largest component."""

    rows: NDArray[np.int32]  # among its own
    component: NDArray[np.int32]
    home: NDArray[np.int32]  # a large component, the own one or one that is near
    bound: NDArray[np.float64]  # squared weight of the heaviest edge that is needed to go there


class Forest(NamedTuple):
    """The minimum spanning forest of the edges of all blocks, and their points' components below the limit."""

    edges: Edges
    slices: list[ComponentSlice]
    between: NDArray[np.float64]  # squared weight of the heaviest edge on the way between each two large components


def forest_of(found: list[TreeOfBlock], limit: float, periods: Periods, alpha: float) -> Forest:
    """Return the forest of what all blocks send; below `limit`, a squared weight, it has all edges of the tree."""
    n = sum(each.ids.size for each in found)
    between_some = whole_tree_of(joined([each.some for each in found]), periods, alpha)
    edges, roots = first_of([*(each.edges for each in found), between_some], n, limit)
    component, home, bound, between = _components(edges, roots, limit)
    slices = []
    for each in found:
        mine = component[each.ids.on(HOST)]
        rows = np.flatnonzero(mine)
        slices.append(ComponentSlice(rows.astype(np.int32), mine[rows], home[mine[rows]], bound[mine[rows]]))
    return Forest(edges, slices, between)


def first_of(parts: list[Edges], n: int, limit: float = np.inf) -> tuple[Edges, NDArray[np.int32]]:
    """Return the minimum spanning forest of edges, in order, and each point's root by those below a limit."""
    edges = in_order(Edges(*map(np.concatenate, zip(*parts, strict=True))))
    ends, parent = np.column_stack([edges.low, edges.high]), np.arange(n, dtype=np.int32)
    is_kept, below = np.empty(len(ends), np.bool_), int(np.searchsorted(edges.weight, limit))
    mark_forest.run(1, ends[:below], parent, is_kept[:below])
    roots = parent.copy()
    mark_forest.run(1, ends[below:], parent, is_kept[below:])
    return Edges(*(values[is_kept] for values in edges)), roots


def in_order(edges: Edges) -> Edges:
    """Return edges by weight, length, smaller and larger id."""
    order = np.argsort(edges.weight, kind="stable")
    weight = edges.weight[order]
    is_tied = np.zeros(len(order), np.bool_)
    is_tied[1:] = weight[1:] == weight[:-1]
    is_tied[:-1] |= is_tied[1:]
    tied = order[is_tied]
    order[is_tied] = tied[np.lexsort([values[tied] for values in reversed(edges)])]
    return Edges(*(values[order] for values in edges))


def _components(edges: Edges, roots: NDArray[np.int32], limit: float) -> tuple[NDArray[Any], ...]:
    """Return each point's component, 0 is the largest; the home and bound of each; and the way `between` large ones."""
    sizes = np.bincount(roots)
    places = np.flatnonzero(sizes)
    places = places[np.argsort(-sizes[places], kind="stable")]
    number, count = np.empty(len(sizes), np.int32), len(places)
    number[places] = np.arange(count)
    large = max(1, int((sizes[places[:_LARGE]] * _LARGE >= len(roots)).sum()))
    over = edges.weight >= limit
    ends = number[roots[np.column_stack([edges.low[over], edges.high[over]])]]
    above, bound, home = np.arange(count, dtype=np.int32), np.zeros(count), np.empty(count, np.int32)
    find_homes.run(1, ends, edges.weight[over], large, above.copy(), above, bound, home)
    between = np.zeros((large, large))
    for k in range(1, large):
        between[k, :k] = between[:k, k] = np.maximum(bound[k], between[above[k], :k])
    bound[:large] = 0.0
    return number[roots], home, bound, between


# ----------------------------------------------------------------------------------------------- what is between blocks
class ComponentBoxes(NamedTuple):
    """Where blocks have points of large components, and of the small ones around each."""

    block: NDArray[np.int64]
    component: NDArray[np.int32]  # -1 for small ones
    home: NDArray[np.int32]
    bound: NDArray[np.float64]  # the largest of them
    ends: NDArray[np.float64]  # (m, 2, d) the lowest and the highest coordinates
    core: NDArray[np.float64]  # the least squared core distance


def boxes_of(own: IdPoints, mine: ComponentSlice, block: int) -> ComponentBoxes:
    """Return the boxes of a block's own points; small components with bounds of about one size share one."""
    n = len(own.ids)
    component, home, bound = np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n)
    component[mine.rows], home[mine.rows], bound[mine.rows] = mine.component, mine.home, mine.bound
    is_small = component != home
    keys = np.column_stack([home, np.where(is_small, np.frexp(bound)[1], np.iinfo(np.int32).min)])
    order = np.lexsort(keys.T)
    begins = np.flatnonzero(np.diff(keys[order], axis=0, prepend=-1).any(axis=1))
    if not n:
        return ComponentBoxes(begins, home, home, bound, np.empty((0, 2, own.x.shape[1])), bound)
    x, first = own.x[order], order[begins]
    ends = np.stack([np.minimum.reduceat(x, begins), np.maximum.reduceat(x, begins)], axis=1)
    core, most = np.minimum.reduceat(own.core[order], begins), np.maximum.reduceat(bound[order], begins)
    return ComponentBoxes(
        np.full(len(begins), block), np.where(is_small, -1, component)[first], home[first], most, ends, core
    )


class Outsiders(NamedTuple):
    """Points that may be ends of edges to points of other blocks and other components, large or both small."""

    points: IdPoints
    component: NDArray[np.int32]
    home: NDArray[np.int32]
    bound: NDArray[np.float64]  # as of `ComponentSlice`


def outsiders_of(
    own: IdPoints,
    mine: ComponentSlice,
    block: int,
    boxes: list[ComponentBoxes],
    between: Any,
    periods: Periods,
    alpha: float,
) -> Outsiders:
    """Return those of a block, from which another component in another block is within the bound of both.

    Of two components, one large, the points of the smaller one ask.
    """
    points, is_one = own.at(mine.rows), np.zeros(len(mine.rows), np.bool_)
    every = ComponentBoxes(*map(np.concatenate, zip(*boxes, strict=True)))
    rank = np.where(every.component < 0, len(between) - 1, every.component)  # large ones do not ask small ones
    for k in np.flatnonzero(every.block != block):
        asks = np.flatnonzero(~is_one & (mine.component > rank[k]))
        low, high = every.ends[k]
        gap = gaps2(points.x[asks], low, high, periods) / (alpha * alpha)
        least = np.maximum(np.maximum(gap, points.core[asks]), every.core[k])
        bound = np.maximum(mine.bound[asks], between[mine.home[asks], every.home[k]])
        is_one[asks] = least <= np.maximum(bound, every.bound[k])
    return Outsiders(points.at(is_one), mine.component[is_one], mine.home[is_one], mine.bound[is_one])


def joined_outsiders(parts: list[Outsiders], *_turn: Any) -> Outsiders:
    """Return those of all blocks, by component and id."""
    ids, x, core = map(np.concatenate, zip(*(part.points for part in parts), strict=True))
    component, home, bound = (np.concatenate([part[k] for part in parts]) for k in range(1, 4))
    order = np.lexsort([ids, component])
    return Outsiders(IdPoints(ids, x, core).at(order), component[order], home[order], bound[order])


def links_of(
    own: IdPoints, mine: ComponentSlice, outsiders: Outsiders, between: Any, out: Any, periods: Periods, alpha: float
) -> list[Edges]:
    """Return the first edges from each component's outsiders in other blocks to own points of each larger, large one.

    `out` is how far the own points are from the faces of the block.
    """
    component, found = np.zeros(len(own.ids), np.int32), []
    component[mine.rows] = mine.component
    is_other = ~np.isin(outsiders.points.ids, own.ids)
    for large in np.unique(component[component < len(between)]):
        rows = np.flatnonzero(component == large)
        low, high = own.x[rows].min(axis=0), own.x[rows].max(axis=0)
        gap = gaps2(outsiders.points.x, low, high, periods) / (alpha * alpha)
        bound = np.maximum(outsiders.bound, between[outsiders.home, large])
        asks = is_other & (outsiders.component > large) & (np.maximum(gap, outsiders.points.core) <= bound)
        near = rows[(SURELY * out[rows]) ** 2 <= alpha * alpha * bound[asks].max(initial=-1.0)]
        begins = np.flatnonzero(np.diff(outsiders.component[asks], prepend=-1))
        first = Edges(*(np.full((len(begins), 1), fill) for fill in (np.inf, np.inf, -1, -1)))
        first.weight[:, 0] = bound[asks][begins]
        asking = outsiders.points.at(asks)
        search(asking, np.append(begins, asks.sum()), own.at(near), first, periods, alpha)
        found.append(Edges(*(values[first.low[:, 0] >= 0, 0] for values in first)))
    return found


def tree_of_all(
    forest: Edges, outsiders: Outsiders, links: list[list[Edges]], n: int, periods: Periods, alpha: float
) -> SpanningTree:
    """Return the tree of all points."""
    found, _ = first_of(
        [forest, whole_tree_of(joined([outsiders.points]), periods, alpha), *itertools.chain(*links)], n
    )
    return SpanningTree(np.column_stack([found.low, found.high]), found.weight, np.empty(0))
