"""Minimum spanning trees: brute force, SciPy's and quitefastmst's; the same for any order of rows and threads."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from oracles.spanning_tree import brute_force, squared_distances
from scipy.sparse.csgraph import minimum_spanning_tree

from daskclust.hdbscan.spanning_tree import SpanningTree, spanning_tree

SETS = 200


def drawn(rng: np.random.Generator, most: int = 250) -> tuple[Any, int, tuple[float, ...]]:
    """Return points of some kind, min_samples and a period of each axis."""
    n, d = int(rng.integers(1, most)), int(rng.integers(1, 7))
    X = rng.uniform(0, 1, (n, d))
    kind = rng.integers(6)
    if kind == 0:
        X = rng.integers(0, 4, (n, d)).astype(np.float64)  # a lattice
    elif kind == 1:
        X = np.repeat(X, 6, axis=0)[:n]  # all several times
    elif kind == 2:
        X = X.round(1)
    elif kind == 3:
        X[rng.random(n) < 0.5] *= 1e-7  # two scales
    elif kind == 4:
        X[: n // 2] = X[0]  # half of them in one place
    if rng.random() < 0.3:
        X = X.astype(np.float32)
    period = tuple(map(float, rng.choice([0.0, 1.0, 2.5, 4.0], d))) if rng.random() < 0.5 else ()
    return X, int(min(n, rng.choice([1, 2, 5, 10, 40, n]))), period


def assert_equal(found: SpanningTree, wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    assert found.edges.dtype == np.int64
    assert found.weight.dtype == found.core.dtype == np.float64


@pytest.mark.parametrize("seed", range(10))
def test_edges_are_those_of_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(SETS // 10):
        X, min_samples, period = drawn(rng)
        alpha = float(rng.choice([1.0, 1.0, 1.3]))
        assert_equal(spanning_tree(X, min_samples, period, alpha), brute_force(X, min_samples, period, alpha))


@pytest.mark.parametrize("seed", range(4))
def test_forest_has_the_edges_up_to_a_weight_and_core_distances_may_be_given(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(10):
        X, min_samples, period = drawn(rng)
        edges, weight, core = brute_force(X, min_samples, period)
        most = float(rng.choice(np.append(weight, [0.0, 1e-3])))
        is_kept = weight <= most
        found = spanning_tree(X, min_samples, period, core=core, most=most)
        assert_equal(found, (edges[is_kept], weight[is_kept], core))


@pytest.mark.parametrize("seed", range(3))
def test_total_weight_is_that_of_scipy(seed: int) -> None:
    X = np.random.default_rng(seed).normal(size=(700, 3))
    for min_samples in (1, 6, 30):
        length = squared_distances(X)
        core = np.sort(length, axis=1)[:, min_samples - 1]
        dense = np.sqrt(np.maximum(length, np.maximum(core[:, None], core)))
        total = minimum_spanning_tree(dense).sum()
        assert np.sqrt(spanning_tree(X, min_samples).weight).sum() == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize(
    ("min_samples", "period"), [(1, ()), (1, (0.0, 0.0, 9.0)), (4, ()), (16, (20.0,) * 3), (25, ())]
)
def test_order_of_rows_and_threads_do_not_matter(min_samples: int, period: tuple[float, ...]) -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(6000, 3)), np.zeros((1000, 3)), rng.integers(0, 9, (3000, 3))])
    wanted = spanning_tree(X, min_samples, period)
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        assert_equal(spanning_tree(X, min_samples, period), wanted)
    finally:
        numba.set_num_threads(threads)
    rows = rng.permutation(len(X))
    found = spanning_tree(X[rows], min_samples, period)
    np.testing.assert_array_equal(found.weight, wanted.weight)
    np.testing.assert_array_equal(found.core, wanted.core[rows])

    without_ties = X[:6000]  # then there is one tree, whatever the numbers of rows
    rows = rng.permutation(6000)
    one, other = (spanning_tree(points, min_samples, period) for points in (without_ties, without_ties[rows]))
    assert set(map(tuple, one.edges)) == set(map(tuple, np.sort(rows[other.edges], axis=1)))


@pytest.mark.parametrize("number", [1, 2, 3, 17, 33])
def test_few_points(number: int) -> None:
    X = np.random.default_rng(0).normal(size=(number, 2))
    for min_samples in {1, min(2, number), number}:
        assert_equal(spanning_tree(X, min_samples), brute_force(X, min_samples))


def test_no_points() -> None:
    assert_equal(spanning_tree(np.empty((0, 3))), (np.empty((0, 2)), np.empty(0), np.empty(0)))


@pytest.mark.parametrize("min_samples", [1, 5, 100])
def test_masses_of_equal_points_take_little_time(min_samples: int) -> None:
    places = np.random.default_rng(0).uniform(0, 1, (40, 2))
    X = np.repeat(places, 5000, axis=0)
    found = spanning_tree(X, min_samples)
    of_places = brute_force(places)
    far = found.weight > 0
    np.testing.assert_array_equal(found.edges[far] // 5000, of_places[0])
    np.testing.assert_array_equal(found.weight[far], of_places[1])
    assert not found.core.any()
    assert len(found.edges) == len(X) - 1


def test_far_outlier_and_uneven_scales() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.uniform(0, 1e-6, (500, 3)), rng.uniform(0, 1, (300, 3)), [[1e9, 0, 0]]])
    assert_equal(spanning_tree(X, 3), brute_force(X, 3))


def test_what_is_wrong_is_refused() -> None:
    X = np.zeros((3, 2))
    with pytest.raises(ValueError, match="min_samples must be from 1 to the number of points, 3, got 4"):
        spanning_tree(X, 4)
    with pytest.raises(ValueError, match="exceed float64"):
        spanning_tree(np.diag([1e200, 0.0, 0.0]))
    with pytest.raises(ValueError, match="NaN"):
        spanning_tree(X + np.nan)
