"""CLUE3D's formulas, each once (CMSSW's RecoHGCal/TICL, PatternRecognitionbyCLUE3D; its parameters have its names).

Angles are made of additions, multiplications and square roots alone, so that they have the same bits on every device.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.exp import exp_of_negative
from daskclust.core.device.kernels import body, kernel, lane_kernel
from daskclust.core.device.operations import (
    atomic_add,
    highest,
    like,
    load,
    places,
    select,
    square_root,
    store,
    times,
)
from daskclust.core.space.grid import fold_neighbours

_TURN = 2 * math.pi
_LEGS = math.sqrt(2) * (1 + 1e-5)  # squares and distances are rounded
_STEEPEST = 2.0**40  # z / r on the beam axis, where there is no pseudorapidity


# --------------------------------------------------------------------------------------------------------------- angles
@body
def arctangent(t):
    """Arc tangent of 0 <= t <= 1, float64: its angle is halved twice, and the series then falls by 25 a term."""
    for _ in range(2):
        t = t / (1.0 + math.sqrt(1.0 + times(t, t)))
    square, total = times(t, t), 0.0
    for k in range(25, 0, -2):
        total = 1.0 / k - times(square, total)
    return times(4.0, times(t, total))


@body
def azimuth(x, y):
    """Angle of (x, y) from -pi to pi, float64; 0 at the origin."""
    low, high = min(abs(x), abs(y)), max(abs(x), abs(y))
    angle = arctangent(low / high) if high > 0.0 else 0.0
    if abs(y) > abs(x):
        angle = math.pi / 2 - angle
    if x < 0.0:
        angle = math.pi - angle
    return -angle if y < 0.0 else angle


@body
def logarithm(a):
    """Natural logarithm of a >= 1, float64, by Halley's steps, which approach it from below."""
    y = 0.0
    for _ in range(64):
        rest = times(a, exp_of_negative(np.float64(-y)))
        step = 2.0 * (rest - 1.0) / (rest + 1.0)
        y = max(0.0, y + step)
        if abs(step) < 1e-9:
            break
    return y


@body
def on_plane(x, y, z, r):
    """Return abs(z), and the place and the distance from the axis of the image on the plane at z = 1."""
    far = abs(z)
    return far, x / far, y / far, r / far


@body
def in_eta_phi(x, y, z, r):
    """Return 1, pseudorapidity and azimuth, and the pseudorapidity again."""
    steep = min(abs(z), times(r, _STEEPEST)) / r if r > 0.0 else _STEEPEST
    eta = logarithm(steep + math.sqrt(1.0 + times(steep, steep)))
    return 1.0, eta, azimuth(x, y), eta


@body
def locate(x, y, z, r):
    """Stand for one of the above; kernels are bound to it."""
    return on_plane(x, y, z, r)


@kernel
def find_place(i, X, layer, place, points):
    """Write where point i is among cells, and the coordinates by which it is compared with others."""
    scale, radial, phi = points
    x, y, z = np.float64(X[i, 0]), np.float64(X[i, 1]), np.float64(X[i, 2])
    scale[i], place[i, 0], place[i, 1], radial[i] = locate(x, y, z, math.sqrt(times(x, x) + times(y, y)))
    place[i, 2] = layer[i]
    phi[i] = azimuth(x, y)


# ------------------------------------------------------------------------------------------------------------ distances
@body
def turn_between(one, other):
    """Return the difference of two azimuths, at most half a turn."""
    turn = abs(one - other)
    image = like(turn, _TURN) - turn
    return select(image < turn, image, turn)


@body
def projected2(own, radial, phi, j):
    """Squared distance on the own layer, to which the other point is moved along its line from the origin."""
    scale, own_radial, own_phi = own
    there = times(scale, radial[j])
    along, around = times(scale, own_radial) - there, times(there, turn_between(own_phi, phi[j]))
    return times(along, along) + times(around, around)


@body
def eta_phi2(own, radial, phi, j):
    """Squared distance in pseudorapidity and azimuth."""
    _, own_radial, own_phi = own
    along, around = own_radial - radial[j], turn_between(own_phi, phi[j])
    return times(along, along) + times(around, around)


@body
def distance2(own, radial, phi, j):
    """Stand for one of the above; kernels are bound to it."""
    return projected2(own, radial, phi, j)


class ShowerRule(NamedTuple):
    """Parameters, in the dtype of the points."""

    density_distance2: Any  # squared distance within which energies count
    by_radius: bool  # whether that is the radius of each layer cluster instead
    critical_distance: Any
    outlier_distance: Any
    kernel_density_factor: Any
    same_layer_factor: Any  # kernel_density_factor, or 0
    density_sibling_layers: Any
    least_layers: Any  # between a point and its nearest higher: 1, or 0
    critical_density: Any
    critical_self_density: Any
    critical_z_distance_lyr: Any


class ClusterSizes(NamedTuple):
    """Columns that not all have: each empty, or one value for each layer cluster."""

    radius: Any
    is_silicon: Any


class Compared(NamedTuple):
    """What is compared of points, in the order of cells, padded like these."""

    scale: Any  # by which distances at z = 1 become those on the point's layer; 1 in eta and phi
    radial: Any
    phi: Any
    limit2: Any  # squared distance within which energies count
    reach: Any  # how far away along the axes of cells these may be
    farthest: Any  # and a nearest higher


@body
def goes_by_radius(i, sizes):
    """Return whether distances of layer cluster i are its radius: that is so in scintillators."""
    return len(sizes.is_silicon) > 0 and not sizes.is_silicon[i]


@body
def critical_distance_of(i, rule, sizes):
    """Return how far layer cluster i must be from its nearest higher to be a seed."""
    return sizes.radius[i] if goes_by_radius(i, sizes) else rule.critical_distance


@body
def farthest_of(i, rule, sizes):
    """Return how far away the nearest higher of layer cluster i may be."""
    return max(max(rule.critical_distance, rule.outlier_distance), critical_distance_of(i, rule, sizes))


@kernel
def arrange(p, order, points, sizes, rule, widest, slack, found):
    """Write what is compared of sorted point p, and how far it looks; `widest` is as far as there are points.

    On the plane at z = 1 two points are at most sqrt(2) times as far apart as the distance says: one way from one to
    the other is along the radius, then along the arc around the axis, and these are the legs of the distance.
    """
    i = np.uint32(order[p])
    scale, radial, phi = points
    limit2 = rule.density_distance2
    if rule.by_radius or goes_by_radius(i, sizes):
        limit2 = times(sizes.radius[i], sizes.radius[i])
    found.scale[p], found.radial[p], found.phi[p], found.limit2[p] = scale[i], radial[i], phi[i], limit2
    legs = _LEGS / np.float64(scale[i])
    found.reach[p] = min(widest, times(legs, math.sqrt(np.float64(limit2))) + slack)
    found.farthest[p] = min(widest, times(legs, np.float64(farthest_of(i, rule, sizes))) + slack)


# -------------------------------------------------------------------------------------------- density, nearest higher
@body
def add_energy(state, own, positions, j, context):
    """Count the energy of point j: in full if it is the point itself, else by the factors of own and other layers."""
    mine, radial, phi, energy, limit2, self, rule = context
    layers = abs(own[2] - positions[2, j])
    is_self = self == j
    near = (distance2(mine, radial, phi, j) < limit2) & (layers <= rule.density_sibling_layers)
    factor = select(layers > 0, like(layers, rule.kernel_density_factor), like(layers, rule.same_layer_factor))
    part = times(select(is_self, like(layers, 1), factor), like(layers, energy[j]))
    return (state[0] + select(near | is_self, part, like(layers, 0)),)


@lane_kernel
def density(i, m, row, cells, found, energy, rule, rho):
    """Local density of sorted point i: energies within the window of layers and the distance across."""
    mine = load(found.scale, i, m), load(found.radial, i, m), load(found.phi, i, m)
    limit2, far = load(found.limit2, i, m), np.float64(highest(load(found.reach, i, m)))
    context = mine, found.radial, found.phi, energy, limit2, places(i, limit2), rule
    reach = far, far, np.float64(rule.density_sibling_layers)
    (total,) = fold_neighbours(i, m, cells, reach, (like(limit2, 0),), context)
    store(rho, i, m, total)


@body
def take_nearer(state, own, positions, j, context):
    """Keep the closest higher point; of points equally far the earlier one in the input."""
    mine, radial, phi, rho, order, own_rho, own_order, rule = context
    nearest2, nearest = state
    layers = abs(own[2] - positions[2, j])
    is_higher = (own_rho < rho[j]) | ((own_rho == rho[j]) & (own_order < order[j]))
    window = (layers <= rule.density_sibling_layers) & (layers >= rule.least_layers)
    d2 = select(is_higher & window, distance2(mine, radial, phi, j), like(own_rho, np.inf))
    first = select(order[j] < nearest, order[j], nearest)
    return (
        select(d2 < nearest2, d2, nearest2),
        select(d2 < nearest2, order[j], select(d2 == nearest2, first, nearest)),
    )


@lane_kernel
def nearest_higher(i, m, row, cells, found, rho, rule, delta, nearest):
    """Index of the closest higher point within the window of layers, and its distance; -1 and inf for none."""
    mine = load(found.scale, i, m), load(found.radial, i, m), load(found.phi, i, m)
    own_rho, own_order = load(rho, i, m), load(cells.order, i, m)
    far = np.float64(highest(load(found.farthest, i, m)))
    context = mine, found.radial, found.phi, rho, cells.order, own_rho, own_order, rule
    reach = far, far, np.float64(rule.density_sibling_layers)
    state = like(own_rho, np.inf), like(own_order, -1)
    nearest2, index = fold_neighbours(i, m, cells, reach, state, context)
    store(delta, i, m, square_root(nearest2))
    store(nearest, i, m, index)


# ------------------------------------------------------------------------------------------- seeds, outliers, showers
@kernel
def decide(p, order, rho, delta, nearest, energy, layer, sizes, rule, results):
    """Say what sorted point p is, in the order of the input: `parent` is the point it follows, itself at a root."""
    density_of, delta_of, nearest_of, is_seed, parent = results
    i = np.uint32(order[p])
    there = nearest[p] >= 0 and delta[p] <= farthest_of(i, rule, sizes)
    distance = delta[p] if there else like(delta[p], np.inf)
    critical = critical_distance_of(i, rule, sizes)
    dense = rho[p] >= rule.critical_density
    far = not there or distance > critical
    if there:
        far = far or abs(np.int64(layer[i]) - np.int64(layer[nearest[p]])) > rule.critical_z_distance_lyr
    seed = far and dense and energy[i] > times(rule.critical_self_density, rho[p])
    outlier = not dense and distance > rule.outlier_distance
    density_of[i], delta_of[i], nearest_of[i] = rho[p], distance, nearest[p] if there else -1
    is_seed[i] = seed
    parent[i] = nearest[p] if there and not seed and not outlier else i


@kernel
def count_member(i, root, is_seed, seeds, shower_of, sizes):
    """Write the number of the seed at the root of point i's tree, -1 for noise, and count the members of each."""
    r = np.uint32(root[i])
    shower_of[i] = seeds[r] - 1 if is_seed[r] else -1
    if is_seed[r]:
        atomic_add(sizes, seeds[r] - 1, 1)


@kernel
def take_label(i, shower_of, is_seed, numbers, labels, of_cluster):
    """Write the label of point i, and whether it is the seed of a shower that is kept."""
    labels[i] = numbers[shower_of[i]] if shower_of[i] >= 0 else -1
    of_cluster[i] = is_seed[i] and labels[i] >= 0


@kernel
def to_ids(i, ids, nearest, higher):
    """Write the id of the nearest higher of point i; `ids` are empty where they count up from 0."""
    at = np.int64(nearest[i])
    higher[i] = ids[at] if len(ids) > 0 and at >= 0 else at
