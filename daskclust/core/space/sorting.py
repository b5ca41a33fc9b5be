"""Sort points into cells, stably: the same order on every device and any number of threads.

CPU: points go first to buckets of neighbouring cells, then each bucket is sorted within the cache (a counting sort in
two levels, parallel in both). CUDA: cells are counted by atomics, cell and index sorted as one number. Grids with far
more cells than points are sorted by key instead of by table.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daskclust.core.data.checks import MOST_CELLS, check_cells
from daskclust.core.device.arrays import HOST, Cuda, Host, fill
from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import atomic_add, like
from daskclust.core.device.threads import thread_count
from daskclust.core.space.grid import PAD, Cells, Grid, cell_of, within_period

_TINY_TABLE, _SMALL_TABLE = 1 << 16, 1 << 22  # cells; measured: up to 64 a point cost less than sorting by key
_MOST_IN_TABLE = 2**31 - 1  # cells whose numbers int32 holds
_BUCKET = 8192  # points in a bucket, on average: coordinates and counters fit the second-level cache


def sort_into_cells(device: Host | Cuda, X: Any, group: Any, groups: int, grid: Grid, weight: Any = None) -> Cells:
    """Return the points ``X`` (n, d), each in the group ``group[i]`` of `groups` or all in one, sorted by cell.

    Given `weight` (n,), or an empty array where all are 1, weights are a row behind those of the coordinates.
    """
    n, d = X.shape
    if groups * math.prod(grid.shape) >= MOST_CELLS:
        grid = _with_slabs(device, X, grid)
        check_cells(groups, grid.shape, n)
    number = groups * math.prod(grid.shape)
    dense = number <= min(max(8 * n + _TINY_TABLE, min(64 * n, _SMALL_TABLE)), _MOST_IN_TABLE)
    cells = Cells(
        grid,
        device.scratch((d if weight is None else d + 1, n + PAD), X.dtype),
        device.scratch(n + PAD, np.int32),
        device.scratch(n + PAD, np.int32 if number // grid.shape[0] < 2**31 else np.int64),
        device.scratch(number + 1 if dense else 0, np.int32),
        device.scratch(0 if dense else n + PAD, np.int64),
    )
    weight = device.empty(0, X.dtype) if weight is None else weight
    if not dense:
        _sort_by_key(device, X, weight, group, cells)
    elif isinstance(device, Cuda):
        _sort_on_device(device, X, weight, group, cells)
    else:
        _sort_by_buckets(X, weight, group, groups, cells)
    device.run(_end, PAD, n, cells)
    return cells


def _with_slabs(device: Host | Cuda, X: Any, grid: Grid) -> Grid:
    """Return the grid with only those cells along each axis numbered that hold points."""
    positions, axes = device.to_host(X), list(grid.axes)
    for k, axis in enumerate(axes):
        if not axis.period:
            cells = np.floor(positions[:, k].astype(np.float64) * axis.inverse).astype(np.int64)
            held = np.unique(cells - axis.origin)
            axes[k] = axis._replace(cells=len(held), slabs=device.from_host(held))
    return grid._replace(axes=tuple(axes))


@body
def put_end(i, n, cells):
    """Fill the padding: finite coordinates that no result depends on."""
    for k in range(cells.positions.shape[0]):
        cells.positions[k, n + i] = 0
    cells.order[n + i] = -1
    cells.row[n + i] = -1


@kernel
def _end(i, n, cells):
    put_end(i, n, cells)


@body
def _put(place, i, X, weight, cells):
    """Write point i of the input, and its weight where there is a row for it, to `place` among the sorted points."""
    axes = len(cells.grid.period)
    cells.order[place] = i
    for k in range(axes):
        cells.positions[k, place] = within_period(X[i, k], cells.grid.period[k])
    if cells.positions.shape[0] > axes:
        cells.positions[axes, place] = weight[i] if len(weight) > 0 else like(X[i, 0], 1)


@kernel
def _cell_numbers(i, X, group, grid, cell):
    p = np.uint64(i)
    cell[p] = cell_of(p, X, group, grid)


@body
def _as_it_is(cell, slabs):
    """Return the number of a cell where all are numbered: without a branch the compiler makes SIMD of it."""
    return cell


def _number_cells(device: Host | Cuda, X: Any, group: Any, grid: Grid, cell: Any) -> None:
    kernel = _cell_numbers if _has_slabs(grid) else _cell_numbers.bind(numbered=_as_it_is)
    device.run(kernel, len(X), X, group, grid, cell)


def _has_slabs(grid: Grid) -> bool:
    return any(len(axis.slabs) for axis in grid.axes)


# ------------------------------------------------------------------------------------------------------ CPU: two levels
def _sort_by_buckets(X: Any, weight: Any, group: Any, groups: int, cells: Cells) -> None:
    n, number = len(X), len(cells.first) - 1
    cell = HOST.scratch(n, np.int32)
    cells.first[0] = 0
    begin = _ends_of_groups(group, groups, cells.grid.first_group)
    if begin is not None:  # layer after layer: each is a bucket as it stands
        sort = _sort_bucket if _has_slabs(cells.grid) else _sort_bucket.bind(numbered=_as_it_is)
        sort.run(groups, X, weight, group, cell[:0], cell, begin, number // groups, cells, grain=1)
        return
    _number_cells(HOST, X, group, cells.grid, cell)
    shift = max(0, int(np.ceil(np.log2(max(1, number * _BUCKET / max(n, 1))))))
    buckets = (number - 1 >> shift) + 1
    pieces = 8 * thread_count() if n > 8 * _BUCKET and thread_count() > 1 else 1
    counts = np.zeros((pieces, buckets), np.int32)
    _count_buckets.run(pieces, cell, shift, counts, grain=1)
    begin = np.zeros(buckets * pieces + 1, np.int32)  # by bucket, then by piece: earlier points come first
    np.cumsum(counts.T, out=begin[1:])
    starts = begin[:-1].reshape(buckets, pieces).T.copy()
    order, its_cell = HOST.scratch(n, np.int32), HOST.scratch(n, np.int32)
    _to_buckets.run(pieces, cell, shift, starts, order, its_cell, grain=1)
    _sort_bucket.run(buckets, X, weight, group, order, its_cell, begin[::pieces].copy(), 1 << shift, cells, grain=1)


def _ends_of_groups(group: Any, groups: int, first_group: int) -> Any:
    """Return where each group begins, and n, if points come group after group, in groups that fit the cache."""
    if len(group) < groups * 64:
        return None
    wanted = np.arange(first_group, first_group + groups + 1).clip(max=np.iinfo(group.dtype).max).astype(group.dtype)
    begin = np.searchsorted(group, wanted).astype(np.int32)  # right if they are ascending
    begin[-1] = len(group)
    if np.diff(begin).max() > 8 * _BUCKET:
        return None
    descents = np.zeros(min(len(group), 8 * thread_count()), np.int64)
    _count_descents.run(len(descents), group, descents, grain=1)
    return None if descents.any() else begin


@kernel
def _count_descents(piece, group, descents):
    n, pieces = len(group), len(descents)
    found = np.int64(0)
    for i in range(np.uint64(max(1, n * piece // pieces)), np.uint64(n * (piece + 1) // pieces)):
        found += group[i] < group[i - np.uint64(1)]
    descents[piece] = found


@kernel
def _count_buckets(piece, cell, shift, counts):
    n = len(cell)
    pieces = len(counts)
    for i in range(n * piece // pieces, n * (piece + 1) // pieces):
        counts[piece, np.uint64(cell[i] >> shift)] += 1


@kernel
def _to_buckets(piece, cell, shift, starts, order, its_cell):
    n = len(cell)
    pieces = len(starts)
    for i in range(n * piece // pieces, n * (piece + 1) // pieces):
        bucket = np.uint64(cell[i] >> shift)
        p = np.uint64(starts[piece, bucket])
        starts[piece, bucket] = p + np.uint64(1)
        order[p] = i
        its_cell[p] = cell[i]


@kernel
def _sort_bucket(bucket, X, weight, group, order, its_cell, begin, width, cells):
    """Sort one bucket of `width` cells; its points are ``order[begin[bucket]:begin[bucket + 1]]``, or just those rows.

    Of these the cells are not known before.

    ``first[c + 1]`` counts cell c, then is where it goes on, and last where it ends.
    """
    first, one = cells.first, np.uint64(1)  # unsigned: no look whether it counts from the end
    low, high = np.uint64(bucket * width), np.uint64(min((bucket + 1) * width, len(first) - 1))
    start, stop = np.uint64(begin[bucket]), np.uint64(begin[bucket + 1])
    if len(order) == 0:
        for p in range(start, stop):
            its_cell[p] = cell_of(p, X, group, cells.grid)
    for c in range(low, high):
        first[c + one] = 0
    for p in range(start, stop):
        first[np.uint64(its_cell[p]) + one] += np.int32(1)
    total = begin[bucket]
    for c in range(low, high):
        count = first[c + one]
        first[c + one] = total
        total += count
    for p in range(start, stop):
        c = np.uint64(its_cell[p]) + one
        place = np.uint64(first[c])
        first[c] = place + one
        _put(place, np.uint64(order[p]) if len(order) > 0 else p, X, weight, cells)
    columns = np.uint64(cells.grid.axes[0].cells)
    row = low // columns
    while start < stop:
        end = np.uint64(first[min((row + one) * columns, high)])
        for place in range(start, end):
            cells.row[place] = row
        row, start = row + one, end


# ----------------------------------------------------------------------------------------------------------- CUDA: sort
def _sort_on_device(device: Cuda, X: Any, weight: Any, group: Any, cells: Cells) -> None:
    n, number = len(X), len(cells.first) - 1
    packed = device.scratch(n, np.int64)
    device.run(fill, number + 1, cells.first, np.int32(0))
    device.run(_count_cell, n, X, group, cells.grid, packed, cells.first)
    device.running_sum(cells.first, cells.first)
    device.sort(packed, 32, 63)
    device.run(_place_in_table, n, packed, X, weight, cells)


@kernel
def _count_cell(i, X, group, grid, packed, first):
    """Count point i in its cell, and put the cell's number and its own, of up to 31 bits each, into one."""
    cell = cell_of(i, X, group, grid)
    packed[i] = (cell << 32) | np.int64(i)
    atomic_add(first, cell + 1, 1)


@body
def put_in_table(place, i, cell, X, weight, cells):
    """Write point i of the input, which is in `cell`, to `place` among the sorted points."""
    _put(place, i, X, weight, cells)
    cells.row[place] = np.uint32(cell) // np.uint32(cells.grid.axes[0].cells)  # CUDA divides 32 bits faster


@kernel
def _place_in_table(place, packed, X, weight, cells):
    put_in_table(place, packed[place] & 0xFFFFFFFF, packed[place] >> 32, X, weight, cells)


# --------------------------------------------------------------------------------------------- few points in many cells
def _sort_by_key(device: Host | Cuda, X: Any, weight: Any, group: Any, cells: Cells) -> None:
    n = len(X)
    keys = device.scratch(n, np.int64)
    _number_cells(device, X, group, cells.grid, keys)
    device.run(_place_by_order, n, device.order_of(keys), keys, X, weight, cells)


@kernel
def _place_by_order(place, order, keys, X, weight, cells):
    i = order[place]
    _put(place, i, X, weight, cells)
    cells.keys[place] = keys[i]
    cells.row[place] = keys[i] // cells.grid.axes[0].cells
