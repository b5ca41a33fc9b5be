"""Cells of blocks, and whether two of them, or a point and one, are within eps of each other."""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body
from daskclust.core.device.operations import count_bits, lane_width, lowest_bit
from daskclust.dbscan.kernels.blocks import BUNDLE
from daskclust.dbscan.kernels.distances import are_near, bundle_gap2, point_gap2
from daskclust.dbscan.kernels.masks import near_lanes, ones


@body
def cell_at(block, bit, blocks):
    """Return the number of the cell with this bit, of a block that has it."""
    return blocks.first_cell[block] + count_bits(blocks.occupied[block] & ((np.int64(1) << bit) - 1))


@body
def some_cell(a, blocks, core):
    """Return a cell of block a that holds core points."""
    return cell_at(a, lowest_bit(core.held[a]), blocks)


@body
def cells_touch(c, d, wraps, blocks, stop, limits):
    """Return True where a core point of cell c is within eps of one of cell d."""
    if stop[c] - blocks.start[c] > stop[d] - blocks.start[d]:
        c, d = d, c  # go through the smaller one
    i, end = np.int64(blocks.start[c]), np.int64(stop[c])
    if wraps or end - i < BUNDLE:
        while i < end:
            if touches(i, d, wraps, blocks, stop, limits):
                return True
            i += 1
        return False
    while i < end:
        following = min((i // BUNDLE + 1) * BUNDLE, end)
        if bundle_touches(i, following, d, wraps, blocks, stop, limits):
            return True
        i = following
    return False


@body
def bundle_touches(begin, end, c, wraps, blocks, stop, limits):
    """Return True where a core point of cell c is within eps of one of points `begin` to `end` - 1, of one bundle."""
    j, last = np.int64(blocks.start[c]), np.int64(stop[c])
    while j < last:
        following = min((j // BUNDLE + 1) * BUNDLE, last)
        if bundle_gap2(begin // BUNDLE, j // BUNDLE, blocks) <= limits[1]:
            for i in range(begin, end):
                near = point_gap2(i, j // BUNDLE, blocks) <= limits[1]
                if near and any_near(i, j, following, wraps, blocks, limits):
                    return True
        j = following
    return False


@body
def touches(i, c, wraps, blocks, stop, limits):
    """Return True where a core point of cell c is within eps of point i."""
    j, end = np.int64(blocks.start[c]), np.int64(stop[c])
    by_bundle = not wraps and end - j >= BUNDLE
    while j < end:
        following = min((j // BUNDLE + 1) * BUNDLE, end) if by_bundle else end
        near = not by_bundle or point_gap2(i, j // BUNDLE, blocks) <= limits[1]
        if near and any_near(i, j, following, wraps, blocks, limits):
            return True
        j = following
    return False


@body
def any_near(i, begin, end, wraps, blocks, limits):
    """Return True where one of points `begin` to `end` - 1 is within eps of point i."""
    if wraps or lane_width() == 1:
        for j in range(begin, end):  # noqa: SIM110 (numba)
            if are_near(i, j, wraps, blocks, limits):
                return True
        return False
    for j in range(begin, end, lane_width()):
        if near_lanes(i, j, ones(np.uint64(min(end - j, lane_width()))), blocks, limits) != 0:
            return True
    return False
