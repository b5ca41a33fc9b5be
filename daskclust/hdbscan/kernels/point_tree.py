"""A tree of boxes over sorted points, whose leaves are vectors: up to 16 points that stand side by side.

Squared distances are float64 in one order of operations, and rounding is monotone: as computed, no point of a box is
nearer than the box. So no bound needs a tolerance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import lane_width, like, load, select, times
from daskclust.core.space.grid import within_period

LEAF = 16  # points of a leaf, at most: as many as lanes
KEY_BITS = 48  # of all axes together
END, LEAF_OF, COMPONENT, RIGHT = 0, 1, 2, 3  # what the columns of `node` hold
DEPTH = 128  # of the tree, at most


class LeafTree(NamedTuple):
    """Points in the order of the tree, and its nodes in preorder: the left child comes next.

    `period` is a tuple for up to three axes, so that their loops are unrolled, and an array for more.
    """

    period: Any  # (d,) 0 where an axis is open
    positions: Any  # (d (n + PAD),) float64, axis after axis, periodic ones within [0, period)
    order: Any  # (n + PAD,) int32: where the point stands in the input
    begin: Any  # (leaves + 1,) int32: where each leaf's points begin
    leaf_node: Any  # (leaves,) int32
    node: Any  # (nodes, 4) int32: node behind the subtree; leaf, or -1; component, or -1 for several; right child
    above: Any  # (nodes,) int32: parent
    box: Any  # (nodes, 2 d) float64: lowest, then highest coordinates


# ---------------------------------------------------------------------------------------------------------------- build
@body
def spread(x, axes):
    """Return the lowest 24 bits of x, or 16 of three axes, with ``axes - 1`` zeros between them."""
    x = np.uint64(x)
    if axes == 3:
        x = (x | x << np.uint64(16)) & np.uint64(0x0000FF0000FF)
        x = (x | x << np.uint64(8)) & np.uint64(0x00F00F00F00F)
        x = (x | x << np.uint64(4)) & np.uint64(0x0C30C30C30C3)
        x = (x | x << np.uint64(2)) & np.uint64(0x249249249249)
    elif axes == 2:
        x = (x | x << np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
        x = (x | x << np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
        x = (x | x << np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
        x = (x | x << np.uint64(2)) & np.uint64(0x3333333333333333)
        x = (x | x << np.uint64(1)) & np.uint64(0x5555555555555555)
    return x


@kernel
def write_keys(i, X, period, low, scale, keys):
    """Write the Morton number of a point's cell."""
    axes, key = len(period), np.uint64(0)
    last = (np.int64(1) << np.int64(KEY_BITS // axes)) - 1
    for k in range(axes):
        x = np.float64(within_period(X[i, k], period[k])) - low[k]
        key |= spread(min(np.int64(x * scale), last), axes) << np.uint64(k)
    keys[i] = np.int64(key)


@kernel
def build(_once, keys, stack, begin, leaf_node, node, above, counts):
    """Cut sorted points where the highest bit of their keys changes, and small sets in the middle.

    `counts` becomes the numbers of leaves and of nodes.
    """
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, len(keys), 0
    depth, leaves, t = 1, 0, 0
    while depth > 0:
        depth -= 1
        first, last, parent = stack[depth, 0], stack[depth, 1], stack[depth, 2] >> 1
        above[t] = parent
        if stack[depth, 2] & 1 == 1:
            node[parent, RIGHT] = t
        node[t, END], node[t, LEAF_OF], node[t, COMPONENT], node[t, RIGHT] = t + 1, -1, -1, -1
        if last - first <= LEAF:
            begin[leaves], leaf_node[leaves], node[t, LEAF_OF] = first, t, leaves
            leaves += 1
        else:
            middle = cut_of(first, last, keys)
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = middle, last, 2 * t + 1
            stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = first, middle, 2 * t
            depth += 2
        t += 1
    begin[leaves] = len(keys)
    for s in range(t - 1, -1, -1):
        if node[s, LEAF_OF] < 0:
            node[s, END] = node[node[s, RIGHT], END]
    counts[0], counts[1] = leaves, t


@body
def cut_of(first, last, keys):
    """Return where points `first` to `last` - 1 are cut in two."""
    differing = keys[first] ^ keys[last - 1]
    if last - first <= 2 * LEAF or differing == 0:
        return (first + last) >> 1
    bit = np.int64(1)
    while differing > 1:
        differing >>= 1
        bit <<= 1
    low, high = first, last - 1  # the bit of the last key is set
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] & bit == 0:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def write_leaf_box(leaf, tree):
    """Write the box of a leaf's points."""
    axes, width, t = len(tree.period), np.int64(len(tree.order)), tree.leaf_node[leaf]
    for k in range(axes):
        low, high = np.inf, -np.inf
        for s in range(tree.begin[leaf], tree.begin[leaf + 1]):
            x = tree.positions[np.uint64(k * width + s)]
            low, high = min(low, x), max(high, x)
        tree.box[t, k], tree.box[t, axes + k] = low, high


@kernel
def write_boxes(_once, tree):
    """Write the boxes of all other nodes."""
    axes = len(tree.period)
    for t in range(len(tree.node) - 1, -1, -1):
        if tree.node[t, LEAF_OF] < 0:
            right = tree.node[t, RIGHT]
            for k in range(axes):
                tree.box[t, k] = min(tree.box[t + 1, k], tree.box[right, k])
                tree.box[t, axes + k] = max(tree.box[t + 1, axes + k], tree.box[right, axes + k])


# ------------------------------------------------------------------------------------------------------------ distances
@body
def add_step(total, step, cycle):
    """Return squared distances with another axis, around its period if it has one."""
    if cycle > 0:
        step = abs(step)
        step = select(cycle - step < step, cycle - step, step)
    return total + times(step, step)


@body
def add_gap(total, below, above, cycle):
    """Return squared gaps with another axis, along which one thing is `below` the other, or `above`, if positive."""
    gap = select(below > above, below, above)
    gap = select(gap > 0, gap, like(gap, 0))
    if cycle > 0:
        around = cycle + select(below < above, below, above)
        gap = select(around < gap, around, gap)
    return total + times(gap, gap)


@body
def distance2(s, t, tree):
    """Return the squared distance of two points."""
    total, width = 0.0, np.int64(len(tree.order))
    for k in range(len(tree.period)):
        step = tree.positions[np.uint64(k * width + t)] - tree.positions[np.uint64(k * width + s)]
        total = add_step(total, step, tree.period[k])
    return total


@body
def distances2(s, first, tree):
    """Return the squared distances of point s from as many points as lanes, from `first` on."""
    total, width = like(load(tree.positions, first, lane_width()), 0), np.int64(len(tree.order))
    for k in range(len(tree.period)):
        there = load(tree.positions, k * width + first, lane_width())
        total = add_step(total, there - tree.positions[np.uint64(k * width + s)], tree.period[k])
    return total


@body
def box_distances2(first, t, tree):
    """Return the squared distances of as many points as lanes, from `first` on, from the box of node t."""
    total, width = like(load(tree.positions, first, lane_width()), 0), np.int64(len(tree.order))
    axes = len(tree.period)
    for k in range(axes):
        x = load(tree.positions, k * width + first, lane_width())
        total = add_gap(total, tree.box[t, k] - x, x - tree.box[t, axes + k], tree.period[k])
    return total


@body
def gap2(s, t, tree):
    """Return the squared distance of the boxes of two nodes."""
    axes, total = len(tree.period), 0.0
    for k in range(axes):
        below, above = tree.box[t, k] - tree.box[s, axes + k], tree.box[s, k] - tree.box[t, axes + k]
        total = add_gap(total, below, above, tree.period[k])
    return total


@body
def lanes_of(leaf, tree):
    """Return a bit for each point of a leaf."""
    return (np.int64(1) << np.int64(tree.begin[leaf + 1] - tree.begin[leaf])) - 1


@body
def beside(node, tree):
    """Return the other child of a node's parent."""
    parent = np.int64(tree.above[node])
    return np.int64(tree.node[parent, RIGHT]) if parent + 1 == node else parent + 1
