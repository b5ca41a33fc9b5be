"""Points into cells, and folds over the neighbours of each."""

import math

import numpy as np
import pytest
from cases.lanes import COMMON, a_shape, every_shape, some_of
from hypothesis import example, given
from hypothesis import strategies as st
from oracles import brute as oracles

from daskclust.clue.densities import square_below
from daskclust.core.device.arrays import HOST
from daskclust.core.device.kernels import body, lane_kernel
from daskclust.core.device.operations import like, load, select, store
from daskclust.core.space import sorting
from daskclust.core.space.extent import group_range, survey
from daskclust.core.space.grid import (
    PAD,
    WIDER,
    fold_neighbours,
    make_grid,
    open_distance2,
    periodic_distance2,
    search_neighbours,
    wrap_positions,
)
from daskclust.core.space.sorting import sort_into_cells

NO_GROUPS = np.empty(0, np.int64)


# -------------------------------------------------------------------------------------------------- points into cells
def sort(X, tile, period=None, group=None):
    """Return the points in cells, as a plan sorts them."""
    period = period or (0.0,) * X.shape[1]
    low, high, bad = survey(HOST, X)
    assert bad == len(X)
    group = np.empty(0, np.int32) if group is None else group
    first, last = group_range(HOST, group)
    grid = make_grid(low, high, tile, period, NO_GROUPS, first)
    return sort_into_cells(HOST, X, group, last - first + 1, grid)


def cell_numbers(X, tile, period=None, group=None):
    """Return the cell of every point along each axis that is cut, the group first, then the last axis, x last."""
    n, d = X.shape
    columns = [np.zeros(n, np.int64) if group is None else np.asarray(group, np.int64)]
    for axis in reversed(range(min(d, 4))):
        x, cycle = X[:, axis].astype(np.float64), period[axis] if period else 0.0
        if cycle:
            many = max(1, math.floor(cycle / tile))
            x = oracles.within_period(X[:, axis], cycle).astype(np.float64)
            columns.append(np.minimum(np.floor(x * (1 / (cycle / many))), many - 1).astype(np.int64))
        else:
            columns.append(np.floor(x * (1 / tile)).astype(np.int64))
    return columns


def right_order(X, tile, period=None, group=None):
    columns = cell_numbers(X, tile, period, group)
    return np.lexsort([np.arange(len(X)), *reversed(columns)])


def assert_sorted(X, tile, period=None, group=None):
    """Demand points sorted by cell, then by index, and tables that fit; return the cells."""
    n, d = X.shape
    cells = sort(X, tile, period, group)
    order = right_order(X, tile, period, group)
    np.testing.assert_array_equal(cells.order[:n], order)
    assert (cells.order[n:] == -1).all()
    wrapped = X.copy()
    for axis in range(d):
        if period and period[axis]:
            wrapped[:, axis] = oracles.within_period(X[:, axis], period[axis])
    np.testing.assert_array_equal(cells.positions[:, :n], wrapped[order].T)
    columns = np.stack(cell_numbers(X, tile, period, group))[:, order]
    new_cell = (np.diff(columns) != 0).any(axis=0)
    new_row = (np.diff(columns[:-1]) != 0).any(axis=0)
    np.testing.assert_array_equal(np.diff(cells.row[:n]) > 0, new_row)
    assert (np.diff(cells.row[:n]) >= 0).all()
    assert (cells.row[n:] == -1).all()
    begins = np.concatenate([[0], np.flatnonzero(new_cell) + 1, [n]])
    if len(cells.first):
        np.testing.assert_array_equal(np.unique(cells.first), begins)
    else:
        np.testing.assert_array_equal(np.flatnonzero(np.diff(cells.keys[:n]) > 0) + 1, begins[1:-1])
        assert (np.diff(cells.keys[:n]) >= 0).all()
    return cells


def test_more_cells_than_numbers_of_a_table(monkeypatch):
    """From 2**28 points on, eight cells a point are more than int32 counts."""
    X = np.random.default_rng(4).uniform(0, 9, (500, 2))
    by_table = sort(X, 1.0)
    monkeypatch.setattr(sorting, "_MOST_IN_TABLE", 80)
    by_key = sort(X, 1.0)
    assert len(by_table.first)
    assert not len(by_key.first)
    np.testing.assert_array_equal(by_key.order, by_table.order)
    np.testing.assert_array_equal(by_key.row, by_table.row)


@every_shape
@given(
    st.integers(0, 2**32),
    st.integers(1, 300),
    a_shape([*COMMON, (1, np.float64), (2, np.float32), (3, np.float32), (4, np.float64), (6, np.float64)]),
    st.sampled_from([0.3, 1.0, 2.5]),
    st.booleans(),
    st.booleans(),
)
def test_points_are_sorted_by_cell_then_index(seed, n, shape, tile, periodic, grouped):
    d, dtype = shape
    rng = np.random.default_rng(seed)
    X = (rng.uniform(-5, 5, (n, d)) if seed % 2 else rng.integers(-20, 20, (n, d)) / 4).astype(dtype)
    period = tuple(float(rng.choice([0.0, 0.2, 1.0, 3.3, 8.0])) for _ in range(d)) if periodic else None
    group = rng.integers(-3, 4, n).astype(np.int32) if grouped else None
    assert_sorted(X, tile, period, group)


@some_of(5, layers=["none", "ordered", "shuffled", "one large of two"], count=[1, 2])
def test_large_dense_grid(threads, count, layers):
    """More points than a bucket, and pieces counted on several threads."""
    threads(count)
    rng = np.random.default_rng(1)
    n = 90_000
    X = rng.uniform(0, 60, (n, 2)).astype(np.float32)
    group = None
    if layers == "one large of two":  # ordered, but too large for the cache
        group = np.repeat(np.array([4, 5], np.int32), [n - 1000, 1000])
    elif layers != "none":
        group = rng.integers(-2, 8, n).astype(np.int32)
        group = np.sort(group) if layers == "ordered" else group
    assert len(assert_sorted(X, 1.0, None, group).first)


def test_sparse_grid(threads):
    threads(2)
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 30, (20_000, 2)).astype(np.float32)
    X[7] = 1e6
    assert not len(assert_sorted(X, 1.0, None, rng.integers(0, 3, len(X)).astype(np.int32)).first)


@pytest.mark.parametrize("period", [None, (0.0, 7.0, 0.0)])
def test_slabs_where_cells_are_too_many_to_number(period):
    rng = np.random.default_rng(4)
    X = rng.uniform(0, 20, (2000, 3))
    X[[3, 900]] = [[1e9, -1e9, 1e9], [-1e9, 1e9, -1e9]]
    X[:, 0] = np.where(rng.random(2000) < 0.01, 1e12, X[:, 0])
    cells = assert_sorted(X, 0.001, period)
    assert [len(axis.slabs) > 0 for axis in cells.grid.axes] == [
        not (period and cycle) for cycle in (period or (0,) * 3)
    ]


def test_group_numbers_at_the_ends_of_their_type():
    X = np.random.default_rng(5).uniform(0, 4, (100, 2)).astype(np.float32)
    group = np.where(np.arange(100) % 3, 2**31 - 2, 2**31 - 1).astype(np.int64)
    assert_sorted(X, 1.0, None, group)
    assert_sorted(X, 1.0, None, (-group - 1).astype(np.int32))


# -------------------------------------------------------------------------------------------------------------- folds
@body
def _distance2(own, positions, j, period):
    return open_distance2(own, positions, j, period)


@body
def _digest(state, own, positions, j, context):
    """Depends on which points are visited within the reach, and on their order."""
    period, reach2, order = context
    near = _distance2(own, positions, j, period) <= reach2
    return (select(near, state[0] * 31 + order[j], state[0]), state[1] + select(near, like(state[1], 1), state[1] * 0))


@body
def _reach2(state, context):
    return np.float64(context[1])


@lane_kernel
def _fold(i, m, row, cells, reach, reach2, digest, count):
    zero = like(load(cells.order, i, m), 0)
    context = (cells.grid.period, reach2, cells.order)
    state = fold_neighbours(i, m, cells, reach, (zero, zero), context)
    store(digest, i, m, state[0])
    store(count, i, m, state[1])


def folded(walk, X, tile, reach, period, group):
    """Return digest and count of every point's neighbours, in input order."""
    n = len(X)
    cells = sort(X, tile, period, group)
    metric = {"_distance2": periodic_distance2} if period and any(period) else {}
    digest, count = np.empty(n + PAD, np.int32), np.empty(n + PAD, np.int32)
    bound = _fold.bind(fold_neighbours=walk, visit=_digest, radius2=_reach2, **metric)
    bound.run(
        n, cells.row, cells, (reach * WIDER,) * len(cells.grid.axes), square_below(reach, X.dtype.type), digest, count
    )
    place = np.argsort(cells.order[:n])
    return digest[place], count[place]


def by_pairs(X, tile, reach, period, group):
    n = len(X)
    wrap = {axis: cycle for axis, cycle in enumerate(period or ()) if cycle}
    near = np.sqrt(oracles.distances2(X, wrap)) <= X.dtype.type(reach)
    near &= oracles.together(n, group)
    order = right_order(X, tile, period, group)
    digest = np.zeros(n, np.int64)
    for j in order:  # a step for all points at once: they all meet their neighbours in this order
        digest = np.where(near[:, j], (digest * 31 + j) % 2**32, digest)
    return digest.astype(np.uint32).view(np.int32), near.sum(axis=1)


@every_shape
@given(
    st.integers(0, 2**32),
    st.integers(1, 120),
    a_shape([*COMMON, (2, np.float32), (3, np.float32), (6, np.float64)]),
    st.sampled_from([0.5, 1.0, 2.75]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_folds_meet_every_neighbour_once_in_order(seed, n, shape, reach, periodic, grouped, far):
    d, dtype = shape
    rng = np.random.default_rng(seed)
    X = (rng.uniform(-3, 3, (n, d)) if seed % 2 else rng.integers(-12, 12, (n, d)) / 4).astype(dtype)
    if far:
        X[rng.integers(n)] = 1e6 if seed % 3 else 3e18 / 2**10
    period = tuple(float(rng.choice([0.0, 0.4, 1.0, 2.0, 3.3, 6.0])) for _ in range(d)) if periodic else None
    group = rng.integers(-1, 2, n).astype(np.int32) if grouped else None
    digest, count = by_pairs(X, 1.0, reach, period, group)
    got_digest, got_count = folded(fold_neighbours, X, 1.0, reach, period, group)
    np.testing.assert_array_equal(got_count, count)
    np.testing.assert_array_equal(got_digest, digest)
    np.testing.assert_array_equal(folded(search_neighbours, X, 1.0, reach, period, group)[1], count)


@given(st.floats(-1e6, 1e6, allow_subnormal=False), st.floats(0.01, 1e3))
@example(0.3, 0.7)  # float32 rounds it down: the float32 coordinate is within the period, and stays
@example(0.3, 2 * np.pi)  # rounds it up: the coordinate is moved
def test_periods(x, period):
    for dtype in (np.float32, np.float64):
        X = np.array([[x], [period], [-period], [np.nextafter(dtype(period), dtype(0))], [0.0]], dtype)
        moved = wrap_positions(X, (period,))
        assert moved.dtype == dtype
        wide = moved.astype(np.float64)
        assert ((wide >= 0) & (wide < period)).all()
        turns = (X.astype(np.float64) - wide) / period
        assert (abs(turns - np.round(turns)) <= np.finfo(dtype).eps * (2 + 2 * abs(turns))).all()
        np.testing.assert_array_equal(np.sort(sort(X, 1.0, (period,)).positions[0, :5]), np.sort(moved[:, 0]))
    assert wrap_positions(X, (0.0,)) is X


def test_tiny_negative_coordinate_of_a_periodic_axis():
    assert wrap_positions(np.array([[-5e-324]]), (50.0,))[0, 0] >= 0
