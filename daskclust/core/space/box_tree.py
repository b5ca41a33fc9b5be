"""The nearest higher point by a tree of boxes, each with the highest density within.

Points go along Hilbert's curve, eight of them to a leaf. A search begins in a point's own leaf and climbs from there,
or at the root; it enters a box only where this holds a higher point and is no farther than the best one found. So its
work does not grow with the distance that is searched.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import Cuda, Host
from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import like, select, square_root, times
from daskclust.core.space.grid import MAX_AXES, PAD, distance2

LEAF_BITS = 3  # eight points to a leaf
LEAF = 1 << LEAF_BITS
_CLUMP = 64  # so many points at one place of the curve, and their order comes from ranks of coordinates


class BoxTree(NamedTuple):
    """A complete binary tree: its root is node 1, below node h are 2 h and 2 h + 1; the last half are leaves."""

    period: tuple[float, ...]
    points: Any  # (n,) place of each point among the sorted ones; what follows is in this order
    positions: Any  # (d, n + PAD) coordinates
    rho: Any  # (n,) density
    order: Any  # (n,) index in the input
    group: Any  # (n,) its group; empty where there is one
    box: Any  # (nodes, 2 d + 2) lowest coordinates and group within each node, then the highest
    most: Any  # (nodes,) highest density
    last: Any  # (nodes,) the largest index of points that have it
    least: Any  # (nodes,) the smallest index; empty where no search needs it


class Members(NamedTuple):
    """Points that share their place, by sorted place; empty arrays where every point is for itself."""

    place: Any  # (places,) number of each sorted place
    begin: Any  # (places + 1,) where the members of a place begin, by its number
    rows: Any  # (n,) members, ascending by density, then by index
    least: Any  # (n,) the smallest index of a member and of those after it
    rho: Any  # (n,) density by index


def no_members(device: Host | Cuda, dtype: Any) -> Members:
    """Return what says that every point is for itself."""
    return Members(*(device.empty(0, kind) for kind in (np.int32, np.int32, np.int64, np.int32, dtype)))


@body
def is_higher(rho, order, other_rho, other_order):
    """Return whether the other point is higher: of points equally dense the later one in the input is."""
    return (rho < other_rho) | ((rho == other_rho) & (order < other_order))


@kernel
def sorted_group(s, order, group, first_group, numbers):
    """Write the number of sorted point s's group, counted from the first."""
    numbers[s] = np.int64(group[order[s]]) - first_group


# ------------------------------------------------------------------------------------------------------- how it is made
def make_tree(
    device: Host | Cuda,
    positions: Any,
    period: tuple[float, ...],
    n: int,
    columns: tuple[Any, Any, Any],
    extent: NDArray[np.float64],
    has_least: bool = False,
) -> BoxTree:
    """Return the tree of the first `n` points at `positions` (d, n or more), periodic ones within [0, period).

    `columns` are density, index and group (or empty) of the points; `extent` (2, d) is where they lie.
    With `has_least` searches may leave out points that are as near as one of a smaller index.
    """
    rho, order, group = columns
    points = along_curve(device, positions, n, group, extent)
    d, leaves = len(period), 1
    while leaves * LEAF < n:
        leaves *= 2
    tree = BoxTree(
        period,
        points,
        device.scratch((d, n + PAD), positions.dtype),
        device.scratch(n, rho.dtype),
        device.scratch(n, np.int32),
        device.scratch(n if len(group) else 0, np.int32),
        device.scratch((2 * leaves, 2 * d + 2), positions.dtype),
        device.scratch(2 * leaves, rho.dtype),
        device.scratch(2 * leaves, np.int32),
        device.empty(2 * leaves if has_least else 0, np.int32),
    )
    device.run(_plant, n, positions, rho, order, group, tree)
    device.run(_fill_leaf, leaves, tree)
    while leaves > 1:
        leaves //= 2
        device.run(_fill_node, leaves, leaves, tree)
    return tree


def along_curve(device: Host | Cuda, positions: Any, n: int, group: Any, extent: NDArray[np.float64]) -> Any:
    """Return the order of the first `n` points along Hilbert's curve, which never jumps, group after group."""
    axes = min(len(positions), extent.shape[1], MAX_AXES)
    groups = int(device.to_host(group[n - 1 : n])[0]) + 1 if len(group) else 1
    bits = min(30, max(1, (62 - (n - 1).bit_length() - (groups - 1).bit_length()) // axes))
    low, wide = extent[0], extent[1] - extent[0]
    scale = tuple(math.ldexp(1.0, bits) / w if w > 0 else 0.0 for w in wide[:axes])
    keys, turns = device.scratch(n, np.int64), device.from_host(_turns(axes))
    clumped = device.full(1, 0, np.int32)
    device.run(_curve_key, n, positions, group, tuple(map(float, low[:axes])), scale, bits, turns, keys)
    points = device.order_of(keys)
    device.run(_look_for_clumps, max(0, n - _CLUMP), keys, points, clumped)
    if device.to_host(clumped)[0]:  # few points are so far away that the others cannot be told apart
        ranks = device.scratch((axes, n), np.float64)
        for k in range(axes):
            coordinates = device.empty(n, np.float64)
            device.run(_copy_axis, n, positions, k, coordinates)
            device.run(_rank_axis, n, device.order_of(coordinates), k, ranks)
        scale = (math.ldexp(1.0, bits) / n,) * axes
        device.run(_curve_key, n, ranks, group, (0.0,) * axes, scale, bits, turns, keys)
        points = device.order_of(keys)
    return points


@functools.cache
def _turns(axes: int) -> NDArray[np.int64]:
    """Return how Hilbert's curve goes on in a cube cut in half along each axis, for each way to enter it and each part.

    A way is the corner and the direction; the part is the bits of its coordinates. The result, by way and part, is the
    way that the curve enters this part, times their number, plus the place of the part along the curve.
    """
    parts = 1 << axes
    turns = np.empty((parts, axes, parts), np.int64)

    def turned(word: int, by: int) -> int:
        return (word << by | word >> (axes - by)) & (parts - 1)

    for corner, along, place in np.ndindex(parts, axes, parts):
        up = along + 1
        part = turned(place ^ place >> 1, up % axes) ^ corner
        before = max(place - 1, 0) & ~1
        steps = (place if place & 1 else max(place - 1, 0)) + 1
        ahead = (along + ((steps & -steps).bit_length() - 1) * (place > 0) + 1) % axes
        entered = corner ^ turned(before ^ before >> 1, up % axes)
        turns[corner, along, part] = (entered * axes + ahead) * parts + place
    return turns.reshape(-1)


@kernel
def _curve_key(i, positions, group, low, scale, bits, turns, keys):
    """Write where sorted point i lies along the curve, which `turns` describes, below its group."""
    axes = len(scale)
    most, parts = (np.int64(1) << bits) - 1, np.int64(1) << axes
    mixed = np.int64(0)  # the bits of its coordinates in turn
    for k in range(axes):
        at = min(np.int64(times(np.float64(positions[k, i]) - low[k], scale[k])), most)
        for bit in range(bits):
            mixed |= ((at >> bit) & 1) << (bit * axes + k)
    key, way = np.int64(group[i]) if len(group) > 0 else np.int64(0), np.int64(0)
    for bit in range(bits):
        turn = turns[way | ((mixed >> ((bits - 1 - bit) * axes)) & (parts - 1))]
        key, way = (key << axes) | (turn & (parts - 1)), turn & -parts
    keys[i] = key


@kernel
def _look_for_clumps(i, keys, points, clumped):
    if keys[points[i]] == keys[points[i + _CLUMP]]:
        clumped[0] = 1


@kernel
def _copy_axis(i, positions, axis, coordinates):
    coordinates[i] = positions[axis, i]


@kernel
def _rank_axis(rank, points, axis, ranks):
    ranks[axis, points[rank]] = rank


@kernel
def _plant(slot, positions, rho, order, group, tree):
    """Copy what is needed of a point to its place along the curve."""
    s = tree.points[slot]
    for k in range(len(tree.period)):
        tree.positions[k, slot] = positions[k, s]
    tree.rho[slot] = rho[s]
    tree.order[slot] = order[s]
    if len(group) > 0:
        tree.group[slot] = group[s]


@kernel
def _fill_leaf(leaf, tree):
    """Write the box of a leaf; one without points is empty and holds nothing that is higher."""
    axes = len(tree.period)
    node = leaf + (len(tree.most) >> 1)
    begin, end = leaf * LEAF, min((leaf + 1) * LEAF, len(tree.points))
    most, last = like(tree.most[node], -np.inf), np.int32(-1)
    for k in range(axes + 1):
        tree.box[node, k] = np.inf
        tree.box[node, axes + 1 + k] = -np.inf
    for j in range(begin, end):
        for k in range(axes + 1):
            group = tree.group[j] if len(tree.group) > 0 else np.int32(0)
            x = tree.positions[k, j] if k < axes else like(tree.box[node, k], group)  # rounded, but ascending
            tree.box[node, k] = min(tree.box[node, k], x)
            tree.box[node, axes + 1 + k] = max(tree.box[node, axes + 1 + k], x)
        if is_higher(most, last, tree.rho[j], tree.order[j]):
            most, last = tree.rho[j], tree.order[j]
    tree.most[node] = most
    tree.last[node] = last
    if len(tree.least) > 0:
        least = np.int32(2**31 - 1)
        for j in range(begin, end):
            least = min(least, tree.order[j])
        tree.least[node] = least


@kernel
def _fill_node(i, first, tree):
    """Write the box around the two boxes below node ``first + i``."""
    node = first + i
    one, other = 2 * node, 2 * node + 1
    half = len(tree.period) + 1
    for k in range(half):
        tree.box[node, k] = min(tree.box[one, k], tree.box[other, k])
        tree.box[node, half + k] = max(tree.box[one, half + k], tree.box[other, half + k])
    best = other if is_higher(tree.most[one], tree.last[one], tree.most[other], tree.last[other]) else one
    tree.most[node] = tree.most[best]
    tree.last[node] = tree.last[best]
    if len(tree.least) > 0:
        tree.least[node] = min(tree.least[one], tree.least[other])


# ------------------------------------------------------------------------------------------------------- how it is used
@body
def box_gap2(own, node, tree):
    """Return the squared distance between a point and a node's box.

    It is made of the operations of `distance2`, none of which makes a larger number smaller than a smaller one: so no
    point within is nearer, rounding included.
    """
    axes = len(tree.period)
    zero = total = like(own[0], 0)
    for k in range(axes):
        below, above = tree.box[node, k] - own[k], own[k] - tree.box[node, axes + 1 + k]
        gap = select(below > above, below, above)
        if tree.period[k] > 0.0:
            below, above = abs(below), abs(above)
            image = like(own[0], tree.period[k]) - select(below > above, below, above)
            gap = select(image < gap, image, gap)
        gap = select(gap > zero, gap, zero)
        total = total + times(gap, gap)
    return total


@body
def smallest_higher(slot, rho, order, tree, members):
    """Return the smallest index of the points at `slot` that are higher; one is."""
    if len(members.begin) == 0:
        return np.int64(tree.order[slot])
    place = members.place[tree.points[slot]]
    low, high = np.int64(members.begin[place]), np.int64(members.begin[place + 1])
    while low < high:  # the first member that is higher; so are all behind it
        middle = (low + high) >> 1
        row = members.rows[middle]
        if is_higher(rho, order, members.rho[row], row):
            high = middle
        else:
            low = middle + 1
    return np.int64(members.least[low])


@body
def search_leaf(me, own, leaf, tree, members, state):
    """Keep the nearest of a leaf's higher points, of two that are equally near the one with the smaller index.

    `me` are density, index and group of the point at `own` that looks for them.
    """
    rho, order, group = me
    nearest2, index = state
    for j in range(leaf * LEAF, min((leaf + 1) * LEAF, len(tree.points))):
        together = len(tree.group) == 0 or tree.group[j] == group
        if together and is_higher(rho, order, tree.rho[j], tree.order[j]):
            d2 = distance2(own, tree.positions, j, tree.period)
            if d2 <= nearest2:
                higher = smallest_higher(j, rho, order, tree, members)
                if d2 < nearest2 or higher < index:
                    nearest2, index = d2, higher
    return nearest2, index


@body
def may_hold(me, own, node, tree, state):
    """Return whether a node may hold a higher point that is not farther."""
    if not is_higher(me[0], me[1], tree.most[node], tree.last[node]):
        return False
    if len(tree.group) > 0:
        half = len(tree.period) + 1
        group = like(own[0], me[2])
        if group < tree.box[node, half - 1] or group > tree.box[node, 2 * half - 1]:
            return False
    return box_gap2(own, node, tree) <= state[0]


@body
def search_below(me, own, root, tree, members, state):
    """Search what is below `root`, of two nodes the nearer one first; bits of `trail` tell which one that was."""
    leaves = len(tree.most) >> 1
    node, trail, descends = root, np.int64(0), True
    while True:
        if descends and may_hold(me, own, node, tree, state):
            if node < leaves:
                first = 0 if box_gap2(own, 2 * node, tree) <= box_gap2(own, 2 * node + 1, tree) else 1
                trail = (trail << 1) | first
                node = 2 * node + first
                continue
            state = search_leaf(me, own, node - leaves, tree, members, state)
        if node == root:
            return state
        descends = (node & 1) == (trail & 1)  # the other one is still to come
        if descends:
            node ^= 1
        else:
            node, trail = node >> 1, trail >> 1


@kernel
def search_tree(slot, tree, members, is_far, beyond2, delta, nearest):
    """Complete what the search close by has left open: points without a higher one there, or with several at one place.

    `is_far` says that the tree is searched farther than was searched before.
    """
    s = tree.points[slot]
    if nearest[s] < 0 and (is_far or delta[s] < np.inf):
        own = tree.positions[:, slot]
        me = tree.rho[slot], tree.order[slot], tree.group[slot] if len(tree.group) > 0 else np.int32(0)
        leaves = len(tree.most) >> 1
        node = (np.int64(slot) >> LEAF_BITS) + leaves
        state = (like(own[0], beyond2), np.int64(-1))
        state = search_leaf(me, own, node - leaves, tree, members, state)
        while node > 1:
            state = search_below(me, own, node ^ 1, tree, members, state)
            node >>= 1
        nearest2, index = state
        delta[s] = square_root(nearest2) if index >= 0 else like(delta[s], np.inf)
        nearest[s] = index
