"""Friends within a cylinder along the line of sight, for searches of pairs in a tree of boxes.

Axes of a point are its direction, a unit vector of three, its distance, and halves of its linking lengths: across, as
an angle, and along. As boxes hold the largest lengths within, one that holds a friend is never left out.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body
from daskclust.core.device.operations import like, select, times
from daskclust.dbscan.kernels.distances import apart


@body
def beyond_cylinder(own, positions, j, period):
    """Return 0 where point j is a friend, else infinity."""
    chord2 = like(own[0], 0)
    for k in range(3):
        step = own[k] - positions[k, j]
        chord2 = chord2 + times(step, step)
    gap = apart(positions[3, j] - own[3], own[3] - positions[3, j])
    return friends(chord2, gap, own[4] + positions[4, j], own[5] + positions[5, j])


@body
def box_beyond_cylinder(own, node, tree):
    """Return 0 where a node's box may hold a friend, else infinity: `beyond_cylinder` of its nearest place."""
    box, high = tree.box, len(tree.period) + 1
    chord2 = like(own[0], 0)
    for k in range(3):
        gap = apart(box[node, k] - own[k], own[k] - box[node, high + k])
        chord2 = chord2 + times(gap, gap)
    gap = apart(box[node, 3] - own[3], own[3] - box[node, high + 3])
    return friends(chord2, gap, own[4] + box[node, high + 4], own[5] + box[node, high + 5])


@body
def friends(chord2, gap, across, along):
    """Return 0 within both lengths, else infinity."""
    is_near = (chord2 <= times(across, across)) & (gap <= along)
    return select(is_near, like(chord2, 0), like(chord2, np.inf))
