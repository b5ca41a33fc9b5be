"""CLUE's steps on CUDA for points of the usual kind (`clue/at_once.py`), as few kernels as will do."""

from __future__ import annotations

import math

import numpy as np

from daskclust.clue.kernels.formulas import classify, nearest_higher, put_back
from daskclust.core.device.kernels import body, kernel, lane_kernel
from daskclust.core.device.operations import atomic_add, atomic_load, atomic_max, atomic_min
from daskclust.core.space.grid import PAD, cell_of
from daskclust.core.space.sorting import put_end, put_in_table


@body
def is_finite(t, stride, values):
    """Return whether every so-many-th value is finite, from the t-th on."""
    good, i = True, np.int64(t)
    while i < len(values):
        good = good and values[i] - values[i] == 0
        i += stride
    return good


@kernel
def look(t, stride, X, columns, group, ends, groups, is_bad):
    """Find the extent of every so-many-th point, its values that are not finite, and the range of its groups."""
    n, d = X.shape
    good = True
    for k in range(d):
        least, most, i = np.inf, -np.inf, np.int64(t)
        while i < n:
            x = np.float64(X[i, k])
            good = good and x - x == 0.0  # false for infinities and NaN
            least, most = min(least, x), max(most, x)
            i += stride
        if least < atomic_load(ends, k):
            atomic_min(ends, k, least)
        if most > atomic_load(ends, d + k):
            atomic_max(ends, d + k, most)
    weight, rhoc = columns
    if not (good and is_finite(t, stride, weight) and is_finite(t, stride, rhoc)):
        is_bad[0] = 1
    if len(group) > 0:
        first = last = np.int64(group[t])
        i = np.int64(t)
        while i < n:
            first, last = min(first, np.int64(group[i])), max(last, np.int64(group[i]))
            i += stride
        if first < atomic_load(groups, 0):
            atomic_min(groups, 0, first)
        if last > atomic_load(groups, 1):
            atomic_max(groups, 1, last)


@kernel
def lay_grid(_once, n, axes, width, most, ends, groups, is_bad, origin, cells, first_group, used):
    """Lay cells over the points; where they would be more than `most`, or not be told apart, no point is treated.

    `cells` comes with the number of cells along periodic axes. They are wider than `width`.
    """
    d = len(ends) >> 1
    good = is_bad[0] == 0
    for k in range(d):
        good = good and max(abs(ends[k]), abs(ends[d + k])) < 2.0**50 * width
    number = 1.0
    first_group[0] = groups[0]
    if groups[1] >= groups[0]:
        number = np.float64(groups[1]) - np.float64(groups[0]) + 1.0
    for k in range(len(axes)):
        origin[k] = 0
        if axes[k].period == 0.0 and good:
            origin[k] = np.int64(math.floor(ends[k] * axes[k].inverse))
            cells[k] = np.int64(math.floor(ends[d + k] * axes[k].inverse)) - origin[k] + 1
        number *= np.float64(cells[k])
    used[0] = n if good and number <= most else 0


@kernel
def count_cell(i, X, group, grid, many, cell, rank, first, used):
    """Count the points of each cell; treat no point where one has `many`."""
    c = cell_of(i, X, group, grid)
    cell[i] = c
    rank[i] = atomic_add(first, c + 1, 1)
    if rank[i] + 1 >= many:
        used[0] = 0


@kernel
def take_slot(i, cell, rank, first, slots):
    """Put point i among those of its cell, which were counted in any order."""
    slots[first[cell[i]] + rank[i]] = i


@kernel
def place(slot, slots, cell, X, weight, cells):
    """Put a point where it belongs among those of its cell, behind the earlier ones; the first fills the padding."""
    i = slots[slot]
    begin, end = cells.first[cell[i]], cells.first[cell[i] + 1]
    at = begin
    for other in range(begin, end):
        if slots[other] < i:
            at += 1
    put_in_table(at, i, cell[i], X, weight, cells)
    if slot == 0:
        for k in range(PAD):
            put_end(k, len(X), cells)


@lane_kernel
def find_higher(i, m, row, search, found, results, thresholds, what):
    """Find the nearest higher of sorted point i, write what was measured of it, and say what the point is."""
    cells, reach, beyond2, rho, order, tie = search
    delta, nearest = found
    nearest_higher(i, m, row, cells, reach, beyond2, rho, order, tie, delta, nearest)
    put_back(i, order, rho, delta, nearest, results)
    classify(order[i], *results, *thresholds, *what)
