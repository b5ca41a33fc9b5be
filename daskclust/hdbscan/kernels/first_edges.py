"""The first edges, in the order of edges, from points that ask to the points of a tree of boxes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.hdbscan.kernels.point_tree import END, LEAF_OF, RIGHT, add_gap, add_step


class Edges(NamedTuple):
    """Edges by what orders them."""

    weight: Any  # float64, squared
    length: Any  # float64, squared
    low: Any  # int64, the smaller id
    high: Any  # int64


@body
def distance2(x, q, positions, j, period):
    """Return the squared distance of points x[q] and positions[j], every operation rounded."""
    total = 0.0
    for k in range(len(period)):
        total = add_step(total, x[q, k] - positions[j, k], period[k])
    return total


@kernel
def write_edge(e, ends, x, ids, period, length, low, high):
    """Write the squared length of an edge between two points, and their ids."""
    i, j = ends[e, 0], ends[e, 1]
    length[e], low[e], high[e] = distance2(x, i, x, j, period), ids[i], ids[j]


@body
def gap2(low, high, q, lows, highs, k, period):
    """Return a squared distance that no points of boxes q and k are nearer than, however it is rounded."""
    total = 0.0
    for axis in range(len(period)):
        below, above = lows[k, axis] - high[q, axis], low[q, axis] - highs[k, axis]
        total = add_gap(total, below, above, period[axis])
    return total


@body
def point_gap2(x, q, node, tree):
    """Return the same of a point and a node."""
    axes, total = len(tree.period), 0.0
    for k in range(axes):
        total = add_gap(total, tree.box[node, k] - x[q, k], x[q, k] - tree.box[node, axes + k], tree.period[k])
    return total


@body
def comes_first(weight, length, low, high, edges, group, k):
    """Return whether an edge comes before the k-th of a group."""
    if weight != edges.weight[group, k]:
        return weight < edges.weight[group, k]
    if length != edges.length[group, k]:
        return length < edges.length[group, k]
    if low != edges.low[group, k]:
        return low < edges.low[group, k]
    return high < edges.high[group, k]


@body
def put_in(weight, length, low, high, edges, group):
    """Put an edge among those of a group, ascending, in place of the last."""
    k = edges.weight.shape[1] - 1
    while k > 0 and comes_first(weight, length, low, high, edges, group, k - 1):
        edges.weight[group, k], edges.length[group, k] = edges.weight[group, k - 1], edges.length[group, k - 1]
        edges.low[group, k], edges.high[group, k] = edges.low[group, k - 1], edges.high[group, k - 1]
        k -= 1
    edges.weight[group, k], edges.length[group, k] = weight, length
    edges.low[group, k], edges.high[group, k] = low, high


@body
def look_at(asking, q, leaf, among, tree, alpha2, group, edges):
    """Put edges from a point that asks to those of a leaf among the first of a group."""
    last = edges.weight.shape[1] - 1
    for j in range(tree.begin[leaf], tree.begin[leaf + 1]):
        length = distance2(asking.x, q, among.x, j, tree.period)
        weight = max(length / alpha2, asking.core[q], among.core[j])
        low, high = min(asking.ids[q], among.ids[j]), max(asking.ids[q], among.ids[j])
        if comes_first(weight, length, low, high, edges, group, last):
            put_in(weight, length, low, high, edges, group)


@body
def nearest_leaf(x, q, tree):
    """Return the node of a leaf near point q."""
    node = np.int64(0)
    while tree.node[node, LEAF_OF] < 0:
        right = np.int64(tree.node[node, RIGHT])
        node = right if point_gap2(x, q, right, tree) < point_gap2(x, q, node + 1, tree) else node + 1
    return node


@kernel
def find_first(group, begins, asking, among, tree, alpha2, edges):
    """Find the first edges from the points of a group, which begin at begins[group], to those of a tree, in its order.

    `edges`, of arrays (groups, k), holds edges that are known, ascending, and is overwritten.
    """
    last = edges.weight.shape[1] - 1
    for q in range(begins[group], begins[group + 1]):
        near, node = nearest_leaf(asking.x, q, tree), np.int64(0)
        look_at(asking, q, tree.node[near, LEAF_OF], among, tree, alpha2, group, edges)
        while node < len(tree.node):
            gap, most = point_gap2(asking.x, q, node, tree), edges.weight[group, last]
            least = max(gap / alpha2, asking.core[q])
            if node == near or least > most or (least == most and gap > edges.length[group, last]):
                node = np.int64(tree.node[node, END])
            else:
                if tree.node[node, LEAF_OF] >= 0:
                    look_at(asking, q, tree.node[node, LEAF_OF], among, tree, alpha2, group, edges)
                node += 1


@kernel
def mark_near(box, begins, x, bound, way, its, others, between, period, alpha2, is_near):
    """Mark points of a box that are within the bound of another one, of a larger component, or both of small ones.

    `its` and `others` are `OpenBoxes`, `bound` and `way` those of each point.
    """
    large = len(between)
    for k in range(len(others.way)):
        if its.component[box] <= others.component[k] and its.component[box] < large:
            continue
        known = max(others.bound[k], between[its.home[box], others.home[k]])
        most = max(known, its.bound[box])
        if max(its.way[box], others.way[k]) > most:
            continue
        if gap2(its.low, its.high, box, others.low, others.high, k, period) / alpha2 > most:
            continue
        for p in range(begins[box], begins[box + 1]):
            most = max(known, bound[p])
            if not is_near[p] and max(way[p], others.way[k]) <= most:
                is_near[p] = gap2(x, x, p, others.low, others.high, k, period) / alpha2 <= most
