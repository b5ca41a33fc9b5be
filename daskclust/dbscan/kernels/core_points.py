"""DBSCAN's core points: those with enough neighbours."""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import atomic_add, count_bits, lane_width, lowest_bit
from daskclust.dbscan.kernels.blocks import BUNDLE, ONE, SELF, block_seen, codes_around, fold_around, fold_near
from daskclust.dbscan.kernels.distances import are_near, point_gap2
from daskclust.dbscan.kernels.masks import MOST, beside_block, core_of, fewer, near_lanes, ones

MANY = 4 * BUNDLE  # points of a block whose boxes are worth a look


@body
def add_population(state, a, b, code, wraps, context):
    """Add the number of points of block b, unless there are enough."""
    blocks, enough = context
    return state if state >= enough else state + np.int64(blocks.first[b + 1] - blocks.first[b])


fold_population = fold_around.bind(meet=add_population)


@kernel
def count_neighbours(a, blocks, everyone, limits, enough, count):
    """Count the neighbours of the points of block a, themselves included, up to `enough` of them."""
    begin, end = blocks.first[a], blocks.first[a + 1]
    for i in range(begin, end):
        count[i] = 0
    is_inside = len(blocks.inside) > 0 and blocks.inside[a] >= 0
    codes = codes_around(blocks.inside[a], blocks.bitmap, blocks.grid) if is_inside else np.uint64(0)
    codes &= ~(ONE << np.uint64(SELF))
    population, others = np.int64(end - begin), codes
    while population < enough and others != 0:
        b = block_seen(a, np.int64(lowest_bit(others)), blocks)
        population += blocks.first[b + 1] - blocks.first[b]
        others &= others - ONE
    if population < enough and (is_inside or fold_population(np.int64(0), a, blocks, (blocks, enough)) < enough):
        return
    if end - begin >= enough:  # points of one cell are all neighbours
        for cell in range(blocks.first_cell[a], blocks.first_cell[a + 1]):
            if blocks.start[cell + 1] - blocks.start[cell] >= enough:
                for i in range(blocks.start[cell], blocks.start[cell + 1]):
                    count[i] = enough
    context = (blocks, everyone, limits, enough, count)
    left = fewer(np.uint64(begin), min(np.uint64(end - begin), MOST), count, enough)
    if end - begin == 1:
        count[begin] = 1
    else:
        left = count_in_block(left, a, a, np.int64(SELF), blocks.grid.always_wraps, context)
    if not is_inside:
        fold_counts(left, a, blocks, context)
    while codes != 0 and left != 0:
        code = np.int64(lowest_bit(codes))
        left = count_in_block(left, a, block_seen(a, code, blocks), code, False, context)
        codes &= codes - ONE


@body
def count_in_others(left, a, b, code, wraps, context):
    """As `count_in_block`, of other blocks than `a` itself."""
    return count_in_block(left, a, b, code, wraps, context) if left != 0 and a != b else left


@body
def count_in_block(left, a, b, code, wraps, context):
    """Add the neighbours in block b to the counts of those points `left` of block a; return those that need more.

    Of a block of more than 64 points, `left` tells only whether there are any.
    """
    blocks, _, _, enough, count = context
    begin, end = np.uint64(blocks.first[a]), np.uint64(blocks.first[a + 1])
    if end - begin <= MOST:
        return count_of_mask(left, begin, end - begin, a, b, wraps, context)
    left = np.uint64(0)
    while begin < end:
        n = min(end - begin, MOST)
        left |= count_of_mask(fewer(begin, n, count, enough), begin, n, a, b, wraps, context)
        begin += n
    return left


@body
def count_of_mask(left, begin, n, a, b, wraps, context):
    """As `count_in_block`, of `n` <= 64 points of block a from `begin` on."""
    blocks, everyone, limits, enough, count = context
    j, last = np.uint64(blocks.first[b]), np.uint64(blocks.first[b + 1])
    near = left
    if a != b and left != 0 and not wraps:
        near = beside_block(begin, n, left, b, blocks, limits)
    while near != 0:
        bit = near & (~near + ONE)
        near ^= bit
        i = begin + lowest_bit(bit)
        if wraps:
            total = count_exactly(i, j, last, count[i], enough, blocks, limits)
        elif last - j == 1 and a != b:
            total = count[i] + 1
        elif last - j >= MANY:
            total = count_points(i, j, last, count[i], enough, everyone, blocks, limits)
        else:
            total = count_few(i, j, last, count[i], enough, blocks, limits)
        count[i] = total
        if total >= enough:
            left ^= bit
    return left


fold_counts = fold_around.bind(meet=count_in_others)


@body
def count_few(i, j, last, total, enough, blocks, limits):
    """Add to `total` how many of the points `j` to `last` - 1 are within eps of point i, while it is not enough."""
    while j < last and total < enough:
        total += np.int32(count_bits(near_lanes(i, j, ones(last - j), blocks, limits)))
        j += np.uint64(lane_width())
    return total


@body
def count_points(i, j, last, total, enough, core, blocks, limits):
    """Add to `total` how many core points among `j` to `last` - 1 are within eps of point i, while it is not enough."""
    by_bundle = last - j >= BUNDLE
    while j < last and total < enough:
        stop = min(j + np.uint64(BUNDLE) - j % np.uint64(BUNDLE), last)
        if by_bundle and point_gap2(i, j // np.uint64(BUNDLE), blocks) > limits[1]:
            j = stop
        while j < stop and total < enough:
            n = min(np.uint64(lane_width()), stop - j)
            total += np.int32(count_bits(near_lanes(i, j, core_of(j, n, core), blocks, limits)))
            j += n
    return total


@body
def count_exactly(i, j, last, total, enough, blocks, limits):
    """As `count_points`, where distances may go around a period."""
    while j < last and total < enough:
        if are_near(i, j, True, blocks, limits):
            total += np.int32(1)
        j += np.uint64(1)
    return total


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


fold_weights = fold_near.bind(meet=weigh_near)


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
                context = blocks, limits, weight, rest, stop_at, bit, i
                high, _ = fold_weights((0.0, 0.0), a, blocks.bitmap, blocks, context)
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
def gather_core(block, blocks, enough, count, stop, held, bitmap):
    """Move the core points of each cell of a block to its front, and write the rest of `CorePoints`."""
    mask = blocks.occupied[block]
    cell = blocks.first_cell[block]
    begin, end = np.uint64(blocks.first[block]), np.uint64(blocks.first[block + 1])
    short, holding = fewer(begin, min(end - begin, MOST), count, enough), np.int64(0)
    if end - begin <= MOST and (short == 0 or short == ones(end - begin)):  # of most blocks all are, or none
        for c in range(cell, blocks.first_cell[block + 1]):
            stop[c] = blocks.start[c + 1] if short == 0 else blocks.start[c]
        holding, mask = mask if short == 0 else holding, np.int64(0)
    while mask != 0:
        if gather_in_cell(cell, blocks, enough, count, stop):
            holding |= mask & -mask
        mask &= mask - 1
        cell += 1
    held[block] = holding
    if holding != 0 and len(bitmap) > 0:
        place = blocks.inside[block]
        place = place if place >= 0 else ~place
        atomic_add(bitmap, place >> 6, ONE << np.uint64(place & 63))


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
    if len(blocks.slot) > 0:
        at = blocks.slot[i]
        blocks.slot[i] = blocks.slot[j]
        blocks.slot[j] = at
    number = count[i]
    count[i] = count[j]
    count[j] = number
