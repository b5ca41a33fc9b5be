"""DBSCAN and friends-of-friends against brute force, in memory and however divided, and where points are special."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases.dbscan import SHAPES, Case, assert_answer, cases, planes
from cases.lanes import by_lane, every_dtype, every_shape, in_long_lane, quick_first, row_chunks
from hypothesis import given, settings
from hypothesis import strategies as st

from daskclust import DBSCAN, FriendsOfFriends

RNG = np.random.default_rng(11)


# -------------------------------------------------------------------------------------------------------- brute force


@every_shape
@settings(max_examples=in_long_lane(1000, otherwise=60))
@given(st.data(), cases(most=150))
def test_memory_and_any_division_equal_brute_force(data, case):
    """Planes at any coordinates, also through points and beside the faces of a periodic box, and any chunks."""
    wanted = case.answer()
    assert_answer(case.fit(), wanted)
    n = len(case.X)
    partition = data.draw(st.one_of(planes(case), st.sampled_from(["auto", "chunks"])))
    rows = (n,) if partition == "chunks" else data.draw(row_chunks(n))
    assert_answer(case.chunked(rows, partition), wanted)


@pytest.mark.slow
@given(cases(shapes=[(5, np.float64), (6, np.float32)], most=100))
def test_many_axes_equal_brute_force(case):
    assert_answer(case.fit(), case.answer())


def test_friends_are_dbscan_with_two_samples():
    X = RNG.uniform(0, 10, (400, 2))
    friends, dbscan = FriendsOfFriends(0.4).fit(X), DBSCAN(0.4, min_samples=2).fit(X)
    assert_answer(friends, dbscan)
    np.testing.assert_array_equal(friends.core_sample_indices_, dbscan.core_sample_indices_)
    np.testing.assert_array_equal(friends.components_, X[friends.labels_ >= 0])


# ---------------------------------------------------------------------------------------------------------- boundaries
@pytest.mark.parametrize(
    ("d", "dtype"), by_lane([(d, dtype) for d in (1, 2, 3, 4) for dtype in (np.float32, np.float64)])
)
def test_shortest_periods(d, dtype):
    """Boxes of exactly two eps: one point lies half a period from another on both sides; points far outside of them."""
    rng = np.random.default_rng(d)
    anywhere = rng.uniform(-9, 9, (60, d))
    for period in ((2.0,) * d, (2.0, *[0.0] * (d - 1)), (*[0.0] * (d - 1), 2.0)):
        for X, min_samples in ((anywhere, 5), (np.round(anywhere * 2) / 2, 2), (rng.uniform(0, 1e-3, (30, d)), 5)):
            case = Case(X.astype(dtype), 1.0, min_samples, None, period)
            wanted = case.answer()
            assert_answer(case.fit(), wanted)
            for cuts in ([[0.5, 1.5]], [[1.0], [0.25]][:d]):
                cuts = [cut if period[axis] else [-1.0, 2.0] for axis, cut in enumerate(cuts)]
                assert_answer(case.chunked((20, len(X) - 20), case.partition(*cuts)), wanted)


@pytest.mark.parametrize("d", quick_first([2, 3, 1, 4, 5], 2))
def test_neighbour_at_half_a_period_counts_once(d):
    """It is at exactly eps to the left and to the right."""
    pair = np.array([[0.25] * d, [1.25] + [0.25] * (d - 1)])
    for period in ((2.0,) * d, (2.0, *[0.0] * (d - 1))):
        for min_samples, weight, labels in ((2, None, [0, 0]), (3, None, [-1, -1]), (3, np.array([1, 1.5]), [-1, -1])):
            case = Case(pair, 1.0, min_samples, weight, period)
            assert_answer(case.fit(), case.answer())
            assert case.fit().labels_.tolist() == labels


@every_dtype
def test_points_on_the_seam(dtype):
    period = 2 * np.pi
    at = [0.0, period, -period, 1e-9, -1e-9, np.nextafter(period, 0), 3 * period, -1e-30]
    case = Case(np.array([at, [0.0] * 8], dtype).T.copy(), 0.5, 8, None, (period, 0.0))
    assert_answer(case.fit(), case.answer())
    assert case.fit().labels_.tolist() == [0] * 8


@every_dtype
def test_distance_that_rounding_decides(dtype):
    """0.1 + 0.2 and 0.3: squares are compared as they are rounded in float64, whatever the planes."""
    X = np.array([[0.1, 0.0], [0.4, 0.0], [0.7, 0.0], [1.0, 0.0], [1.3, 0.0]], dtype)
    for min_samples in (2, 3):
        case = Case(X, 0.3, min_samples)
        assert_answer(case.fit(), case.answer())
        for cut in (0.25, 0.4, 0.55, 0.7):
            assert_answer(case.chunked((5,), case.partition([cut])), case.answer())


# --------------------------------------------------------------------------------------------------- order and position


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3])
def test_float32_at_the_rounding_of_eps(d):
    """Distances that float32 rounds to eps or past it, on both sides, at several magnitudes of coordinates."""
    rng = np.random.default_rng(d)
    for scale in (1e-3, 1.0, 1e4, 1e20, 1e-20):
        a = rng.uniform(0, 1, (300, d)).astype(np.float32) * np.float32(scale)
        way = rng.normal(0, 1, (300, d))
        b = (a + 0.1 * scale * way / np.linalg.norm(way, axis=1, keepdims=True)).astype(np.float32)
        X = np.concatenate([a, b])
        for eps in (0.1 * scale, float(np.float32(0.1 * scale)), 0.1 * scale * (1 - 1e-8)):
            case = Case(X, eps, 3)
            assert_answer(case.fit(), case.answer())


# ------------------------------------------------------------------------------------------------------------- threads
@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        Case(RNG.uniform(0, 100, (90_000, 2)).astype(np.float32), 0.5, 6),
        Case(RNG.uniform(0, 28, (90_000, 3)), 0.5, 2),
        Case(RNG.uniform(0, 100, (90_000, 2)), 0.5, 6, RNG.integers(-1, 9, 90_000) / 4, (100.0, 0.0)),
        Case(RNG.uniform(0, 30, (20_000, 4)).astype(np.float32), 1.5, 3),
    ],
    ids=["2-d", "links alone", "weights, periodic", "tree"],
)
def test_threads_do_not_matter(case, threads):
    answers = []
    for count in (1, 2, 2):
        threads(count)
        answers.append(case.fit())
    assert answers[0].n_clusters_ > 100
    for answer in answers[1:]:
        assert_answer(answer, answers[0])


# ------------------------------------------------------------------------------------------------------- special points
@pytest.mark.parametrize(("d", "dtype"), by_lane([*SHAPES, (6, np.float64)]))
def test_few_and_equal_points(d, dtype):
    for X, min_samples in ((np.full((1, d), -3.5), 1), (np.full((40, d), 7.25), 40), (np.full((40, d), 7.25), 41)):
        case = Case(X.astype(dtype), 1.0, min_samples)
        assert_answer(case.fit(), case.answer())
    noise = Case(np.arange(20 * d).reshape(20, d).astype(dtype) * 9, 1.0, 3).fit()
    assert (noise.labels_.tolist(), noise.n_clusters_) == ([-1] * 20, 0)
    assert (noise.core_sample_indices_.shape, noise.components_.shape) == ((0,), (0, d))


@every_dtype
@pytest.mark.parametrize("eps", [1.0, 2.0, math.sqrt(2), 5.0])
def test_lattice_at_exactly_eps(eps, dtype):
    X = np.stack(np.meshgrid(np.arange(9), np.arange(9)), axis=-1).reshape(-1, 2).astype(dtype)
    for min_samples in (2, 5, 9):
        case = Case(X, float(eps), min_samples)
        assert_answer(case.fit(), case.answer())
        assert_answer(case.chunked((20, 41, 20), case.partition([2, 5], [4])), case.answer())


def test_weights_are_rounded_once():
    """Sums that any one order of additions rounds below or beyond min_samples."""
    assert DBSCAN(1.0, min_samples=1).fit([[0.0]] * 10, sample_weight=[0.1] * 10).labels_.tolist() == [0] * 10
    huge = [1e16, 1.0, -1e16, 1.0]
    assert DBSCAN(1.0, min_samples=2).fit([[0.0]] * 4, sample_weight=huge).labels_.tolist() == [0] * 4
    assert DBSCAN(1.0, min_samples=3).fit([[0.0]] * 4, sample_weight=huge).labels_.tolist() == [-1] * 4
    for d in (2, 4):
        X = RNG.uniform(0, 4, (60, d))
        weight = RNG.choice([0.1, 0.2, 0.3, 0.7, -0.1, 1e15, -1e15], 60)
        case = Case(X, 1.5, 1, weight)
        assert_answer(case.fit(), case.answer())
        assert_answer(case.chunked((30, 30), case.partition([1.1, 2.5])), case.answer())
