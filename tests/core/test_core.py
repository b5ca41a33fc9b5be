"""The core: cells, sorting, folds, union-find, merging, partitions, arithmetic and atomics on the CPU's lanes."""

from __future__ import annotations

import itertools
import math
import os
import pickle
import subprocess
import sys
import threading
import time

import numba
import numpy as np
import pytest
from cases import oracles
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from daskclust.clue.densities import square_below
from daskclust.clue.kernels import formulas as kernels
from daskclust.clue.kernels.density import user_kernel
from daskclust.clue.plan import CluePlan
from daskclust.core.data import checks
from daskclust.core.data.groups import group_name, group_number
from daskclust.core.device.arrays import HOST
from daskclust.core.device.exp import exp_of_negative
from daskclust.core.device.kernels import body, kernel, lane_kernel
from daskclust.core.device.operations import (
    atomic_add,
    atomic_cas,
    atomic_load,
    atomic_max,
    atomic_min,
    like,
    load,
    select,
    store,
)
from daskclust.core.device.threads import in_threads, one_thread, thread_count
from daskclust.core.device.unionfind import flatten, start, unite_edges
from daskclust.core.merge.labels import count_clusters, same_partition
from daskclust.core.merge.own_ids import OwnIds
from daskclust.core.merge.sets import NONE, Fragments, components, merge_fragments
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
from daskclust.core.space.groups import without_gaps
from daskclust.core.space.partition import Partition
from daskclust.core.space.planes import balanced_cuts
from daskclust.core.space.sorting import sort_into_cells

NO_GROUPS = np.empty(0, np.int64)


@pytest.fixture
def threads():
    """Set the number of threads of kernels, and put it back."""
    before = numba.get_num_threads()
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.fail("this machine gives numba one thread; set NUMBA_NUM_THREADS=2")
    yield numba.set_num_threads
    numba.set_num_threads(before)


# -------------------------------------------------------------------------------------------------- points into cells
def sort(X, tile, period=None, group=None):
    """Return the points in cells, as a plan sorts them."""
    period = period or (0.0,) * X.shape[1]
    low, high, bad = survey(HOST, X)
    assert bad == len(X)
    group = np.empty(0, np.int32) if group is None else group
    first, last = group_range(HOST, group)
    grid = make_grid(low, high, tile, period, NO_GROUPS, first)
    return sort_into_cells(HOST, X, group, last - first + 1, grid, np.empty(len(X) + PAD, np.int32))


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


@given(
    st.integers(0, 2**32),
    st.integers(1, 300),
    st.sampled_from([(1, np.float64), (2, np.float32), (3, np.float32), (4, np.float64), (6, np.float64)]),
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


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("layers", ["none", "ordered", "shuffled", "one large of two"])
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


@pytest.mark.parametrize("count", [1, 2])
def test_few_cells_with_many_points(threads, count):
    threads(count)
    X = np.random.default_rng(2).uniform(0, 3, (80_000, 2)).astype(np.float32)
    assert_sorted(X, 1.0)
    assert_sorted(X, 100.0)


@pytest.mark.parametrize("count", [1, 2])
def test_sparse_grid(threads, count):
    threads(count)
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
    assert [len(slab) > 0 for slab in cells.grid.slabs] == [not (period and cycle) for cycle in (period or (0,) * 3)]


def test_group_numbers_at_the_ends_of_their_type():
    X = np.random.default_rng(5).uniform(0, 4, (100, 2)).astype(np.float32)
    group = np.where(np.arange(100) % 3, 2**31 - 2, 2**31 - 1).astype(np.int64)
    assert_sorted(X, 1.0, None, group)
    assert_sorted(X, 1.0, None, (-group - 1).astype(np.int32))


def test_equal_points_keep_their_order():
    X = np.full((50_000, 2), 2.5, np.float32)
    np.testing.assert_array_equal(sort(X, 1.0).order[:50_000], np.arange(50_000))


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


@lane_kernel
def _search(i, m, row, cells, reach, reach2, digest, count):
    zero = like(load(cells.order, i, m), 0)
    context = (cells.grid.period, reach2, cells.order)
    state = search_neighbours(i, m, cells, reach, (zero, zero), context)
    store(digest, i, m, state[0])
    store(count, i, m, state[1])


def folded(walk, X, tile, reach, period, group):
    """Return digest and count of every point's neighbours, in input order."""
    n = len(X)
    cells = sort(X, tile, period, group)
    metric = {"_distance2": periodic_distance2} if period and any(period) else {}
    digest, count = np.empty(n + PAD, np.int32), np.empty(n + PAD, np.int32)
    bound = walk.bind(visit=_digest, radius2=_reach2, **metric)
    bound.run(n, cells.row, cells, reach * WIDER, square_below(reach, X.dtype.type), digest, count)
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


@given(
    st.integers(0, 2**32),
    st.integers(1, 120),
    st.sampled_from([(2, np.float32), (3, np.float32), (6, np.float64)]),  # each compiles for seconds
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
    got_digest, got_count = folded(_fold, X, 1.0, reach, period, group)
    np.testing.assert_array_equal(got_count, count)
    np.testing.assert_array_equal(got_digest, digest)
    np.testing.assert_array_equal(folded(_search, X, 1.0, reach, period, group)[1], count)


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


# -------------------------------------------------------------------------------------------------------------- survey
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_survey(threads, count, dtype):
    threads(count)
    X = np.random.default_rng(6).normal(size=(1001, 3)).astype(dtype)
    low, high, bad = survey(HOST, X)
    np.testing.assert_array_equal(low, X.min(axis=0))
    np.testing.assert_array_equal(high, X.max(axis=0))
    assert (low.dtype, high.dtype, bad) == (np.float64, np.float64, 1001)
    for value in (np.nan, np.inf, -np.inf):
        for rows in ([0], [1000], [500, 17, 999]):
            broken = X.copy()
            broken[rows, np.arange(len(rows)) % 3] = value
            assert survey(HOST, broken)[2] == min(rows)
    assert survey(HOST, X[:1])[2] == 1


def test_group_range():
    assert group_range(HOST, np.array([3, -5, 2], np.int32)) == (-5, 3)
    assert group_range(HOST, np.array([2**62, -(2**63)])) == (-(2**63), 2**62)
    assert group_range(HOST, np.empty(0, np.int32)) == (0, 0)


@pytest.mark.parametrize("stride", [1, 2, 3, 8, 10**9])
def test_groups_without_gaps(stride):
    group = np.random.default_rng(2).integers(-20, 20, 500).astype(np.int64)
    number, first, count = without_gaps(HOST, group * stride)
    assert count == (40 if stride != 2 else 79)  # as they are where they are not much farther apart
    assert number.min() == first
    assert number.max() == first + count - 1
    np.testing.assert_array_equal(np.unique(number, return_inverse=True)[1], group + 20)
    assert without_gaps(HOST, group[:0])[1:] == (0, 1)


# ---------------------------------------------------------------------------------------------------------- union-find
def united(n, edges):
    parent = np.empty(n, np.int32)
    start.run(n, parent)
    unite_edges.run(len(edges), edges[:, 0].copy(), edges[:, 1].copy(), parent)
    flatten.run(n, parent)
    return parent


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(0, 80))
def test_union_find_of_small_graphs(seed, n, m):
    edges = np.random.default_rng(seed).integers(0, n, (m, 2)).astype(np.int32)
    np.testing.assert_array_equal(united(n, edges), oracles.groups_of(edges, n))


@pytest.mark.parametrize(("n", "m"), [(3_000_000, 3_000_000), (2000, 3_000_000), (1_000_000, 999_999)])
def test_union_find_on_two_threads(threads, n, m):
    threads(2)
    rng = np.random.default_rng(7)
    edges = rng.integers(0, n, (m, 2)).astype(np.int32)
    if m == n - 1:  # a path, in random order
        edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1).astype(np.int32)[rng.permutation(m)]
    parent = united(n, edges)
    graph = coo_array((np.ones(m, np.int8), (edges[:, 0], edges[:, 1])), shape=(n, n))
    many, label = connected_components(graph, directed=False)
    smallest = np.full(many, n)
    np.minimum.at(smallest, label, np.arange(n))
    np.testing.assert_array_equal(parent, smallest[label])


# ------------------------------------------------------------------------------------------------------------- merging
def test_components():
    edges = np.array([[7, 3], [3, 3], [10**15, 7], [20, 21], [-4, 20]])
    ids, label = components(edges)
    assert ids.tolist() == [-4, 3, 7, 20, 21, 10**15]
    assert same_partition(label, [0, 1, 1, 0, 0, 1])
    ids, label = components(np.empty((0, 2), np.int64))
    assert len(ids) == len(label) == 0


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(0, 80))
def test_components_of_random_graphs(seed, n, m):
    names = np.random.default_rng(seed).choice(10**6, n, replace=False)
    edges = np.random.default_rng(seed).integers(0, n, (m, 2))
    ids, label = components(names[edges])
    np.testing.assert_array_equal(ids, np.unique(names[edges]))
    groups = dict(zip(names.tolist(), oracles.groups_of(edges, n).tolist(), strict=True))
    assert same_partition(label, [groups[i] for i in ids.tolist()])


def fragments(seeds, links=(), groups=()):
    """Return sets of seeds, each with itself as a member, and of links, which know no seed."""
    links = np.array(links, np.int64).reshape(-1, 2)
    firsts = np.concatenate([np.array(seeds, np.int64), np.full(len(links), NONE)])
    sizes = np.repeat([1, 0], [len(seeds), len(links)])
    member_of = np.concatenate([np.arange(len(seeds)), len(seeds) + np.repeat(np.arange(len(links)), 2)])
    members = np.concatenate([np.array(seeds, np.int64), links.ravel()])
    return Fragments(firsts, sizes, members, member_of, groups=np.array(groups, np.int64))


def test_merge_of_two_blocks():
    """Seeds 5 and 40; the second block's points 22 and 31 follow 21, which belongs to 5, and 50 follows an outlier."""
    first, second = fragments([5], [[21, 5]]), fragments([40], [[22, 21], [31, 22], [50, 60]])
    a, b = merge_fragments([first, second], 1)
    assert (a.numbers.tolist(), a.n_clusters) == ([0, 0], 2)
    assert (b.numbers.tolist(), b.n_clusters) == ([1, 0, 0, -1], 2)


def test_merge_without_links():
    slices = merge_fragments([fragments([4, 9], groups=[1]), fragments([]), fragments([2, 7], groups=[0, -1])], 1)
    assert [s.numbers.tolist() for s in slices] == [[1, 3], [], [0, 2]]
    assert {s.n_clusters for s in slices} == {4}


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 5))
def test_merge_of_random_forests(seed, n, chunks):
    rng = np.random.default_rng(seed)
    parent = np.where(rng.random(n) < 0.3, np.arange(n), (rng.random(n) * np.arange(n)).astype(int))
    names = np.sort(rng.choice(10**9, n, replace=False))
    is_root, home = parent == np.arange(n), rng.integers(0, chunks, n)
    is_seed = is_root & (rng.random(n) < 0.7)
    links = np.flatnonzero(~is_root)
    sent = []
    for chunk in range(chunks):
        mine = links[home[links] == chunk]
        seeds = names[is_seed & (home == chunk)]
        sent.append(fragments(seeds, np.stack([names[mine], names[parent[mine]]], axis=1)))
    root = oracles.groups_of(np.stack([np.arange(n), parent], axis=1), n)
    number = np.where(is_seed, np.cumsum(is_seed) - 1, -1)
    for chunk, merged in enumerate(merge_fragments(sent, 1)):
        of_links = number[root[links[home[links] == chunk]]]
        np.testing.assert_array_equal(merged.numbers, np.concatenate([number[is_seed & (home == chunk)], of_links]))
        assert merged.n_clusters == is_seed.sum()


def test_groups_in_several_chunks():
    with pytest.raises(ValueError, match="layer 7 is in several chunks"):
        merge_fragments([fragments([], groups=[6, 7]), fragments([], groups=[7])], 1)
    events, layers = np.array([0, 3, -2, 2**31 - 1, -(2**31)]), np.array([5, -(2**31), 2**31 - 1, -1, 0])
    numbers = group_number(events.astype(np.int32), layers.astype(np.int32))
    assert len(np.unique(numbers)) == 5
    assert group_name(int(numbers[1])) == f"layer {-(2**31)} of event 3"
    assert group_name(int(numbers[3])) == f"layer -1 of event {2**31 - 1}"


# ----------------------------------------------------------------------------------------------------------------- ids
@pytest.mark.parametrize(
    ("ids", "itemsize"),
    [([], 0), ([7], 0), ([5, 6, 7], 0), ([2**40, 2**40 + 3], 4), ([3, 3 + 2**31 - 2], 4), ([3, 3 + 2**31 - 1], 8)],
)
def test_ids_take_as_little_memory_as_they_need(ids, itemsize):
    kept = OwnIds.of(HOST, np.array(ids, np.int64))
    assert (0 if kept.beyond is None else kept.beyond.itemsize) == itemsize
    np.testing.assert_array_equal(kept.on(HOST), np.array(ids, np.int64), strict=True)


# ---------------------------------------------------------------------------------------------------------- partitions
def outside(x, low, high, cycle):
    """Return how far coordinates are from [low, high], around the period too."""
    copies = [-2, -1, 0, 1, 2] if cycle else [0]
    return np.min([np.maximum(np.maximum(low - (x + k * cycle), x + k * cycle - high), 0) for k in copies], axis=0)


@st.composite
def partitions(draw, X):
    d = X.shape[1]
    period = tuple(draw(st.sampled_from([0.0, 0.0, 0.5, 2.0, 7.0])) for _ in range(d))
    cuts, count = [], 1
    for cycle in period[: draw(st.integers(0, d))]:
        inside = st.floats(0.01 * cycle, 0.99 * cycle) if cycle else st.floats(-6, 6)
        rows = [np.unique(draw(st.lists(inside, max_size=3))).astype(float) for _ in range(count)]
        cuts.append(rows if draw(st.booleans()) else rows[0])
        count = sum(len(row) + 1 for row in rows) if cuts[-1] is rows else count * (len(rows[0]) + 1)
    return Partition(draw(st.integers(1, 3)), tuple(cuts), period, draw(st.sampled_from([0.1, 0.4, 1.5, 9.0])))


@given(st.data(), st.integers(0, 2**32), st.integers(0, 60), st.integers(1, 3))
def test_split(data, seed, n, d):
    """Every point is owned once, by the chunk whose region it is in; halos are complete and not much larger."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-6, 6, (n, d)).astype(data.draw(st.sampled_from([np.float32, np.float64])))
    group = rng.integers(-4, 5, n).astype(np.int32)
    partition = data.draw(partitions(X))
    chunks = partition.split({"X": X, "layer": group, "other": np.arange(n)}, 1000, group=group)
    assert len(chunks) == len(partition)
    blocks = partition.n_blocks
    moved = wrap_positions(X, partition.period).astype(float)
    owner = np.zeros(n, int)
    for number, chunk in enumerate(chunks):
        rows = chunk.ids - 1000
        assert (np.diff(rows) > 0).all()
        for name, values in (("X", X), ("layer", group), ("other", np.arange(n))):
            np.testing.assert_array_equal(chunk.columns[name], values[rows], strict=True)
        wanted = group % partition.groups == number // blocks if partition.groups > 1 else np.ones(n, bool)
        if not partition.cuts:
            assert chunk.owned is None
            assert chunk.region == ()
            np.testing.assert_array_equal(rows, np.flatnonzero(wanted))
            owner[rows] += 1
            continue
        assert chunk.region == partition.region(number)
        inside, far = wanted.copy(), np.zeros(n)
        for axis, (low, high) in enumerate(chunk.region):
            inside &= (moved[:, axis] >= low) & (moved[:, axis] < high)
            far = np.maximum(far, outside(moved[:, axis], low, high, partition.period[axis]))
        np.testing.assert_array_equal(rows[chunk.owned], np.flatnonzero(inside))
        owner[rows[chunk.owned]] += 1
        held = np.zeros(n, bool)
        held[rows] = True
        assert held[wanted & (far <= partition.halo)].all()
        assert not held[~wanted | (far > partition.halo * (1 + 1e-9) + 1e-12)].any()
    np.testing.assert_array_equal(owner, np.ones(n))
    if n and not partition.groups > 1:
        (reached,) = partition.reached(X.min(axis=0)[None], X.max(axis=0)[None])
        assert set(np.flatnonzero([len(chunk.ids) for chunk in chunks])) <= set(reached.tolist())
        for number, part in zip(reached, partition.split({"X": X}, 1000, among=reached), strict=True):
            np.testing.assert_array_equal(part.ids, chunks[number].ids)
            assert part.region == partition.region(number)


def test_boxes_reach_the_blocks_around_them():
    cuts = (np.array([1.0, 2.0]), np.array([5.0]))  # blocks 0 to 5, two along y for each of three along x
    partition = Partition(cuts=cuts, period=(3.0, 0.0), halo=0.25)
    low = [[1.3, 0], [1.1, 0], [0.1, 6], [1.3, 4.9], [-0.5, 0], [np.nan, 0], [1.3, -np.inf]]
    high = [[1.7, 4], [1.7, 4], [0.5, 7], [1.7, 4.9], [0.5, 0], [1.5, 0], [1.5, 0]]
    wanted = [[2], [0, 2], [1, 5], [2, 3], [0, 4], range(6), range(6)]
    for reached, blocks in zip(partition.reached(np.array(low), np.array(high)), wanted, strict=True):
        np.testing.assert_array_equal(reached, list(blocks))


def test_points_that_would_be_lost_are_told_of():
    partition = Partition(cuts=(np.array([1.0, 2.0]),), period=(0.0,), halo=0.1)
    with pytest.raises(ValueError, match=r"begins at 70 lie elsewhere .* persist"):
        partition.split({"X": np.array([[0.5], [2.5]])}, 70, among=np.array([0, 1]))


def test_regions_tile_space():
    partition = Partition(cuts=(np.array([1.0, 2.0]), np.empty(0), np.array([0.5])), period=(0.0, 4.0, 1.0), halo=0.1)
    assert len(partition) == 6
    inf = np.inf
    assert partition.region(0) == ((-inf, 1.0), (-inf, inf), (0.0, 0.5))
    assert partition.region(5) == ((2.0, inf), (-inf, inf), (0.5, 1.0))
    assert partition.region(6) == partition.region(0)


@given(st.integers(0, 2**32), st.integers(0, 500), st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_balanced_cuts(seed, n, blocks):
    sample = np.random.default_rng(seed).exponential(2.0, (n, 3)).astype(np.float32)
    period = (0.0, 1.0, 0.0)[: len(blocks)]
    partition = Partition(cuts=balanced_cuts(sample, tuple(blocks), period), period=period)
    shares = [chunk.owned.sum() for chunk in partition.split({"X": sample}, 0)]
    assert sum(shares) == n
    if n >= 4 * math.prod(blocks):
        assert len(shares) == math.prod(blocks)
        assert max(shares) - min(shares) <= 2 * len(blocks) + 1


def test_blocks_of_clustered_points_are_balanced():
    """Planes across one axis follow the points of each block that the axes before it make."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 0.1, (4000, 2)), rng.normal(9, 2.0, (4000, 2)) * [1, -1]])
    partition = Partition(cuts=balanced_cuts(X[::10], (2, 4), (0.0, 0.0)), period=(0.0, 0.0))
    shares = [chunk.owned.sum() for chunk in partition.split({"X": X}, 0)]
    assert min(shares) > 800
    assert max(shares) < 1200


def test_more_points_than_a_part_can_number(monkeypatch):
    monkeypatch.setattr(checks, "_MOST_POINTS", 9)
    partition = Partition(cuts=(np.array([4.5]),), period=(0.0,), halo=1.0)
    X = np.arange(9.0)[:, None]  # two of them are in halos, too
    with pytest.raises(ValueError, match="11 points are more than one chunk holds"):
        partition.split({"X": X}, 0)


@pytest.mark.parametrize(("count", "grid"), [(8, (3, 3)), (7, (2, 2, 2)), (1, (1, 1)), (5, (5,)), (11, (3, 2, 2))])
def test_balanced_cuts_into_any_number(count, grid):
    X = np.random.default_rng(3).normal(size=(6600, len(grid)))
    partition = Partition(cuts=balanced_cuts(X, grid, (0.0,) * len(grid), count), period=(0.0,) * len(grid))
    sizes = [len(chunk.ids) for chunk in partition.split({"X": X}, 0)]
    assert len(partition) == count
    assert max(sizes) - min(sizes) <= len(grid)


def test_balanced_cuts_of_equal_points():
    (cuts,) = balanced_cuts(np.full((50, 1), 3.0), (4,), (0.0,))
    assert cuts.tolist() == [3.0]
    assert len(Partition(cuts=balanced_cuts(np.empty((0, 2)), (3, 2), (0.0, 0.0)), period=(0.0, 0.0))) == 1


def test_planes_for_each_block():
    cuts = ([1.0], ([5.0], [6.0, 7.0]))
    partition = Partition(cuts=cuts, period=(0.0, 9.0))
    inf = np.inf
    assert [partition.region(k) for k in (1, 2, 4)] == [
        ((-inf, 1.0), (5.0, 9.0)),
        ((1.0, inf), (0.0, 6.0)),
        ((1.0, inf), (7.0, 9.0)),
    ]
    with pytest.raises(ValueError, match=r"cuts\[1\] has planes for 1 blocks; the axes before it make 2"):
        Partition(cuts=([1.0], ([5.0],)), period=(0.0, 0.0))


# ------------------------------------------------------------------------------------------------------------- threads
EXTENDED = """
import threading, types
import numpy as np
from numba.core import entrypoints
from numba.core.compiler_lock import global_compiler_lock
from daskclust import CLUE

def told():
    print(global_compiler_lock.is_locked(), threading.current_thread() is threading.main_thread())

extension = types.SimpleNamespace(load=lambda: told)
installed = types.SimpleNamespace(select=lambda group, name: [extension])
entrypoints.importlib_metadata = types.SimpleNamespace(entry_points=lambda: installed)
CLUE(1, 1).fit(np.zeros((100_000, 2)))
"""


@pytest.mark.slow
def test_extensions_of_numba_are_loaded_before_threads_compile():
    """Numba loads them at the first call, without its lock; a thread that compiled meanwhile failed now and then."""
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", EXTENDED], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"


# ---------------------------------------------------------------------------------------------------------- arithmetic
@lane_kernel
def _exponential_of_lanes(i, m, row, x, out):
    store(out, i, m, exp_of_negative(load(x, i, m)))


@kernel
def _exponential_of_scalar(i, x, out):
    out[i] = exp_of_negative(x[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponential(dtype):
    rng = np.random.default_rng(8)
    parts = [rng.uniform(-87, 0, 100_000), -(10.0 ** rng.uniform(-12, 1.9, 100_000)), np.arange(-87, 1), [-1e-40, -0.0]]
    x = np.concatenate(parts).astype(dtype)
    n = len(x)
    padded, row = np.concatenate([x, np.zeros(PAD, dtype)]), np.zeros(n + PAD, np.int32)
    lanes, scalar = np.empty(n, dtype), np.empty(n, dtype)
    _exponential_of_lanes.run(n, row, padded, lanes)
    _exponential_of_scalar.run(n, x, scalar)
    np.testing.assert_array_equal(lanes, scalar)
    right = np.exp(x.astype(np.longdouble))
    assert np.finfo(np.longdouble).eps < np.finfo(np.float64).eps
    assert np.abs((lanes - right) / np.spacing(right.astype(dtype))).max() < 4
    assert lanes[x == 0].min() == 1
    assert lanes.max() <= 1
    below = np.concatenate([np.array([-87.001, -88, -1e4, -np.inf]), np.zeros(PAD)]).astype(dtype)
    out = np.empty(4, dtype)
    _exponential_of_lanes.run(4, row, below, out)
    assert out.tolist() == [0.0] * 4


@given(st.one_of(st.floats(1e-12, 1e12), st.floats(0, exclude_min=True, allow_infinity=False)))
def test_squares_below_a_distance(distance):
    for dtype in (np.float32, np.float64):
        with np.errstate(all="ignore"):
            if not np.isfinite(dtype(distance)) or dtype(distance) == 0:
                continue
            square = square_below(distance, dtype)
            above = np.nextafter(square, dtype(np.inf))
            assert square.dtype == dtype
            assert np.sqrt(square) <= dtype(distance)
            assert np.sqrt(above) > dtype(distance)


def test_distance_too_large_for_float32():
    with pytest.raises(ValueError, match="float64"):
        square_below(1e39, np.float32)


# ------------------------------------------------------------------------------------------------------------- atomics
@kernel
def _add_often(i, array, times_each):
    k = 0
    while k < times_each:
        atomic_add(array, k & 1, 1)
        k += 1


@kernel
def _take_number(i, counter, taken):
    number = atomic_add(counter, 0, 1)
    taken[number] += 1


@kernel
def _extremes(i, values, low, high):
    atomic_min(low, i % len(low), values[i])
    atomic_max(high, i % len(high), values[i])


@kernel
def _add_by_swapping(i, array, times_each):
    k = 0
    while k < times_each:
        before = atomic_load(array, 0)
        if atomic_cas(array, 0, before, before + 1) == before:
            k += 1


@pytest.mark.parametrize(
    ("dtype", "repeats"), [(np.int32, 2_000_000), (np.int64, 100_000), (np.uint32, 100_000), (np.float64, 100_000)]
)
def test_atomic_additions_lose_nothing(threads, dtype, repeats):
    """4e7 of them on two threads: fewer pass with plain additions, too (shared/gpu.md)."""
    threads(2)
    counters = np.zeros(2, dtype)
    _add_often.run(20, counters, repeats, grain=1)
    assert counters.tolist() == [10 * repeats] * 2


def test_atomic_additions_return_what_was_before(threads):
    threads(2)
    counter, taken = np.zeros(1, np.int64), np.zeros(1_000_000, np.int8)
    _take_number.run(len(taken), counter, taken, grain=1000)
    assert counter[0] == len(taken)
    assert (taken == 1).all()


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.float32, np.float64])
def test_atomic_extremes(threads, dtype):
    threads(2)
    values = np.random.default_rng(9).integers(0, 2**31, 1_000_000).astype(dtype)
    if dtype is np.uint32:
        values *= 2
    elif dtype is not np.uint32:
        values -= dtype(2**30)
    low, high = np.full(4, values[0], dtype), np.full(4, values[0], dtype)
    _extremes.run(len(values), values, low, high, grain=1000)
    for k in range(4):
        assert low[k] == min(values[k::4].min(), values[0])
        assert high[k] == max(values[k::4].max(), values[0])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_compare_and_swap(threads, dtype):
    threads(2)
    counter = np.zeros(1, dtype)
    _add_by_swapping.run(20, counter, 100_000, grain=1)
    assert counter[0] == 2_000_000


# -------------------------------------------------------------------------------------------------- bodies and kernels
def test_bind():
    weighted = kernels.density.bind(visit=kernels.add_weighted)
    bound = kernels.density.bind(visit=kernels.add_weighted, chi=kernels.gaussian)
    assert len({id(kernels.density), id(weighted), id(bound)}) == 3
    assert len({kernels.density.label, weighted.label, bound.label}) == 3
    assert kernels.density.bind(chi=kernels.gaussian, visit=kernels.add_weighted) is bound
    assert kernels.density.bind() is kernels.density
    assert kernels.density.bind(no_such_name=kernels.gaussian) is kernels.density
    assert kernels.density.bind(chi=kernels.gaussian) is kernels.density  # its `visit` has no use for one
    assert kernels.density.bind(visit=kernels.add_weighted, chi=kernels.gaussian, another=1) is bound


def _slope(distance):
    return 1.0 - 0.5 * distance


@body
def _twice(x):
    return x + x


@body
def _four_times(x):
    return _twice(_twice(x))


def test_bodies_are_swallowed_whole():
    """They have no machine code of their own, and what is compiled with them calls none of them."""
    four_times = _four_times.cpu

    @numba.njit
    def caller(x):
        return four_times(x)

    assert caller(1.5) == 6.0
    for each in (_twice, _four_times):
        (compiled,) = each.cpu.overloads.values()
        assert compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name) == 0
    (assembly,) = caller.inspect_asm().values()
    lines = [line for line in assembly.splitlines() if "NumbaEnv" not in line]
    assert not [line for line in lines if "_twice" in line or "_four_times" in line]


def test_bodies_travel_by_name():
    bound = kernels.density.bind(visit=kernels.add_weighted, chi=kernels.exponential)
    for thing in (kernels.gaussian, kernels.density, bound, user_kernel(_slope)):
        assert pickle.loads(pickle.dumps(thing)) is thing


@pytest.mark.parametrize("chi", [kernels.flat, kernels.gaussian, user_kernel(_slope)])
def test_plans_travel(chi):
    plan = CluePlan(1.0, 2.0, 1.0, 1.5, chi, 1.0, 0.5, (0.0, 6.0))
    again = pickle.loads(pickle.dumps(plan))
    assert again == plan
    assert again.chi is chi


def test_user_kernels_are_not_kept_on_disk():
    assert kernels.density.bind(visit=kernels.add_weighted, chi=kernels.gaussian).cacheable
    assert not user_kernel(_slope).cacheable


def test_what_calls_user_kernels_is_not_kept_on_disk():
    assert not kernels.density.bind(visit=kernels.add_weighted, chi=user_kernel(_slope)).cacheable


# ------------------------------------------------------------------------------------------------------------- threads
@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_every_task_is_done_once(count, workers):
    done: list[int] = []
    in_threads(done.append, count, workers)
    assert sorted(done) == list(range(count))


@pytest.mark.parametrize("bad", [0, 3, 9])
def test_exceptions_reach_the_caller(bad):
    def task(k):
        time.sleep(0.001)
        if k == bad:
            raise ZeroDivisionError(k)

    with pytest.raises(ZeroDivisionError):
        in_threads(task, 10, 2)
    in_threads(lambda k: None, 10, 2)  # the pool serves on


def test_one_thread(threads):
    threads(2)
    seen = []
    assert thread_count() == 2
    with one_thread():
        assert thread_count() == 1
        with one_thread():
            assert thread_count() == 1
        assert thread_count() == 1
        other = threading.Thread(target=lambda: seen.append(thread_count()))
        other.start()
        other.join()
        with pytest.raises(KeyError), one_thread():
            raise KeyError
        assert thread_count() == 1
    assert thread_count() == 2
    assert seen != [1]


@pytest.mark.slow
@pytest.mark.parametrize(("given", "kept"), [({}, "passive"), ({"OMP_WAIT_POLICY": "active"}, "active")])
def test_threads_of_openmp_sleep_unless_the_user_says_otherwise(given, kept):
    others = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    code = "import os; from daskclust import CLUE; print(os.environ['OMP_WAIT_POLICY'])"
    run = subprocess.run([sys.executable, "-c", code], env=others | given, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == kept


def test_kernels_run_every_index_once(threads):
    for count, n in itertools.product((1, 2), (0, 1, 2, 15, 16, 17, 100)):
        threads(count)
        parent = np.full(n, -1, np.int32)
        start.run(n, parent, grain=3)
        np.testing.assert_array_equal(parent, np.arange(n))


# -------------------------------------------------------------------------------------------------------------- labels
def test_same_partition():
    assert same_partition([], [])
    assert same_partition([3, 3, -1], [0, 0, -7])
    assert not same_partition([0, 0, 1], [0, 1, 1])
    assert not same_partition([0, 1], [0, 0])
    assert not same_partition([0, 0], [0, 1])
    assert not same_partition([0], [0, 0])
    assert not same_partition([-1], [0])


@given(st.lists(st.integers(-1, 5)), st.permutations(range(6)), st.integers(0, 5))
def test_renamed_labels_are_the_same_partition(labels, names, other):
    labels = np.array(labels, int)
    renamed = np.where(labels < 0, -1, np.array(names)[labels])
    assert same_partition(labels, renamed)
    assert count_clusters(labels) == count_clusters(renamed) == len(set(labels.tolist()) - {-1})
    if len(labels) and labels[0] != other:
        changed = labels.copy()
        changed[0] = other
        merges = labels[0] < 0 or (labels == labels[0]).sum() > 1 or (labels == other).any()
        assert same_partition(labels, changed) == (not merges)
