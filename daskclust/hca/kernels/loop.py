"""The merges, one after the other.

Of two clusters the newer one knows the distance, so each pair is known to one of them. When a cluster's nearest one is
merged, the distance it knows becomes a lower bound: it looks for another one only when that bound is the smallest.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.hca.kernels.blocks import FAR, HIGHEST, SIDE
from daskclust.hca.kernels.clusters import first_alive
from daskclust.hca.kernels.layout import DOWN, YOUNG
from daskclust.hca.kernels.search import find_nearest, forget
from daskclust.hca.kernels.shapes import ALL
from daskclust.hca.kernels.union import ALIVE, SWITCHED, unite, use_shape


@body
def is_first(one, other, clusters, blocks):
    """Whether the turn of a slot comes before that of another, -1 for none, whose distance is the same."""
    if other < 0 or blocks.bound[one] != blocks.bound[other]:
        return other < 0 or blocks.bound[one] < blocks.bound[other]
    return clusters.ident[one] < clusters.ident[other]


@body
def look_up(slot, clusters, blocks):
    """Return the id of a slot's partner, or if that was merged the first that may have its place."""
    return first_alive(clusters, max(blocks.partner[slot], np.int64(0)))


@body
def first_of_block(block, clusters, blocks):
    """Return the slot of a block whose turn comes first."""
    if blocks.block_first[block] < 0:
        first = np.int64(-1)
        for k in range(block * SIDE, block * SIDE + SIDE):
            if blocks.near[k] == blocks.block_near[block]:
                blocks.bound[k] = look_up(k, clusters, blocks)
                if is_first(k, first, clusters, blocks):
                    first = np.int64(k)
        blocks.block_first[block] = first
    return blocks.block_first[block]


@body
def first_of_node(node, clusters, blocks):
    """Return the slot of a node whose turn comes first."""
    if blocks.node_first[node] < 0:
        first = np.int64(-1)
        for block in range(node * SIDE, min(node * SIDE + SIDE, len(blocks.block_near))):
            if blocks.block_near[block] == blocks.node_near[node]:
                k = first_of_block(block, clusters, blocks)
                if is_first(k, first, clusters, blocks):
                    first = k
        blocks.node_first[node] = first
    return blocks.node_first[node]


@body
def next_pair(clusters, blocks):
    """Return (slot, slot of its partner) of the closest pair; the second is -1 where the first has to look anew.

    Bounds that were looked up before are lower ones, as clusters are merged: a pair that is first by them is first.
    """
    least = np.inf
    for node in range(len(blocks.node_near)):
        least = min(least, blocks.node_near[node])
    slot = np.int64(-1)
    for node in range(len(blocks.node_near)):
        if blocks.node_near[node] == least:
            k = first_of_node(node, clusters, blocks)
            if is_first(k, slot, clusters, blocks):
                slot = k
    known = look_up(slot, clusters, blocks)
    if blocks.partner[slot] != known:
        return slot, np.int64(-1)
    return slot, clusters.slot_of[known]


@body
def keep_least(slot, blocks):
    """Bring the smallest distance of a slot's block and node up to date."""
    block, node = slot // SIDE, slot // (SIDE * SIDE)
    blocks.block_first[block] = blocks.node_first[node] = -1
    least = np.inf
    for k in range(block * SIDE, block * SIDE + SIDE):
        least = min(least, blocks.near[np.uint64(k)])
    blocks.block_near[block] = least
    least = np.inf
    for k in range(node * SIDE, min(node * SIDE + SIDE, len(blocks.block_near))):
        least = min(least, blocks.block_near[np.uint64(k)])
    blocks.node_near[node] = least


@body
def keep_oldest(slot, clusters, blocks):
    """Bring the smallest id of a slot's block and node up to date, so that no search looks where all were merged."""
    block, node = slot // SIDE, slot // (SIDE * SIDE)
    oldest = YOUNG
    for k in range(block * SIDE, block * SIDE + SIDE):
        ident = clusters.ident[np.uint64(k)]
        oldest = min(oldest, ident if ident >= 0 else YOUNG)
    blocks.boxes.oldest[block] = oldest
    oldest = YOUNG
    for k in range(node * SIDE, min(node * SIDE + SIDE, len(blocks.block_near))):
        oldest = min(oldest, blocks.boxes.oldest[np.uint64(k)])
    blocks.nodes.oldest[node] = oldest


@body
def put(clusters, blocks, slot, d):
    """Write the coordinates of a slot's cluster, and widen its block and node."""
    block, node = slot // SIDE, slot // (SIDE * SIDE)
    width, node_width = len(blocks.boxes.stretch), len(blocks.nodes.stretch)
    for f in range(d):
        total = 0.0
        for k in range(d):
            total += (clusters.center[slot, k] - blocks.middle[k]) * blocks.turn[k, f]
        x = np.float32(total)
        blocks.place[(block * d + f) * SIDE + slot % SIDE] = x
        blocks.boxes.low[f * width + block] = min(blocks.boxes.low[f * width + block], x)
        blocks.boxes.high[f * width + block] = max(blocks.boxes.high[f * width + block], x)
        blocks.nodes.low[f * node_width + node] = min(blocks.nodes.low[f * node_width + node], x)
        blocks.nodes.high[f * node_width + node] = max(blocks.nodes.high[f * node_width + node], x)
    stretch = np.float32(min(clusters.stretch[slot], HIGHEST)) * DOWN
    blocks.boxes.stretch[block] = min(blocks.boxes.stretch[block], stretch)
    blocks.nodes.stretch[node] = min(blocks.nodes.stretch[node], stretch)


@body
def clear(blocks, slot, d):
    """Empty a slot."""
    for f in range(d):
        blocks.place[((slot // SIDE) * d + f) * SIDE + slot % SIDE] = FAR
    forget(slot, blocks)
    keep_least(slot, blocks)


@kernel
def merge_down_to(_once, count, rule, clusters, shapes, blocks, merges):
    """Merge the closest pair until `count` clusters are left, at least one."""
    d = clusters.center.shape[1]
    while merges.state[ALIVE] > count:
        slot, other = next_pair(clusters, blocks)
        if other >= 0:
            height, was_switched = blocks.near[slot], merges.state[SWITCHED]
            gone, slot = unite(rule, clusters, shapes, merges, height, other, slot, ALL, d)
            clear(blocks, gone, d)
            keep_oldest(gone, clusters, blocks)
            keep_oldest(slot, clusters, blocks)
            begin, end = slot, slot + 1
            switches = merges.state[SWITCHED] != was_switched
            if switches:  # from here on sizes count, and all distances are to be found anew
                begin, end = 0, len(clusters.ident)
            for k in range(begin, end):
                if clusters.ident[k] >= 0:
                    use_shape(rule, clusters, shapes, merges, k, ALL, d)
                    put(clusters, blocks, k, d)
                    if switches:
                        blocks.near[k], blocks.partner[k] = 0.0, -1
                        keep_least(k, blocks)
            if switches:
                continue
        find_nearest(slot, rule, clusters, shapes, blocks, d)
        keep_least(slot, blocks)
