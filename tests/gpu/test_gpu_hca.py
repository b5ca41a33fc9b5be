"""Mahalanobis clustering on a GPU with cupy: the CPU's answer, to the last bit."""

import dask.array as da
import numpy as np
import pytest
from cases.lanes import size

from daskclust import MahalanobisHCA
from daskclust.datasets import apriori_gaussians, cytometry

pytestmark = pytest.mark.gpu

RULES = ["thesis", "mahal", "mahal0", "euclid", "euclid_mahal"]


def assert_as_on_the_host(cupy, X, apriori=None, **parameters):
    host = MahalanobisHCA(**parameters).fit(X, apriori=apriori)
    device = MahalanobisHCA(**parameters).fit(cupy.asarray(X), apriori=apriori)
    np.testing.assert_array_equal(device.linkage_, host.linkage_)
    labels = device.labels(n_clusters=min(5, len(X)))
    assert isinstance(labels, cupy.ndarray)
    np.testing.assert_array_equal(labels.get(), host.labels(n_clusters=min(5, len(X))))


@pytest.mark.parametrize("distance", ["centroid", "full"])
@pytest.mark.parametrize("rule", RULES)
def test_rules(cupy, rule, distance):
    X = cytometry(400, channels=5, rng=0)["X"].values
    assert_as_on_the_host(cupy, X, threshold=40, rule=rule, distance=distance)


@pytest.mark.parametrize("rule", RULES)
def test_a_set_that_takes_the_whole_device(cupy, rule):
    X = cytometry(size(9000, on_host=300), channels=14, rng=1)["X"].values
    assert_as_on_the_host(cupy, X, rule=rule)


@pytest.mark.parametrize("n", [1, 2, 3, 31, 33, 257, size(4097, on_host=400)])
def test_sizes(cupy, n):
    assert_as_on_the_host(cupy, np.random.default_rng(n).normal(size=(n, 3)))


@pytest.mark.parametrize("distance", ["centroid", "full"])
def test_equal_rows(cupy, distance):
    rng = np.random.default_rng(3)
    n = size(3000, on_host=200)
    X = rng.normal(size=(n // 4, 4))[rng.integers(0, n // 4, n)]
    X[rng.random(n) < 0.3] = 0
    for apriori in (None, rng.integers(-1, n // 3, n)):
        assert_as_on_the_host(cupy, X, apriori, threshold=30, rule="mahal", distance=distance)
    assert_as_on_the_host(cupy, np.ones((100, 3)))


@pytest.mark.parametrize("chunks", [20_000, size(1500, on_host=150)])
def test_apriori_clusters(cupy, chunks):
    ds = apriori_gaussians(40, size(500, on_host=20), channels=8, rng=2)
    X, apriori = ds["X"].values, ds["apriori"].values
    assert_as_on_the_host(cupy, X, apriori, threshold=500)
    host = MahalanobisHCA(500).fit(X, apriori=apriori)
    lazy = da.from_array(X, chunks=(chunks, -1)).map_blocks(cupy.asarray)
    np.testing.assert_array_equal(MahalanobisHCA(500).fit(lazy, apriori=apriori).linkage_.compute(), host.linkage_)


def test_the_same_answer_every_time(cupy):
    X = cupy.asarray(cytometry(size(6000, on_host=300), channels=10, rng=3)["X"].values)
    first = MahalanobisHCA(0.01).fit(X).linkage_
    for _ in range(5):
        np.testing.assert_array_equal(MahalanobisHCA(0.01).fit(X).linkage_, first)


def test_levels(cupy):
    X = np.random.default_rng(2).normal(size=(24, 2))
    fine = np.arange(24) // 3
    assert_as_on_the_host(cupy, X, np.stack([fine, fine // 4], axis=1), threshold=4, distance="full")


@pytest.mark.parametrize("rule", RULES)
def test_new_points(cupy, rule):
    X = cytometry(500, channels=5, rng=4)["X"].values
    host = MahalanobisHCA(20, rule=rule, n_clusters=6).fit(X[:300])
    device = MahalanobisHCA(20, rule=rule, n_clusters=6).fit(cupy.asarray(X[:300]))
    found = device.predict(cupy.asarray(X))
    assert isinstance(found, cupy.ndarray)
    np.testing.assert_array_equal(found.get(), host.predict(X))
