"""DBSCAN's steps on the CPU for more than three dimensions: a vector of points goes through the nodes of a tree.

Points stand in the order of the tree, so those of a vector are near each other. Squared distances are taken in float32
first, of coordinates in units of eps: two numbers bound the rounding, and float64 decides between them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import add_square, bits_of, lane_width, like, load, lowest_bit, select, times
from daskclust.core.device.unionfind import find, unite
from daskclust.dbscan.kernels.clusters import NONE
from daskclust.dbscan.kernels.core_points import add_weight
from daskclust.dbscan.kernels.distances import apart


class PointTree(NamedTuple):
    """A complete binary tree of n points: node k has nodes 2 k + 1 and 2 k + 2, or is one of the last, the leaves."""

    order: Any  # (n + PAD,) int32: where the point stands in the input
    positions: Any  # (d (n + PAD),) coordinates in the order of the tree, periodic ones within [0, period)
    period: Any  # (d,) 0 where an axis is open
    eps2: Any  # float64
    begin: Any  # (nodes,) int64: where the points of a node begin,
    end: Any  # and end
    scaled: Any  # float32, as `positions`, in units of eps
    scaled_period: Any  # float32
    boxes: Any  # (2, nodes, d) float32: the lowest and the highest scaled coordinates of the points of a node
    sure: Any  # float32: up to this squared distance of scaled coordinates points are surely within eps,
    possible: Any  # float32: beyond this one surely not


@body
def add_step(total, step, cycle):
    """Return the squared distances with another axis, around its period if it has one."""
    if cycle > 0:
        step = abs(step)
        step = select(cycle - step < step, cycle - step, step)
    return add_square(total, step)


@body
def bits_within(i, j, positions, period, width, sure, possible):
    """Return two words with bits for which of a vector of points four, from j on, are within two squared distances."""
    a = b = c = d = like(possible, 0)
    for k in range(len(period)):
        at, cycle = k * width + j, period[k]
        x = load(positions, k * width + i, lane_width())
        a = add_step(a, x - positions[np.uint64(at)], cycle)
        b = add_step(b, x - positions[np.uint64(at + 1)], cycle)
        c = add_step(c, x - positions[np.uint64(at + 2)], cycle)
        d = add_step(d, x - positions[np.uint64(at + 3)], cycle)
        if k & 7 == 7 and four_bits(a, b, c, d, possible) == 0:
            break
    return four_bits(a, b, c, d, sure), four_bits(a, b, c, d, possible)


@body
def four_bits(a, b, c, d, limit):
    """Return a word with bits for which lanes of four vectors are within a limit."""
    w = lane_width()
    return bits_of(a <= limit) | bits_of(b <= limit) << w | bits_of(c <= limit) << 2 * w | bits_of(d <= limit) << 3 * w


@body
def add_exactly(total, step):
    """Return `total` and the square of `step`, each rounded."""
    return total + times(step, step)


exactly_within = bits_within.bind(add_square=add_exactly)


@body
def bits_near(i, j, asks, tree):
    """Return a word with bits for which points of a vector, of those that ask, four from j on are within eps of."""
    width = np.int64(len(tree.order))
    sure, found = bits_within(i, j, tree.scaled, tree.scaled_period, width, like(asks, tree.sure), asks)
    if found & ~sure != 0:
        limit = like(load(tree.positions, i, lane_width()), tree.eps2)
        found &= exactly_within(i, j, tree.positions, tree.period, width, limit, limit)[0]
    return found


@body
def box_distances2(i, node, tree):
    """Return the squared distances of a vector of points from the box of a node."""
    total = like(load(tree.scaled, i, lane_width()), 0)
    for k in range(len(tree.period)):
        x = load(tree.scaled, k * np.int64(len(tree.order)) + i, lane_width())
        below, above = tree.boxes[0, node, k] - x, x - tree.boxes[1, node, k]
        gap, around = apart(below, above), tree.scaled_period[k] + select(below < above, below, above)
        if tree.scaled_period[k] > 0:
            gap = select(around < gap, around, gap)
        total = add_square(total, gap)
    return total


@kernel
def visit(vector, n, tree, forward, context):
    """Let a vector of points `meet` those that are within eps and of interest; `forward`: those from the vector on.

    `survey` tells which of the vector ask for others, and what `interests` then: here all that lack weight, and all.
    """
    i, node = np.int64(vector) * lane_width(), np.int64(0)
    every = (np.int64(1) << lane_width()) - 1
    after, none = i if forward else np.int64(0), like(load(tree.scaled, i, lane_width()), -1)
    asks, mark = survey(i, n, context)
    while node >= 0:
        limit = select(asks, like(none, tree.possible), none)
        if tree.end[node] > after and bits_of(box_distances2(i, node, tree) <= limit) != 0:
            if 2 * node + 1 < len(tree.begin):
                node = 2 * node + 1
                continue
            for j in range(max(tree.begin[node], after), tree.end[node], 4):
                bits = np.int64(0)
                for k in range(j, min(j + 4, tree.end[node])):
                    if interests(k, mark, context):
                        bits |= every << (k - j) * lane_width()
                if bits != 0:
                    bits &= bits_near(i, j, limit, tree)
                while bits != 0:
                    pair = lowest_bit(bits)
                    bits &= bits - 1
                    meet(i + pair % lane_width(), j + pair // lane_width(), tree.order, context)
            asks, mark = survey(i, n, context)
        while node > 0 and node & 1 == 0:
            node = (node - 1) >> 1
        node = node + 1 if node > 0 else np.int64(-1)


# ------------------------------------------------------------------------------------ core points, their links, borders
@body
def survey(i, n, context):
    """Let those points ask that do not weigh enough yet."""
    return load(context[0], i, lane_width()) < context[2], 0


@body
def interests(j, mark, context):
    """Let all points be of interest."""
    return True


@body
def meet(i, j, order, context):
    """Add the weight of point j to what point i has."""
    high, low, _, weight, rest = context
    high[i], low[i] = add_weight(high[i], low[i], np.int64(order[j]), weight, rest)


@body
def survey_links(i, n, context):
    """Let core points ask, and return their root if they have only one, else -1."""
    stop, parent = context
    mark = np.int64(-2)
    for k in range(i, min(i + lane_width(), n)):
        if stop[k] > 0:
            root = np.int64(find(parent, k))
            mark = root if mark in (-2, root) else np.int64(-1)
    return load(stop, i, lane_width()) > 0, mark


@body
def links_more(j, mark, context):
    """Say whether point j is a core point that may be of another set."""
    return context[0][j] > 0 and context[1][j] != mark


@body
def link(i, j, order, context):
    """Join the sets of two core points."""
    unite(context[1], i, j)


@body
def survey_labels(i, n, context):
    """Let points with a number above which to look ask, and return the largest number that any of them has by now."""
    _, above, label = context
    mark = np.int32(-1)
    for k in range(i, min(i + lane_width(), n)):
        if above[k] != NONE:
            mark = max(mark, label[k])
    return load(above, i, lane_width()) < NONE, mark


@body
def lowers(j, mark, context):
    """Say whether the number of point j, `NONE` for no core point, is small enough."""
    return context[0][j] < mark


@body
def label(i, j, order, context):
    """Lower the number of a point to that of a core point."""
    number, above, found = context
    if above[i] < number[j] < found[i]:
        found[i] = number[j]


visit_for_links = visit.bind(survey=survey_links, interests=links_more, meet=link)
visit_for_labels = visit.bind(survey=survey_labels, interests=lowers, meet=label)
