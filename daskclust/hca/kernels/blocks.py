"""Where clusters are: blocks of 64 slots that are near each other, with boxes around them, and nodes of 64 blocks.

Coordinates here are turned to the principal axes and scaled into [-1, 1], in float32: good for bounds only. A search
passes over what is surely farther than the best so far, and computes the rest as `clusters.distance` does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import body
from daskclust.core.device.operations import add_square, bits_of, like, load, lowest, lowest_bit, select, times

SIDE = 64  # slots of a block, blocks of a node
WIDTH = 16  # lanes
FAR = np.float32(1e30)  # where empty slots are
GRAIN = np.float32(2.0**-23)
HIGHEST = 1e30  # stretch that is told from larger ones
LOWEST = 1e-30  # distance that is told from smaller ones


class Boxes(NamedTuple):
    """Boxes around some clusters each; as many as a multiple of 16, those without any are empty."""

    low: Any  # (d * boxes,) float32, axis by axis
    high: Any
    stretch: Any  # (boxes,) float32: smallest of the clusters
    oldest: Any  # (boxes,): smallest id, or below


class MatrixBlocks(NamedTuple):
    """Blocks and nodes of slots, and the nearest cluster that each slot knows of."""

    place: Any  # (blocks * d * 64,) float32: coordinates of a block's slots, axis by axis
    boxes: Boxes  # of blocks
    nodes: Boxes
    near: Any  # (slots,): distance of the nearest older cluster when last looked for; a lower bound of that now
    partner: Any  # (slots,): id of that cluster
    bound: Any  # (slots,): the least id that may now be at the distance `near`, as last looked up
    block_near: Any  # (blocks,): smallest of the block's slots
    node_near: Any  # (nodes,)
    block_first: Any  # (blocks,): of the slots at that distance the one with the least bound and id, -1 if not known
    node_first: Any  # (nodes,)
    middle: Any  # (d,): of the coordinates
    turn: Any  # (d, d): to principal axes, scaled
    scale: Any  # (1,): what distances are multiplied by


@body
def limits(best, stretch, others, scale, d):
    """Squares of the distances here above which clusters of stretch `others` are surely farther than `best`."""
    error = GRAIN * np.float32(2.0) * np.float32(np.sqrt(np.float32(d)))  # of coordinates that were rounded
    # float32 has a short range: neither 0 / 0 nor inf / inf, and no distance may become too small
    reach = np.float32(max(2.0 * best * scale, LOWEST)) / (others + np.float32(min(stretch, HIGHEST))) + error
    return times(times(reach, reach), np.float32(1.0) + np.float32(d + 8) * GRAIN)


@body
def gap2(place, own, boxes, first, width, d):
    """Squared distances of boxes `first` to `first` + 15 from the slot whose coordinates are at `own`."""
    total = like(load(boxes.low, first, WIDTH), 0.0)
    for f in range(d):
        x = place[np.uint64(own + f * SIDE)]
        left, right = load(boxes.low, first + f * width, WIDTH), load(boxes.high, first + f * width, WIDTH)
        below, above = left - x, like(left, x) - right
        beyond = select(below > above, below, above)
        beyond = select(beyond > like(left, 0.0), beyond, like(left, 0.0))
        total = add_square(total, beyond)
    return total


@body
def within(place, own, at, limit, d):
    """Return a bit for each of 64 slots whose squared distance is within `limit`; their coordinates begin at `at`."""
    a = b = c = e = like(load(place, at, WIDTH), 0.0)
    bits = np.int64(-1)
    for f in range(d):
        x, k = place[np.uint64(own + f * SIDE)], at + f * SIDE
        a = add_square(a, load(place, k, WIDTH) - x)
        b = add_square(b, load(place, k + WIDTH, WIDTH) - x)
        c = add_square(c, load(place, k + 2 * WIDTH, WIDTH) - x)
        e = add_square(e, load(place, k + 3 * WIDTH, WIDTH) - x)
        if (f & 3) == 3 or f == d - 1:
            bits = bits_of(a <= limit) | bits_of(b <= limit) << WIDTH
            bits |= bits_of(c <= limit) << 2 * WIDTH | bits_of(e <= limit) << 3 * WIDTH
            if bits == 0:
                return bits
    return bits


@body
def nearest_here(ident, place, own, block, youngest, d):
    """Return the slot of a block whose cluster is older than `youngest` and, as told here, nearest; -1 for none."""
    least, slot = FAR, np.int64(-1)
    for first in range(block * SIDE, block * SIDE + SIDE, WIDTH):
        total = like(load(place, own, WIDTH), 0.0)
        for f in range(d):
            step = load(place, (block * d + f) * SIDE + first - block * SIDE, WIDTH) - place[np.uint64(own + f * SIDE)]
            total = add_square(total, step)
        known = load(ident, first, WIDTH)
        total = select((known >= 0) & (known < youngest), total, like(total, FAR))
        nearest = lowest(total)
        if nearest < least:
            least, slot = nearest, first + lowest_bit(bits_of(total == nearest))
    return slot
