"""Kernels of friends-of-friends in redshift space: links between points of neighbouring cells."""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel, lane_kernel
from daskclust.core.device.operations import bits_of, lowest_bit, times
from daskclust.core.device.unionfind import unite
from daskclust.core.space.grid import fold_neighbours


@body
def are_friends(own, positions, j, across2, along):
    """Return whether point j is within a cylinder around `own` whose axis is the line of sight, the third axis."""
    dx, dy, dz = own[0] - positions[0, j], own[1] - positions[1, j], own[2] - positions[2, j]
    return (times(dx, dx) + times(dy, dy) <= across2) & (abs(dz) <= along)


@body
def link_friends(state, own, positions, j, context):
    """Join the sets of point j and of its friends among the points from `i` to `i + m - 1`: a bit for each."""
    i, m, across2, along, parent = context
    friends = bits_of(are_friends(own, positions, j, across2, along)) & ((1 << m) - 1)
    while friends != 0:
        unite(parent, i + lowest_bit(friends), np.int64(j))  # on CUDA j may be unsigned, which mixes with no other
        friends &= friends - 1
    return state


@lane_kernel
def link(i, m, row, cells, reach, across2, along, parent):
    """Join the sets of sorted points and of their friends; on a CPU `m` points are a SIMD vector, on CUDA one."""
    fold_neighbours(i, m, cells, reach, 0, (i, m, across2, along, parent))


@kernel
def first_in_set(place, order, parent, first):
    """Write the root of the set of each point, in the order of the input."""
    first[order[place]] = parent[place]


@kernel
def take_label(i, set_of, number, labels):
    """Give point i the number of its set."""
    labels[i] = number[set_of[i]]
