"""DBSCAN where coordinates are far apart: gaps are cut, rows are numbered by rank."""

import math

import numpy as np
import pytest
from cases.dbscan import Case, as_sklearn, assert_answer, blocks_of
from cases.lanes import quick_first

from daskclust import DBSCAN, FriendsOfFriends
from daskclust.core.device.arrays import Reused
from daskclust.core.space.bucket_sort import sort_points
from daskclust.core.space.grid import PAD

RNG = np.random.default_rng(12)


def scattered(d, extent, n=250, seed=0):
    """Return clumps of four, in shuffled order, all over a space."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.uniform(0, extent, (n, d)), 4, axis=0) + rng.uniform(-0.4, 0.4, (4 * n, d))
    return X[rng.permutation(4 * n)]


@pytest.mark.parametrize("min_samples", [2, 4])
@pytest.mark.parametrize(("d", "extent"), [(2, 1e7), (3, 3e4)])
def test_sparse_rows(d, extent, min_samples):
    """More rows than a table is worth: those that hold points are kept, and found by bisection."""
    X = scattered(d, extent)
    blocks = blocks_of(X, 1.0)
    assert len(blocks.row_key) == len(blocks.row_first) - 1 > 0
    assert blocks.grid.blocks[0] * blocks.grid.blocks[1] > 4 * len(X) + 65536
    case = Case(X, 1.0, min_samples)
    assert_answer(case.fit(), as_sklearn(X, 1.0, min_samples))
    assert_answer(case.chunked((300, 700), case.partition([extent / 2])), case.answer())


@pytest.mark.parametrize("min_samples", [2, 4])
@pytest.mark.parametrize("d", quick_first([2, 3, 1], 2))
def test_compressed_axes(d, min_samples):
    """More cells than can be numbered: gaps along open axes are cut out."""
    case = Case(scattered(d, 1e13), 1.0, min_samples)
    assert_answer(case.fit(), as_sklearn(case.X, 1.0, min_samples))
    assert_answer(case.chunked((300, 700)), case.answer())


def test_gaps_are_cut_to_what_is_out_of_reach():
    """Cells up to four and more apart: neighbours stay neighbours when gaps are cut, and others do not become ones."""
    for step in (0.5, 0.99, 1.0, 1.01, 1.4, 1.5, 2.0, 2.9, 3.0, 4.0, 5.0):
        x = np.cumsum(np.full(40, step))
        for d, min_samples in ((2, 2), (2, 3), (3, 3)):
            X = np.stack([np.concatenate([x, x + 2.0**44])] * d, axis=1) / math.sqrt(d)
            assert_answer(Case(X, 1.0, min_samples).fit(), as_sklearn(X, 1.0, min_samples))


@pytest.mark.slow
@pytest.mark.parametrize("min_samples", [2, 4])
@pytest.mark.parametrize("period", [(1e10, 1e10), (1e9, 1e9, 1e9), (0.0, 9e12, 0.0), (1e10, 1e9, 0.0)], ids=str)
def test_ranked_rows(period, min_samples):
    """Periodic axes keep all of their cells: rows are numbered by rank where these are too many."""
    X = scattered(len(period), max(period))
    X[:4] = np.add(period, [[-0.3], [-0.2], [0.1], [0.2]])  # a clump around the corner of the box
    assert len(blocks_of(X, 1.0, period).row_key) > 0
    case = Case(X, 1.0, min_samples, None, period)
    assert_answer(case.fit(), case.answer())
    assert_answer(case.chunked((300, 700), case.partition([3e8], [5e8])), case.answer())


@pytest.mark.slow
@pytest.mark.parametrize("min_samples", [2, 3])
def test_long_periodic_axis(min_samples):
    """Columns beyond 32 bits: blocks along one axis are numbered in 64."""
    period = (3e12,)
    X = np.concatenate([scattered(1, 3e12), [[0.2], [3e12 - 0.2], [-0.5], [2.0**31 * 64], [2.0**32 * 64]]])
    assert blocks_of(X, 1.0, period).column.dtype == np.int64
    case = Case(X, 1.0, min_samples, None, period)
    assert_answer(case.fit(), case.answer())
    assert_answer(case.chunked((400, 605), case.partition([1e12, 2e12])), case.answer())


@pytest.mark.slow
def test_a_diagonal_of_many_points():
    """So many cells along each of three axes that even without gaps their product cannot be numbered."""
    at = np.arange(430_000) * 1e6
    X = np.stack([at, at, at], axis=1)
    X = np.concatenate([X, X[:1000] + 0.5])  # neighbours for some
    wanted = np.full(len(X), -1)
    wanted[:1000] = wanted[-1000:] = np.arange(1000)
    np.testing.assert_array_equal(FriendsOfFriends(1.0).fit(X).labels_, wanted)


def test_boxes_that_cannot_be_numbered():
    with pytest.raises(ValueError, match=r"boxsize .* is 4\.33e\+10 x .*a larger eps.*boxsize=None"):
        DBSCAN(1.0, boxsize=1e11).fit(scattered(3, 1e11))
    with pytest.raises(ValueError, match=r"80000 rows of .* blocks.*a larger eps"):
        blocks_of(np.concatenate([scattered(2, 2e13)] * 80) + RNG.uniform(0, 1e13, (80_000, 2)), 1.0, (3e13, 3e13))


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("bits", [1, 30, 50, 58, 62])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (1000, 2), (70_000, 3), (140_000, 1)])
def test_points_are_sorted_by_their_cells(n, d, dtype, bits, count, threads):
    """Cells of few and of many bits, some of them equal; of very many a place is left to another sort."""
    rng = np.random.default_rng(n)
    keys = (rng.random(n) ** 2 * 2**bits).astype(np.int64)
    keys[: n // 2] = rng.choice(keys, n // 2)  # equal ones keep their order
    keys[0] = 2**bits - 1
    X, period = rng.normal(size=(n, d)).astype(dtype), (0.0,) * d
    expected = np.argsort(keys, kind="stable")
    threads(count)
    order, positions, given, memory = np.empty(n + PAD, np.int32), np.empty((d, n + PAD), dtype), keys.copy(), Reused()
    if sort_points(X, period, keys, 2**bits, order, positions, memory):
        np.testing.assert_array_equal(keys, given[expected])
        np.testing.assert_array_equal(order[:n], expected)
        np.testing.assert_array_equal(positions[:, :n], X[expected].T)
    else:
        assert bits > 55
        np.testing.assert_array_equal(keys, given)
