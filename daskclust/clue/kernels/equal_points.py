"""Points that are equal, in large numbers: taken together as one point with their weight.

Their distances to others are the same, and those to each other are 0. So a density is summed once for all of them, and
of all of them only the highest one looks for a higher one elsewhere.

Only from `MANY` equal points on: with fewer, all stays as it is. Whether points are taken together depends on them
alone, not on what else is in their chunk: the sums, down to their rounding, do not depend on chunks.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.arrays import Cuda, Host, fill
from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import atomic_add, atomic_cas, atomic_load, atomic_min, like, times
from daskclust.core.space.grid import Cells, axis_cell, begin_of

MANY = 64  # equal points; measured: with fewer at a place the sums take less time than finding these places


class PointPlaces(NamedTuple):
    """Distinct places of the points: of many that are equal, and of every other one."""

    of_row: Any  # (n,) place of each point; places are numbered by their first point
    firsts: Any  # (k,) the first point of each
    rows: Any  # (n,) points, place after place, in their order
    begin: Any  # (k + 1,) where each place begins among them


def find_places(device: Host | Cuda, cells: Cells, n: int, group: Any) -> PointPlaces | None:
    """Return the places of `n` points sorted into `cells`; None where no `MANY` of them are equal."""
    found = device.full(1, 0, np.int32)
    stride = (MANY + 1) // 2
    device.run(_look_for_crowds, n // stride, stride, cells, MANY, found)
    if not device.to_host(found)[0]:
        return None
    size = 1 << (2 * n - 1).bit_length()
    table, same = device.empty(size, np.int32), device.empty(n, np.int32)
    count, mixed, first = (device.full(n, value, np.int32) for value in (0, 0, n))
    device.run(fill, size, table, np.int32(-1))
    tiny = _tiny(cells.positions.dtype, cells.grid.period)
    device.run(_join_equal, n, cells, group, MANY, tiny, table, same, count, mixed, first)
    up_to = device.empty(n, np.int32)
    first_of = device.empty(n, np.int32)
    device.run(_name_first, n, cells.order, same, MANY, count, mixed, first, first_of, up_to)
    device.running_sum(up_to, up_to)
    k = int(device.to_host(up_to[n - 1 : n])[0])
    if k == n:
        return None
    of_row, firsts = device.empty(n, np.int64), device.empty(k, np.int32)
    device.run(_number, n, first_of, up_to, of_row, firsts)
    rows, begin = device.order_of(of_row), device.empty(k + 1, np.int32)
    device.run(_mark_begin, n, rows, of_row, begin)
    return PointPlaces(of_row, firsts, rows, begin)


def _tiny(dtype: Any, period: tuple[float, ...]) -> tuple[float, ...]:
    """Return, for each axis, how near to 0 coordinates may differ and yet have a squared distance that is 0."""
    info = np.finfo(dtype)
    underflow = 4 * float(info.smallest_subnormal) ** 0.5 / float(info.eps)
    return tuple(max(underflow, cycle * float(info.eps)) for cycle in period)


@body
def cell_ends(s, cells):
    """Return where the cell of sorted point s begins and ends."""
    axis = cells.grid.axes[0]
    cell = np.int64(cells.row[s]) * axis.cells + axis_cell(np.float64(cells.positions[0, s]), axis)
    return begin_of(cell, cells), begin_of(cell + 1, cells)


@kernel
def _look_for_crowds(k, stride, cells, many, found):
    """Mark that there are `many` points in a cell: then it has all of some `stride` points from a multiple of it on."""
    s, other = k * stride, (k + 1) * stride - 1
    if cells.row[s] == cells.row[other]:
        x, y = np.float64(cells.positions[0, s]), np.float64(cells.positions[0, other])
        if axis_cell(x, cells.grid.axes[0]) == axis_cell(y, cells.grid.axes[0]):
            begin, end = cell_ends(s, cells)
            if end - begin >= many:
                found[0] = 1


@body
def rounded(x, tiny, period):
    """Return a coordinate, all that are at no distance from 0 as 0."""
    at_seam = period > 0.0 and x >= like(x, period)
    return like(x, 0) if at_seam or np.float64(abs(x)) < tiny else x


@body
def mixed_in(code, part):
    """Return a hash code, 32 bits, with another 32 bits mixed in."""
    code = ((code ^ part) * np.int64(0x5BD1E995)) & np.int64(0xFFFFFFFF)
    return code ^ (code >> 15)


@body
def code_of(s, cells, group, tiny):
    """Return the hash code of a sorted point's place."""
    mask = np.int64(0xFFFFFFFF)
    code = np.int64(group[cells.order[s]]) & mask if len(group) > 0 else np.int64(0)
    for k in range(len(tiny)):
        x = np.float64(rounded(cells.positions[k, s], tiny[k], cells.grid.period[k]))
        part = times(x, cells.grid.axes[min(k, len(cells.grid.axes) - 1)].inverse)
        for _ in range(3):
            whole = np.int64(math.floor(part))
            code = mixed_in(code, whole & mask)
            part = times(part - whole, 16777216.0)
    return code ^ (code >> 13)


@body
def same_place(s, j, cells, group, tiny):
    """Return whether two sorted points are at no distance, as far as can be told from coordinates near 0."""
    same = len(group) == 0 or group[cells.order[s]] == group[cells.order[j]]
    for k in range(len(tiny)):
        period = cells.grid.period[k]
        x, y = rounded(cells.positions[k, s], tiny[k], period), rounded(cells.positions[k, j], tiny[k], period)
        same = same and x == y
    return same


@kernel
def _join_equal(s, cells, group, many, tiny, table, same, count, mixed, first):
    """Find the point that stands for all those at the place of sorted point s, and count these.

    Only in cells with many points, and where coordinates are near 0. A place is `mixed` where not all are equal.
    """
    begin, end = cell_ends(s, cells)
    looks = end - begin >= many
    for k in range(len(tiny)):
        x = cells.positions[k, s]
        looks = looks or rounded(x, tiny[k], cells.grid.period[k]) == 0.0
    same[s] = s
    if looks:
        mask = len(table) - 1
        slot = code_of(s, cells, group, tiny) & mask
        one = np.int64(-1)
        while one < 0:
            one = np.int64(atomic_load(table, slot))
            if one < 0:
                one = np.int64(atomic_cas(table, slot, -1, s))
                one = np.int64(s) if one < 0 else one
            if not same_place(s, one, cells, group, tiny):
                one = np.int64(-1)
                slot = (slot + 1) & mask
        same[s] = one
        atomic_add(count, one, 1)
        atomic_min(first, one, cells.order[s])
        for k in range(len(tiny)):
            if cells.positions[k, s] != cells.positions[k, one]:
                mixed[one] = 1


@kernel
def _name_first(s, order, same, many, count, mixed, first, first_of, is_first):
    """Write the first of the points at the place of sorted point s, itself where these are not taken together."""
    i, one = order[s], same[s]
    at = first[one] if count[one] >= many and mixed[one] == 0 else i
    first_of[i] = at
    is_first[i] = at == i


@kernel
def _number(i, first_of, up_to, of_row, firsts):
    place = up_to[first_of[i]] - 1
    of_row[i] = place
    if first_of[i] == i:
        firsts[place] = i


@kernel
def _mark_begin(p, rows, of_row, begin):
    if p == 0 or of_row[rows[p]] != of_row[rows[p - 1]]:
        begin[of_row[rows[p]]] = p
    if p == len(rows) - 1:
        begin[len(begin) - 1] = p + 1


# -------------------------------------------------------------------------------------------- densities of their points
@kernel
def add_up(place, places, weight, total):
    """Sum the weights of a place, in the order of its points; `weight` is empty where each is 1."""
    first, end = places.begin[place], places.begin[place + 1]
    whole = np.float64(end - first)
    if len(weight) > 0:
        whole = np.float64(0)
        for p in range(first, end):
            whole += np.float64(weight[places.rows[p]])
    total[place] = whole


@kernel
def describe(s, order, places, total, weight, alone, sorted_of):
    """Write the weight of sorted place s, and what it counts with in its own density (see `kernels.density`)."""
    place = order[s]
    weight[s] = total[place]
    alone[s] = places.begin[place + 1] - places.begin[place] == 1
    sorted_of[place] = s


@kernel
def density_of_row(i, places, sorted_of, rho_of, alone, is_flat, at_zero, weight, total, rho):
    """Write the density of point i: that of its place, and what the place's own points add.

    `at_zero` is what another point's weight counts with at distance 0.
    """
    place = places.of_row[i]
    s = sorted_of[place]
    rho[i] = rho_of[s]
    if alone[s] == 0 and not is_flat:
        own = weight[i] if len(weight) > 0 else like(rho[i], 1)
        rho[i] = rho_of[s] + (own + times(at_zero[0], total[place] - own))


# ------------------------------------------------------------------------------------------------ their nearest highers
@kernel
def find_least(place, begin, rows, least):
    """Write the smallest index of each point of a place and those after it, which are higher."""
    smallest = np.int64(rows[begin[place + 1] - 1])
    for back in range(begin[place + 1] - begin[place]):
        p = begin[place + 1] - 1 - back
        smallest = min(smallest, np.int64(rows[p]))
        least[p] = smallest


@kernel
def find_top(s, order, members, top, tie, rho_of):
    """Write the highest point of sorted place s, its density, and itself again, or -1 if others are there as well."""
    begin, end = members.begin[order[s]], members.begin[order[s] + 1]
    row = members.rows[end - 1]
    top[s] = row
    tie[s] = row if end - begin == 1 else -1
    rho_of[s] = members.rho[row]


@kernel
def follow(p, places, sorted_of, members, delta_of, higher_of, delta, nearest):
    """Write distance and index of the nearest higher of a place's p-th point: at the place, or that of the place."""
    row = members.rows[p]
    place = places.of_row[row]
    if p + 1 < members.begin[place + 1]:
        delta[row] = 0
        nearest[row] = members.least[p + 1]
    else:
        delta[row] = delta_of[sorted_of[place]]
        nearest[row] = higher_of[sorted_of[place]]
