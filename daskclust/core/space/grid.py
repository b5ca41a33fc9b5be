"""Points in cells: a grid aligned to the origin of the coordinates, and the fold over a point's neighbours.

Cells are numbered group by group (a group is a layer, an event, a chip: points of two groups are never neighbours),
then along the last axis first and along x last, so that cells side by side in x are side by side in memory. A *row* is
a line of cells along x; the cells of a row that a neighbourhood touches are one range of points, two where x wraps.

Where a cell begins depends on its number alone, not on the data, and points of a cell keep their order: so a fold over
neighbours visits them in the same order however the data are divided into chunks. Sums do not depend on chunks.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.kernels import body
from daskclust.core.device.operations import highest, like, lowest, point_at, select, times

PAD = 16  # elements behind the last point: SIMD lanes may read them, never use them
WIDER, NARROWER = 1 + 1e-6, 1 - 1e-6  # distances in float32 may be rounded: look a little farther than they say
MAX_AXES = 4  # axes beyond the fourth count in distances but are not cut into cells


class Axis(NamedTuple):
    """How one axis is cut into cells."""

    inverse: float  # cells for each unit of length
    origin: int  # number of the first cell, counted from coordinate 0
    cells: int  # number of cells
    period: float  # 0 where it is open
    slabs: Any  # ascending cells that hold points, where all are too many to number; or empty


class Grid(NamedTuple):
    """A grid of cells."""

    axes: tuple[Axis, ...]  # that are cut
    period: tuple[float, ...]  # period of every axis, 0 where it is open
    first_group: int  # number of the first group

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells along each axis that is cut."""
        return tuple(axis.cells for axis in self.axes)


class Cells(NamedTuple):
    """Points sorted by cell, padded by `PAD`."""

    grid: Grid
    positions: Any  # (d, n + PAD) coordinates, periodic ones within [0, period)
    order: Any  # (n + PAD,) int32: where the point stands in the input
    row: Any  # (n + PAD,) its row; -1 behind the end
    first: Any  # (cells + 1,) int32: where each cell begins; empty for a grid with few points in many cells, which has
    keys: Any  # (n + PAD,) int64: the cell of each point instead


def wrapped_tile(tile: float, period: float) -> float:
    """Return the width of cells, at least `tile`, that divide `period` evenly."""
    return period / max(1, math.floor(period / tile))


def make_grid(
    lowest_x: NDArray[np.float64],
    highest_x: NDArray[np.float64],
    tile: float | tuple[float, ...],
    period: tuple[float, ...],
    no_slab: Any,
    first_group: int = 0,
) -> Grid:
    """Return the grid of cells of width `tile`, or of one for each axis, that covers a box.

    `no_slab` is an empty int64 array on the device of the points.
    """
    axes = []
    for low, high, width, cycle in list(zip(lowest_x, highest_x, along_axes(tile, len(period)), period, strict=True)):
        per_unit = 1.0 / (wrapped_tile(width, cycle) if cycle else width)
        begin = 0 if cycle else math.floor(low * per_unit)
        end = round(cycle * per_unit) - 1 if cycle else math.floor(high * per_unit)
        axes.append(Axis(per_unit, begin, end - begin + 1, cycle, no_slab))
    return Grid(tuple(axes[:MAX_AXES]), tuple(period), first_group)


def along_axes(length: float | tuple[float, ...], axes: int) -> tuple[float, ...]:
    """Return a length for each of so many axes, given one for all of them or one for each."""
    return tuple(map(float, length[:axes])) if isinstance(length, tuple) else (float(length),) * axes


def wrap_positions(X: NDArray[Any], period: tuple[float, ...]) -> NDArray[Any]:
    """Return coordinates (n, d) with periodic ones moved into [0, period): `within_period` for arrays."""
    if not any(period):
        return X
    moved = X.copy()
    for k, cycle in enumerate(period):
        if cycle:
            wide = X[:, k].astype(np.float64)
            x = (wide - cycle * np.floor(wide / cycle)).astype(X.dtype)
            moved[:, k] = np.where((x >= 0) & (x.astype(np.float64) < cycle), x, 0)
    return moved


# ------------------------------------------------------------------------------------------------------ a point's cell
@body
def within_period(x, period):
    """Return coordinate `x` moved by whole periods into [0, period); as it is where `period` is 0."""
    if period > 0.0:
        wide = np.float64(x)
        moved = like(x, wide - times(period, math.floor(wide / period)))
        # rounding may leave it at the period itself, or just below 0
        return moved if 0.0 <= np.float64(moved) < period else like(x, 0)
    return x


@body
def numbered(cell, slabs):
    """Return the number of the first cell not before `cell` that holds points; `cell` itself where all are numbered."""
    return lower_bound(slabs, len(slabs), cell) if len(slabs) > 0 else cell


@body
def lower_bound(keys, n, key):
    """Return how many of the ascending ``keys[:n]`` are smaller than `key`."""
    low = np.int64(0)
    high = np.int64(n)
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@body
def axis_cell(x, axis):
    """Return the cell of coordinate `x` (float64, within the period) along an axis."""
    cell = np.int64(math.floor(x * axis.inverse)) - axis.origin
    if axis.period > 0.0:
        return min(cell, axis.cells - 1)
    return numbered(cell, axis.slabs)


@body
def cell_of(i, X, group, grid):
    """Return the number of point i's cell; `X` is (n, d), `group` (n,), or empty where all points are one group."""
    axes = len(grid.axes)
    cell = np.int64(group[i]) - grid.first_group if len(group) > 0 else np.int64(0)
    for k in range(axes):
        axis = grid.axes[axes - 1 - k]
        x = within_period(X[i, axes - 1 - k], axis.period)
        cell = cell * axis.cells + axis_cell(np.float64(x), axis)
    return cell


# ------------------------------------------------------------------------------------------------- a point's neighbours
@body
def span(own, reach, axis):
    """Return the cells along an axis within `reach` of coordinates `own`.

    They are ``start``, ``start + 1``, ... (`count` of them), then from ``wrapped`` on, up to `total`: always in
    ascending order, so that the order of a fold does not depend on which points share a SIMD vector.
    """
    if axis.inverse == 0.0:
        return np.int64(0), np.int64(1), np.int64(0), np.int64(1)
    cells = axis.cells
    start = np.int64(math.floor((np.float64(lowest(own)) - reach) * axis.inverse)) - axis.origin
    end = np.int64(math.floor((np.float64(highest(own)) + reach) * axis.inverse)) - axis.origin + 1
    if axis.period > 0.0:
        if end - start >= cells:
            return np.int64(0), cells, np.int64(0), cells
        if start < 0:
            return np.int64(0), end, start + cells, end - start
        if end > cells:
            return np.int64(0), end - cells, start, end - start
        return start, end - start, np.int64(0), end - start
    start = max(numbered(start, axis.slabs), np.int64(0))
    end = min(numbered(end, axis.slabs), cells)
    return start, end - start, np.int64(0), end - start


@body
def cell_at(t, span_):
    """Return the `t`-th cell of a span."""
    start, count, wrapped, _total = span_
    return start + t if t < count else wrapped + t - count


@body
def begin_of(cell, cells):
    """Return where `cell` begins among the sorted points: by table, or by bisection where there is none."""
    if len(cells.first) > 0:
        return np.uint64(cells.first[cell])
    return np.uint64(lower_bound(cells.keys, len(cells.keys) - PAD, cell))


@body
def own_cell(own, axis):
    """Return the cell along an axis of points that are all in one, given their coordinates."""
    return np.int64(0) if axis.inverse == 0.0 else axis_cell(np.float64(lowest(own)), axis)


@body
def no_axis(grid):
    """Return an axis of one cell, which stands for one that there is not."""
    return Axis(0.0, np.int64(0), np.int64(1), 1.0, grid.axes[0].slabs)


@body
def in_four(values, missing):
    """Return four values: those of a tuple, up to the fourth, and `missing`.

    numba knows its length before it looks at types, and leaves out what is not for this one.
    """
    if len(values) == 1:
        return values[0], missing, missing, missing
    if len(values) == 2:
        return values[0], values[1], missing, missing
    if len(values) == 3:
        return values[0], values[1], values[2], missing
    return values[0], values[1], values[2], values[3]


@body
def visit(state, own, positions, j, context):
    """Stand for the step of a fold; `fold_neighbours` is bound to a real one."""
    return state


@body
def fold_row(row, columns, own, cells, state, context):
    """Fold `visit` over the points of `row` in the span `columns`; j is unsigned, as Python's negative indices cost."""
    start, count, wrapped, total = columns
    base = row * cells.grid.axes[0].cells
    if count > 0:
        for j in range(begin_of(base + start, cells), begin_of(base + start + count, cells)):
            state = visit(state, own, cells.positions, j, context)
    if total > count:
        for j in range(begin_of(base + wrapped, cells), begin_of(base + wrapped + total - count, cells)):
            state = visit(state, own, cells.positions, j, context)
    return state


@body
def fold_neighbours(i, m, cells, reach, state, context):
    """Return `state` after ``state = visit(state, own, positions, j, context)`` for every candidate neighbour j.

    `visit` is bound by the caller. Candidates are all points, own ones included, of cells that the box of half-widths
    `reach`, a tuple, around points i to i + m - 1 touches, in ascending order; `own` is the tuple of their coordinates.
    """
    grid = cells.grid
    own = point_at(cells.positions, i, m, grid.period)
    _, x1, x2, x3 = in_four(own, own[0])
    _, axis1, axis2, axis3 = in_four(grid.axes, no_axis(grid))
    here = (own_cell(x3, axis3) * axis2.cells + own_cell(x2, axis2)) * axis1.cells + own_cell(x1, axis1)
    return fold_around(own, cells.row[i] - here, cells, reach, state, context)


@body
def fold_around(own, base, cells, reach, state, context):
    """Fold as `fold_neighbours` around any coordinates, in a group whose first row is `base`."""
    grid = cells.grid
    columns = span(own[0], reach[0], grid.axes[0])
    (_, x1, x2, x3), (_, far1, far2, far3) = in_four(own, own[0]), in_four(reach, reach[0])
    _, axis1, axis2, axis3 = in_four(grid.axes, no_axis(grid))
    rows1, rows2, rows3 = span(x1, far1, axis1), span(x2, far2, axis2), span(x3, far3, axis3)
    for t3 in range(rows3[3]):
        for t2 in range(rows2[3]):
            for t1 in range(rows1[3]):
                other = (cell_at(t3, rows3) * axis2.cells + cell_at(t2, rows2)) * axis1.cells + cell_at(t1, rows1)
                state = fold_row(base + other, columns, own, cells, state, context)
    return state


@body
def radius2(state, context):
    """Stand for the squared distance within which a search goes on; `search_neighbours` is bound to a real one."""
    return np.inf


@body
def search_neighbours(i, m, cells, reach, state, context):
    """Return `state` after folding `visit` over the neighbours that may still matter, the nearest rows first.

    As `fold_neighbours`, but in no fixed order, and rows, or ends of rows, farther than ``radius2(state, context)`` are
    left out: for searches whose outcome does not depend on the order.
    """
    grid = cells.grid
    own = point_at(cells.positions, i, m, grid.period)
    (_, x1, x2, x3), (_, far1, far2, far3) = in_four(own, own[0]), in_four(reach, reach[0])
    _, axis1, axis2, axis3 = in_four(grid.axes, no_axis(grid))
    rows1, rows2, rows3 = span(x1, far1, axis1), span(x2, far2, axis2), span(x3, far3, axis3)
    here1, here2, here3 = own_cell(x1, axis1), own_cell(x2, axis2), own_cell(x3, axis3)
    base = cells.row[i] - ((here3 * axis2.cells + here2) * axis1.cells + here1)
    for t3 in range(rows3[3]):
        cell3 = outward(t3, rows3, here3)
        gap3 = axis_gap2(x3, cell3, axis3)
        for t2 in range(rows2[3]):
            cell2 = outward(t2, rows2, here2)
            gap2 = gap3 + axis_gap2(x2, cell2, axis2)
            for t1 in range(rows1[3]):
                cell1 = outward(t1, rows1, here1)
                left2 = radius2(state, context) - (gap2 + axis_gap2(x1, cell1, axis1))
                if left2 >= 0.0:
                    columns = span(own[0], min(reach[0], math.sqrt(left2) * WIDER), grid.axes[0])
                    row = base + (cell3 * axis2.cells + cell2) * axis1.cells + cell1
                    state = fold_row(row, columns, own, cells, state, context)
    return state


@body
def outward(t, span_, center):
    """Return the `t`-th cell of a span, counted from `center` to both sides as far as they go."""
    start, count, _wrapped, total = span_
    if total > count or center < start or center >= start + count:
        return cell_at(t, span_)  # across the seam of a period any order will do
    before, after = center - start, start + count - 1 - center
    both = min(before, after)
    if t > 2 * both:
        return center - (t - both) if before > after else center + (t - both)
    step = (t + 1) >> 1
    return center - step if t & 1 else center + step


@body
def axis_gap2(own, cell, axis):
    """Return a lower bound of the squared distance along an axis between `own` and points in `cell`; 0 if periodic."""
    if axis.period > 0.0:
        return 0.0
    if len(axis.slabs) > 0:
        cell = axis.slabs[cell]
    begin = (cell + axis.origin) / axis.inverse
    end = (cell + axis.origin + 1) / axis.inverse
    gap = max(max(begin - np.float64(highest(own)), np.float64(lowest(own)) - end), 0.0)
    return times(gap, gap) * NARROWER


@body
def open_distance2(own, positions, j, period):
    """Return the squared distance between `own` and point j."""
    total = like(own[0], 0)
    for k in range(len(own)):
        step = own[k] - positions[k, j]
        total = total + times(step, step)
    return total


@body
def periodic_distance2(own, positions, j, period):
    """Return the squared distance between `own` and the nearest image of point j."""
    total = like(own[0], 0)
    for k in range(len(own)):
        step = abs(own[k] - positions[k, j])
        if period[k] > 0.0:
            image = like(step, period[k]) - step
            step = select(image < step, image, step)
        total = total + times(step, step)
    return total


@body
def distance2(own, positions, j, period):
    """Squared distance to point j; bound to the periodic one where an axis is."""
    return open_distance2(own, positions, j, period)
