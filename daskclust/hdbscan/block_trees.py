"""Spanning trees of blocks, and the forest of all that they make: components, and what is asked between them.

An edge is *final* if it is the first of all edges out of a set of points; final edges within a block stay there, and
join its points to *parts*. Other edges meet on one worker, where more of them turn out to be final. The components
that final edges make are joined by few edges more: those that are known already, or edges that no block knows, between
points that are nearer to what their block does not know than the heaviest edge on the way that is known.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import HOST, on_device_of
from daskclust.core.merge.own_ids import OwnIds
from daskclust.core.space.partition import Chunk
from daskclust.hdbscan.far_neighbours import BlockSetting, IdPoints, gaps2, joined, out_of, owned, search
from daskclust.hdbscan.kernels.first_edges import Edges, mark_near, write_edge
from daskclust.hdbscan.kernels.kruskal import find_homes, mark_forest
from daskclust.hdbscan.spanning_tree import spanning_tree

Ends = NDArray[np.int32]  # (m, 2) numbers of what edges join
_LARGE = 256  # so many components at most count as large, each with one such part of all points
_CELL = 1 << 20  # from here on keys of boxes are of cells
_SOME = 256  # points of a block that tell how far others are, about


# ---------------------------------------------------------------------------------------------------------------- edges
def at(edges: Edges, rows: Any) -> Edges:
    """Return some of the edges."""
    return Edges(*(values[rows] for values in edges))


def together(parts: list[Edges]) -> Edges:
    """Return the edges of several."""
    return Edges(*map(np.concatenate, zip(*parts, strict=True)))


def order_of(edges: Edges) -> NDArray[np.int64]:
    """Return the rows of edges by weight, length, smaller and larger id."""
    order = np.argsort(edges.weight, kind="stable")
    weight = edges.weight[order]
    is_tied = np.zeros(len(order), np.bool_)
    is_tied[1:] = weight[1:] == weight[:-1]
    is_tied[:-1] |= is_tied[1:]
    tied = order[is_tied]
    order[is_tied] = tied[np.lexsort([values[tied] for values in reversed(edges)])]
    return order


def edges_of(points: IdPoints, ends: Any, weight: Any, period: tuple[float, ...]) -> Edges:
    """Return edges between points as such between ids, with their lengths."""
    length, (low, high) = np.empty(len(ends)), np.empty((2, len(ends)), np.int64)
    HOST.run(write_edge, len(ends), ends, points.x, points.ids, np.array(period), length, low, high)
    return Edges(weight, length, low, high)


def whole_tree_of(points: IdPoints, setting: BlockSetting) -> tuple[Edges, NDArray[np.int64]]:
    """Return the tree of points, ascending by id, and the rows of its ends."""
    tree = spanning_tree(points.x, 1, setting.period, setting.alpha, core=points.core)
    return edges_of(points, tree.edges, tree.weight, setting.period), tree.edges


def forest_among(edges: Edges, ends: Any, way: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which of some edges in order are of their forest, and final: `way` is of what they join."""
    is_kept, is_final = np.empty((2, len(ends)), np.bool_)
    parent = np.arange(len(way), dtype=np.int32)
    mark_forest.run(1, ends, edges.weight, edges.length, parent, way.copy(), is_kept, is_final)
    return is_kept, is_final


def roots_of(edges: Edges, ends: Any, way: Any) -> NDArray[np.int32]:
    """Return the smallest of what edges join to each, for which `way` becomes the least."""
    parent, unused = np.arange(len(way), dtype=np.int32), np.empty((2, len(ends)), np.bool_)
    mark_forest.run(1, ends, edges.weight, edges.length, parent, way, *unused)
    return parent


# -------------------------------------------------------------------------------------------------------------- a block
class OwnParts(NamedTuple):
    """The parts that final edges of a block make of its own points."""

    ids: OwnIds
    part: NDArray[np.int32]


class SentEdges(NamedTuple):
    """What a block sends up."""

    edges: Edges  # not final, or of a point of another block; shorter ones where it owns the point of the smaller id
    some: IdPoints  # of its own points: edges between them join all blocks
    size: NDArray[np.int64]  # points of each part
    way: NDArray[np.float64]  # (parts, 2): as of `mark_forest`


class TreeOfBlock(NamedTuple):
    """The tree of a block's points and its halo."""

    final: Edges  # between own points, in order
    parts: OwnParts
    sent: SentEdges


def ways_of(points: IdPoints, out: Any, alpha: float) -> NDArray[np.float64]:
    """Return the least weight and length of edges from points to others that are farther than `out`."""
    return np.column_stack([np.maximum(out * out / (alpha * alpha), points.core), out * out])


def tree_of(setting: BlockSetting, chunk: Chunk) -> TreeOfBlock:
    """Return the tree of a chunk's points."""
    X, points, own = chunk.columns["X"], IdPoints.of(chunk, setting.period), owned(chunk)
    core = on_device_of(X, points.core)
    tree = spanning_tree(X, 1, setting.period, setting.alpha, core=core).on_host()
    edges, mine = edges_of(points, tree.edges, tree.weight, setting.period), points.at(own)
    way = ways_of(points, np.zeros(len(own)), setting.alpha)
    way[own] = ways_of(mine, out_of(mine, chunk, setting.reach), setting.alpha)
    is_own = own[tree.edges]
    is_final = forest_among(edges, tree.edges, way)[1] & is_own.all(axis=1)
    is_sent = ~is_final & (is_own[:, 0] | (tree.weight >= setting.limit))
    final = at(edges, is_final)
    roots = roots_of(final, tree.edges[is_final], way)[own]
    count = np.bincount(roots, minlength=len(own))
    firsts = np.flatnonzero(count)
    number = np.empty(len(own), np.int32)
    number[firsts] = np.arange(len(firsts))
    some = mine.at(slice(None, None, 1 + len(mine.ids) // _SOME))
    parts = OwnParts(OwnIds.of(mine.ids), number[roots])
    return TreeOfBlock(final, parts, SentEdges(at(edges, is_sent), some, count[firsts], way[firsts]))


# ----------------------------------------------------------------------------------------------------------- all blocks
class Meeting(NamedTuple):
    """What blocks are asked for the parts of."""

    ids: NDArray[np.int64]  # of the ends of all edges that were sent up
    edges: Edges  # the tree of some points of all blocks


class Named(NamedTuple):
    """A block's edges and parts for the forest."""

    edges: Edges
    ends: NDArray[np.int64]  # (m, 2) places of their points among those of the meeting
    places: NDArray[np.int64]  # of its own points there
    part: NDArray[np.int32]  # of these
    size: NDArray[np.int64]
    way: NDArray[np.float64]


class ComponentSlice(NamedTuple):
    """What a chunk must know of its parts."""

    component: NDArray[np.int32]
    home: NDArray[np.int32]  # a large component, the own one or one that is near
    bound: NDArray[np.float64]  # squared weight of the heaviest edge that is needed to go there
    heaviest: float  # of all edges that are not final


class Forest(NamedTuple):
    """The minimum spanning forest of the edges that blocks sent up, and the components that all final edges make."""

    final: Edges
    open: Edges  # that are not final
    ends: Ends  # the components that these join
    slices: list[ComponentSlice]
    between: NDArray[np.float64]  # squared weight of the heaviest edge on the way between each two large components


def meeting_of(setting: BlockSetting, sent: list[SentEdges]) -> Meeting:
    """Return what is asked of all blocks."""
    edges, _ = whole_tree_of(joined([each.some for each in sent]), setting)
    every = together([edges, *(each.edges for each in sent)])
    return Meeting(np.unique(np.concatenate([every.low, every.high])), edges)


def named(sent: SentEdges, parts: OwnParts, meeting: Meeting) -> Named:
    """Return what a block adds to the forest."""
    ids = parts.ids.on(HOST)
    row = np.searchsorted(ids, meeting.ids)
    is_own = np.append(ids, -1)[row] == meeting.ids
    places = np.flatnonzero(is_own)
    edges = together([sent.edges, at(meeting.edges, is_own[np.searchsorted(meeting.ids, meeting.edges.low)])])
    ends = np.searchsorted(meeting.ids, np.column_stack([edges.low, edges.high]))
    return Named(edges, ends, places, parts.part[row[places]], sent.size, sent.way)


def forest_of(found: list[Named]) -> Forest:
    """Return the forest of what all blocks send."""
    begins = np.cumsum([0, *(len(each.size) for each in found)])
    number = np.empty(sum(len(each.places) for each in found), np.int32)
    for each, begin in zip(found, begins[:-1], strict=True):
        number[each.places] = begin + each.part
    edges, ends = together([each.edges for each in found]), number[np.concatenate([each.ends for each in found])]
    order = order_of(edges)
    edges, ends, way = at(edges, order), ends[order], np.concatenate([each.way for each in found])
    is_kept, is_final = forest_among(edges, ends, way)
    roots = roots_of(at(edges, is_final), ends[is_final], way)
    is_open = is_kept & ~is_final
    sizes = np.bincount(roots, np.concatenate([each.size for each in found]), len(roots)).astype(np.int64)
    left, ends = at(edges, is_open), roots[ends[is_open]]
    component, home, bound, between = _components(left, ends, roots, sizes)
    each_slice = [slice(*pair) for pair in itertools.pairwise(begins.tolist())]
    heaviest = float(left.weight.max(initial=-np.inf))
    slices = [
        ComponentSlice(component[its], home[component[its]], bound[component[its]], heaviest) for its in each_slice
    ]
    return Forest(at(edges, is_final), left, component[ends], slices, between)


def _components(edges: Edges, ends: Ends, roots: Ends, sizes: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
    """Return the component of each part, 0 is the largest; the home and bound of each; the way `between` large ones."""
    places = np.flatnonzero(sizes)
    places = places[np.argsort(-sizes[places], kind="stable")]
    number, count = np.empty(len(sizes), np.int32), len(places)
    number[places] = np.arange(count)
    large = max(1, int((sizes[places[:_LARGE]] * _LARGE >= sizes.sum()).sum()))
    above, bound, home = np.arange(count, dtype=np.int32), np.zeros(count), np.empty(count, np.int32)
    find_homes.run(1, number[ends], edges.weight, large, above.copy(), above, bound, home)
    between = np.zeros((large, large))
    for k in range(1, large):
        between[k, :k] = between[:k, k] = np.maximum(bound[k], between[above[k], :k])
    bound[:large] = 0.0
    return number[roots], home, bound, between


# ----------------------------------------------------------------------------------------------- what is between blocks
class OpenPoints(NamedTuple):
    """Points that may be ends of edges that no block knows."""

    points: IdPoints
    component: NDArray[np.int32]
    home: NDArray[np.int32]
    bound: NDArray[np.float64]  # as of `ComponentSlice`
    way: NDArray[np.float64]  # the least weight of such an edge
    block: NDArray[np.int32]

    def at(self, rows: Any) -> OpenPoints:
        """Return some of them."""
        return OpenPoints(self.points.at(rows), *(values[rows] for values in self[1:]))


class OpenBoxes(NamedTuple):
    """Where blocks have open points of large components, and of the small ones around each."""

    block: NDArray[np.int32]
    points: NDArray[np.int64]  # how many
    component: NDArray[np.int32]  # of small ones the number of large ones
    home: NDArray[np.int32]
    bound: NDArray[np.float64]  # the largest of them
    way: NDArray[np.float64]  # the least
    low: NDArray[np.float64]  # (m, d) coordinates
    high: NDArray[np.float64]


class OpenBlock(NamedTuple):
    """Open points of a block, those of one box after the other."""

    points: OpenPoints
    boxes: OpenBoxes


def open_points(
    setting: BlockSetting, chunk: Chunk, parts: OwnParts, mine: ComponentSlice, between: Any, block: int
) -> OpenBlock:
    """Return those of a block.

    Of large components there is a box for each cell of a coarse grid; small ones with bounds of about one size share
    one.
    """
    own, large = IdPoints.of(chunk, setting.period).at(owned(chunk)), len(between)
    way = ways_of(own, out_of(own, chunk, setting.reach), setting.alpha)[:, 0]
    rows = np.flatnonzero(way <= mine.heaviest)
    part = parts.part[rows]
    found = OpenPoints(
        own.at(rows),
        mine.component[part],
        mine.home[part],
        mine.bound[part],
        way[rows],
        np.full(len(rows), block, np.int32),
    )
    keys = np.where(found.component < large, _cells(found.points.x) + _CELL, np.frexp(found.bound)[1])
    order = np.lexsort([keys, found.home])
    (_, x, _), component, home, bound, way, _ = found = found.at(order)
    is_first = np.append(True, (np.diff(keys[order]) != 0) | (np.diff(home) != 0))[: len(rows)]
    first = np.flatnonzero(is_first)
    count, about = np.diff(first, append=len(rows)), np.minimum(component[first], large)
    most, least = (np.maximum.reduceat(bound, first), np.minimum.reduceat(way, first)) if len(rows) else (bound, way)
    low, high = (np.minimum.reduceat(x, first), np.maximum.reduceat(x, first)) if len(rows) else (x, x)
    blocks = np.full(len(first), block, np.int32)
    return OpenBlock(found, OpenBoxes(blocks, count, about, home[first], most, least, low, high))


def _cells(x: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the cell of each point in a grid of up to 64 cells."""
    axes = min(x.shape[1], 6)
    count, x = 2 ** (6 // axes), x[:, :axes]
    low, high = x.min(axis=0, initial=np.inf), x.max(axis=0, initial=-np.inf)
    along = (x - low) / np.maximum(high - low, np.finfo(float).tiny) * count
    return np.minimum(along, count - 1).astype(np.int64) @ count ** np.arange(axes)  # type: ignore[no-any-return]


def outsiders_of(
    setting: BlockSetting, mine: OpenBlock, boxes: list[OpenBoxes], between: Any, block: int
) -> OpenPoints:
    """Return those of a block, from which another component in another block is within the bound of both.

    Of two components, one large, the points of the smaller one ask.
    """
    points, its = mine
    every = OpenBoxes(*map(np.concatenate, zip(*boxes, strict=True)))
    others = OpenBoxes(*(values[every.block != block] for values in every))
    begins, is_near = np.cumsum([0, *its.points]), np.zeros(len(points.way), np.bool_)
    cycle, alpha2 = np.array(setting.period), setting.alpha * setting.alpha
    args = points.points.x, points.bound, points.way, its, others, between, cycle, alpha2, is_near
    HOST.run(mark_near, len(its.points), begins, *args)
    return points.at(is_near)


def joined_outsiders(parts: list[OpenPoints]) -> OpenPoints:
    """Return those of all blocks, by component and id."""
    points = IdPoints(*map(np.concatenate, zip(*(part.points for part in parts), strict=True)))
    rest: list[Any] = [np.concatenate([part[k] for part in parts]) for k in range(1, 6)]
    return OpenPoints(points, *rest).at(np.lexsort([points.ids, rest[0]]))


class Links(NamedTuple):
    """Edges between two components."""

    edges: Edges
    ends: Ends


def links_of(setting: BlockSetting, block: OpenBlock, outsiders: OpenPoints, between: Any) -> list[Links]:
    """Return the first edges from each component's outsiders in other blocks to points of each larger, large one."""
    _, _, periods, alpha = setting
    (mine, boxes), found = block, list[Links]()
    if not len(boxes.block):
        return found
    ends, is_other = np.cumsum(boxes.points), outsiders.block != boxes.block[0]
    for large in np.unique(boxes.component[boxes.component < len(between)]):
        its = np.flatnonzero(boxes.component == large)  # one after the other
        low, high = boxes.low[its].min(axis=0), boxes.high[its].max(axis=0)
        bound = np.maximum(outsiders.bound, between[outsiders.home, large])
        asks = np.flatnonzero(is_other & (outsiders.component > large) & (outsiders.way <= bound))
        asks = asks[gaps2(outsiders.points.x[asks], low, high, periods) / (alpha * alpha) <= bound[asks]]
        if not len(asks):
            continue
        asking, most = outsiders.at(asks), bound[asks].max()
        low, high = asking.points.x.min(axis=0), asking.points.x.max(axis=0)
        larger = mine.at(slice(ends[its[0]] - boxes.points[its[0]], ends[its[-1]]))
        near = larger.points.at(larger.way <= most)
        near = near.at(gaps2(near.x, low, high, periods) / (alpha * alpha) <= most)
        begins = np.flatnonzero(np.diff(asking.component, prepend=-1))
        first = Edges(*(np.full((len(begins), 1), fill) for fill in (np.inf, np.inf, -1, -1)))
        first.weight[:, 0] = bound[asks][begins]
        search(asking.points, np.append(begins, len(asks)), near, first, periods, alpha)
        is_found = first.low[:, 0] >= 0
        component = asking.component[begins][is_found]
        pairs = np.column_stack([component, np.full_like(component, large)])
        found.append(Links(Edges(*(values[is_found, 0] for values in first)), pairs))
    return found


def joints_of(setting: BlockSetting, forest: Forest, outsiders: OpenPoints, links: list[list[Links]]) -> Edges:
    """Return the edges of the tree that no block has for itself, in order."""
    order = np.argsort(outsiders.points.ids)
    between, rows = whole_tree_of(outsiders.points.at(order), setting)
    found = [
        Links(forest.open, forest.ends),
        Links(between, outsiders.component[order][rows]),
        *itertools.chain(*links),
    ]
    edges, ends = together([each.edges for each in found]), np.concatenate([each.ends for each in found])
    order = order_of(edges)
    edges, ends = at(edges, order), ends[order]
    is_kept, _ = forest_among(edges, ends, np.zeros((ends.max(initial=0) + 1, 2)))
    edges = together([forest.final, at(edges, is_kept)])
    return at(edges, order_of(edges))
