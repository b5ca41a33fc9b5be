"""DBSCAN's steps on blocks of cells: distances, links between cells, clusters and the labels of their points.

Squared distances are taken in the precision of the points first. Two numbers bound the rounding: up to the one points
are surely within eps of each other, beyond the other surely not, and float64 decides between them. So the answer is
that of float64, whatever the precision, the order of the loops or the device.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import atomic_add, atomic_min, count_bits, like, lowest_bit, select, times
from daskclust.core.device.unionfind import find, unite
from daskclust.dbscan.kernels.blocks import BUNDLE, SELF, fold_around, sweep_row

NONE = np.int32(2**31 - 1)  # no cluster


# ------------------------------------------------------------------------------------------------------------ distances
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


@body
def cell_at(block, bit, blocks):
    """Return the number of the cell with this bit, of a block that has it."""
    return blocks.first_cell[block] + count_bits(blocks.occupied[block] & ((np.int64(1) << bit) - 1))


# ---------------------------------------------------------------------------------------------------------------- links
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
def link_cell(bit, a, near, b, wraps, links):
    """Join cell `bit` of block a and those cells of block b that `near` names and that it touches.

    Return how many sets became one.
    """
    blocks, stop, limits, _, _, _, parent = links
    c = cell_at(a, bit, blocks)
    root = find(parent, c)
    joined = 0
    while near != 0:
        d = cell_at(b, lowest_bit(near), blocks)
        near &= near - 1
        if find(parent, d) != root and cells_touch(c, d, wraps, blocks, stop, limits):
            unite(parent, c, d)
            root = find(parent, c)
            joined += 1
    return joined


@kernel
def link_within(a, blocks, stop, limits, held, is_whole, is_near, parent):
    """Join the cells of block a that touch; say whether they are all joined, and whether there are any."""
    links = (blocks, stop, limits, held, is_whole, is_near, parent)
    here = held[a]
    is_near[a] = here != 0
    apart = count_bits(here)
    while here & (here - 1) != 0:
        bit = lowest_bit(here)
        here &= here - 1
        apart -= link_cell(bit, a, blocks.reach[bit, SELF] & here, a, blocks.grid.always_wraps, links)
    is_whole[a] = apart == 1


@body
def link_blocks(state, a, b, code, wraps, links):
    """Join the cells of block a and those of block b that touch."""
    blocks, _, _, held, is_whole, is_near, parent = links
    here, there = held[a], held[b]
    if here == 0 or there == 0:
        if here != 0:  # several threads may write this: they all write the same
            is_near[b] = True
        if there != 0:
            is_near[a] = True
        return state
    both = is_whole[a] and is_whole[b]
    if both:
        c, d = cell_at(a, lowest_bit(here), blocks), cell_at(b, lowest_bit(there), blocks)
        if find(parent, c) == find(parent, d):
            return state
    while here != 0:
        bit = lowest_bit(here)
        here &= here - 1
        near = blocks.reach[bit, code] & there
        if near != 0 and link_cell(bit, a, near, b, wraps, links) > 0 and both:
            return state  # one link joins all of both
    return state


@kernel
def link_row(row, blocks, stop, limits, held, is_whole, is_near, parent):
    """Join the cells of blocks that touch, the first of this row and the second of it or behind it."""
    sweep_links(0, row, blocks, (blocks, stop, limits, held, is_whole, is_near, parent))


sweep_links = sweep_row.bind(meet=link_blocks)


# ------------------------------------------------------------------------------------------------------------- clusters
@kernel
def start_counts(i, first, size, is_first):
    """Start with no point in any set, for `first_points`, and no first point of a cluster, for `mark_first`."""
    if i < len(first):
        first[i], size[i] = NONE, 0
    if i < len(is_first):
        is_first[i] = False


@kernel
def first_points(cell, start, order, stop, in_order, owned, parent, first, size):
    """Find the first core point in the order of the input, and the number of core points, of each set of cells.

    Only own points are counted: `owned` tells them by their place in the input; it is empty where all are. `in_order`
    says that the core points of a cell stand as in the input. Each cell's parent becomes the root of its set.
    """
    begin, end = start[cell], stop[cell]
    if begin == end:
        return
    root = find(parent, cell)
    parent[cell] = root
    least, own = order[begin], np.int32(end - begin)
    if not in_order:
        for i in range(begin, end):
            least = min(least, order[i])
    if len(owned) > 0:
        own = np.int32(0)
        for i in range(begin, end):
            own += 1 if owned[order[i]] else 0
    if least < first[root]:  # a stale value is only too large
        atomic_min(first, root, least)
    if own > 0:
        atomic_add(size, root, own)


@kernel
def mark_first(cell, start, stop, parent, first, size, least, is_first):
    """Mark the first point of every cluster that has at least `least` points."""
    if parent[cell] == cell and stop[cell] > start[cell] and size[cell] >= least:
        is_first[first[cell]] = True


@body
def cluster_of(cell, start, stop, clusters):
    """Return the number of the cluster that a cell's core points are in, or `NONE`.

    `clusters` are each cell's root, each root's first point, number of points, the least that makes a cluster, and the
    number of first points up to each.
    """
    parent, first, size, least, up_to = clusters
    root = parent[cell]
    has = stop[cell] > start[cell] and size[root] >= least
    return np.int32(up_to[first[root]] - 1) if has else NONE


@kernel
def number_cells(cell, start, stop, clusters, number):
    """Write each cell's cluster number."""
    number[cell] = cluster_of(cell, start, stop, clusters)


@body
def lower_labels(state, a, b, code, wraps, context):
    """Lower the cluster number of border points of block a to those of core points of block b within eps."""
    blocks, stop, _, held, _, _, label = context
    there = held[b]
    mask = blocks.occupied[a]
    cell = blocks.first_cell[a]
    while mask != 0 and there != 0:
        bit = lowest_bit(mask)
        mask &= mask - 1
        if stop[cell] < blocks.start[cell + 1] and blocks.reach[bit, code] & there != 0:
            for i in range(np.int64(stop[cell]), np.int64(blocks.start[cell + 1])):
                label[i] = lower_label(label[i], i, blocks.reach[bit, code] & there, b, wraps, context)
        cell += 1
    return state


@body
def lower_label(label, i, near, b, wraps, context):
    """Return the smallest of `label` and the numbers of those cells of block b with a core point within eps of i.

    Only numbers beyond ``above[i]`` count, unless that is empty.
    """
    blocks, stop, limits, _, number, above, _ = context
    least = above[i] if len(above) > 0 else np.int32(-1)
    while near != 0:
        c = cell_at(b, lowest_bit(near), blocks)
        near &= near - 1
        if least < number[c] < label and touches(i, c, wraps, blocks, stop, limits):
            label = number[c]
    return label


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
    for j in range(begin, end):  # noqa: SIM110 (numba)
        if are_near(i, j, wraps, blocks, limits):
            return True
    return False


fold_labels = fold_around.bind(meet=lower_labels)


@kernel
def label_border(block, blocks, stop, limits, held, is_near, number, above, label):
    """Write the smallest cluster number of core points near each sorted border point of a block, above ``above[i]``."""
    for cell in range(blocks.first_cell[block], blocks.first_cell[block + 1]):
        for i in range(stop[cell], blocks.start[cell + 1]):
            label[i] = NONE
    if is_near[block]:
        fold_labels(0, block, blocks, (blocks, stop, limits, held, number, above, label))


@kernel
def label_core(cell, start, stop, number, label):
    """Write the cluster number of the core points of a cell."""
    for i in range(start[cell], stop[cell]):
        label[i] = number[cell]


@kernel
def write_labels(cell, start, order, stop, clusters, label, labels, is_core):
    """Write the labels of the points of a cell in input order, noise -1; `label` has those of points not core."""
    found = cluster_of(cell, start, stop, clusters)
    for i in range(start[cell], start[cell + 1]):
        write_label(i, order[i], i < stop[cell], found, label, labels, is_core)


@body
def write_label(i, point, is_core_point, found, label, labels, is_core):
    """Write the label of sorted point `i`, given the cluster of its cell's core points."""
    if not is_core_point:
        found = label[i] if len(label) > 0 else NONE
    labels[point] = found if found != NONE else -1
    is_core[point] = is_core_point and found != NONE


@kernel
def mark_shared(i, positions, order, owned, low, high, reach, is_shared):
    """Mark the own points that other chunks may see in their halo, and all halo points."""
    near = not owned[order[i]]
    for k in range(len(low)):
        x = np.float64(positions[k, i])
        near = near or x - low[k] <= reach or high[k] - x <= reach
    is_shared[i] = near


@kernel
def lower_to_set(i, others, number, labels):
    """Lower the label of a point, ``others[i, 0]``, to the number of a further set, ``others[i, 1]``."""
    atomic_min(labels, others[i, 0], number[others[i, 1]])
