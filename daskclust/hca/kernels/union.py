"""One merge: what the union of two clusters is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import body
from daskclust.core.device.operations import block_barrier, times
from daskclust.hca.kernels.shapes import add_outer, at, make_shape

DONE, ALIVE, REACHED, SWITCHED = 0, 1, 2, 3  # places in `Merges.state`


class Merges(NamedTuple):
    """What was merged, and where things stand."""

    pairs: Any  # (m - 1, 2): ids, the older one first
    heights: Any  # (m - 1,)
    state: Any  # (4,): merges done, clusters left, of these how many have reached the threshold, whether all have had


@body
def has_reached(rule, size):
    """Whether a cluster's shape counts in full."""
    return size >= rule.threshold and size >= rule.smallest


@body
def add_members(clusters, scatter, slot, row, share, d):
    """Add the scatter of a cluster that has no matrices to a row."""
    point = clusters.first[slot]
    for _ in range(clusters.size[slot]):
        add_outer(scatter, row, 1.0, clusters.points, point, clusters.center, slot, share, d)
        point = clusters.follower[point]


@body
def join_scatter(rule, clusters, shapes, one, other, share, d):
    """Write the scatter of the union of two clusters to a row and return it, -1 where none is needed."""
    size = clusters.size[one] + clusters.size[other]
    row, spare = clusters.row[one], clusters.row[other]
    if row < 0 and spare < 0 and (size < rule.smallest or (size < rule.threshold and not rule.mixes)):
        return np.int64(-1)
    is_new, is_sum = row < 0 and spare < 0, row >= 0 and spare >= 0
    if is_new:
        row = shapes.free[shapes.unused[0] - 1]
    elif row < 0:
        row = spare
    if is_new or is_sum:
        i = share.row
        while i < d:
            j = share.column
            while j <= i:
                k = at(i, j)
                shapes.scatter[row, k] = 0.0 if is_new else shapes.scatter[row, k] + shapes.scatter[spare, k]
                j += share.columns
            i += share.rows
    for turn in range(2):
        slot = one if turn == 0 else other
        if clusters.row[slot] < 0 and clusters.size[slot] > 1:
            add_members(clusters, shapes.scatter, slot, row, share, d)
    weight = times(float(clusters.size[one]), float(clusters.size[other])) / size
    add_outer(shapes.scatter, row, weight, clusters.center, one, clusters.center, other, share, d)
    return row


@body
def use_shape(rule, clusters, shapes, merges, slot, share, d):
    """Make the shape of the cluster in a slot, if its size and the rule ask for one."""
    is_switched = merges.state[SWITCHED]
    row = clusters.row[slot]
    is_shaped, stretch = False, 1.0
    if row >= 0 and (is_switched or not rule.waits):
        is_shaped, stretch = make_shape(
            rule, clusters.size[slot], is_switched, clusters.center, slot, shapes, row, share, d
        )
    if share.rank == 0:
        clusters.is_shaped[slot] = is_shaped
        clusters.stretch[slot] = stretch


@body
def enter(rule, clusters, shapes, merges, height, older, newer, kept, gone, row):
    """Write down a merge and what the union in slot `kept` is, but for its coordinates.

    All is read before anything is written, so that a GPU waits for memory once.
    """
    state, unused = merges.state, shapes.unused[0]
    step, alive, reached = state[DONE], state[ALIVE] - 1, state[REACHED]
    one, other, ident = clusters.ident[older], clusters.ident[newer], len(merges.heights) + 1 + state[DONE]
    one_size, other_size = clusters.size[older], clusters.size[newer]
    one_row, other_row = clusters.row[older], clusters.row[newer]
    first, before, after, last = (
        clusters.first[older],
        clusters.last[older],
        clusters.first[newer],
        clusters.last[newer],
    )
    size = one_size + other_size
    reached += np.int64(has_reached(rule, size))
    reached -= np.int64(has_reached(rule, one_size)) + np.int64(has_reached(rule, other_size))
    merges.pairs[step, 0], merges.pairs[step, 1], merges.heights[step] = one, other, height
    if one_row >= 0 and other_row >= 0:
        shapes.free[unused], shapes.unused[0] = other_row, unused + 1
    elif row >= 0 and one_row < 0 and other_row < 0:
        shapes.unused[0] = unused - 1
    clusters.slot_of[one], clusters.slot_of[other], clusters.slot_of[ident] = -2 - one, -2 - other, kept
    clusters.follower[before] = after
    clusters.first[kept], clusters.last[kept] = first, last
    clusters.size[kept], clusters.row[kept] = size, row
    clusters.ident[kept], clusters.ident[gone] = ident, -1
    state[DONE], state[ALIVE], state[REACHED] = step + 1, alive, reached
    if rule.scales and reached == alive:
        state[SWITCHED] = 1


@body
def unite(rule, clusters, shapes, merges, height, older, newer, share, d):
    """Merge two clusters into the slot of the larger one; return (slot that is free now, slot of the union).

    The threads of a block do it together. What they all read is changed after a barrier.
    """
    row = join_scatter(rule, clusters, shapes, older, newer, share, d)
    kept, gone = newer, older
    if clusters.size[older] > clusters.size[newer]:
        kept, gone = older, newer
    size = clusters.size[older] + clusters.size[newer]
    block_barrier()
    f = share.rank
    while f < d:
        clusters.total[kept, f] += clusters.total[gone, f]
        clusters.center[kept, f] = clusters.total[kept, f] / size
        f += share.size
    if share.rank == 0:
        enter(rule, clusters, shapes, merges, height, older, newer, kept, gone, row)
    block_barrier()
    return gone, kept
