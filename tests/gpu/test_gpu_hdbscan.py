"""Minimum spanning trees and HDBSCAN* on a GPU with cupy: the CPU's answer, to the last bit."""

import numpy as np
import pytest
from cases.lanes import size
from oracles.spanning_tree import brute_force

from daskclust import EMST, HDBSCAN
from daskclust.hdbscan import spanning_tree as trees

pytestmark = pytest.mark.gpu


def crowds(n, d):
    """Return points that crowd at a few places, some in one place and on a lattice, and some between."""
    rng = np.random.default_rng(d)
    centers = rng.uniform(0, 8, (6, d))
    near = centers[rng.integers(0, 6, n // 2)] + rng.normal(0, 0.2, (n // 2, d))
    X = np.concatenate([near, rng.integers(0, 3, (n // 8, d)), rng.uniform(0, 8, (n - n // 2 - n // 8, d))])
    return X[rng.permutation(n)]


def assert_same_tree(cupy, X, min_samples=1, period=(), alpha=1.0, wanted=None):
    found = trees.spanning_tree(cupy.asarray(X), min_samples, period, alpha)
    wanted = trees.spanning_tree(X, min_samples, period, alpha) if wanted is None else wanted
    for one, other in zip(found, wanted, strict=True):
        assert type(one) is cupy.ndarray
        np.testing.assert_array_equal(one.get(), other)


@pytest.mark.parametrize("min_samples", [1, 5, 40])
@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_trees_of_brute_force(cupy, d, min_samples):
    for dtype, n in ((np.float64, 1), (np.float64, 2), (np.float32, 17), (np.float64, 300)):
        X, k = crowds(n, d).astype(dtype), min(n, min_samples)
        for period in ((), (8.0,) * d, (2.5, *(0.0,) * (d - 1))):
            assert_same_tree(cupy, X, k, period, 1.3, brute_force(X, k, period, 1.3))


@pytest.mark.parametrize("min_samples", [1, 10, 30])
@pytest.mark.parametrize("period", [(), (8.0, 0.0, 8.0)])
def test_trees_of_many_points(cupy, min_samples, period):
    X = crowds(size(1_000_000, on_host=20_000), 3)
    for points in (X, X[: len(X) // 4].round(1)):
        assert_same_tree(cupy, points, min_samples, period)


@pytest.mark.parametrize("min_samples", [1, 3, 100])
def test_many_equal_points(cupy, min_samples):
    X = np.repeat(crowds(30, 2), size(3000, on_host=200), axis=0)
    assert_same_tree(cupy, X, min_samples)
    assert_same_tree(cupy, np.zeros_like(X), min_samples)
    X[::2] += 1e6  # two sets far apart
    assert_same_tree(cupy, X, min_samples)


def test_estimators(cupy):
    """Edges and results of points are on the device; trees of HDBSCAN are the host's."""
    X = crowds(2000, 3).astype(np.float32)
    found, wanted = EMST(boxsize=8.0).fit(cupy.asarray(X)), EMST(boxsize=8.0).fit(X)
    for name in ("edges_", "lengths_", "linkage_"):
        np.testing.assert_array_equal(getattr(found, name).get(), getattr(wanted, name))
    assert (found.graph_ != wanted.graph_).nnz == 0
    for parameters, event in (({}, None), ({"min_samples": 60, "alpha": 1.5}, np.arange(2000) % 40)):
        on_device = None if event is None else cupy.asarray(event)
        found = HDBSCAN(10, **parameters).fit(cupy.asarray(X), event=on_device)
        wanted = HDBSCAN(10, **parameters).fit(X, event=event)
        for name in ("labels_", "probabilities_", "outlier_scores_", "core_distances_"):
            assert type(getattr(found, name)) is cupy.ndarray
            np.testing.assert_array_equal(getattr(found, name).get(), getattr(wanted, name))
        np.testing.assert_array_equal(found.minimum_spanning_tree_, wanted.minimum_spanning_tree_)
        np.testing.assert_array_equal(found.dbscan_clustering(0.5).get(), wanted.dbscan_clustering(0.5))
