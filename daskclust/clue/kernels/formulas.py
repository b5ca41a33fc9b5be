"""CLUE's formulas, each once (Rovere et al. 2020, equations 2.3 and 2.4 and section 2.2).

As in the authors' program, and unlike in the paper, d = d_c and rho = rho_c count as within, and of equal densities the
later point is the higher one: otherwise equally dense points would have no nearest higher, and each could be a seed.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.exp import exp_of_negative
from daskclust.core.device.kernels import body, kernel, lane_kernel
from daskclust.core.device.operations import highest, like, load, places, point_at, select, square_root, store, times
from daskclust.core.space.box_tree import is_higher, search_below
from daskclust.core.space.grid import distance2, fold_around, fold_neighbours, in_four, no_axis, within_period


# ------------------------------------------------------------------------------------------------ density, equation 2.3
@body
def gaussian(distance, per_scale):
    """exp(-d**2 / (2 sigma**2)) with `per_scale` = 1 / sigma."""
    z = times(distance, like(distance, per_scale))
    return exp_of_negative(times(times(z, z), like(z, -0.5)))


@body
def exponential(distance, per_scale):
    """exp(-d / length) with `per_scale` = 1 / length."""
    return exp_of_negative(times(distance, like(distance, -per_scale)))


@body
def flat(distance, per_scale):
    """One for every neighbour."""
    return like(distance, 1.0)


@body
def chi(distance, per_scale):
    """Return the weight of a neighbour; bound to one of the above or to the user's own."""
    return flat(distance, per_scale)


@body
def limit_at(i, m, reach2):
    """Return what `is_within` compares with: the square of the one dc; bound to `own_limit` where each has its own."""
    return reach2


@body
def own_limit(i, m, dc):
    """Return the dc of sorted points i to i + m - 1."""
    return load(dc, i, m)


@body
def is_within(d2, limit):
    """Return whether a squared distance is within dc; bound to `is_within_own` where `limit` is no square."""
    return d2 <= limit


@body
def is_within_own(d2, limit):
    """Compare distances: the square of each dc may round to that of a larger one."""
    return square_root(d2) <= limit


@body
def add_weight(state, own, positions, j, context):
    """Every point within dc counts with its full weight: chi = 1."""
    period, limit, weight, _, _, _, _ = context
    near = is_within(distance2(own, positions, j, period), limit)
    return (state[0] + select(near, weight[j], like(state[0], 0)),)


@body
def add_weighted(state, own, positions, j, context):
    """Count a point itself with `own_part`, others within dc with neighbor_weight * chi(d)."""
    period, limit, weight, neighbor_weight, per_scale, self, own_part = context
    d2 = distance2(own, positions, j, period)
    part = select(self == j, own_part, times(chi(square_root(d2), per_scale), like(d2, neighbor_weight)))
    return (state[0] + select(is_within(d2, limit), times(part, like(d2, weight[j])), like(d2, 0)),)


@lane_kernel
def density(i, m, row, cells, reach, reach2, weight, alone, neighbor_weight, per_scale, rho):
    """Local density of sorted point i: the sum of chi(d) * weight over points with d <= dc, that of point i.

    `alone` is what the point's own weight counts with: 1, or 0 for several points at one place, which are summed
    elsewhere; it is empty where all are points.
    """
    zero = like(load(weight, i, m), 0)
    own_part = load(alone, i, m) if len(alone) > 0 else like(zero, 1)
    limit = limit_at(i, m, reach2)
    context = (cells.grid.period, limit, weight, neighbor_weight, per_scale, places(i, zero), own_part)
    (total,) = fold_neighbours(i, m, cells, reach, (zero,), context)
    store(rho, i, m, total)


@lane_kernel
def chi_at_zero(i, m, row, neighbor_weight, per_scale, values):
    """Write what the weight of another point at the same place counts with."""
    zero = like(load(values, i, m), 0)
    store(values, i, m, times(chi(zero, per_scale), like(zero, neighbor_weight)))


@lane_kernel
def density_among(i, m, row, points, group, cells, reach, reach2, weight, neighbor_weight, per_scale, rho):
    """Density at sorted point i of `points`, among those in `cells`: of a point that has no weight.

    `group` is the number that the group of each point has among those in `cells`, -1 for others; or empty.
    """
    own = point_at(points.positions, i, m, cells.grid.period)
    zero, limit = like(own[0], 0), limit_at(i, m, reach2)
    context = (cells.grid.period, limit, weight, neighbor_weight, per_scale, like(places(i, zero), -1), zero)
    number, total = np.int64(group[points.order[i]]) if len(group) > 0 else np.int64(0), zero
    if number >= 0:
        _, axis1, axis2, axis3 = in_four(cells.grid.axes, no_axis(cells.grid))
        base = number * axis1.cells * axis2.cells * axis3.cells
        (total,) = fold_around(own, base, cells, reach, (zero,), context)
    store(rho, i, m, total)


# ----------------------------------------------------------------------------------------- nearest higher, equation 2.4
@body
def take_nearer(state, own, positions, j, context):
    """Keep the closest denser point.

    Of points equally far the earlier one in the input counts as closer. Where `tie` is not empty it says instead which
    one does: a place of several points, for which it is -1, before others.

    The loop over candidates waits for what one hands to the next: here a minimum, and for ties two selects whose masks
    do not wait for each other. So a point that is no candidate is put at infinity first.
    """
    period, rho, order, tie, own_rho, own_order = context
    nearest2, nearest_tie = state
    d2 = distance2(own, positions, j, period)
    d2 = select(is_higher(own_rho, own_order, rho[j], order[j]), d2, like(d2, np.inf))
    here = tie[j] if len(tie) > 0 else order[j]
    first = select(here < nearest_tie, here, nearest_tie)
    return (
        select(d2 < nearest2, d2, nearest2),
        select(d2 < nearest2, here, select(d2 == nearest2, first, nearest_tie)),
    )


@body
def largest_nearest2(state, context):
    """How far the search must go on for the point, of those in a SIMD vector, that has the farthest to go."""
    return np.float64(highest(state[0]))


@body
def walk(i, m, cells, reach, state, context):
    """Visit the neighbours; bound to `search_neighbours` where the reach is so large that most need no visit."""
    return fold_neighbours(i, m, cells, reach, state, context)


@lane_kernel
def nearest_higher(i, m, row, cells, reach, beyond2, rho, order, tie, delta, nearest):
    """Index of the closest denser point within the reach and its distance; -1 and inf for none.

    `rho` and `order` are density and index of the sorted points; `tie` is as `take_nearer` says: with it, -1 at a
    distance stands for one of several points.
    """
    own_rho = load(rho, i, m)
    own_order = load(order, i, m)
    context = (cells.grid.period, rho, order, tie, own_rho, own_order)
    state = (like(own_rho, beyond2), like(own_order, -1))
    nearest2, index = walk(i, m, cells, reach, state, context)
    store(delta, i, m, select(nearest2 < beyond2, square_root(nearest2), like(own_rho, np.inf)))
    store(nearest, i, m, index)


@kernel
def nearest_among(s, points, group, tree, members, rho, beyond2, deltas, nearest):
    """Write the index of the closest point of `tree`, as dense as sorted point s of `points` or denser; -1 for none.

    Only where there is none yet; `group` is as in `density_among`. One beyond both deltas does not count.
    """
    at = points.order[s]
    if nearest[at] < 0:
        own = points.positions[:, s]
        me = rho[s], np.int32(-1), group[at] if len(group) > 0 else np.int32(0)
        state = like(own[0], beyond2), np.int64(-1)
        nearest2, index = search_below(me, own, np.int64(1), tree, members, state)
        delta_c, delta_o = deltas_at(at, deltas)
        nearest[at] = index if square_root(nearest2) <= max(delta_c, delta_o) else np.int64(-1)


@kernel
def put_back(i, order, rho, delta, nearest, results):
    """Write density, distance and index of the nearest higher of sorted point i in the order of the input."""
    density, separation, nearest_higher = results
    at = np.uint32(order[i])  # unsigned: no look whether it counts from the end
    density[at] = rho[i]
    separation[at] = delta[i]
    nearest_higher[at] = nearest[i]


# ---------------------------------------------------------------------------------- seeds, outliers, trees, section 2.2
@body
def deltas_at(at, deltas):
    """Return delta_c and delta_o of a point: those of all, or its own from arrays that are not empty."""
    delta_c, delta_o, delta_c_of, delta_o_of = deltas
    own_c = delta_c_of[at] if len(delta_c_of) > 0 else delta_c
    own_o = delta_o_of[at] if len(delta_o_of) > 0 else delta_o
    return own_c, own_o


@kernel
def classify(i, rho, delta, nearest, rhoc, rhoc_of, deltas, owned, parent, is_seed, is_exit):
    """Decide what point i is; `parent` is the point it follows, itself at the root of a tree.

    `rhoc_of` holds one threshold per point, or is empty and `rhoc` serves; `owned` says which points are this chunk's,
    empty for all, and `is_exit` which of them follow one that is not. A nearest higher beyond both deltas does not
    count.
    """
    at = np.uint32(i)  # unsigned: no look whether it counts from the end
    threshold = rhoc_of[at] if len(rhoc_of) > 0 else rhoc
    delta_c, delta_o = deltas_at(at, deltas)
    lone = nearest[at] < 0 or delta[at] > max(delta_c, delta_o)
    dense = rho[at] >= threshold
    follows = not (lone or delta[at] > (delta_c if dense else delta_o))
    is_seed[at] = dense and not follows
    if len(owned) > 0:  # a halo point's chain is another chunk's
        is_seed[at] = is_seed[at] and owned[at]
        is_exit[at] = follows and owned[at] and not owned[np.uint32(nearest[at])]
        follows = follows and owned[at] and not is_exit[at]
    parent[at] = nearest[at] if follows else i


@kernel
def find_root(i, parent, hops, unfinished):
    """Follow the chain of nearest highers towards its end, `hops` links at most; say where that is farther on.

    To be run until none is unfinished. A link then spans what was followed before, so each time chains are `hops` times
    shorter. Other threads shorten them meanwhile: at any time ``parent[i]`` is an ancestor of i.
    """
    root = parent[i]
    above = parent[np.uint32(root)]
    done = 1
    while above != root and done < hops:
        root = above
        above = parent[np.uint32(root)]
        done += 1
    parent[i] = root
    if above != root:
        unfinished[0] = 1


@kernel
def mark_border(i, X, owned, low, high, period, reach, is_border):
    """Mark the chunk's own points within `reach` of a face of its block: points of other blocks may follow them."""
    near = False
    for k in range(len(low)):
        x = np.float64(within_period(X[i, k], period[k]))
        near = near | (x - low[k] <= reach) | (high[k] - x <= reach)
    is_border[i] = near and owned[i]


@kernel
def end_of_chain(i, root, is_seed, seeds_up_to, number_of_exit, labels):
    """Write the number of the seed at the root of point i's tree, or of the exit; -1 below an outlier.

    Seeds are numbered in input order. `number_of_exit` is -1 for others, or empty where there is none.
    """
    r = np.uint32(root[i])
    number, other = seeds_up_to[r] - 1, number_of_exit[r] if len(number_of_exit) > 0 else -1
    labels[i] = number if is_seed[r] else other


@kernel
def emit(i, ids, rho, delta, nearest, deltas, results):
    """Write what was measured of point i, with no nearest higher beyond both deltas; `ids` are global, or empty."""
    density, separation, nearest_higher = results
    at = np.uint32(i)
    delta_c, delta_o = deltas_at(at, deltas)
    near = delta[at] <= max(delta_c, delta_o)
    higher = np.int64(nearest[at])
    if len(ids) > 0 and higher >= 0:
        higher = ids[higher]
    density[at] = rho[at]
    separation[at] = delta[at] if near else like(delta[at], np.inf)
    nearest_higher[at] = higher if near else np.int64(-1)
