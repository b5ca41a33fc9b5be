"""DBSCAN's steps on blocks of cells: links between cells, clusters and the labels of their points.

On the CPU two blocks of up to 64 points are joined point by point (see `masks`), all others cell by cell.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import atomic_add, atomic_min, count_bits, lane_width, lowest_bit
from daskclust.core.device.unionfind import find, unite
from daskclust.dbscan.kernels.blocks import BUNDLE, ONE, SELF, fold_near, fold_near_behind
from daskclust.dbscan.kernels.distances import are_near, bundle_gap2, point_gap2
from daskclust.dbscan.kernels.masks import MOST, beside_block, beside_box, beside_point, core_of, near_lanes, ones

NONE = np.int32(2**31 - 1)  # no cluster
PLACE_BIT = 32  # from which on a number says where a point stands in the input; below is its label


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
def link_cell(bit, a, near, b, wraps, blocks, stop, limits, parent):
    """Join cell `bit` of block a and those cells of block b that `near` names and that it touches.

    Return how many sets became one.
    """
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
def link_within(a, blocks, core, limits, is_whole, parent):
    """Join the cells of block a that touch, and say whether they are all joined."""
    held = core.held[a]
    begin, n = np.uint64(blocks.first[a]), np.uint64(blocks.first[a + 1] - blocks.first[a])
    if n == 1 or held == 0:
        is_whole[a] = True
    elif blocks.heads[a] != 0 and not blocks.grid.always_wraps:
        first = np.uint64(blocks.first_cell[a])
        left = core_of(begin, n, core)
        is_whole[a] = join_points(begin, n, left, blocks.heads[a], first, blocks, limits, parent) == 1
    else:
        is_whole[a] = join_cells(a, held, blocks, core.stop, limits, parent) == 1


@body
def join_points(begin, n, left, heads, first, blocks, limits, parent):
    """Join the cells, from number `first` on, of those core points `left` that touch; return how many sets there are.

    Each set is walked from point to point, so that its root is known: no other thread has these cells yet.
    """
    sets = 0
    while left != 0:
        members = left & (~left + ONE)
        root = first + cell_of(heads, members)
        sets += 1
        left ^= members
        front = members
        while front != 0 and left != 0:
            found = beside_point(begin, n, left, begin + lowest_bit(front), blocks, limits)
            front = (front & (front - ONE)) | found
            left ^= found
            members |= found
        while members != 0:
            parent[first + cell_of(heads, members & (~members + ONE))] = root
            following = heads & ~ones(lowest_bit(members) + ONE)
            members = members & ~ones(lowest_bit(following)) if following != 0 else np.uint64(0)  # without the cell
    return sets


@body
def cell_of(heads, bit):
    """Return which cell of its block the point with this bit is in."""
    return count_bits(heads & (bit | (bit - ONE))) - ONE


@body
def join_cells(a, left, blocks, stop, limits, parent):
    """As `join_points`, from cell to cell, of the cells `left` of block a."""
    sets = 0
    while left != 0:
        root = cell_at(a, lowest_bit(left), blocks)
        front = left & -left
        sets += 1
        left ^= front
        while front != 0:
            bit = lowest_bit(front)
            c = cell_at(a, bit, blocks)
            front &= front - 1
            parent[c] = root
            near = blocks.reach[bit, SELF] & left
            while near != 0:
                other = near & -near
                near ^= other
                if cells_touch(
                    c, cell_at(a, lowest_bit(other), blocks), blocks.grid.always_wraps, blocks, stop, limits
                ):
                    left ^= other
                    front |= other
    return sets


@kernel
def link_behind(a, blocks, core, limits, is_whole, parent):
    """Join the cells of block a and of those behind it that touch."""
    if core.held[a] != 0:
        fold_links(0, a, blocks, (blocks, core, limits, is_whole, parent))


@body
def link_blocks(state, a, b, code, wraps, context):
    """Join the cells of block a and those of block b that touch."""
    blocks, core, limits, is_whole, parent = context
    if core.held[b] == 0:
        return state
    first, other = blocks.first[a], blocks.first[b]
    if blocks.first[a + 1] - first == 1 and blocks.first[b + 1] - other == 1:
        if are_near(first, other, wraps, blocks, limits):
            unite(parent, blocks.first_cell[a], blocks.first_cell[b])
        return state
    both = is_whole[a] and is_whole[b]
    if both and find(parent, some_cell(a, blocks, core)) == find(parent, some_cell(b, blocks, core)):
        return state
    if wraps or blocks.heads[a] == 0 or blocks.heads[b] == 0:
        link_cells(a, b, code, wraps, both, blocks, core, limits, parent)
    else:
        link_points(a, b, both, blocks, core, limits, parent)
    return state


fold_links = fold_near_behind.bind(meet=link_blocks)


@body
def some_cell(a, blocks, core):
    """Return a cell of block a that holds core points."""
    return cell_at(a, lowest_bit(core.held[a]), blocks)


@body
def link_points(a, b, both, blocks, core, limits, parent):
    """Join two blocks of up to 64 points each: of those beside the other's box, one and 16 at a time."""
    i, j = np.uint64(blocks.first[a]), np.uint64(blocks.first[b])
    n, m = np.uint64(blocks.first[a + 1]) - i, np.uint64(blocks.first[b + 1]) - j
    here, there = core_of(i, n, core), core_of(j, m, core)
    if m > 1:
        here = beside_box(i, n, here, b, blocks, limits)
    if n > 1 and here != 0:
        there = beside_box(j, m, there, a, blocks, limits)
    if here == 0 or there == 0:
        return
    if count_bits(here) > count_bits(there):
        a, b, i, j, n, m, here, there = b, a, j, i, m, n, there, here
    c, d = np.uint64(blocks.first_cell[a]), np.uint64(blocks.first_cell[b])
    while here != 0:
        bit = here & (~here + ONE)
        near = beside_point(j, m, there, i + lowest_bit(here), blocks, limits)
        here ^= bit
        while near != 0:
            other = near & (~near + ONE)
            near ^= other
            cells = c + cell_of(blocks.heads[a], bit), d + cell_of(blocks.heads[b], other)
            unite(parent, np.int64(cells[0]), np.int64(cells[1]))
            if both:
                return  # one link joins all of both


@body
def link_cells(a, b, code, wraps, both, blocks, core, limits, parent):
    """Join the cells of two blocks that touch, going through the cells of the block that has fewer."""
    if not wraps and count_bits(core.held[a]) > count_bits(core.held[b]):
        a, b, code = b, a, 2 * SELF - code
    begin, n = np.uint64(blocks.first[a]), np.uint64(blocks.first[a + 1] - blocks.first[a])
    if not wraps and n <= MOST and beside_box(begin, n, core_of(begin, n, core), b, blocks, limits) == 0:
        return
    here = core.held[a]
    while here != 0:
        bit = lowest_bit(here)
        here &= here - 1
        near = blocks.reach[bit, code] & core.held[b]
        if near != 0 and link_cell(bit, a, near, b, wraps, blocks, core.stop, limits, parent) > 0 and both:
            return


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


@kernel
def number_cells(cell, start, stop, parent, first, size, least, up_to, number):
    """Write the cluster that the core points of a cell are in, `NONE` if it has fewer than `least` points.

    `up_to` counts the first points of clusters up to each point of the input.
    """
    root = parent[cell]
    has = stop[cell] > start[cell] and size[root] >= least
    number[cell] = np.int32(up_to[first[root]] - 1) if has else NONE


@body
def lower_labels(state, a, b, code, wraps, context):
    """Lower the cluster number of border points of block a to those of core points of block b within eps."""
    blocks, core, limits, is_whole, number, above, label = context
    if core.held[b] == 0:
        return state
    if is_whole[b] and not wraps:
        lower_to_block(a, b, number[some_cell(b, blocks, core)], context)
        return state
    passed = (blocks, core.stop, limits, core.held, number, above, label)
    mask = blocks.occupied[a]
    cell = blocks.first_cell[a]
    while mask != 0:
        bit = lowest_bit(mask)
        mask &= mask - 1
        near = blocks.reach[bit, code] & core.held[b]
        if near != 0:
            for i in range(np.int64(core.stop[cell]), np.int64(blocks.start[cell + 1])):
                label[i] = lower_label(label[i], i, near, b, wraps, passed)
        cell += 1
    return state


@body
def lower_to_block(a, b, found, context):
    """Lower the cluster number of border points of block a to `found`, if a core point of block b is within eps."""
    blocks, core, limits, _, _, above, label = context
    begin, end = np.uint64(blocks.first[a]), np.uint64(blocks.first[a + 1])
    j, last = np.uint64(blocks.first[b]), np.uint64(blocks.first[b + 1])
    while begin < end:
        n = min(end - begin, MOST)
        near = ~core_of(begin, n, core) & ones(n)
        if a != b and near != 0:
            near = beside_block(begin, n, near, b, blocks, limits)
        while near != 0:
            i = begin + lowest_bit(near)
            near &= near - ONE
            least = above[i] if len(above) > 0 else np.int32(-1)
            if least < found < label[i] and is_core_near(i, j, last, blocks, core, limits):
                label[i] = found
        begin += n


@body
def is_core_near(i, j, last, blocks, core, limits):
    """Return True where one of points `j` to `last` - 1 is a core point within eps of point i."""
    by_bundle = last - j >= BUNDLE
    while j < last:
        n = min(np.uint64(BUNDLE) - j % np.uint64(BUNDLE), last - j)
        near = not by_bundle or point_gap2(i, j // np.uint64(BUNDLE), blocks) <= limits[1]
        if near and beside_point(j, n, core_of(j, n, core), i, blocks, limits) != 0:
            return True
        j += n
    return False


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
    if wraps or lane_width() == 1:
        for j in range(begin, end):  # noqa: SIM110 (numba)
            if are_near(i, j, wraps, blocks, limits):
                return True
        return False
    for j in range(begin, end, lane_width()):
        if near_lanes(i, j, ones(np.uint64(min(end - j, lane_width()))), blocks, limits) != 0:
            return True
    return False


fold_labels = fold_near.bind(meet=lower_labels)


@kernel
def label_border(a, blocks, core, limits, is_whole, number, above, label):
    """Write the smallest cluster number of core points near each sorted border point of a block, above ``above[i]``."""
    has_border = False
    for cell in range(blocks.first_cell[a], blocks.first_cell[a + 1]):
        for i in range(core.stop[cell], blocks.start[cell + 1]):
            label[i] = NONE
            has_border = True
    if has_border:
        fold_labels(0, a, blocks, (blocks, core, limits, is_whole, number, above, label))


@kernel
def label_core(cell, start, stop, number, label):
    """Write the cluster number of the core points of a cell."""
    for i in range(start[cell], stop[cell]):
        label[i] = number[cell]


@kernel
def write_found(cell, start, order, stop, number, label, found):
    """Write the label of each point of a cell, see `as_found`, below its place in the input, in one number."""
    for i in range(start[cell], start[cell + 1]):
        value = np.uint64(as_found(i, i < stop[cell], number[cell], label)) & np.uint64(0xFFFFFFFF)
        found[i] = np.uint64(order[i]) << np.uint64(PLACE_BIT) | value


@body
def as_found(i, is_core, cluster, label):
    """Return the label of sorted point i in few bytes: -1 for noise, -2 - k for a border point of cluster k.

    `cluster` is that of the core points of its cell; `label` has those of the others, if there are any.
    """
    if not is_core:
        cluster = label[i] if len(label) > 0 else NONE
    if cluster == NONE:
        return np.int32(-1)
    return np.int32(cluster) if is_core else np.int32(-2 - cluster)


@kernel
def write_labels(i, found, labels, is_core):
    """Write the label of a point, and whether it is a core point of a cluster."""
    write_label(found[i] >> np.uint64(PLACE_BIT), np.int32(found[i] & np.uint64(0xFFFFFFFF)), labels, is_core)


@body
def write_label(i, found, labels, is_core):
    """Write the label of a point, see `as_found`."""
    labels[i] = found if found >= -1 else -2 - found
    is_core[i] = found >= 0


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
