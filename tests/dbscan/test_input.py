"""Bad input to DBSCAN alone: each error shows the value and says what to do; what all systems share is in `laws`."""

from __future__ import annotations

import math
import re

import dask.array as da
import numpy as np
import pytest
from cases.dbscan import Case, assert_answer
from sklearn import cluster
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import VALID_METRICS

from daskclust import DBSCAN, FriendsOfFriends
from daskclust.core.space.partition import Partition
from daskclust.dbscan.estimator import _EUCLIDEAN

RNG = np.random.default_rng(5)
X = RNG.uniform(0, 10, (80, 2))
WEIGHT = RNG.integers(1, 9, 80) / 4


@pytest.mark.parametrize(
    ("boxsize", "words"),
    [
        (0.0, r"boxsize must be finite and positive, got 0\.0"),
        ([10.0, -1.0], r"boxsize must be finite and positive, got -1\.0"),
        (1.99, r"boxsize must be at least 2 {name} = 2, got 1\.99.*smaller {name}, or boxsize=None"),
        ([None, 1.5], r"boxsize must be at least 2 {name} = 2, got 1\.5"),
        ([10.0], r"one number or one for each of the 2 axes of X, got \[10\.0\]"),
        ("cube", "boxsize.*'cube'"),
        (1e14, r"boxsize must be at most 2\*\*45 {name} = 3\.51844e\+13, got 1e\+14.*boxsize=None"),
    ],
    ids=str,
)
def test_boxes(boxsize, words):
    for kind, name in ((DBSCAN, "eps"), (FriendsOfFriends, "linking_length")):
        for points in (X, da.from_array(X, chunks=(30, 2))):
            with pytest.raises((ValueError, TypeError), match=words.replace("{name}", name)):
                kind(1.0, boxsize=boxsize).fit(points)


def test_boxes_that_are_right():
    wanted = DBSCAN(1.0, boxsize=10).fit(X)
    for boxsize in (10.0, np.float32(10), [10, 10], (10.0, 10.0), np.array([10.0, 10.0])):
        assert_answer(DBSCAN(1.0, boxsize=boxsize).fit(X), wanted)
    assert_answer(DBSCAN(1.0, boxsize=[None, None]).fit(X), DBSCAN(1.0).fit(X))
    assert_answer(DBSCAN(1.0, boxsize=2.0).fit(X), Case(X, 1.0, 5, None, (2.0, 2.0)).answer())


OTHERS = sorted({"precomputed", *VALID_METRICS["brute"]} - {"euclidean", "l2", "minkowski", "haversine"})


@pytest.mark.parametrize("metric", [*OTHERS, "Euclidean", None, 2, np.array(["l2", "l1"]), math.dist], ids=str)
def test_other_metrics(metric):
    """Before anything is looked at or computed."""
    remedy = r"(sklearn\.cluster\.DBSCAN|for the same neighbours cluster .* with eps=.*)$"
    for points in (X, da.from_array(X, chunks=(30, 2)), "no points"):
        with pytest.raises(ValueError, match=rf"metric must be 'euclidean' or 'haversine', got [^;]*; .*{remedy}"):
            DBSCAN(1.0, metric=metric).fit(points)


@pytest.mark.parametrize("parameters", [{"p": 1}, {"metric_params": {"p": 3}}])
def test_parameters_of_other_metrics(parameters):
    ((name, value),) = parameters.items()
    with pytest.raises(ValueError, match=rf"{name}={re.escape(repr(value))}.*sklearn\.cluster\.DBSCAN"):
        DBSCAN(1.0, **parameters).fit(X)


@pytest.mark.parametrize("metric", _EUCLIDEAN)
@pytest.mark.parametrize("seed", range(3))
def test_the_remedy_has_the_same_neighbours(metric, seed):
    """The points and `eps` of the error, as it writes them, and scikit-learn's answer."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-1.4, 1.4, (6, 3))
    points = rng.normal(centres, 0.05, (50, *centres.shape)).reshape(-1, centres.shape[1])
    eps = float(np.quantile(pairwise_distances(points, metric=metric), 0.03))
    with pytest.raises(ValueError, match="metric must be") as raised:
        DBSCAN(eps, metric=metric).fit(points)
    known = {"np": np, "X": points, "eps": eps}
    said = re.search(r"cluster (.*) with eps=(.*)", str(raised.value))
    found = DBSCAN(eval(said[2], known)).fit(eval(said[1], known)).labels_
    wanted = cluster.DBSCAN(eps=eps, metric=metric, algorithm="brute").fit(points).labels_
    assert wanted.max() > 2
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "parameters",
    [{"metric": "l2"}, {"metric": "minkowski", "p": 2}, {"algorithm": "brute"}, {"leaf_size": 3, "n_jobs": 2}],
)
def test_parameters_without_effect(parameters):
    assert_answer(DBSCAN(1.0, **parameters).fit(X), DBSCAN(1.0).fit(X))


def test_coordinates_that_are_too_far_apart():
    far = X.copy()
    far[3, 1] = 1e15
    for points in (far, da.from_array(far, chunks=(80, 2))):
        with pytest.raises(ValueError, match=r"X extends from .* to 1e\+15 along axis 1, over 2\*\*45 .*remove far"):
            np.asarray(DBSCAN(1.0).fit(points).labels_)


def planes(cuts=((5.0,), ()), period=(0.0, 0.0), halo=2.0, **others):
    return Partition(cuts=tuple(np.array(each, float) for each in cuts), period=period, halo=halo, **others)


@pytest.mark.parametrize(
    ("parameters", "partition", "words"),
    [
        ({}, "tiles", "partition must be .*space.*got 'tiles'"),
        ({}, "chunks", r'partition="chunks" needs one chunk, X has 3.*"space", or X\.rechunk'),
        ({}, planes(halo=1.999), r"halo of 1\.999; it must be at least 2, two times"),
        ({"min_samples": 2}, planes(halo=0.5), r"halo of 0\.5; it must be at least 1, one times"),
        ({}, planes(period=(10.0, 0.0)), r"axes of periods \(10\.0, 0\.0\).*of periods \(0\.0, 0\.0\) \(0: open\)"),
        ({"boxsize": 10.0}, planes(period=(10.0, 11.0)), r"periods \(10\.0, 11\.0\)"),
        ({}, planes(((5.0,), (), (1.0,)), (0.0,) * 3), r"cuts 3 axes.*the points have 2 axes"),
        ({}, planes(groups=2), "2 groups of events, but the points have no event"),
    ],
    ids=str,
)
def test_partitions(parameters, partition, words):
    with pytest.raises(ValueError, match=words):
        DBSCAN(1.0, **parameters).fit(da.from_array(X, chunks=(30, 2)), partition=partition)


def test_halos_of_friends_and_of_weights():
    lazy = da.from_array(X, chunks=(30, 2))
    assert_answer(FriendsOfFriends(1.0).fit(lazy, partition=planes(halo=1.0)), FriendsOfFriends(1.0).fit(X))
    assert_answer(DBSCAN(1.0, min_samples=2).fit(lazy, partition=planes(halo=1.0)), FriendsOfFriends(1.0).fit(X))
    with pytest.raises(ValueError, match=r"halo of 0\.99; it must be at least 1, one times"):
        FriendsOfFriends(1.0).fit(lazy, partition=planes(halo=0.99))
    with pytest.raises(ValueError, match=r"halo of 1; it must be at least 2, two times"):
        DBSCAN(1.0, min_samples=2).fit(lazy, sample_weight=WEIGHT, partition=planes(halo=1.0))
