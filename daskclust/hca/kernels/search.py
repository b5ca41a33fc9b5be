"""The nearest older cluster of a cluster."""

from __future__ import annotations

import numpy as np

from daskclust.core.jit import body, kernel
from daskclust.core.ops import bits_of, load, lowest_bit
from daskclust.hca.kernels.blocks import SIDE, WIDTH, gap2, limits, within
from daskclust.hca.kernels.clusters import distance

HOME_BLOCK, HOME_NODE = -2, -1  # passes of a search, before those over groups of nodes


@body
def find_nearest(slot, rule, clusters, shapes, blocks, d):
    """Write the nearest older cluster of the one in `slot`, the oldest of several, and its distance.

    First the slot's own block is looked at, then its node, so that the best so far is good when the others come.
    """
    place, scale = blocks.place, blocks.scale[0]
    best, partner = np.inf, np.int64(1 << 62)
    ident, stretch = clusters.ident[slot], clusters.stretch[slot]
    home, home_node = slot // SIDE, slot // (SIDE * SIDE)
    own = home * d * SIDE + slot % SIDE
    width, node_width = len(blocks.boxes.stretch), len(blocks.nodes.stretch)
    for step in range(HOME_BLOCK, node_width // WIDTH):
        first_node, nodes = home_node, np.int64(1)
        if step >= 0:
            first_node = step * WIDTH
            limit = limits(best, stretch, load(blocks.nodes.stretch, first_node, WIDTH), scale, d)
            nodes = bits_of(gap2(place, own, blocks.nodes.low, blocks.nodes.high, first_node, node_width, d) <= limit)
        while nodes:
            node = first_node + lowest_bit(nodes)
            nodes &= nodes - 1
            if (step >= 0 and node == home_node) or blocks.nodes.oldest[node] >= ident:
                continue
            for group in range(node * SIDE, min(node * SIDE + SIDE, width), WIDTH):
                limit = limits(best, stretch, load(blocks.boxes.stretch, group, WIDTH), scale, d)
                near = bits_of(gap2(place, own, blocks.boxes.low, blocks.boxes.high, group, width, d) <= limit)
                if step < 0 and group == home - home % WIDTH:
                    mine = np.int64(1) << (home % WIDTH)
                    near = mine if step == HOME_BLOCK else near & ~mine
                elif step == HOME_BLOCK:
                    near = np.int64(0)
                while near:
                    block = group + lowest_bit(near)
                    near &= near - 1
                    youngest = partner if best == 0.0 else ident
                    if blocks.boxes.oldest[block] >= youngest:
                        continue
                    at = block * d * SIDE
                    for part in range(SIDE // WIDTH):
                        others = blocks.boxes.stretch[block]
                        reach = limits(best, stretch, others, scale, d)
                        found = within(place, own, at + part * WIDTH, reach, d)
                        while found:
                            other = block * SIDE + part * WIDTH + lowest_bit(found)
                            found &= found - 1
                            known = clusters.ident[other]
                            if known < 0 or known >= ident:
                                continue
                            away = distance(rule, clusters, shapes, slot, other, best, d)
                            if away < best or (away == best and known < partner):
                                best = away
                                partner = known
    blocks.near[slot] = best
    blocks.partner[slot] = partner


@kernel
def find_all(slot, rule, clusters, shapes, blocks):
    """Find the nearest older cluster of every slot."""
    if clusters.ident[slot] >= 0:
        find_nearest(slot, rule, clusters, shapes, blocks, clusters.points.shape[1])
