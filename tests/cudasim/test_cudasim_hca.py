"""Mahalanobis clustering's CUDA path in the simulator, thread by thread: the CPU's answer."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

from daskclust import MahalanobisHCA
from daskclust.core.device.arrays import is_cuda

pytestmark = pytest.mark.cudasim


def assert_as_on_the_host(X, apriori=None, **parameters):
    host = MahalanobisHCA(**parameters).fit(X, apriori=apriori)
    device = MahalanobisHCA(**parameters).fit(cuda.to_device(X), apriori=apriori)
    np.testing.assert_array_equal(device.linkage_, host.linkage_)
    labels = device.labels(n_clusters=2)
    assert is_cuda(labels)
    np.testing.assert_array_equal(labels.copy_to_host(), host.labels(n_clusters=2))


@pytest.mark.parametrize("distance", ["centroid", "full"])
@pytest.mark.parametrize("rule", ["thesis", "mahal", "mahal0", "euclid", "euclid_mahal"])
def test_points(rule, distance):
    X = np.random.default_rng(0).normal(size=(22, 2))
    assert_as_on_the_host(X, threshold=5, rule=rule, distance=distance)


@pytest.mark.parametrize("normalize", [True, False])
def test_apriori_clusters_of_all_sizes(normalize):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3))
    apriori = np.array([0] * 12 + [1] * 9 + [2] * 2 + [3] + [-1] * 6)
    assert_as_on_the_host(X, rng.permutation(apriori), threshold=0.3, rule="mahal", normalize=normalize)


def test_levels():
    X = np.random.default_rng(2).normal(size=(24, 2))
    fine = np.arange(24) // 3
    assert_as_on_the_host(X, np.stack([fine, fine // 4], axis=1), threshold=4, distance="full")


def test_ties_and_points_of_one_place():
    lattice = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    assert_as_on_the_host(np.concatenate([lattice, lattice[:5]]), threshold=6)


@pytest.mark.parametrize(
    ("x", "merges"),
    [
        ([0, 10, 11, 1], [[0, 3], [1, 2]]),  # the smaller id of a pair comes first
        ([0, 50, 1, -1], [[0, 2], [3, 4]]),  # then the larger one
    ],
)
def test_of_equal_distances_the_smallest_ids_are_merged(x, merges):
    """By hand: kernels for the CPU have the same bodies."""
    linkage = MahalanobisHCA(threshold=9).fit(cuda.to_device(np.array(x, float)[:, None])).linkage_
    assert linkage[:2, :2].astype(int).tolist() == merges


@pytest.mark.parametrize("distance", ["centroid", "full"])
def test_equal_rows(distance):
    """Three times x, divided by three, may not be x; some groups are one place, and some roots are equal."""
    X = np.random.default_rng(5).normal(size=(5, 2))[np.arange(26) % 5]
    assert_as_on_the_host(X, threshold=3, rule="mahal", distance=distance)
    apriori = np.stack([np.arange(26) % 10 - 1, np.minimum(np.arange(26) % 10 - 1, 0)], axis=1)
    assert_as_on_the_host(X, apriori, threshold=6, distance=distance)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few(n):
    X = np.random.default_rng(3).normal(size=(n, 2))
    host, device = (MahalanobisHCA().fit(data) for data in (X, cuda.to_device(X)))
    np.testing.assert_array_equal(device.linkage_, host.linkage_)


def test_float32_and_kmeans():
    X = np.random.default_rng(4).normal(size=(20, 2)).astype(np.float32)
    assert_as_on_the_host(X, 3)
