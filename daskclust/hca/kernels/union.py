"""One merge: what the union of two clusters is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import body
from daskclust.core.device.operations import times
from daskclust.hca.kernels.shapes import add_outer, make_shape

DONE, ALIVE, REACHED, SWITCHED = 0, 1, 2, 3  # places in `Merges.state`


class Merges(NamedTuple):
    """What was merged, and where things stand."""

    pairs: Any  # (m - 1, 2): ids, the older one first
    heights: Any  # (m - 1,)
    state: Any  # (4,): merges done, clusters left, of these how many have reached the threshold, whether all had


@body
def has_reached(rule, size):
    """Whether a cluster's shape counts in full."""
    return size >= rule.threshold and size >= rule.smallest


@body
def switches_now(rule, merges):
    """Whether all clusters have reached the threshold for the first time."""
    return rule.scales and merges.state[REACHED] == merges.state[ALIVE] and not merges.state[SWITCHED]


@body
def add_members(clusters, scatter, slot, row, d):
    """Add the scatter of a cluster that has no matrices to a row."""
    point = clusters.first[slot]
    for _ in range(clusters.size[slot]):
        add_outer(scatter, row, 1.0, clusters.points, point, clusters.center, slot, d)
        point = clusters.follower[point]


@body
def join_scatter(rule, clusters, shapes, one, other, d):
    """Write the scatter of the union of two clusters to a row and return it, -1 where none is needed."""
    size = clusters.size[one] + clusters.size[other]
    row, spare = clusters.row[one], clusters.row[other]
    if row < 0 and spare < 0 and (size < rule.smallest or (size < rule.threshold and not rule.mixes)):
        return np.int64(-1)
    given = row
    if row < 0:
        given = spare
    if given < 0:
        shapes.unused[0] -= 1
        given = shapes.free[shapes.unused[0]]
        for k in range(shapes.scatter.shape[1]):
            shapes.scatter[given, k] = 0.0
    if row >= 0 and spare >= 0:
        for k in range(shapes.scatter.shape[1]):
            shapes.scatter[row, k] += shapes.scatter[spare, k]
        shapes.free[shapes.unused[0]] = spare
        shapes.unused[0] += 1
    for turn in range(2):
        slot = one if turn == 0 else other
        if clusters.row[slot] < 0 and clusters.size[slot] > 1:
            add_members(clusters, shapes.scatter, slot, given, d)
    row = given
    weight = times(float(clusters.size[one]), float(clusters.size[other])) / size
    add_outer(shapes.scatter, row, weight, clusters.center, one, clusters.center, other, d)
    return row


@body
def use_shape(rule, clusters, shapes, merges, slot, d):
    """Make the shape of the cluster in a slot, if its size and the rule ask for one."""
    is_switched = merges.state[SWITCHED]
    row = clusters.row[slot]
    is_shaped, stretch = False, 1.0
    if row >= 0 and (is_switched or not rule.waits):
        is_shaped, stretch = make_shape(rule, clusters.size[slot], clusters.center, slot, shapes, row, d)
        if is_shaped and rule.scales and is_switched and not rule.normalize:
            for k in range(shapes.whiten.shape[1]):
                shapes.whiten[row, k] = times(shapes.whiten[row, k], shapes.unscale[row])
            stretch = times(stretch, shapes.unscale[row])
    clusters.is_shaped[slot] = is_shaped
    clusters.stretch[slot] = stretch


@body
def unite(rule, clusters, shapes, merges, height, older, newer, d):
    """Merge two clusters into the slot of the larger one; return (slot that is free now, slot of the union)."""
    step = merges.state[DONE]
    merges.pairs[step, 0], merges.pairs[step, 1] = clusters.ident[older], clusters.ident[newer]
    merges.heights[step] = height
    row = join_scatter(rule, clusters, shapes, older, newer, d)
    kept, gone = newer, older
    if clusters.size[older] > clusters.size[newer]:
        kept, gone = older, newer
    for turn in range(2):
        slot = older if turn == 0 else newer
        merges.state[REACHED] -= np.int64(has_reached(rule, clusters.size[slot]))
        clusters.slot_of[clusters.ident[slot]] = -2 - clusters.ident[slot]
    clusters.follower[clusters.last[older]] = clusters.first[newer]
    clusters.first[kept] = clusters.first[older]
    clusters.last[kept] = clusters.last[newer]
    clusters.size[kept] += clusters.size[gone]
    clusters.row[kept] = row
    for f in range(d):
        clusters.total[kept, f] += clusters.total[gone, f]
        clusters.center[kept, f] = clusters.total[kept, f] / clusters.size[kept]
    ident = len(merges.heights) + 1 + step
    clusters.ident[kept] = ident
    clusters.ident[gone] = -1
    clusters.slot_of[ident] = kept
    merges.state[DONE] += 1
    merges.state[ALIVE] -= 1
    merges.state[REACHED] += np.int64(has_reached(rule, clusters.size[kept]))
    return gone, kept
