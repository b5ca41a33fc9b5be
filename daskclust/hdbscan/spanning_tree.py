"""The minimum spanning tree of points, of Euclidean or mutual-reachability lengths, exact and the same for any order.

Edges are in order of (weight, squared length, smaller row, larger row), in float64 without fused operations, so there
is one tree for any order of rows and number of threads. Points in Morton order are the leaves of a tree of boxes;
Borůvka's rounds first read lists of neighbours, then search it (`kernels/rounds.py`).

Many equal points are united first. Edges between them weigh their core distance and have no length, so they come first
among edges of that weight, and no edge at them weighs less: they are a star around the smallest row, and that row's
edges to others come before those of its equals.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.data.checks import check_spread
from daskclust.core.device.arrays import HOST, Cuda, Host, Reused, device_of, to_host
from daskclust.core.device.threads import thread_count
from daskclust.core.space.bucket_sort import sort_points
from daskclust.core.space.equal_rows import RowPlaces, equal_rows
from daskclust.core.space.extent import extent_of
from daskclust.core.space.grid import PAD, wrap_positions
from daskclust.core.space.partition import Chunk
from daskclust.hdbscan import on_cuda
from daskclust.hdbscan.kernels import edges as edge_kernels
from daskclust.hdbscan.kernels import nearest as nearest_kernels
from daskclust.hdbscan.kernels import point_tree, rounds
from daskclust.hdbscan.kernels.point_tree import DEPTH, KEY_BITS, LEAF, LeafTree

_SHARED = 8  # points of one Morton number that make us look for equal ones
_UNROLLED = 3  # axes
Device = Host | Cuda


class SpanningTree(NamedTuple):
    """Edges of a minimum spanning tree, or forest, in order of weight; arrays are on the device of the points."""

    edges: NDArray[np.int64]
    """(n - 1, 2) rows of the points of each edge, the smaller first."""
    weight: NDArray[np.float64]
    """(n - 1,) squared mutual-reachability lengths, ascending."""
    core: NDArray[np.float64]
    """(n,) squared core distances; 0 for ``min_samples=1``."""

    def on_host(self) -> SpanningTree:
        """Return the tree as NumPy arrays."""
        return SpanningTree(*map(to_host, self))


def spanning_tree(
    X: Any,
    min_samples: int = 1,
    period: tuple[float, ...] = (),
    alpha: float = 1.0,
    core: Any = None,
    most: float = math.inf,
) -> SpanningTree:
    """Return the minimum spanning tree of finite points (n, d); axes of period 0, or all without `period`, are open.

    The core distance of a point is that to its `min_samples`-th nearest, itself counted. The square of an edge's weight
    is the largest of its own squared length, divided by the square of `alpha`, and the two squared core distances.
    `core` has these where they are known, on the device of X, in place of `min_samples`; equal points have equal ones.
    Edges of a weight whose square is above `most` are left out.
    """
    n, d = X.shape
    if not 1 <= min_samples <= max(n, 1):
        raise ValueError(f"min_samples must be from 1 to the number of points, {n}, got {min_samples}")
    period = tuple(map(float, period)) or (0.0,) * d
    device = device_of(X)
    low, high = extent_of(Chunk({"X": X}))
    spans = [cycle or b - a for a, b, cycle in zip(low.tolist(), high.tolist(), period, strict=True)]
    if not math.isfinite(sum(span * span for span in spans)):
        raise ValueError(f"squared distances of the points exceed float64: the extent is {max(spans):.3g}")
    check_spread(low, high)
    if n < 2:
        nothing = device.empty((0, 2), np.int64), device.empty(0, np.float64)
        return SpanningTree(*nothing, device.full(n, 0.0, np.float64) if core is None else core)
    X, memory = (np.ascontiguousarray(X), Reused()) if device is HOST else (X, device)
    tree, places = _sorted(device, X, period, low, max(spans), memory)
    points, sorted_core = _described(device, tree, places, min_samples, core, alpha, memory)
    ends = _merged(device, tree, points, most if alpha == 1 else most * alpha * alpha * (1 + 1e-15))
    if core is None:
        is_zero = min_samples == 1
        core = device.full(n, 0.0, np.float64) if is_zero else _in_rows(device, sorted_core, tree.order, places)
    length, order = device.empty(len(ends), np.float64), tree.order
    weight = length if points.length is points.weight else device.empty(len(ends), np.float64)
    device.run(rounds.weigh, len(ends), ends, points.core, tree, length, weight)
    del tree, points, sorted_core, memory
    if places is not None:
        ends, weight, length, order = _with_stars(device, ends, weight, length, order, places, core)
    if alpha != 1:
        rows = order[ends]
        weight = np.maximum(length / (alpha * alpha), np.maximum(core[rows[:, 0]], core[rows[:, 1]]))
    if places is not None or alpha != 1:
        is_kept = weight <= most
        ends, weight, length = ends[is_kept], weight[is_kept], length[is_kept]
    return SpanningTree(*_in_order(device, ends, weight, length, order), core)


# ----------------------------------------------------------------------------------------------------------------- tree
def _sorted(
    device: Device, X: Any, period: tuple[float, ...], low: Any, extent: float, memory: Any
) -> tuple[LeafTree, RowPlaces | None]:
    """Return the tree of points, and the rows that they stand for where equal ones were united."""
    places, is_cut = None, X.shape[1] <= _UNROLLED
    if is_cut:
        keys, order, positions = _in_morton_order(device, X, period, low, extent, memory)
    if not is_cut or _share(keys):
        X = wrap_positions(to_host(X), period)
        places = equal_rows(X)
        if places.are_single:
            places = None
        else:
            X = X[places.first]
            if is_cut:
                keys, order, positions = _in_morton_order(device, device.from_host(X), period, low, extent, memory)
        if not is_cut or _share(keys):
            keys, order, positions = _in_order_of_boxes(device, X)
    return _built(device, keys, order, positions, period, memory), places


def leaf_tree(x: NDArray[np.float64], period: tuple[float, ...]) -> LeafTree:
    """Return the tree of finite points on the host, whose periodic coordinates are within [0, period)."""
    open_axes, is_cut = (0.0,) * x.shape[1], x.shape[1] <= _UNROLLED
    if is_cut:
        low, high = x.min(axis=0), x.max(axis=0)
        keys, order, positions = _in_morton_order(HOST, x, open_axes, low, float((high - low).max()), Reused())
    if not is_cut or _share(keys):
        keys, order, positions = _in_order_of_boxes(HOST, x)
    return _built(HOST, keys, order, positions, period or open_axes, Reused())


def _share(keys: Any) -> bool:
    """Return whether many points have the same of sorted keys."""
    return bool((keys[_SHARED:] == keys[:-_SHARED]).any())


def _in_morton_order(
    device: Device, X: Any, period: tuple[float, ...], low: Any, extent: float, memory: Any
) -> tuple[Any, ...]:
    """Return keys in order, on the host, the row of each point, and coordinates (d, n + PAD)."""
    n, d = X.shape
    keys = device.empty(n, np.int64)
    begin = tuple(0.0 if cycle else float(a) for a, cycle in zip(low, period, strict=True))
    scale = 2.0 ** (KEY_BITS // d) * (1 - 1e-9) / extent if extent > 0 else 0.0
    device.run(point_tree.write_keys, n, X, period, begin, min(scale, 1e300), keys)
    if isinstance(device, Cuda):
        return on_cuda.in_order_of_keys(device, X, keys, period)
    found = sort_points(X, period, keys, 1 << KEY_BITS, 0, memory, np.float64)
    if found is None:
        return _in_order_of_boxes(device, wrap_positions(X, period))
    return keys, found.order, found.positions


def _in_order_of_boxes(device: Device, X: Any) -> tuple[Any, ...]:
    """Return the same in order of scikit-learn's tree, which cuts at medians: for many axes, and very uneven points."""
    from sklearn.neighbors import KDTree

    points = X.astype(np.float64, copy=False)
    _, rows, nodes, _ = KDTree(points, leaf_size=LEAF // 2).get_arrays()
    keys, order, positions = (
        np.zeros(len(X), np.int64),
        np.full(len(X) + PAD, -1, np.int32),
        np.zeros((X.shape[1], len(X) + PAD)),
    )
    keys[nodes["idx_start"][nodes["is_leaf"] != 0]] = 1
    order[: len(X)], positions[:, : len(X)] = rows, points[rows].T
    return keys.cumsum() - 1, device.from_host(order), device.from_host(positions)  # as the tree divides its leaves


def _built(device: Device, keys: Any, order: Any, positions: Any, period: tuple[float, ...], memory: Any) -> LeafTree:
    """Return the tree of points that are in order."""
    n, d = len(keys), len(period)
    begin, leaf_node, counts = np.empty(n + 1, np.int32), np.empty(n, np.int32), np.empty(2, np.int64)
    node, above = np.empty((2 * n, 4), np.int32), np.empty(2 * n, np.int32)
    HOST.run(point_tree.build, 1, keys, np.empty((DEPTH, 3), np.int64), begin, leaf_node, node, above, counts)
    if isinstance(memory, Reused):
        memory.add(keys)
    leaves, nodes = counts.tolist()
    axes: Any = period if d <= _UNROLLED else device.from_host(np.array(period))
    parts = map(device.from_host, (begin[: leaves + 1], leaf_node[:leaves], node[:nodes], above[:nodes]))
    box = device.empty((nodes, 2 * d), np.float64)
    tree = LeafTree._make((axes, positions.reshape(-1), order, *parts, box))
    if isinstance(device, Cuda):
        on_cuda.write_boxes(device, tree)
    else:
        device.run(point_tree.write_leaf_box, leaves, tree, grain=512)
        device.run(point_tree.write_boxes, 1, tree)
    return tree


def _described(
    device: Device, tree: LeafTree, places: RowPlaces | None, min_samples: int, core: Any, alpha: float, memory: Any
) -> tuple[rounds.PointStates, Any]:
    """Return what is known of points before any are merged, and their core distances."""
    n, leaves, nodes, rows = len(tree.order) - PAD, len(tree.leaf_node), len(tree.node), tree.order[:-PAD]
    is_plain = core is None and min_samples == 1
    nearest, reach = memory.empty((n, nearest_kernels.KEPT), np.int32), memory.empty(n, np.float64)
    weight = memory.empty(n, np.float64)
    length = weight if is_plain else memory.empty(n, np.float64)
    other, component = memory.empty(n, np.int32), memory.empty(n + PAD, np.int32)
    if core is not None:
        found = device.take(core if places is None else device.take(core, places.first), rows)
    else:
        found = device.full(n, 0.0, np.float64) if is_plain else memory.empty(n, np.float64)
    count = device.empty(0, np.int32)
    if places is not None:
        count = device.take(device.from_host(places.counts.astype(np.int32)), rows)
    given = tree, count, min_samples if core is None else 1, nearest, found, reach
    if isinstance(device, Cuda):
        on_cuda.find_nearest(device, *given)
    else:
        _find_nearest(*given)
    scaled, other[:], component[:] = found if alpha == 1 else found * (alpha * alpha), -1, device.count_up(n + PAD)
    place, alive = device.full(n, 0, np.int8), device.full(leaves, True, np.bool_)
    need, node_need = device.empty(leaves, np.float64), device.empty(nodes, np.float64)
    node_core = device.full(nodes, 0.0 if is_plain else np.inf, np.float64)
    points = rounds.PointStates(
        component, scaled, nearest, place, reach, other, weight, length, need, alive, node_core, node_need
    )
    if not is_plain:
        np.maximum(reach, scaled, out=reach)
        device.run(rounds.write_node_core, leaves, points, tree, grain=512)
    return points, found


def _find_nearest(tree: LeafTree, count: Any, min_samples: int, nearest: Any, core: Any, reach: Any) -> None:
    """Write neighbours and, where `min_samples` is above 1, core distances."""
    is_far = min_samples - 1 > nearest_kernels.MOST_LISTED
    scratch = _scratch(min_samples if is_far else 0)
    if is_far:
        _run_pieces(nearest_kernels.find_core, scratch, tree, count, min_samples, scratch, core)
    listed = 1 if is_far else min_samples
    _run_pieces(nearest_kernels.find_nearest, scratch, tree, count, listed, scratch, nearest, core, reach)


def _scratch(heap: int) -> nearest_kernels.Scratch:
    """Return memory for each piece that threads take."""
    threads = thread_count()
    pieces = 1 if threads == 1 else 16 * threads
    size = LEAF * nearest_kernels.ROW
    one, other, near = np.empty((pieces, LEAF)), np.empty((pieces, LEAF)), np.empty((pieces, size))
    return nearest_kernels.Scratch(one, other, near, np.empty((pieces, size), np.int32), np.empty((pieces, heap)))


def _run_pieces(kernel: Any, scratch: nearest_kernels.Scratch, *args: Any) -> None:
    HOST.run(kernel, len(scratch.radius), *args, grain=1)


# --------------------------------------------------------------------------------------------------------------- merges
def _merged(device: Device, tree: LeafTree, points: rounds.PointStates, most: float) -> Any:
    """Return the ends of the edges of the tree of points, those that weigh at most `most`, in any order."""
    n, leaves = len(points.core), len(tree.leaf_node)
    edges = rounds.FoundEdges(device.empty((n - 1, 2), np.int32), device.from_host(np.array([0, n])))
    whole = rounds.Components(
        device.full(n, 1, np.int32),
        *(device.empty(n, dtype) for dtype in (np.bool_, np.bool_, np.float64, np.int32, np.int32)),
    )
    scratch = _scratch(0)
    finished: Any = False  # where `most` leaves components that have no more edges
    is_searched, found, left = False, 0, n
    while left > 1 and most >= 0:
        components = rounds.Components(*(values[:left] for values in whole))
        components.skip[:] = finished
        largest, is_spared = int(components.size.argmax()), left < n
        if is_spared:
            components.skip[largest] = True  # it does not ask
        asking = left - int(np.count_nonzero(components.skip) if most < math.inf else is_spared)
        if asking == 0:
            break
        device.run(rounds.start_round, left, components)
        device.run(rounds.look_in_lists, leaves, points, components, tree, grain=512)
        device.run(rounds.offer, leaves, most, points, components, tree, grain=512)
        device.run(rounds.write_bound, left, most, points, components)
        if not is_searched:
            device.run(rounds.find_open, leaves, points, components, tree, grain=512)
            is_searched = 2 * int(np.count_nonzero(components.is_open)) >= asking
        if is_searched:  # before, only components whose lists decide are merged
            components.is_open[:] = False
            if isinstance(device, Cuda):
                on_cuda.search(device, points, components, tree)
            else:
                device.run(rounds.describe_leaf, leaves, points, tree, grain=512)
                device.run(rounds.describe_nodes, 1, points, tree)
                _run_pieces(rounds.search, scratch, points, components, tree, scratch)
            device.run(rounds.offer, leaves, most, points, components, tree, grain=512)
        if most < math.inf:
            done = (components.best < 0) & ~components.is_open
            if is_spared:
                done[largest] = finished[largest]
        if isinstance(device, Cuda):
            on_cuda.merge(device, points, components, edges)
        else:
            device.run(rounds.merge, 1, points, components, edges)
        device.run(rounds.renumber, n, points.component, components.best)
        found, left = edges.counts.tolist()
        if most < math.inf:
            finished = device.full(left, False, np.bool_)
            finished[components.best[done]] = True
    return edges.ends[:found]


# ---------------------------------------------------------------------------------------------------------------- order
def _with_stars(
    device: Device, ends: Any, weight: Any, length: Any, order: Any, places: RowPlaces, core: Any
) -> tuple[Any, ...]:
    """Return edges between rows, those between equal rows behind the others."""
    n, smallest = len(places.of_row), places.first[places.of_row]
    others = np.flatnonzero(smallest != np.arange(n))
    first, stars = device.from_host(places.first), device.from_host(np.column_stack([smallest[others], others]))
    ends = np.concatenate([first[order[ends]], stars])
    weight = np.concatenate([weight, core[stars[:, 1]]])
    length = np.concatenate([length, device.full(len(others), 0.0, np.float64)])
    return ends, weight, length, device.count_up(n)


def _in_rows(device: Device, values: Any, order: Any, places: RowPlaces | None) -> Any:
    """Return values of sorted points for each row."""
    of_rows = device.empty(len(values), np.float64)
    of_rows[order[: len(values)]] = values
    return of_rows if places is None else device.take(of_rows, places.of_row)


def _in_order(device: Device, ends: Any, weight: Any, length: Any, order: Any) -> tuple[Any, Any]:
    """Return edges between rows of `order`, and their weights, in order."""
    if isinstance(device, Cuda):
        return on_cuda.in_order(device, ends, weight, length, order)
    n, bits = len(weight), weight.view(np.int64)
    edges, keys = np.empty((n, 2), np.int64), np.empty(n, np.int64)
    if n == 0:
        return edges, weight
    HOST.run(edge_kernels.write_edge_keys, n, bits, int(bits.min()), keys)
    found = sort_points(weight.reshape(-1, 1), (0.0,), keys, int(keys.max()) + 1, 0, Reused())
    if found is None:
        places = np.argsort(keys, kind="stable").astype(np.int32)
        keys = keys[places]
    else:
        places = found.order
    sorted_weight, sorted_length, is_long = np.empty(n), np.empty(n), np.empty(n, np.bool_)
    HOST.run(edge_kernels.gather_edge, n, places, ends, weight, length, order, edges, sorted_weight, sorted_length)
    HOST.run(edge_kernels.sort_run, n, keys, edges, sorted_weight, sorted_length, is_long)
    if is_long.any():
        at = np.flatnonzero(is_long)
        by = at[np.lexsort((edges[at, 1], edges[at, 0], sorted_length[at], sorted_weight[at]))]
        edges[at], sorted_weight[at] = edges[by], sorted_weight[by]
    return edges, sorted_weight
