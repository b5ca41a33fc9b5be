"""Points of a block as masks, on the CPU: one point, or one box, against 16 points at once.

Most blocks hold up to 64 points: 64 bits, one for each, tell which are core points, not yet visited, or near others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import body
from daskclust.core.device.operations import (
    bits_of,
    lane_width,
    like,
    load,
    lowest_bit,
    point_at,
    times,
)
from daskclust.dbscan.kernels.blocks import ONE
from daskclust.dbscan.kernels.distances import apart, distance2

MOST = np.uint64(64)  # points of a block that a mask holds


class CorePoints(NamedTuple):
    """Which points are core points: those whose `count` is at least `least`; all, if `count` is empty."""

    count: Any  # (n + PAD,) int32
    least: Any  # int32
    stop: Any  # (cells,) int32: they stand at the front of each cell, up to here
    held: Any  # (blocks,) int64: a bit for each cell that has any
    bitmap: Any  # as that of `Blocks`, of the blocks that have any


# ---------------------------------------------------------------------------------------------------------------- masks
@body
def ones(n):
    """Return the mask of the lowest `n` of 64 bits."""
    return (ONE << n) - ONE if n < MOST else ~np.uint64(0)


@body
def lanes_of(mask, k):
    """Return those bits of a mask that stand for points `k` to `k` + 15, as the lowest."""
    return (mask >> k) & np.uint64(0xFFFF)


@body
def core_of(i, n, core):
    """Return the mask of the core points among the `n` <= 64 sorted points from `i` on."""
    return ones(n) if len(core.count) == 0 else ones(n) & ~fewer(i, n, core.count, core.least)


@body
def fewer(i, n, count, enough):
    """Return the mask of those of the `n` <= 64 sorted points from i on whose count is less than `enough`."""
    found, k = np.uint64(0), np.uint64(0)
    while k < n:
        found |= np.uint64(bits_of(load(count, i + k, lane_width()) < enough)) << k
        k += np.uint64(lane_width())
    return found & ones(n)


@body
def near_lanes(i, j, among, blocks, limits):
    """Return which of the points from j on, as many as lanes and of the mask `among`, are within eps of point i."""
    there = point_at(blocks.positions, j, lane_width(), blocks.grid.period)
    step = there[0] - blocks.positions[0, i]
    total = times(step, step)
    for k in range(1, len(there)):
        step = there[k] - blocks.positions[k, i]
        total = total + times(step, step)
    possible = np.uint64(bits_of(total <= limits[1])) & among
    if possible == 0:
        return possible
    near = np.uint64(bits_of(total <= limits[0])) & possible
    return near if near == possible else near_surely(i, j, near, near ^ possible, blocks, limits)


@body
def near_surely(i, j, near, doubt, blocks, limits):
    """Add to the mask `near` those of `doubt` that float64 finds within eps."""
    while doubt != 0:
        k = lowest_bit(doubt)
        doubt &= doubt - ONE
        if distance2(i, j + k, blocks.positions, blocks.grid.period) <= limits[2]:
            near |= ONE << k
    return near


@body
def beside_box(i, n, among, b, blocks, limits):
    """Return which of `n` <= 64 points from i on, of the mask `among`, may be within eps of the box of block b."""
    near, k = np.uint64(0), np.uint64(0)
    while k < n:
        if lanes_of(among, k) != 0:
            own = point_at(blocks.positions, i + k, lane_width(), blocks.grid.period)
            total = like(own[0], 0)
            for axis in range(len(own)):
                gap = apart(blocks.box[b, axis] - own[axis], own[axis] - blocks.box[b, len(own) + axis])
                total = total + times(gap, gap)
            near |= np.uint64(bits_of(total <= limits[1])) << k
        k += np.uint64(lane_width())
    return near & among


@body
def beside_point(i, n, among, j, blocks, limits):
    """Return which of `n` <= 64 points from i on, of the mask `among`, are within eps of point j."""
    near, k = np.uint64(0), np.uint64(0)
    while k < n:
        if lanes_of(among, k) != 0:
            near |= near_lanes(j, i + k, lanes_of(among, k), blocks, limits) << k
        k += np.uint64(lane_width())
    return near


@body
def beside_block(i, n, among, b, blocks, limits):
    """Return which of `n` <= 64 points from i on, of the mask `among`, may be within eps of a point of block b."""
    j = np.uint64(blocks.first[b])
    if blocks.first[b + 1] - blocks.first[b] == 1:
        return beside_point(i, n, among, j, blocks, limits)
    return beside_box(i, n, among, b, blocks, limits)
