"""The nearest older cluster of a cluster."""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import bits_of, load, lowest_bit
from daskclust.hca.kernels.blocks import SIDE, WIDTH, gap2, limits, nearest_here, within
from daskclust.hca.kernels.clusters import distance

HOME_BLOCK, HOME_NODE = -2, -1  # passes of a search, before those over groups of nodes
NOBODY = np.int64(1) << 62  # id later than any other


@body
def forget(slot, blocks):
    """Let a slot know of no cluster."""
    blocks.near[slot], blocks.partner[slot] = np.inf, NOBODY


@body
def look_at(other, slot, best, rule, clusters, shapes, blocks, d):
    """Return the smaller of a slot's distance to another cluster and `best`; remember the cluster if it comes first."""
    known = clusters.ident[other]
    away = distance(rule, clusters, shapes, slot, other, best, d)
    if away < best or (away == best and known < blocks.partner[slot]):
        blocks.near[slot], blocks.partner[slot] = away, known
        return away
    return best


@body
def scan_block(block, slot, own, rule, clusters, shapes, blocks, d):
    """Look at the clusters of a block that may be the nearest older one; equally near, the smaller id is taken."""
    best = blocks.near[slot]
    # nothing is nearer than 0: only older clusters count then
    youngest = blocks.partner[slot] if best == 0.0 else clusters.ident[slot]
    if blocks.boxes.oldest[block] >= youngest:
        return
    limit = limits(best, clusters.stretch[slot], blocks.boxes.stretch[block], blocks.scale[0], d)
    found = within(blocks.place, own, block * d * SIDE, limit, d)
    while found:
        other = block * SIDE + lowest_bit(found)
        found &= found - 1
        known = clusters.ident[other]
        if known >= 0 and known < youngest:
            best = look_at(other, slot, best, rule, clusters, shapes, blocks, d)


@body
def find_nearest(slot, rule, clusters, shapes, blocks, d):
    """Find the nearest older cluster of the one in `slot`, and its distance.

    First what seems nearest in the slot's own block is looked at, then that block, then its node, so that what is known
    is good when the others come.
    """
    place, scale = blocks.place, blocks.scale[0]
    ident, stretch = clusters.ident[slot], clusters.stretch[slot]
    home, home_node = slot // SIDE, slot // (SIDE * SIDE)
    own = home * d * SIDE + slot % SIDE
    width, node_width = len(blocks.boxes.stretch), len(blocks.nodes.stretch)
    forget(slot, blocks)
    guess = nearest_here(clusters.ident, place, own, home, ident, d)
    if guess >= 0:
        look_at(guess, slot, np.inf, rule, clusters, shapes, blocks, d)
    for step in range(HOME_BLOCK, node_width // WIDTH):
        first_node, nodes = home_node, np.int64(1)
        if step >= 0:
            first_node = step * WIDTH
            limit = limits(blocks.near[slot], stretch, load(blocks.nodes.stretch, first_node, WIDTH), scale, d)
            nodes = bits_of(gap2(place, own, blocks.nodes, first_node, node_width, d) <= limit)
        while nodes:
            node = first_node + lowest_bit(nodes)
            nodes &= nodes - 1
            if (step >= 0 and node == home_node) or blocks.nodes.oldest[node] >= ident:
                continue
            for group in range(node * SIDE, min(node * SIDE + SIDE, width), WIDTH):
                limit = limits(blocks.near[slot], stretch, load(blocks.boxes.stretch, group, WIDTH), scale, d)
                near = bits_of(gap2(place, own, blocks.boxes, group, width, d) <= limit)
                if step < 0 and group == home - home % WIDTH:
                    mine = np.int64(1) << (home % WIDTH)
                    near = mine if step == HOME_BLOCK else near & ~mine
                elif step == HOME_BLOCK:
                    near = np.int64(0)
                while near:
                    scan_block(group + lowest_bit(near), slot, own, rule, clusters, shapes, blocks, d)
                    near &= near - 1


@kernel
def find_all(slot, rule, clusters, shapes, blocks):
    """Find the nearest older cluster of every slot."""
    if clusters.ident[slot] >= 0:
        find_nearest(slot, rule, clusters, shapes, blocks, clusters.center.shape[1])
