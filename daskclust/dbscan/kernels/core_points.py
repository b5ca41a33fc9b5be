"""DBSCAN's core points: those with enough neighbours."""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import (
    atomic_add,
    count_bits,
    lane_width,
    like,
    lowest,
    lowest_bit,
    places,
    point_at,
    select,
    store,
    times,
)
from daskclust.dbscan.kernels.blocks import BUNDLE, fold_around, sweep_row
from daskclust.dbscan.kernels.links import apart, are_near

DOUBT = np.int32(-1)  # a count that only float64 can tell


@body
def add_population(state, a, b, code, wraps, context):
    """Add the points of each of two blocks to the population of the other."""
    blocks, population = context
    atomic_add(population, a, points_of(b, blocks))
    atomic_add(population, b, points_of(a, blocks))
    return state


@body
def points_of(block, blocks):
    """Return the number of points of a block."""
    return blocks.start[blocks.first_cell[block + 1]] - blocks.start[blocks.first_cell[block]]


@kernel
def start_population(block, blocks, population):
    """Count the points of each block."""
    population[block] = points_of(block, blocks)


@kernel
def spread_population(row, blocks, population):
    """Add the points of the blocks around each block: no point of it has more neighbours."""
    sweep_population(0, row, blocks, (blocks, population))


sweep_population = sweep_row.bind(meet=add_population)


@body
def run_of(near, block, blocks):
    """Return the first run of points in cells of `near` that stand side by side, and `near` without it."""
    occupied = blocks.occupied[block]
    first = lowest_bit(near)
    behind = occupied & ~near & ~((np.int64(1) << first) - 1)  # cells behind the run that are not near
    before = count_bits(occupied & ((np.int64(1) << first) - 1))
    here = blocks.first_cell[block]
    begin, end = np.int64(blocks.start[here + before]), np.int64(blocks.start[blocks.first_cell[block + 1]])
    if behind == 0:
        return begin, end, np.int64(0)
    below = (np.int64(1) << lowest_bit(behind)) - 1
    return begin, np.int64(blocks.start[here + count_bits(occupied & below)]), near & ~below


@body
def near_cells(cells, b, code, blocks):
    """Return the mask of the cells of block b within reach of any of `cells` of a block."""
    near = np.int64(0)
    while cells != 0:
        near |= blocks.reach[lowest_bit(cells), code]
        cells &= cells - 1
    return near & blocks.occupied[b]


@body
def count_near(state, a, b, code, wraps, context):
    """Count the points of block b that are surely, and that are possibly, within eps of a few points of block a."""
    blocks, limits, enough, cells, own = context
    near = near_cells(cells, b, code, blocks)
    while near != 0:
        begin, end, near = run_of(near, b, blocks)
        if wraps:
            sure, possible = state
            state = sure, possible + like(possible, end - begin)  # only float64 tells
        else:
            state = count_run(state, begin, end, own, blocks, limits, enough)
    return state


@body
def count_run(state, begin, end, own, blocks, limits, enough):
    """Count points `begin` to `end` - 1; where they are many, no bundles that are too far, nor more than enough."""
    by_bundle = end - begin >= BUNDLE
    while begin < end and not (by_bundle and lowest(state[0]) >= enough):
        following = min((begin // BUNDLE + 1) * BUNDLE, end) if by_bundle else end
        if not by_bundle or is_bundle_near(begin // BUNDLE, own, blocks, limits):
            state = count_points(state, begin, following, own, blocks, limits)
        begin = following
    return state


@body
def is_bundle_near(bundle, own, blocks, limits):
    """Return whether any of a few points may be within eps of the box of a bundle."""
    axes = len(own)
    total = like(own[0], 0)
    for k in range(axes):
        gap = apart(blocks.boxes[k, bundle] - own[k], own[k] - blocks.boxes[axes + k, bundle])
        total = total + times(gap, gap)
    return lowest(total) <= limits[1]


@body
def count_points(state, begin, end, own, blocks, limits):
    """Count those of points `begin` to `end` - 1 that are surely, and that are possibly, within eps."""
    sure, possible = state
    one, zero = like(sure, 1), like(sure, 0)
    for j in range(np.uint64(begin), np.uint64(end)):
        step = own[0] - blocks.positions[0, j]
        total = times(step, step)
        for k in range(1, len(own)):
            step = own[k] - blocks.positions[k, j]
            total = total + times(step, step)
        sure = sure + select(total <= limits[0], one, zero)
        possible = possible + select(total <= limits[1], one, zero)
    return sure, possible


fold_counts = fold_around.bind(meet=count_near)


@body
def count_exactly(state, a, b, code, wraps, context):
    """Count the points of block b that are within eps of point i of block a, up to `enough` of them."""
    blocks, limits, enough, cells, i = context
    near = near_cells(cells, b, code, blocks)
    while near != 0 and state < enough:
        j, end, near = run_of(near, b, blocks)
        while j < end and state < enough:
            if are_near(i, j, wraps, blocks, limits):
                state += 1
            j += 1
    return state


fold_exact = fold_around.bind(meet=count_exactly)


@body
def count_some(a, cells, i, end, blocks, limits, enough, count):
    """Count the neighbours of points `i` to `end` - 1, which lie in `cells` of block a, up to `enough` of them."""
    while i < end:
        m = min(end - i, lane_width())
        own = point_at(blocks.positions, i, m, blocks.grid.period)
        zero = like(places(np.int64(i), own[0]), 0)
        sure, possible = fold_counts((zero, zero), a, blocks, (blocks, limits, enough, cells, own))
        found = select(possible >= enough, like(zero, DOUBT), sure)
        store(count, i, m, select(sure >= enough, like(zero, enough), found))
        for j in range(i, i + m):
            if count[j] == DOUBT:
                count[j] = fold_exact(np.int64(0), a, blocks, (blocks, limits, enough, cells, j))
        i += m


@kernel
def count_neighbours(a, blocks, limits, enough, population, count):
    """Count the neighbours of the points of block a, themselves included, up to `enough` of them.

    Points of one cell are all neighbours. Those of cells with fewer are taken together, as many as fill a vector.
    """
    mask = blocks.occupied[a]
    cell = blocks.first_cell[a]
    begin = np.int64(blocks.start[cell])
    if population[a] < enough:
        for i in range(begin, blocks.start[blocks.first_cell[a + 1]]):
            count[i] = 0
        return
    while mask != 0:
        end = np.int64(blocks.start[cell + 1])
        is_dense = end - begin >= enough
        cells = np.int64(1) << lowest_bit(mask)  # of points `begin` to `end` - 1
        mask, cell = mask & (mask - 1), cell + 1
        while not is_dense and mask != 0:
            following = np.int64(blocks.start[cell + 1])
            if following - end >= enough or following - begin > lane_width():
                break
            cells |= np.int64(1) << lowest_bit(mask)
            mask, cell, end = mask & (mask - 1), cell + 1, following
        if is_dense:
            for i in range(begin, end):
                count[i] = enough
        else:
            count_some(a, cells, begin, end, blocks, limits, enough, count)
        begin = end


@body
def add_exactly(high, low, weight):
    """Return the sum of a number, kept as two, and `weight`, with the bits that one number would round away."""
    total = high + weight
    part = total - high
    low += (high - (total - part)) + (weight - part)
    rounded = total + low
    return rounded, low - (rounded - total)


@body
def add_weight(high, low, i, weight, rest):
    """Return the sum of a number, kept as two, and the weight of point i, `rest` with it unless empty."""
    high, low = add_exactly(high, low, weight[i])
    if len(rest) > 0:
        high, low = add_exactly(high, low, rest[i])
    return high, low


@kernel
def sum_weights(place, begin, members, weight, high, low):
    """Write the sum of the weights of a place's members, as two numbers."""
    high[place], low[place] = 0.0, 0.0
    for k in range(begin[place], begin[place + 1]):
        high[place], low[place] = add_exactly(high[place], low[place], weight[members[k]])


@body
def weigh_near(state, a, b, code, wraps, context):
    """Add the weights of the points of block b that are within eps of point i."""
    blocks, limits, weight, rest, enough, bit, i = context
    high, low = state
    if high >= enough:
        return state
    near = blocks.reach[bit, code] & blocks.occupied[b]
    while near != 0:
        j, end, near = run_of(near, b, blocks)
        while j < end and high < enough:
            if are_near(i, j, wraps, blocks, limits):
                high, low = add_weight(high, low, blocks.order[j], weight, rest)
            j += 1
    return high, low


fold_weights = fold_around.bind(meet=weigh_near)


@kernel
def weigh_neighbours(a, blocks, limits, enough, is_negative, weight, rest, count):
    """Write 1 for the points of block a whose neighbours, with themselves, weigh at least `enough`, else 0.

    Weights are summed to 106 bits, which for all but absurdly different ones is exact, so in any order; the sum is
    rounded once. Where none is negative the sum need not go on when it is enough.
    """
    mask = blocks.occupied[a]
    cell = blocks.first_cell[a]
    stop_at = np.inf if is_negative else enough
    while mask != 0:
        bit = lowest_bit(mask)
        mask &= mask - 1
        high, low = 0.0, 0.0
        for i in range(blocks.start[cell], blocks.start[cell + 1]):
            high, low = add_weight(high, low, blocks.order[i], weight, rest)
        is_dense = high >= stop_at  # points of one cell are all neighbours
        for i in range(blocks.start[cell], blocks.start[cell + 1]):
            if not is_dense:
                high, _ = fold_weights((0.0, 0.0), a, blocks, (blocks, limits, weight, rest, stop_at, bit, i))
            count[i] = 1 if high >= enough else 0
        cell += 1


@kernel
def forget_far(i, positions, low, high, period, reach, count):
    """Take no point for a core point that is so far outside a chunk's block that some of its neighbours are missing."""
    for k in range(len(low)):
        if outside(np.float64(positions[k, i]), low[k], high[k], period[k]) > reach:
            count[i] = 0


@body
def outside(x, low, high, period):
    """Return how far `x` lies outside the interval from `low` to `high`, around the period if there is one."""
    if period > 0.0 and low > -np.inf:
        above = x - high
        above = above + period if above < 0.0 else above
        below = low - x
        below = below + period if below < 0.0 else below
        return 0.0 if low <= x < high else min(above, below)
    return max(max(low - x, x - high), 0.0)


@kernel
def gather_core(block, blocks, enough, count, stop, held):
    """Move the core points of each cell of a block to its front; they end at `stop`, `held` has a bit for each cell."""
    mask = blocks.occupied[block]
    cell = blocks.first_cell[block]
    holding = np.int64(0)
    while mask != 0:
        if gather_in_cell(cell, blocks, enough, count, stop):
            holding |= mask & -mask
        mask &= mask - 1
        cell += 1
    held[block] = holding


@body
def gather_in_cell(cell, blocks, enough, count, stop):
    """Move the core points of a cell to its front; say whether there are any."""
    i, end = np.int64(blocks.start[cell]), np.int64(blocks.start[cell + 1])
    while i < end:
        if count[i] >= enough:
            i += 1
        else:
            end -= 1
            swap(i, end, blocks, count)
    stop[cell] = end
    return end > blocks.start[cell]


@body
def swap(i, j, blocks, count):
    """Let two sorted points change places."""
    for k in range(len(blocks.grid.period)):
        x = blocks.positions[k, i]
        blocks.positions[k, i] = blocks.positions[k, j]
        blocks.positions[k, j] = x
    at = blocks.order[i]
    blocks.order[i] = blocks.order[j]
    blocks.order[j] = at
    number = count[i]
    count[i] = count[j]
    count[j] = number
