"""Passes over the tree of a linkage, see `daskclust.core.hierarchy`: each body runs once and treats all rows.

Children have smaller ids than their parents: one pass over the rows goes up the tree, one backwards goes down. There is
no recursion, whatever the depth of the tree.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import kernel
from daskclust.core.device.unionfind import root_of
from daskclust.core.merge.labels import NOISE

SEVERAL = -2
"""In place of a label: points of more than one cluster."""

UNSEEN = -2
"""In place of the number of a cluster that is to have one."""


@kernel
def join_edges(_once, edges, parent, node, Z):
    """Write the two clusters that each edge joins, and the size of both; `parent` and `node` hold each point itself."""
    n = len(node)
    for row in range(n - 1):
        a, b = root_of(parent, edges[row, 0]), root_of(parent, edges[row, 1])
        low, high = np.int64(min(node[a], node[b])), np.int64(max(node[a], node[b]))
        size_low = Z[low - n, 3] if low >= n else 1.0
        size_high = Z[high - n, 3] if high >= n else 1.0
        if (size_low < size_high) == (node[a] == low):  # the smaller set is hooked under the larger
            a, b = b, a
        parent[b] = a
        node[a] = n + row
        Z[row, 0], Z[row, 1], Z[row, 3] = low, high, size_low + size_high


@kernel
def add_heights(_once, children, heights, total):
    """Pass sums of heights down; that of the root is 0."""
    n = len(heights) + 1
    for row in range(n - 2, -1, -1):
        below = total[n + row] + heights[row]
        total[children[row, 0]] = below
        total[children[row, 1]] = below


@kernel
def place_leaves(_once, children, sizes, place):
    """Pass the place of the leftmost leaf down; that of the root is 0."""
    n = len(children) + 1
    for row in range(n - 2, -1, -1):
        a, b = children[row, 0], children[row, 1]
        place[a] = place[n + row]
        place[b] = place[n + row] + sizes[a]


@kernel
def carry_highest(_once, children, highest):
    """Carry the height of the highest merge up; `highest` holds each merge's own."""
    n = len(children) + 1
    for row in range(n - 1):
        for side in range(2):
            child = children[row, side]
            if child >= n:
                highest[row] = max(highest[row], highest[child - n])


@kernel
def find_tops(_once, children, kept, top):
    """Pass the topmost node that only kept merges lead to down; `top` holds each node itself."""
    n = len(children) + 1
    for row in range(n - 2, -1, -1):
        if kept[row]:
            top[children[row, 0]] = top[n + row]
            top[children[row, 1]] = top[n + row]


@kernel
def number_tops(_once, top, number, labels):
    """Give tops that are `UNSEEN` numbers by their smallest point, and points the numbers of their tops."""
    found = 0
    for i in range(len(labels)):
        if number[top[i]] == UNSEEN:
            number[top[i]] = found
            found += 1
        labels[i] = number[top[i]]


@kernel
def fold(_once, children, is_undone, n_leaves, number):
    """Carry numbers of leaves up: undone merges have new ones with leaves on both sides, else the one there is."""
    n = len(children) + 1
    found = n_leaves
    for row in range(n - 1):
        if is_undone[row]:
            a, b = number[children[row, 0]], number[children[row, 1]]
            number[n + row] = max(a, b)
            if a >= 0 and b >= 0:
                number[n + row] = found
                found += 1


@kernel
def add_sizes(_once, children, n, sizes):
    """Carry sizes up; those of points are there."""
    for row in range(len(children)):
        sizes[n + row] = sizes[children[row, 0]] + sizes[children[row, 1]]


@kernel
def carry_labels(_once, children, n, found):
    """Carry labels up; those of points are there."""
    for row in range(len(children)):
        a, b = found[children[row, 0]], found[children[row, 1]]
        if a == b or b == NOISE:
            found[n + row] = a
        elif a == NOISE:
            found[n + row] = b
        else:
            found[n + row] = SEVERAL
