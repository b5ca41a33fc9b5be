"""Links of DBSCAN: cells whose core points are within eps become one set.

On the CPU two blocks of up to 64 points are joined point by point (see `masks`), all others cell by cell.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import count_bits, lowest_bit
from daskclust.core.device.unionfind import find, unite
from daskclust.dbscan.kernels.blocks import ONE, SELF, fold_near_behind
from daskclust.dbscan.kernels.cells import cell_at, cells_touch, some_cell
from daskclust.dbscan.kernels.distances import are_near
from daskclust.dbscan.kernels.masks import MOST, beside_box, beside_point, core_of, ones


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
        fold_links(0, a, core.bitmap, blocks, (blocks, core, limits, is_whole, parent))


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
