"""Kernels that chain the hits of each cluster in the order of the data set, and run the formulas of `kernels` on them.

CPU: clusters are divided into pieces, and each piece is chained and tabulated within the cache. A piece reads only
those blocks of hits whose range of labels it meets: few, where hits are in time order. CUDA: slots by atomics, in any
order; then each hit finds its rank among those of its cluster.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import atomic_add
from daskclust.properties.kernels.clusters import (
    BY_ENERGY,
    BY_TOT,
    FINITE,
    add_up,
    axes,
    spread,
    write_axes,
    write_empty,
    write_row,
    write_totals,
)

NOTHING = np.iinfo(np.int64).max  # above all labels: the smallest label where there is none


# --------------------------------------------------------------------------------------------------------------- labels
@kernel
def survey_labels(block, width, labels, hits, by, lowest, highest, noise_size, noise_weight, bad):
    """Find the range of cluster numbers in a block of `width` hits, and add up its noise."""
    begin, end = block * width, min((block + 1) * width, len(labels))
    low, high, bottom = np.int64(NOTHING), np.int64(-1), np.int64(0)
    for i in range(begin, end):
        label = labels[i]
        low = min(low, label & NOTHING)  # the bits of -1 give NOTHING: no branch, so SIMD
        high = max(high, label)
        bottom = min(bottom, label)
    lowest[block] = low
    highest[block] = high
    size, weight = 0, 0.0
    if bottom < 0:
        for i in range(begin, end):
            if labels[i] < 0:
                size += 1
                tot = np.float64(hits.tot[i])
                e = np.float64(hits.energy[i]) if len(hits.energy) > 0 else 0.0
                weight += e if by == BY_ENERGY else tot if by == BY_TOT else 1.0
                good = tot >= 0 and tot <= FINITE and e >= 0 and e <= FINITE
                if not (good and abs(hits.toa[i]) <= FINITE) or labels[i] < -1:
                    bad[0] = 1
    noise_size[block] = size
    noise_weight[block] = weight


# ------------------------------------------------------------------------------------------- chains on CPUs, in pieces
@body
def chain_piece(piece, pieces, labels, blocks, head, following):
    """Chain the hits of the clusters of a piece, from blocks that may have any; `head` is that of the piece."""
    begin, end = pieces.first[piece], pieces.first[piece + 1]
    width = end - begin
    for c in range(width):
        head[c] = -1
    for block in range(pieces.end_block[piece] - 1, pieces.first_block[piece] - 1, -1):
        if blocks.lowest[block] < end and blocks.highest[block] >= begin:
            for i in range(min((block + 1) * blocks.width, len(labels)) - 1, block * blocks.width - 1, -1):
                c = np.uint64(labels[np.uint64(i)] - begin)  # unsigned: no place counts from the end, nor is c below 0
                if c < np.uint64(width):
                    following[np.uint64(i)] = head[c]
                    head[c] = i


@body
def axes_in_place(xx, yy, xy, width):
    """Put `axes` in the place of spreads: a loop without branches on three arrays becomes SIMD instructions."""
    for c in range(width):
        length, breadth, angle = axes(xx[c], yy[c], xy[c])
        xx[c] = length
        yy[c] = breadth
        xy[c] = angle


@body
def copy_to(source, target, begin, width):
    """Copy the first `width` elements to `target` from `begin` on, in its type."""
    for c in range(width):
        target[begin + c] = source[c]


@kernel
def tabulate_piece(i, start, pieces, labels, blocks, head, room, following, hits, by, columns, bad):
    """Write the rows of piece `start` + i; `head` and `room`, which is (xx, yy, xy), are the thread's.

    Columns begin with the first row of the first piece.
    """
    xx, yy, xy = room
    begin, end = pieces.first[start + i], pieces.first[start + i + 1]
    row = begin - pieces.first[0]
    chain_piece(start + i, pieces, labels, blocks, head, following)
    for c in range(np.uint64(end - begin)):
        xx[c], yy[c], xy[c] = 0.0, 0.0, 0.0
        if head[c] >= 0:
            t = add_up(head[c], following, hits, 0, by, bad)
            write_row(np.uint64(row) + c, t, by, columns)
            if t.size > 1:
                xx[c], yy[c], xy[c] = spread(t)
        else:
            write_empty(np.uint64(row) + c, columns)
            xx[c], yy[c], xy[c] = np.nan, np.nan, np.nan
    axes_in_place(xx, yy, xy, end - begin)
    copy_to(xx, columns.length, row, end - begin)
    copy_to(yy, columns.width, row, end - begin)
    copy_to(xy, columns.angle, row, end - begin)


@kernel
def total_piece(i, pieces, labels, blocks, head, following, hits, start, by, many, bad):
    """Write totals of the clusters of piece i; every one of them has a hit, and `start` is the number of the first."""
    begin, end = pieces.first[i], pieces.first[i + 1]
    chain_piece(i, pieces, labels, blocks, head, following)
    for c in range(end - begin):
        write_totals(begin + c, add_up(head[c], following, hits, start, by, bad), many)


# ------------------------------------------------------------------------------------------------------ chains on CUDA
@kernel
def count_hits(i, labels, first):
    """Count the hits of each cluster c in ``first[c + 1]``."""
    if labels[i] >= 0:
        atomic_add(first, labels[i] + 1, 1)


@kernel
def take_slot(i, labels, cursor, slots):
    """Put hit i to the next free slot of its cluster."""
    if labels[i] >= 0:
        slots[atomic_add(cursor, labels[i], 1)] = i


@kernel
def order_slots(slot, slots, labels, first, order):
    """Slots of a cluster were taken in any order; a hit's place is the number of earlier hits in the cluster."""
    i = slots[slot]
    place = first[labels[i]]
    for other in range(first[labels[i]], first[labels[i] + 1]):
        if slots[other] < i:
            place += 1
    order[place] = i


@kernel
def chain_hit(place, order, labels, first, following):
    """Point the hit at `place` to the next of its cluster, or to -1."""
    i = order[place]
    following[i] = order[place + 1] if place + 1 < first[labels[i] + 1] else -1


@kernel
def tabulate_row(row, first, order, following, hits, by, columns, bad):
    """Write one row of the table."""
    if first[row + 1] > first[row]:
        t = add_up(order[first[row]], following, hits, 0, by, bad)
        write_row(row, t, by, columns)
        write_axes(row, t, columns)
    else:
        write_empty(row, columns)
