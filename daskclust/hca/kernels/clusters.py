"""Clusters while they are merged: their members, and the distance of two.

A cluster has a slot, which it may change, and an id, which it keeps: 0 to n - 1 for the points, n + s for the union of
merge s.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import body
from daskclust.core.device.operations import square_root, times

SURE = 1.0 + 1e-12  # what is larger than a bound by more than rounding


class Clusters(NamedTuple):
    """What is known of the cluster in each slot."""

    ident: Any  # (slots,): id, -1 where there is none
    size: Any  # (slots,)
    total: Any  # (slots, d): sum of the members' coordinates
    center: Any  # (slots, d)
    first: Any  # (slots,): its members are a chain, from `first` by `follower` to `last`
    last: Any  # (slots,)
    row: Any  # (slots,): of its matrices, -1 for none
    is_shaped: Any  # (slots,)
    stretch: Any  # (slots,): the least factor by which its distances exceed Euclidean ones
    slot_of: Any  # (ids,): slot of each id; -1 - a later id, with none alive between, for ids that were merged
    follower: Any  # (n,)
    points: Any  # (n, d)


@body
def first_alive(clusters, ident):
    """Return the first id from `ident` on whose cluster was not merged; there must be one.

    The way there is made shorter. Threads that do so at once write the same.
    """
    found = ident
    while clusters.slot_of[found] < 0:
        found = -1 - clusters.slot_of[found]
    while ident != found:
        following = -1 - clusters.slot_of[ident]
        clusters.slot_of[ident] = -1 - found
        ident = following
    return found


@body
def length(shapes, row, points, point, centers, slot, d):
    """Length of the step from a centre to a point, as the shape in `row` measures it; -1: Euclidean."""
    total = 0.0
    if row < 0:  # a loop without branches: a GPU reads ahead
        for i in range(d):
            step = points[point, np.uint64(i)] - centers[slot, np.uint64(i)]
            total += times(step, step)
        return square_root(total)
    k = np.uint64(0)
    for i in range(d):
        part = 0.0
        for j in range(i + 1):
            step = points[point, np.uint64(j)] - centers[slot, np.uint64(j)]
            part += times(shapes.whiten[np.uint64(row), k], step)
            k += np.uint64(1)
        total += times(part, part)
    return square_root(total)


@body
def mean_length(clusters, shapes, row, one, other, enough, d):
    """Mean length of the steps from cluster `other`'s centre to the members of `one`; inf if it is above `enough`."""
    size = clusters.size[one]
    limit = times(times(enough, float(size)), SURE)
    summed = 0.0
    point = clusters.first[one]
    for _ in range(size):
        summed += length(shapes, row, clusters.points, point, clusters.center, other, d)
        if summed > limit:
            return np.inf
        point = clusters.follower[point]
    return summed / size


@body
def distance(rule, clusters, shapes, one, other, enough, d):
    """Distance of two clusters, the same in both directions; inf if it is above `enough`.

    Of several calls with the same first cluster, most end before they need the shape or the members of the other.
    """
    far = times(2.0 * enough, SURE)
    summed = 0.0
    for turn in range(2):
        here, there = (other, one) if turn == 0 else (one, other)
        row = clusters.row[there] if clusters.is_shaped[there] else np.int64(-1)
        if turn == 1 and (row >= 0 or rule.full):
            least = times(
                clusters.stretch[there], length(shapes, np.int64(-1), clusters.center, here, clusters.center, there, d)
            )
            if summed + least > far:
                return np.inf
        if rule.full and (rule.scales or clusters.size[there] >= rule.threshold):
            part = mean_length(clusters, shapes, row, here, there, 2.0 * enough, d)
        else:
            part = length(shapes, row, clusters.center, here, clusters.center, there, d)
            if turn == 0 and row < 0 and not rule.full and not clusters.is_shaped[here]:
                return part
        summed += part
        if summed > far:
            return np.inf
    return times(0.5, summed)
