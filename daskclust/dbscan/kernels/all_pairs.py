"""DBSCAN's steps on CUDA for more than three dimensions: a thread for each point, which goes through all others.

The threads of a warp read the same other point at once, and keep their own in registers.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import kernel
from daskclust.core.device.unionfind import unite
from daskclust.core.space.grid import within_period
from daskclust.dbscan.kernels.clusters import NONE
from daskclust.dbscan.kernels.core_points import add_weight
from daskclust.dbscan.kernels.distances import distance2


@kernel
def start_points(i, X, period, positions, order, start):
    """Write the coordinates of a point within periods, and that it stands where it stood, in a cell of its own."""
    order[i] = start[i] = i
    for k in range(len(period)):
        positions[k, i] = within_period(X[i, k], period[k]) if i < len(X) else 0


@kernel
def count_all(i, n, positions, period, eps2, enough, count):
    """Count the points within eps of point i, itself included, up to `enough` of them."""
    found, j = np.int32(0), np.int64(0)
    while j < n and found < enough:
        found += np.int32(1 if distance2(i, j, positions, period) <= eps2 else 0)
        j += 1
    count[i] = found


@kernel
def weigh_all(i, n, positions, period, eps2, enough, weight, rest, count):
    """Write 1 where the points within eps of point i, with itself, weigh at least `enough`, else 0."""
    high, low, j = 0.0, 0.0, np.int64(0)
    while j < n:
        if distance2(i, j, positions, period) <= eps2:
            high, low = add_weight(high, low, j, weight, rest)
        j += 1
    count[i] = 1 if high >= enough else 0


@kernel
def keep_core(i, count, enough, stop):
    """End the cell of a point before it unless it is a core point."""
    stop[i] = i + 1 if count[i] >= enough else i


@kernel
def link_all(i, n, positions, period, eps2, stop, parent):
    """Join core point i and the later ones within eps of it."""
    if stop[i] > i:
        j = np.int64(i) & ~31  # the same for a warp
        while j < n:
            if j > i and stop[j] > j and distance2(i, j, positions, period) <= eps2:
                unite(parent, i, j)
            j += 1


@kernel
def label_border_all(i, n, positions, period, eps2, stop, number, above, label):
    """Write the smallest number of core points within eps of point i, if it is none, above ``above[i]`` if given."""
    if stop[i] > i:
        return
    least = above[i] if len(above) > 0 else np.int32(-1)
    found, j = NONE, np.int64(0)
    while j < n:
        if stop[j] > j and least < number[j] < found and distance2(i, j, positions, period) <= eps2:
            found = number[j]
        j += 1
    label[i] = found
