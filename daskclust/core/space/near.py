"""Searches of any points among those of a tree of boxes: nearest ones, numbers within a distance, pairs.

A box as a whole is left out, or counted, where bounds of its distances say so. These are made of the operations of
`distance2` in the same order, none of which makes a larger number smaller than a smaller one: rounding changes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from daskclust.core.data.checks import check_count
from daskclust.core.device.arrays import Cuda, Host, device_of, on_device_of
from daskclust.core.device.kernels import body, kernel, lane_kernel
from daskclust.core.device.operations import (
    bits_of,
    count_bits,
    lane_width,
    like,
    lowest_bit,
    point_at,
    select,
    square_root,
    store,
    times,
)
from daskclust.core.space.box_tree import (
    LEAF,
    LEAF_BITS,
    BoxTree,
    along_curve,
    box_gap2,
    make_tree,
)
from daskclust.core.space.extent import extent_of
from daskclust.core.space.grid import PAD, distance2, periodic_distance2, within_period
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
    found = device.empty((2, len(X)), np.float64)
    index, distance = device.empty(len(X), np.int64), device.empty(len(X), np.float64)
    one = device.full(len(X) + PAD, 0, np.int8)
    device.run(find_nearest.bind(**_metric(tree)), len(X), one, positions, tree, float(beyond2), *found, grain=_EVERY)
    device.run(_put_found, len(X), points, *found, index, distance)
    return index, distance


def nearest_label(X: Any, rows: Any, tree: BoxTree, beyond2: float) -> Any:
    """Return the label of the nearest point for each of ``X`` (n, d), of equally near ones the smallest; or -1.

    Labels are the order of the tree.
    """
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
    search, one = pair_near.bind(**_metric(tree), **measures), device.full(n + PAD, 0, np.int8)
    ends = device.full(n + 1, 0, np.int64)
    device.run(search, n, one, tree, limit2, ends[1:], device.empty(0, np.int64), grain=_EVERY)
    ends = np.cumsum(ends)
    total = int(device.to_host(ends[n:])[0])
    pairs = device.empty(2 * total, np.int64)
    device.run(search, n, one, tree, limit2, ends, pairs[total:], grain=_EVERY)
    pairs[total:].sort()
    first = 0
    while first < total:  # what is written does not reach what is still to be read: no second array
        behind = max((first + total) // 2, first + 1)
        device.run(_unpack, behind - first, first, pairs[total:], pairs)
        first = behind
    return pairs.reshape(total, 2)


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
    """Return the device, the tree on it, and rows and coordinates of points that search, along the curve and padded."""
    device = device_of(X)
    tree = BoxTree(tree.period, *(on_device_of(X, array) for array in tree[1:]))
    positions, extent = _positions(device, Chunk({"X": X}, ids), tree.period)
    points = along_curve(device, positions, len(X), device.empty(0, np.int32), extent)
    own = device.empty((len(positions), len(X) + PAD), np.float64)
    device.run(_move_along, len(X), points, positions, own)
    return device, tree, points, own


@kernel
def _move_along(slot, points, positions, own):
    for k in range(positions.shape[0]):
        own[k, slot] = positions[k, points[slot]]


@kernel
def _move_within(i, X, period, positions):
    for k in range(len(period)):
        positions[k, i] = within_period(X[i, k], period[k])


@body
def may_hold(gap2, node, tree, state):
    """Return whether a node so far away may hold a point that is nearer, or as near and of a smaller order."""
    nearest2, index = state
    return bits_of((gap2 < nearest2) | ((gap2 == nearest2) & (index > like(gap2, tree.least[node])))) != 0


@lane_kernel
def find_nearest(i, m, one, positions, tree, beyond2, nearest2, index):
    """Search the tree for what is nearest to some points side by side; bits of `trail` tell which nodes came first."""
    own = point_at(positions, i, m, tree.period)
    state = like(own[0], beyond2), like(own[0], -1)
    n, leaves = len(tree.points), len(tree.most) >> 1
    node, trail, descends = np.int64(1), np.int64(0), True
    while True:
        if descends and may_hold(box_gap2(own, node, tree), node, tree, state):
            if node < leaves:
                nearer = box_gap2(own, 2 * node, tree) <= box_gap2(own, 2 * node + 1, tree)
                first = 0 if 2 * count_bits(bits_of(nearer)) >= lane_width() else 1
                trail, node = (trail << 1) | first, 2 * node + first
                continue
            for j in range((node - leaves) * LEAF, min((node - leaves + 1) * LEAF, n)):
                d2, order = distance2(own, tree.positions, j, tree.period), like(own[0], tree.order[j])
                nearer = (d2 < state[0]) | ((d2 == state[0]) & (order < state[1]))
                state = select(nearer, d2, state[0]), select(nearer, order, state[1])
        if node == 1:
            break
        descends = (node & 1) == (trail & 1)
        if descends:
            node ^= 1
        else:
            node, trail = node >> 1, trail >> 1
    store(nearest2, i, m, state[0])
    store(index, i, m, state[1])


@kernel
def _put_found(slot, points, nearest2, index, row, distance):
    i = points[slot]
    row[i] = np.int64(index[slot])
    distance[i] = square_root(nearest2[slot]) if index[slot] >= 0 else np.inf


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
    own = positions[:, slot]
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
    counts[points[slot]] = total


@lane_kernel
def pair_near(i, m, one, tree, limit2, ends, pairs):
    """Write pairs with points farther along the curve, as one number each, from ``ends[i]`` on; without `pairs` count.

    Points side by side are counted together: the same ones at both times.
    """
    own, i = point_at(tree.positions, i, m, tree.period), np.int64(i)
    n, leaves = len(tree.points), len(tree.most) >> 1
    node, at = (i >> LEAF_BITS) + leaves, ends[i] if len(pairs) > 0 else np.int64(0)
    while node > 0:
        if bits_of(box_gap2(own, node, tree) <= limit2) != 0:
            if node < leaves:
                node = node << 1
                continue
            for j in range(max((node - leaves) * LEAF, i + 1), min((node - leaves + 1) * LEAF, n)):
                mask = bits_of(distance2(own, tree.positions, j, tree.period) <= limit2)
                mask &= (np.int64(1) << min(j - i, m)) - 1  # no others repeated, none that is not before it
                if len(pairs) == 0:
                    at += count_bits(mask)
                    continue
                while mask != 0:
                    first, other = np.int64(tree.order[i + lowest_bit(mask)]), np.int64(tree.order[j])
                    pairs[at] = (min(first, other) << 32) | max(first, other)
                    at += 1
                    mask &= mask - 1
        node = beside(node)
    if len(pairs) == 0:
        ends[i] = at


@kernel
def _unpack(i, first, packed, pairs):
    pair = packed[first + i]
    pairs[2 * (first + i)] = pair >> 32
    pairs[2 * (first + i) + 1] = pair & 0xFFFFFFFF
