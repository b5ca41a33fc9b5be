"""Searches of any points among those of a tree of boxes: nearest ones, numbers within a distance, pairs.

A box as a whole is left out, or counted, where bounds of its distances say so. These are made of the operations of
`distance2` in the same order, none of which makes a larger number smaller than a smaller one: rounding changes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from daskclust.core.data.checks import check_count
from daskclust.core.device.arrays import Cuda, Host, device_of, on_device_of
from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import square_root, times
from daskclust.core.space.box_tree import (
    LEAF,
    BoxTree,
    along_curve,
    box_gap2,
    make_tree,
    no_members,
    search_below,
)
from daskclust.core.space.extent import extent_of
from daskclust.core.space.grid import distance2, periodic_distance2, within_period
from daskclust.core.space.partition import Chunk

_EVERY = 64  # searches that a thread takes at least


def plant(X: Any, period: tuple[float, ...], order: Any = None) -> BoxTree:
    """Return the tree of points ``X`` (n, d), kept for any number of searches; distances are computed in float64.

    `order` tells equally near points apart, the smallest first; by default that of their rows.
    """
    device, n = device_of(X), len(X)
    positions, extent = _positions(device, Chunk({"X": X}), period)
    order = device.cast(device.count_up(n) if order is None else order, np.int32)
    columns = device.full(n, 1, np.float64), order, device.empty(0, np.int32)  # all are higher than what searches
    tree = make_tree(device, positions, period, n, columns, extent, has_least=True)
    return BoxTree(period, *(array.copy() for array in tree[1:]))  # what serves again is not kept


def nearest(tree: BoxTree, X: Any, ids: Any, beyond2: float) -> tuple[Any, Any]:
    """Return the order of the nearest point for each of ``X`` (n, d), and its distance.

    Of squared distances only those below `beyond2` count; -1 and inf where there is none. `ids` are for messages.
    """
    device, tree, points, positions = _asking(tree, X, ids)
    index, distance = device.empty(len(X), np.int64), device.empty(len(X), np.float64)
    args = points, positions, tree, no_members(device, np.float64), np.float64(beyond2), distance, index
    device.run(find_nearest.bind(**_metric(tree)), len(X), *args, grain=_EVERY)
    return index, distance


def plant_labels(X: Any, labels: Any, period: tuple[float, ...]) -> BoxTree:
    """Return the tree of points with labels, for `nearest_label`."""
    return plant(X, period, labels)


def nearest_label(X: Any, rows: Any, tree: BoxTree, beyond2: float) -> Any:
    """Return the label of the nearest point for each of ``X`` (n, d), of equally near ones the smallest; or -1."""
    return nearest(tree, X, rows, beyond2)[0]


def count_within(tree: BoxTree, X: Any, ids: Any, limit2: float) -> Any:
    """Return how many points of the tree are within a squared distance of each of ``X`` (n, d)."""
    device, tree, points, positions = _asking(tree, X, ids)
    counts = device.empty(len(X), np.int64)
    device.run(count_near.bind(**_metric(tree)), len(X), points, positions, tree, limit2, counts, grain=_EVERY)
    return counts


def pairs_within(tree: BoxTree, limit2: float, **measures: Any) -> Any:
    """Return the pairs of the tree's points within a squared distance, (m, 2), the smaller number first, ascending.

    `measures` may replace `distance2`, and with it `box_gap2`.
    """
    device, n = device_of(tree.points), len(tree.points)
    search = pair_near.bind(**_metric(tree), **measures)
    ends = device.full(n + 1, 0, np.int64)
    device.run(search, n, tree, limit2, ends[1:], device.empty(0, np.int64), grain=_EVERY)
    ends = np.cumsum(ends)
    pairs = device.empty(int(device.to_host(ends[n:])[0]), np.int64)
    device.run(search, n, tree, limit2, ends, pairs, grain=_EVERY)
    pairs = np.sort(pairs)
    return np.stack([pairs >> 32, pairs & 0xFFFFFFFF], axis=1)


def _metric(tree: BoxTree) -> dict[str, Any]:
    return {"distance2": periodic_distance2} if any(tree.period) else {}


def _positions(device: Host | Cuda, chunk: Chunk, period: tuple[float, ...]) -> tuple[Any, Any]:
    """Return coordinates (d, n) of checked points within the period, and their extent."""
    X = chunk.columns["X"]
    check_count(len(X))
    low, high = extent_of(chunk)
    positions, cycle = device.empty(X.shape[::-1], np.float64), np.array(period)
    device.run(_move_within, len(X), X, period, positions)
    return positions, np.where(cycle > 0, [np.zeros(len(cycle)), cycle], [low, high])


def _asking(tree: BoxTree, X: Any, ids: Any) -> tuple[Any, BoxTree, Any, Any]:
    """Return the device, the tree on it, and the order along the curve and the coordinates of points that search."""
    device = device_of(X)
    tree = BoxTree(tree.period, *(on_device_of(X, array) for array in tree[1:]))
    positions, extent = _positions(device, Chunk({"X": X}, ids), tree.period)
    points = along_curve(device, positions, len(X), device.empty(0, np.int32), extent)
    return device, tree, points, positions


@kernel
def _move_within(i, X, period, positions):
    for k in range(len(period)):
        positions[k, i] = within_period(X[i, k], period[k])


@kernel
def find_nearest(slot, points, positions, tree, members, beyond2, distance, nearest):
    """Search the whole tree for the nearest point."""
    i = points[slot]
    own, me = positions[:, i], (0.0, np.int32(-1), np.int32(0))  # lower than all others
    nearest2, index = search_below(me, own, np.int64(1), tree, members, (beyond2, np.int64(-1)))
    distance[i] = square_root(nearest2) if index >= 0 else np.inf
    nearest[i] = index


@body
def box_far2(own, node, tree):
    """Return an upper bound of the squared distances between a point and those in a node's box."""
    axes = len(tree.period)
    total = 0.0
    for k in range(axes):
        far = max(abs(own[k] - tree.box[node, k]), abs(own[k] - tree.box[node, axes + 1 + k]))
        total = total + times(far, far)
    return total


@body
def beside(node):
    """Return the node that follows when nothing more is looked for below `node`; 0 behind the last."""
    while node & 1:
        node = node >> 1
    return node + 1 if node > 0 else node


@body
def size_of(node, tree):
    """Return how many points are below a node."""
    leaves = len(tree.most) >> 1
    first, width = node, np.int64(1)
    while first < leaves:
        first, width = first << 1, width << 1
    begin = (first - leaves) * LEAF
    return max(min(begin + width * LEAF, len(tree.points)) - begin, 0)


@kernel
def count_near(slot, points, positions, tree, limit2, counts):
    """Count the points within the limit: those of a box at once where all are."""
    i = points[slot]
    own = positions[:, i]
    n, leaves = len(tree.points), len(tree.most) >> 1
    node, total = np.int64(1), np.int64(0)
    while node > 0:
        if box_gap2(own, node, tree) <= limit2:
            if box_far2(own, node, tree) <= limit2:
                total += size_of(node, tree)
            elif node < leaves:
                node = node << 1
                continue
            else:
                for j in range((node - leaves) * LEAF, min((node - leaves + 1) * LEAF, n)):
                    total += 1 if distance2(own, tree.positions, j, tree.period) <= limit2 else 0
        node = beside(node)
    counts[i] = total


@kernel
def pair_near(slot, tree, limit2, ends, pairs):
    """Write pairs with later points, packed in one number, from ``ends[slot]`` on; without `pairs` how many."""
    own, order = tree.positions[:, slot], np.int64(tree.order[slot])
    n, leaves = len(tree.points), len(tree.most) >> 1
    node, at = np.int64(1), ends[slot] if len(pairs) > 0 else np.int64(0)
    while node > 0:
        if box_gap2(own, node, tree) <= limit2:
            if node < leaves:
                node = node << 1
                continue
            for j in range((node - leaves) * LEAF, min((node - leaves + 1) * LEAF, n)):
                other = np.int64(tree.order[j])
                if other > order and distance2(own, tree.positions, j, tree.period) <= limit2:
                    if len(pairs) > 0:
                        pairs[at] = (order << 32) | other
                    at += 1
        node = beside(node)
    if len(pairs) == 0:
        ends[slot] = at
