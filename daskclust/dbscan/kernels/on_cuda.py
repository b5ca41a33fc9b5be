"""DBSCAN's steps on CUDA, where a thread a block of cells would leave most threads idle: points crowd in few blocks.

Counts, weights and labels are found by a thread for each point. Links are found by a thread for each cell and row of
blocks beside it, as far as few distances tell; pairs of cells that take more go to a list, and there to a warp for each
slice of their points. Its threads do not talk to each other: each looks at its own points, and stops when another has
joined the cells.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import atomic_add, lowest_bit
from daskclust.core.device.unionfind import find, unite
from daskclust.core.space.grid import lower_bound
from daskclust.dbscan.kernels.blocks import BUNDLE, CELL_BITS, SELF, fold_around, fold_part
from daskclust.dbscan.kernels.cells import cell_at, touches
from daskclust.dbscan.kernels.clusters import NONE, as_found, lower_label, write_label
from daskclust.dbscan.kernels.core_points import add_weight, gather_in_cell, run_of, weigh_near
from daskclust.dbscan.kernels.distances import are_near, point_gap2

WARP_BITS = 5  # 32 threads
_TESTS = 256  # distances that a thread takes for a pair of cells; where they do not tell, the pair goes to the list
_SLICE_BITS = 10  # 1024 points of the larger cell a warp


class CellPairs(NamedTuple):
    """A list of pairs of cells, slice by slice; those that it has no place for are dealt with at once."""

    listed: Any  # (most, 4) int32: the larger cell, the other one, the slice, and whether distances go around a period
    count: Any  # (1,) int64: how many there would be


# ---------------------------------------------------------------------------------------------------------- core points
@body
def place_of(cell, blocks):
    """Return the block of a cell and its bit there."""
    return blocks.place[cell] >> CELL_BITS, blocks.place[cell] & ((1 << CELL_BITS) - 1)


@body
def cell_of_point(i, start):
    """Return the cell of sorted point `i`; cells that hold nothing are behind all others."""
    return lower_bound(start, len(start), np.int64(i) + 1) - 1


@body
def count_near(total, a, b, code, wraps, context):
    """Add to `total` how many points of block b are within eps of point i, as long as it is not enough."""
    blocks, limits, enough, bit, i = context
    near = blocks.reach[bit, code] & blocks.occupied[b]
    while near != 0 and total < enough:
        j, end, near = run_of(near, b, blocks)
        by_bundle = not wraps and end - j >= BUNDLE
        while j < end and total < enough:
            following = min((j // BUNDLE + 1) * BUNDLE, end) if by_bundle else end
            if not by_bundle or point_gap2(i, j // BUNDLE, blocks) <= limits[1]:
                while j < following and total < enough:
                    total += 1 if are_near(i, j, wraps, blocks, limits) else 0
                    j += 1
            j = following
    return total


fold_counts, fold_weights = fold_around.bind(meet=count_near), fold_around.bind(meet=weigh_near)


@kernel
def count_of_point(i, blocks, limits, enough, count):
    """As `core_points.count_neighbours`, by point."""
    cell = cell_of_point(i, blocks.start)
    total = np.int64(blocks.start[cell + 1] - blocks.start[cell])  # points of one cell are all neighbours
    if total < enough:
        block, bit = place_of(cell, blocks)
        total = fold_counts(np.int64(0), block, blocks, (blocks, limits, enough, bit, np.int64(i)))
    count[i] = min(total, np.int64(enough))


@kernel
def weigh_point(i, blocks, limits, enough, is_negative, weight, rest, count):
    """As `core_points.weigh_neighbours`, by point."""
    cell = cell_of_point(i, blocks.start)
    block, bit = place_of(cell, blocks)
    stop_at = np.inf if is_negative else enough
    high, low = 0.0, 0.0
    j, end = np.int64(blocks.start[cell]), np.int64(blocks.start[cell + 1])
    while j < end and high < stop_at:  # points of one cell are all neighbours
        high, low = add_weight(high, low, blocks.order[j], weight, rest)
        j += 1
    if high < stop_at:
        high, _ = fold_weights((0.0, 0.0), block, blocks, (blocks, limits, weight, rest, stop_at, bit, np.int64(i)))
    count[i] = 1 if high >= enough else 0


@kernel
def gather_core_of_cell(cell, blocks, enough, count, stop, held):
    """As `core_points.gather_core`, by cell; `held` starts with zeros."""
    if gather_in_cell(cell, blocks, enough, count, stop):
        block, bit = place_of(cell, blocks)
        atomic_add(held, block, np.int64(1) << bit)


# ---------------------------------------------------------------------------------------------------------------- links
@kernel
def link_part(i, cells, blocks, stop, limits, held, parent, pairs):
    """Join a cell and those behind it that it touches, in one of the rows of blocks; list pairs that take long.

    The threads of the first row come first: those side by side have cells side by side.
    """
    cell, part = np.int64(i), 0
    while cell >= cells:
        cell -= cells
        part += 1
    if stop[cell] == blocks.start[cell]:
        return
    block, bit = place_of(cell, blocks)
    context = (blocks, stop, limits, held, parent, pairs, cell, bit)
    link_along(0, block, part, 0, blocks, context)


@body
def meet_cell(state, a, b, code, wraps, context):
    """Join a cell of block a and the cells of block b that it touches, of its own block those behind it."""
    blocks, _, _, held, _, _, cell, bit = context
    near = blocks.reach[bit, code] & held[b]
    join_near(cell, near & (np.int64(-2) << bit) if code == SELF else near, b, wraps, context)
    return state


link_along = fold_part.bind(meet=meet_cell)


@body
def join_near(c, near, b, wraps, context):
    """Join cell c and those cells of block b that `near` names and that it touches; list what takes long."""
    if near == 0:
        return
    blocks, stop, limits, _, parent, pairs, _, _ = context
    root = find(parent, c)
    while near != 0:
        d = cell_at(b, lowest_bit(near), blocks)
        near &= near - 1
        if find(parent, d) != root:
            found = touch_soon(c, d, wraps, blocks, stop, limits)
            if found > 0:
                unite(parent, c, d)
            elif found < 0:
                list_pair(c, d, wraps, blocks, stop, limits, parent, pairs)
            root = find(parent, c)


@body
def touch_soon(c, d, wraps, blocks, stop, limits):
    """Return 1 if a core point of cell c is within eps of one of cell d, 0 if not, -1 if that takes long to tell."""
    left = _TESTS
    for i in range(blocks.start[c], stop[c]):
        for j in range(blocks.start[d], stop[d]):
            if left == 0:
                return -1
            left -= 1
            if are_near(i, j, wraps, blocks, limits):
                return 1
    return 0


@body
def list_pair(c, d, wraps, blocks, stop, limits, parent, pairs):
    """Put the slices of a pair of cells on the list; look at those now that it has no place for."""
    if stop[c] - blocks.start[c] < stop[d] - blocks.start[d]:
        c, d = d, c
    slices = ((stop[c] - blocks.start[c] - 1) >> _SLICE_BITS) + 1
    first = atomic_add(pairs.count, 0, np.int64(slices))
    for k in range(slices):
        if first + k < len(pairs.listed):
            listed = pairs.listed[first + k]
            listed[0], listed[1], listed[2], listed[3] = c, d, k, wraps
        else:
            join_slice(c, d, k, 0, 1, wraps, blocks, stop, limits, parent)


@body
def join_slice(c, d, k, lane, lanes, wraps, blocks, stop, limits, parent):
    """Join cells c and d where, of slice k of c, a core point is near one of d: `lane` checks every n-th point."""
    i = np.int64(blocks.start[c]) + (np.int64(k) << _SLICE_BITS)
    end = min(i + (1 << _SLICE_BITS), np.int64(stop[c]))
    i += lane
    while i < end and find(parent, c) != find(parent, d):
        if touches(i, d, wraps, blocks, stop, limits):
            unite(parent, c, d)
        i += lanes


@kernel
def link_listed(i, blocks, stop, limits, parent, pairs):
    """Join the cells of pairs on the list that touch: a warp for each slice."""
    k, lane = np.int64(i) >> WARP_BITS, np.int64(i) & ((1 << WARP_BITS) - 1)
    if k < min(pairs.count[0], len(pairs.listed)):
        listed = pairs.listed[k]
        c, d = np.int64(listed[0]), np.int64(listed[1])
        join_slice(c, d, listed[2], lane, 1 << WARP_BITS, listed[3] != 0, blocks, stop, limits, parent)


# --------------------------------------------------------------------------------------------------------------- labels
@body
def lower_from(label, a, b, code, wraps, context):
    """Return the smallest of `label` and the cluster numbers of core points of block b within eps of point i."""
    passed, i, bit = context
    blocks, _, _, held, _, _, _ = passed
    return lower_label(label, i, blocks.reach[bit, code] & held[b], b, wraps, passed)


fold_label = fold_around.bind(meet=lower_from)


@kernel
def label_border_point(i, blocks, stop, limits, held, number, above, label):
    """As `clusters.label_border`, by point."""
    cell = cell_of_point(i, blocks.start)
    if i >= stop[cell]:
        block, bit = place_of(cell, blocks)
        passed = (blocks, stop, limits, held, number, above, label)
        label[i] = fold_label(NONE, block, blocks, (passed, np.int64(i), bit))


@kernel
def label_point(i, start, order, stop, number, label, labels, is_core):
    """As `clusters.write_found` and `clusters.write_labels`, by point."""
    cell = cell_of_point(i, start)
    found = as_found(i, i < stop[cell], number[cell], label)
    write_label(order[i], found, labels, is_core)
