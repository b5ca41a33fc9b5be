"""The first edges, in the order of edges, from points that ask to the points of a tree of boxes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import times


class SearchTree(NamedTuple):
    """A complete binary tree of points: node k has nodes 2 k + 1 and 2 k + 2, or is one of the last, the leaves."""

    positions: Any  # (n, d) float64 in the order of the tree, periodic ones within [0, period)
    core: Any  # (n,) float64 squared core distances
    ids: Any  # (n,) int64
    period: Any  # (d,) float64, 0 where an axis is open
    begin: Any  # (nodes,) int64: where the points of a node begin,
    end: Any  # and end
    low: Any  # (nodes, d) float64: the lowest coordinates of a node,
    high: Any  # and the highest


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
    for axis in range(len(period)):
        step = abs(x[q, axis] - positions[j, axis])
        if period[axis] > 0.0:
            step = min(step, period[axis] - step)
        total += times(step, step)
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
        gap = max(below, above, 0.0)
        if period[axis] > 0.0:
            farthest = max(highs[k, axis] - low[q, axis], high[q, axis] - lows[k, axis])
            gap = min(gap, max(period[axis] - farthest, 0.0))
        total += times(gap, gap)
    return total


@body
def gap_of(x, q, tree, node):
    """Return the same of a point and a node."""
    return gap2(x, x, q, tree.low, tree.high, node, tree.period)


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
def look_at(x, core, ids, q, node, tree, alpha2, group, edges):
    """Put edges from point q to those of a leaf among the first of a group."""
    last = edges.weight.shape[1] - 1
    for j in range(tree.begin[node], tree.end[node]):
        length = distance2(x, q, tree.positions, j, tree.period)
        weight = max(length / alpha2, core[q], tree.core[j])
        low, high = min(ids[q], tree.ids[j]), max(ids[q], tree.ids[j])
        if comes_first(weight, length, low, high, edges, group, last):
            put_in(weight, length, low, high, edges, group)


@body
def nearest_leaf(x, q, tree):
    """Return a leaf near point q."""
    node = np.int64(0)
    while 2 * node + 1 < len(tree.begin):
        node = 2 * node + 1
        if gap_of(x, q, tree, node + 1) < gap_of(x, q, tree, node):
            node += 1
    return node


@kernel
def find_first(group, begins, x, core, ids, tree, alpha2, edges):
    """Find the first edges from the points of a group, which begin at begins[group], to those of the tree.

    `edges`, of arrays (groups, k), holds edges that are known, ascending, and is overwritten.
    """
    last = edges.weight.shape[1] - 1
    for q in range(begins[group], begins[group + 1]):
        near, node = nearest_leaf(x, q, tree), np.int64(0)
        look_at(x, core, ids, q, near, tree, alpha2, group, edges)
        while node >= 0:
            gap, most = gap_of(x, q, tree, node), edges.weight[group, last]
            least = max(gap / alpha2, core[q])
            if node != near and (least < most or (least == most and gap <= edges.length[group, last])):
                if 2 * node + 1 < len(tree.begin):
                    node = 2 * node + 1
                    continue
                look_at(x, core, ids, q, node, tree, alpha2, group, edges)
            while node > 0 and node & 1 == 0:
                node = (node - 1) >> 1
            node = node + 1 if node > 0 else np.int64(-1)


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
