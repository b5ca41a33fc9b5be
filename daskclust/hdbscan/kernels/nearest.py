"""The nearest neighbours of each point, and its core distance: all points of a leaf go through the tree at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import bits_of, highest, lane_width, like, load, lowest_bit, select, store
from daskclust.hdbscan.kernels.point_tree import (
    END,
    LEAF,
    LEAF_OF,
    beside,
    box_distances2,
    distances2,
    gap2,
    lanes_of,
)

KEPT = 6  # neighbours of a point: with more, lists cost more than they save
MOST_LISTED = LEAF  # neighbours of a point
ROW = 2 * LEAF  # numbers of a list in `Scratch`: it is their second half


class Scratch(NamedTuple):
    """Memory of each piece of the work."""

    radius: Any  # (pieces, LEAF) float64: the squared distances that points of the leaf look to; -1 for no look
    d2: Any  # (pieces, LEAF) float64
    near: Any  # (pieces, LEAF * ROW) float64: a list for each point, ascending, -1 before it
    who: Any  # (pieces, LEAF * ROW) int32: the neighbours
    heap: Any  # (pieces, min_samples) float64; or empty


@kernel
def find_nearest(piece, tree, count, min_samples, scratch, nearest, core, reach):
    """Write each point's neighbours, ascending, the squared distance of the last, and the core distance.

    `count` is how many rows each point stands for; empty where it is one. Core distances are written for
    `min_samples` above 1.
    """
    leaves, pieces, kept = len(tree.leaf_node), len(scratch.radius), nearest.shape[1]
    listed = max(kept, min_samples - 1)
    radius, near, who = scratch.radius[piece], scratch.near[piece], scratch.who[piece]
    for leaf in range(leaves * piece // pieces, leaves * (piece + 1) // pieces):
        first, own = np.int64(tree.begin[leaf]), np.int64(tree.leaf_node[leaf])
        number = np.int64(tree.begin[leaf + 1]) - first
        for k in range(LEAF * ROW):
            near[k], who[k] = np.inf if k % ROW >= LEAF else -1.0, -1
        for i in range(LEAF):
            radius[i] = np.inf if i < number else -1.0
        for i in range(number):
            take_near(i, first + i, leaf, lanes_of(leaf, tree) & ~(np.int64(1) << i), listed, tree, piece, scratch)
        most, node = highest(load(radius, 0, lane_width())), own
        while node > 0:
            t = beside(node, tree)
            end, node = np.int64(tree.node[t, END]), np.int64(tree.above[node])
            while t < end:
                if gap2(t, own, tree) > most:
                    t = np.int64(tree.node[t, END])
                    continue
                other = np.int64(tree.node[t, LEAF_OF])
                if other >= 0:
                    asks = bits_of(box_distances2(first, t, tree) <= load(radius, 0, lane_width()))
                    while asks != 0:
                        i = lowest_bit(asks)
                        asks &= asks - 1
                        take_near(i, first + i, other, lanes_of(other, tree), listed, tree, piece, scratch)
                    most = highest(load(radius, 0, lane_width()))
                t += 1
        for i in range(number):
            at = i * ROW + LEAF
            for k in range(kept):
                nearest[first + i, k] = who[at + k]
            reach[first + i] = near[at + kept - 1]
            if min_samples > 1:
                core[first + i] = core_of(first + i, at, min_samples, count, near, who)


@body
def take_near(i, s, leaf, among, listed, tree, piece, scratch):
    """Put points of a leaf into the list of point i, which is sorted point s."""
    radius, first = scratch.radius[piece], np.int64(tree.begin[leaf])
    found = distances2(s, first, tree)
    bits = bits_of(found < radius[i]) & among
    if bits != 0:
        d2, at = scratch.d2[piece], i * ROW + LEAF
        store(d2, 0, lane_width(), found)
        while bits != 0:
            k = lowest_bit(bits)
            bits &= bits - 1
            if d2[k] < radius[i]:
                insert(scratch.near[piece], scratch.who[piece], at, d2[k], np.int32(first + k))
                radius[i] = scratch.near[piece, at + listed - 1]


@body
def insert(near, who, at, d2, slot):
    """Put a neighbour into an ascending list, behind those as near; the last falls out."""
    lanes = lane_width()
    here, moved = load(near, at, lanes), load(near, at - 1, lanes)
    stays, begins = here <= d2, moved <= d2
    ids = select(
        stays, load(who, at, lanes), select(begins, like(load(who, at, lanes), slot), load(who, at - 1, lanes))
    )
    store(near, at, lanes, select(stays, here, select(begins, like(here, d2), moved)))
    store(who, at, lanes, ids)


@body
def rows_of(s, count):
    """Return how many rows a point stands for."""
    return np.int64(count[s]) if len(count) > 0 else np.int64(1)


@body
def core_of(s, at, min_samples, count, near, who):
    """Return the squared distance within which `min_samples` rows lie, itself included."""
    core, rows, k = 0.0, rows_of(s, count), at
    while rows < min_samples:
        core = near[k]
        rows += rows_of(who[k], count)
        k += 1
    return core


# ------------------------------------------------------------------------------------------------- for many min_samples
@kernel
def find_core(piece, tree, count, min_samples, scratch, core):
    """Write core distances where the lists of neighbours are too short for them, one point after the other."""
    leaves, pieces, heap = len(tree.leaf_node), len(scratch.radius), scratch.heap[piece]
    for leaf in range(leaves * piece // pieces, leaves * (piece + 1) // pieces):
        own = np.int64(tree.leaf_node[leaf])
        for s in range(tree.begin[leaf], tree.begin[leaf + 1]):
            for k in range(min_samples):
                heap[k] = np.inf
            push_leaf(s, leaf, tree, count, scratch.d2[piece], heap)
            node = own
            while node > 0:
                t = beside(node, tree)
                end, node = np.int64(tree.node[t, END]), np.int64(tree.above[node])
                while t < end:
                    if gap2(t, own, tree) >= heap[0]:
                        t = np.int64(tree.node[t, END])
                        continue
                    if tree.node[t, LEAF_OF] >= 0:
                        push_leaf(s, np.int64(tree.node[t, LEAF_OF]), tree, count, scratch.d2[piece], heap)
                    t += 1
            core[s] = heap[0]


@body
def push_leaf(s, leaf, tree, count, d2, heap):
    """Put the distances of point s from the points of a leaf into a heap whose first is the largest."""
    first = np.int64(tree.begin[leaf])
    found = distances2(s, first, tree)
    bits = bits_of(found < heap[0]) & lanes_of(leaf, tree)
    store(d2, 0, lane_width(), found)
    while bits != 0:
        k = lowest_bit(bits)
        bits &= bits - 1
        rows = rows_of(first + k, count)
        while rows > 0 and d2[k] < heap[0]:
            replace_largest(d2[k], heap)
            rows -= 1


@body
def replace_largest(value, heap):
    """Put a smaller value in the place of a heap's largest."""
    n, at, child = len(heap), 0, 1
    while child < n:
        if child + 1 < n and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= value:
            break
        heap[at] = heap[child]
        at, child = child, 2 * child + 1
    heap[at] = value
