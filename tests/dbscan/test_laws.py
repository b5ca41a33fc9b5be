"""DBSCAN and friends-of-friends against brute force, in memory and however divided."""

import math

import numpy as np
import pytest
from cases.dbscan import SHAPES, Case, assert_answer, cases, planes
from cases.lanes import every_dtype, every_shape, in_long_lane, row_chunks
from hypothesis import given, settings
from hypothesis import strategies as st

from daskclust import DBSCAN, FriendsOfFriends

RNG = np.random.default_rng(11)


@every_shape
@settings(max_examples=in_long_lane(1000, otherwise=60))
@given(st.data(), cases(shapes=[*SHAPES, (5, np.float64), (6, np.float32)], most=150))
def test_memory_and_any_division_equal_brute_force(data, case):
    """Planes at any coordinates, also through points and beside the faces of a periodic box, and any chunks."""
    wanted = case.answer()
    assert_answer(case.fit(), wanted)
    n = len(case.X)
    partition = data.draw(st.one_of(planes(case), st.sampled_from(["auto", "chunks"])))
    rows = (n,) if partition == "chunks" else data.draw(row_chunks(n))
    assert_answer(case.chunked(rows, partition), wanted)


def test_friends_are_dbscan_with_two_samples():
    X = RNG.uniform(0, 10, (400, 2))
    friends, dbscan = FriendsOfFriends(0.4).fit(X), DBSCAN(0.4, min_samples=2).fit(X)
    assert_answer(friends, dbscan)
    np.testing.assert_array_equal(friends.core_sample_indices_, dbscan.core_sample_indices_)
    np.testing.assert_array_equal(friends.components_, X[friends.labels_ >= 0])


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


def test_no_cluster_at_all():
    noise = Case(np.arange(40.0).reshape(20, 2) * 9, 1.0, 3).fit()
    assert (noise.labels_.tolist(), noise.n_clusters_) == ([-1] * 20, 0)
    assert (noise.core_sample_indices_.shape, noise.components_.shape) == ((0,), (0, 2))


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
