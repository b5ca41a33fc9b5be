"""Distances of points, and of the boxes around them, for DBSCAN.

Squared distances are taken in the precision of the points first. Two numbers bound the rounding: up to the one points
are surely within eps of each other, beyond the other surely not, and float64 decides between them. So the answer is
that of float64, whatever the precision, the order of the loops or the device.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import highest, lane_width, like, lowest, point_at, select, times
from daskclust.dbscan.kernels.blocks import BUNDLE


@body
def distance2(i, j, positions, period):
    """Return the squared distance of sorted points i and j in float64, around periodic axes too."""
    total = 0.0
    for k in range(len(period)):
        step = abs(np.float64(positions[k, i]) - np.float64(positions[k, j]))
        if period[k] > 0.0:
            step = min(step, period[k] - step)
        total = total + times(step, step)
    return total


@body
def are_near(i, j, wraps, blocks, limits):
    """Return True where points i and j are within eps; around a period float64 alone tells."""
    surely2, possibly2, eps2 = limits
    positions, period = blocks.positions, blocks.grid.period
    if not wraps:
        step = positions[0, j] - positions[0, i]
        total = times(step, step)
        for k in range(1, len(period)):
            step = positions[k, j] - positions[k, i]
            total = total + times(step, step)
        if total > possibly2 or total <= surely2:
            return total <= surely2
    return distance2(i, j, positions, period) <= eps2


@body
def span_of(begin, end, axis, blocks):
    """Return the lowest and the highest coordinate of points `begin` to `end` - 1 along an axis."""
    low = high = point_at(blocks.positions, begin, min(end - begin, lane_width()), blocks.grid.period)[axis]
    for i in range(begin + lane_width(), end, lane_width()):
        there = point_at(blocks.positions, i, min(end - i, lane_width()), blocks.grid.period)[axis]
        low, high = select(there < low, there, low), select(there > high, there, high)
    return lowest(low), highest(high)


@body
def apart(below, above):
    """Return the larger of two differences, 0 if both are negative."""
    gap = select(below > above, below, above)
    return select(gap > like(gap, 0), gap, like(gap, 0))


@body
def point_gap2(i, bundle, blocks):
    """Return the squared distance of point i from the box of a bundle: as computed, no point there is nearer."""
    axes = len(blocks.grid.period)
    total = like(blocks.positions[0, i], 0)
    for k in range(axes):
        x = blocks.positions[k, i]
        gap = apart(blocks.boxes[k, bundle] - x, x - blocks.boxes[axes + k, bundle])
        total = total + times(gap, gap)
    return total


@body
def bundle_gap2(one, other, blocks):
    """Return the squared distance of the boxes of two bundles: as computed, no two of their points are nearer."""
    axes = len(blocks.grid.period)
    total = like(blocks.boxes[0, one], 0)
    for k in range(axes):
        below = blocks.boxes[k, one] - blocks.boxes[axes + k, other]
        gap = apart(below, blocks.boxes[k, other] - blocks.boxes[axes + k, one])
        total = total + times(gap, gap)
    return total


@kernel
def write_boxes(bundle, n, blocks):
    """Write the box around a bundle of sorted points."""
    axes = len(blocks.grid.period)
    for k in range(axes):
        low, high = span_of(bundle * BUNDLE, min((bundle + 1) * BUNDLE, n), k, blocks)
        blocks.boxes[k, bundle], blocks.boxes[axes + k, bundle] = low, high
