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


class Grid(NamedTuple):
    """A grid of cells; all but `period` have one entry for each axis that is cut."""

    inverse: tuple[float, ...]  # cells for each unit of length
    origin: tuple[int, ...]  # number of the first cell, counted from coordinate 0
    shape: tuple[int, ...]  # number of cells
    period: tuple[float, ...]  # period of every axis, 0 where it is open
    first_group: int  # number of the first group
    slabs: tuple[Any, ...]  # by axis, ascending cells that hold points, where all are too many to number; or empty


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
    inverse, origin, shape = [], [], []
    axes = zip(lowest_x, highest_x, along_axes(tile, len(period)), period, strict=True)
    for low, high, width, cycle in list(axes)[:MAX_AXES]:
        per_unit = 1.0 / (wrapped_tile(width, cycle) if cycle else width)
        begin = 0 if cycle else math.floor(low * per_unit)
        end = round(cycle * per_unit) - 1 if cycle else math.floor(high * per_unit)
        inverse.append(per_unit)
        origin.append(begin)
        shape.append(end - begin + 1)
    return Grid(tuple(inverse), tuple(origin), tuple(shape), tuple(period), first_group, (no_slab,) * len(shape))


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
def axis_cell(axis, x, grid):
    """Return the cell of coordinate `x` (float64, within the period) along `axis`."""
    cell = np.int64(math.floor(x * grid.inverse[axis])) - grid.origin[axis]
    if grid.period[axis] > 0.0:
        return min(cell, grid.shape[axis] - 1)
    return numbered(cell, grid.slabs[axis])


@body
def cell_of(i, X, group, grid):
    """Return the number of point i's cell; `X` is (n, d), `group` (n,), or empty where all points are one group."""
    axes = len(grid.inverse)
    cell = np.int64(group[i]) - grid.first_group if len(group) > 0 else np.int64(0)
    for k in range(axes):
        axis = axes - 1 - k
        x = within_period(X[i, axis], grid.period[axis])
        cell = cell * grid.shape[axis] + axis_cell(axis, np.float64(x), grid)
    return cell


# ------------------------------------------------------------------------------------------------- a point's neighbours
@body
def span(axis, low, high, reach, grid):
    """Return the cells along `axis` within `reach` of coordinates `low` to `high`.

    They are ``start``, ``start + 1``, ... (`count` of them), then from ``wrapped`` on, up to `total`: always in
    ascending order, so that the order of a fold does not depend on which points share a SIMD vector.
    """
    cells = grid.shape[axis]
    start = np.int64(math.floor((low - reach) * grid.inverse[axis])) - grid.origin[axis]
    end = np.int64(math.floor((high + reach) * grid.inverse[axis])) - grid.origin[axis] + 1
    if grid.period[axis] > 0.0:
        if end - start >= cells:
            return np.int64(0), cells, np.int64(0), cells
        if start < 0:
            return np.int64(0), end, start + cells, end - start
        if end > cells:
            return np.int64(0), end - cells, start, end - start
        return start, end - start, np.int64(0), end - start
    start = max(numbered(start, grid.slabs[axis]), np.int64(0))
    end = min(numbered(end, grid.slabs[axis]), cells)
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
def reach_along(axis, reach):
    """Return how far a fold looks along `axis`: the same way along all; to be bound to `own_reach` for other folds."""
    return reach


@body
def own_reach(axis, reach):
    """Return how far a fold looks along `axis`, of a tuple with a length for each."""
    return reach[axis]


@body
def axis_span(axis, own, reach, grid):
    far = reach_along(axis, reach)
    return span(axis, np.float64(lowest(own[axis])), np.float64(highest(own[axis])), far, grid)


@body
def one_cell():
    return np.int64(0), np.int64(1), np.int64(0), np.int64(1)


@body
def own_cell(axis, own, grid):
    return axis_cell(axis, np.float64(lowest(own[axis])), grid)


@body
def visit(state, own, positions, j, context):
    """Stand for the step of a fold; `fold_neighbours` is bound to a real one."""
    return state


@body
def fold_row(row, columns, own, cells, state, context):
    """Fold `visit` over the points of `row` in the span `columns`; j is unsigned, as Python's negative indices cost."""
    start, count, wrapped, total = columns
    base = row * cells.grid.shape[0]
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

    `visit` is bound by the caller. Candidates are all points, own ones included, of cells that the cube of half-width
    `reach` around points i to i + m - 1 touches, in ascending order; `own` is the tuple of those points' coordinates.
    With ``reach_along=own_reach`` bound, too, `reach` is a tuple, with a half-width for each axis.
    """
    grid = cells.grid
    axes = len(grid.inverse)
    own = point_at(cells.positions, i, m, grid.period)
    columns = axis_span(0, own, reach, grid)
    rows1 = axis_span(1, own, reach, grid) if axes > 1 else one_cell()
    rows2 = axis_span(2, own, reach, grid) if axes > 2 else one_cell()
    rows3 = axis_span(3, own, reach, grid) if axes > 3 else one_cell()
    size1 = row_axis_size(1, grid)
    size2 = row_axis_size(2, grid)
    here = np.int64(0)
    for k in range(axes - 1):
        axis = axes - 1 - k
        here = here * grid.shape[axis] + own_cell(axis, own, grid)
    base = cells.row[i] - here  # the first row of the group
    for t3 in range(rows3[3]):
        for t2 in range(rows2[3]):
            for t1 in range(rows1[3]):
                other = (cell_at(t3, rows3) * size2 + cell_at(t2, rows2)) * size1 + cell_at(t1, rows1)
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
    axes = len(grid.inverse)
    own = point_at(cells.positions, i, m, grid.period)
    rows1 = axis_span(1, own, reach, grid) if axes > 1 else one_cell()
    rows2 = axis_span(2, own, reach, grid) if axes > 2 else one_cell()
    rows3 = axis_span(3, own, reach, grid) if axes > 3 else one_cell()
    size1 = row_axis_size(1, grid)
    size2 = row_axis_size(2, grid)
    here1 = own_cell(1, own, grid) if axes > 1 else np.int64(0)
    here2 = own_cell(2, own, grid) if axes > 2 else np.int64(0)
    here3 = own_cell(3, own, grid) if axes > 3 else np.int64(0)
    base = cells.row[i] - ((here3 * size2 + here2) * size1 + here1)
    for t3 in range(rows3[3]):
        cell3 = outward(t3, rows3, here3)
        gap3 = axis_gap2(3, cell3, own, grid) if axes > 3 else 0.0
        for t2 in range(rows2[3]):
            cell2 = outward(t2, rows2, here2)
            gap2 = gap3 + (axis_gap2(2, cell2, own, grid) if axes > 2 else 0.0)
            for t1 in range(rows1[3]):
                cell1 = outward(t1, rows1, here1)
                gap1 = gap2 + (axis_gap2(1, cell1, own, grid) if axes > 1 else 0.0)
                left2 = radius2(state, context) - gap1
                if left2 >= 0.0:
                    columns = axis_span(0, own, min(reach, math.sqrt(left2) * WIDER), grid)
                    row = base + (cell3 * size2 + cell2) * size1 + cell1
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
def axis_gap2(axis, cell, own, grid):
    """Return a lower bound of the squared distance along `axis` between `own` and points in `cell`; 0 if periodic."""
    if grid.period[axis] > 0.0:
        return 0.0
    if len(grid.slabs[axis]) > 0:
        cell = grid.slabs[axis][cell]
    begin = (cell + grid.origin[axis]) / grid.inverse[axis]
    end = (cell + grid.origin[axis] + 1) / grid.inverse[axis]
    gap = max(begin - np.float64(highest(own[axis])), np.float64(lowest(own[axis])) - end, 0.0)
    return times(gap, gap) * NARROWER


@body
def row_axis_size(axis, grid):
    return np.int64(grid.shape[axis]) if axis < len(grid.shape) else np.int64(1)


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
