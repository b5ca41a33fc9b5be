"""Floors of benchmarks: the work that is counted is right; how fast this machine is is not asked."""

import itertools

import numpy as np
import pytest

from bench import roofline, timing
from bench.cases import Options
from bench.runner import SYSTEMS
from daskclust import CLUE, DBSCAN, HDBSCAN
from daskclust.core.device.arrays import HOST


def brute_force(X, radius):
    """Return the number of neighbours of each point."""
    X = X.astype(np.float64)
    d2 = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return (d2 <= radius**2).sum(axis=1) - 1


def test_ceilings_count_what_was_done(monkeypatch):
    """By a clock that goes a second at each look."""
    seconds = itertools.count()
    monkeypatch.setattr(timing.time, "perf_counter", lambda: float(next(seconds)))
    ceilings = roofline.measure_ceilings(HOST, lambda: None, copied=4096, points=64, rounds=3)
    assert ceilings == {
        "bytes_per_second": 2 * 4096,  # read and written
        "operations_per_second": 64 * 3 * 24,
    }


@pytest.mark.parametrize("d", [1, 2, 3])
def test_neighbours_are_those_of_brute_force(d):
    X = np.random.default_rng(d).uniform(0, 10, (500, d)).astype(np.float32)
    X[:20] = X[0]  # duplicates are neighbours
    np.testing.assert_array_equal(roofline.count_neighbours(X, 0.7), brute_force(X, 0.7))
    np.testing.assert_array_equal(roofline.count_neighbours(np.array([[0.0], [1.0], [3.0]]), 1.0), [1, 1, 0])  # closed
    assert len(roofline.count_neighbours(np.empty((0, d)), 1.0)) == 0


def test_floor_is_the_longer_of_both():
    ceilings = {"bytes_per_second": 1e9, "operations_per_second": 1e10}
    of_memory = roofline.beside_floor(roofline.Work(5e6, 1e6), 20.0, ceilings)
    assert of_memory == {"bytes": 5e6, "operations": 1e6, "floor_ms": 5.0, "of_roofline": 0.25}
    of_cores = roofline.beside_floor(roofline.Work(5e6, 1e8), 20.0, ceilings)
    assert (of_cores["floor_ms"], of_cores["of_roofline"]) == (10.0, 0.5)


def test_bytes_are_those_of_input_and_results():
    (case,) = SYSTEMS["clue"].cases("calorimeter", 500, Options())
    X, layer, weight = case.arrays
    fitted = CLUE(3.0, 8.0, delta_c=5.0, delta_o=5.0).fit(X, layer=layer, sample_weight=weight)
    results = ("labels_", "density_", "delta_", "nearest_higher_", "is_seed_")
    arrays = (X, layer, weight, *(getattr(fitted, name) for name in results))
    assert roofline.clue_work(500, 2, 0).bytes == sum(array.nbytes for array in arrays)
    points = np.random.default_rng(0).uniform(0, 1, (300, 3)).astype(np.float32)
    found = DBSCAN(0.1).fit(points)
    arrays = (points, found.labels_, found.is_core_)
    assert roofline.dbscan_work(300, 3, 0).bytes == sum(array.nbytes for array in arrays)
    points = points.astype(np.float64)
    found = HDBSCAN(min_samples=4).fit(points)
    tree = (found.minimum_spanning_tree_[:, 2], found.minimum_spanning_tree_[:, :2].astype(np.int64))
    assert roofline.tree_work(300, 3).bytes == sum(array.nbytes for array in (points, *tree))
    results = ("labels_", "probabilities_", "outlier_scores_", "core_distances_", "single_linkage_tree_")
    arrays = (points, *tree, *(getattr(found, name) for name in results))
    assert roofline.hdbscan_work(300, 3, 4).bytes == sum(array.nbytes for array in arrays)


def test_clue_counts_the_pairs_of_each_layer():
    (case,) = SYSTEMS["clue"].cases("calorimeter", 20_000, Options())
    X, layer, _ = case.arrays
    pairs = sum(brute_force(X[layer == k], 3.0).sum() for k in np.unique(layer)) // 2
    assert pairs > 1000
    assert case.work().operations == pytest.approx(9 * pairs, rel=1e-9)


@pytest.mark.parametrize(("name", "needed"), [("fof", 1), ("dbscan", 6)])
def test_dbscan_counts_the_neighbours_that_must_be_seen(name, needed):
    (case,) = SYSTEMS[name].cases("cosmo", 1000, Options(min_samples=(7,)))
    seen = np.minimum(brute_force(*case.arrays, case.facts["eps"]), needed).sum()
    assert seen > 100
    assert case.work().operations == pytest.approx(9 * seen / 2, rel=1e-9)


def test_hdbscan_counts_the_edges_or_the_neighbours_up_to_core_distances():
    assert roofline.hdbscan_work(10, 3, 1).operations == roofline.tree_work(10, 3).operations == 9 * 9
    assert roofline.hdbscan_work(10, 3, 5).operations == 9 * 10 * 4 / 2
