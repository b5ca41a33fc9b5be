"""Clusters of DBSCAN: the first point and number of each set, border points, and labels in the order of the input."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import atomic_add, atomic_min, count_bits, lowest_bit
from daskclust.core.device.unionfind import find
from daskclust.dbscan.kernels.blocks import ONE, fold_near
from daskclust.dbscan.kernels.cells import cell_at, some_cell, touches
from daskclust.dbscan.kernels.core_points import count_points
from daskclust.dbscan.kernels.masks import MOST, beside_block, core_of, ones

NONE = np.int32(2**31 - 1)  # no cluster


@kernel
def count_cells(cell, start, order, stop, in_order, owned, parent, first, size):
    """Find the first core point in the order of the input, and the number of core points, of each cell, and its root.

    Only own points are counted: `owned` tells them by their place in the input; it is empty where all are. `in_order`
    says that the core points of a cell stand as in the input.
    """
    begin, end = start[cell], stop[cell]
    least, own = NONE, np.int32(end - begin)
    for i in range(begin, min(begin + 1, end) if in_order else end):
        least = min(least, order[i])
    if len(owned) > 0:
        own = np.int32(0)
        for i in range(begin, end):
            own += np.int32(1) if owned[order[i]] else np.int32(0)
    first[cell], size[cell] = least, own
    parent[cell] = find(parent, cell)


@kernel
def count_sets(run, length, parent, first, size):
    """Add what `count_cells` found to the root of each set, of a run of `length` cells: many side by side have one."""
    last, least, own = np.int32(-1), NONE, np.int32(0)
    for cell in range(run * length, min((run + 1) * length, len(parent))):
        root = parent[cell]
        if root != cell:
            if root != last:
                add_to_set(last, least, own, first, size)
                last, least, own = root, NONE, np.int32(0)
            least = min(least, first[cell])
            own += size[cell]
    add_to_set(last, least, own, first, size)


@body
def add_to_set(root, least, own, first, size):
    """Add points to those of a set; -1 is none."""
    if root >= 0 and least < first[root]:  # a stale value is only too large
        atomic_min(first, root, least)
    if root >= 0 and own > 0:
        atomic_add(size, root, own)


class FirstPoints(NamedTuple):
    """Which points of the input are the first of a cluster, 64 to a word: few bytes, so that ranks are at hand."""

    bits: Any  # (n / 64,) uint64
    up_to: Any  # (n / 64,) int32: how many there are in each word, then up to its end


@kernel
def mark_first(cell, parent, first, size, least, points):
    """Mark the first point of every cluster that has at least `least` points; no two clusters have the same."""
    if (size[cell] >= least) & (parent[cell] == cell):  # one branch, seldom taken
        word = first[cell] >> 6
        atomic_add(points.bits, word, ONE << np.uint64(first[cell] & 63))
        atomic_add(points.up_to, word, np.int32(1))


@kernel
def number_cells(cell, parent, first, size, least, points, number):
    """Write the cluster that the core points of a cell are in, `NONE` if it has fewer than `least`."""
    root = parent[cell]
    number[cell] = NONE
    if size[root] >= least:
        word = first[root] >> 6
        number[cell] = points.up_to[word] - np.int32(count_bits(points.bits[word] >> np.uint64(first[root] & 63)))


@body
def lower_labels(state, a, b, code, wraps, context):
    """Lower the cluster number of border points of block a to those of core points of block b within eps."""
    blocks, core, limits, is_whole, number, above, label = context
    if core.held[b] == 0:
        return state
    if is_whole[b] and not wraps:
        lower_to_block(a, b, number[some_cell(b, blocks, core)], context)
        return state
    passed = (blocks, core.stop, limits, core.held, number, above, label)
    mask = blocks.occupied[a]
    cell = blocks.first_cell[a]
    while mask != 0:
        bit = lowest_bit(mask)
        mask &= mask - 1
        near = blocks.reach[bit, code] & core.held[b]
        if near != 0:
            for i in range(np.int64(core.stop[cell]), np.int64(blocks.start[cell + 1])):
                label[i] = lower_label(label[i], i, near, b, wraps, passed)
        cell += 1
    return state


@body
def lower_to_block(a, b, found, context):
    """Lower the cluster number of border points of block a to `found`, if a core point of block b is within eps."""
    blocks, core, limits, _, _, above, label = context
    begin, end = np.uint64(blocks.first[a]), np.uint64(blocks.first[a + 1])
    j, last = np.uint64(blocks.first[b]), np.uint64(blocks.first[b + 1])
    while begin < end:
        n = min(end - begin, MOST)
        near = ~core_of(begin, n, core) & ones(n)
        if a != b and near != 0:
            near = beside_block(begin, n, near, b, blocks, limits)
        while near != 0:
            i = begin + lowest_bit(near)
            near &= near - ONE
            least = above[i] if len(above) > 0 else np.int32(-1)
            if least < found < label[i]:
                one = np.int32(1)
                is_near = count_points(i, j, last, np.int32(0), one, core, blocks, limits) >= one
                label[i] = found if is_near else label[i]
        begin += n


@body
def lower_label(label, i, near, b, wraps, context):
    """Return the smallest of `label` and the numbers of those cells of block b with a core point within eps of i.

    Only numbers beyond ``above[i]`` count, unless that is empty.
    """
    blocks, stop, limits, _, number, above, _ = context
    least = above[i] if len(above) > 0 else np.int32(-1)
    while near != 0:
        c = cell_at(b, lowest_bit(near), blocks)
        near &= near - 1
        if least < number[c] < label and touches(i, c, wraps, blocks, stop, limits):
            label = number[c]
    return label


fold_labels = fold_near.bind(meet=lower_labels)


@kernel
def label_border(a, blocks, core, limits, is_whole, number, above, label):
    """Write the smallest cluster number of core points near each sorted border point of a block, above ``above[i]``.

    A block where no number is above those of any point is left out.
    """
    is_open = False
    for cell in range(blocks.first_cell[a], blocks.first_cell[a + 1]):
        for i in range(core.stop[cell], blocks.start[cell + 1]):
            label[i] = NONE
            is_open = is_open or len(above) == 0 or above[i] < NONE
    if is_open:
        fold_labels(0, a, core.bitmap, blocks, (blocks, core, limits, is_whole, number, above, label))


@kernel
def label_core(cell, start, stop, number, label):
    """Write the cluster number of the core points of a cell."""
    for i in range(start[cell], stop[cell]):
        label[i] = number[cell]


@kernel
def write_found(cell, start, slot, stop, number, label, found):
    """Write the label of each point of a cell, see `as_found`, to its place in the buckets."""
    for i in range(start[cell], start[cell + 1]):
        found[slot[i]] = as_found(i, i < stop[cell], number[cell], label)


@body
def as_found(i, is_core, cluster, label):
    """Return the label of sorted point i in few bytes: -1 for noise, -2 - k for a border point of cluster k.

    `cluster` is that of the core points of its cell; `label` has those of the others, if there are any.
    """
    if not is_core:
        cluster = label[i] if len(label) > 0 else NONE
    if cluster == NONE:
        return np.int32(-1)
    return np.int32(cluster) if is_core else np.int32(-2 - cluster)


@body
def write_label(i, found, labels, is_core):
    """Write the label of a point, see `as_found`."""
    labels[i] = found if found >= -1 else -2 - found
    is_core[i] = found >= 0


@kernel
def mark_shared(i, positions, order, owned, low, high, reach, is_shared):
    """Mark the own points that other chunks may see in their halo, and all halo points."""
    near = not owned[order[i]]
    for k in range(len(low)):
        x = np.float64(positions[k, i])
        near = near or x - low[k] <= reach or high[k] - x <= reach
    is_shared[i] = near


@kernel
def lower_to_set(i, others, number, labels):
    """Lower the label of a point, ``others[i, 0]``, to the number of a further set, ``others[i, 1]``."""
    atomic_min(labels, others[i, 0], number[others[i, 1]])
