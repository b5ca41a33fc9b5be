"""Bad input to MahalanobisHCA: each error shows the value and says what to do; odd input, and input of every class."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from cases.hca import Case, assert_brute, assert_same_results, gaussians
from oracles.hca_brute import RULES

from daskclust import MahalanobisHCA

X = gaussians(np.random.default_rng(5), 60, 3)
APRIORI = np.arange(60) % 4
FINE = np.arange(60) // 5


def chunked(array, rows=25):
    return da.from_array(array, chunks=(rows, *array.shape[1:]))


def compute(points, apriori=None, partition="auto", **parameters):
    """Fit and compute, whether the error comes with the one or the other."""
    return np.asarray(MahalanobisHCA(**parameters).fit(points, apriori=apriori, partition=partition).linkage_)


def test_labels():
    fitted = MahalanobisHCA(n_clusters=99).fit(X)
    with pytest.raises(ValueError, match="60 points have at most 60 clusters, got n_clusters = 99"):
        fitted.labels_
    assert fitted.labels(n_clusters=60).tolist() == list(range(60))
    for both in ({}, {"n_clusters": 2, "height": 1.0}):
        with pytest.raises(ValueError, match="give n_clusters or height, and not both"):
            fitted.labels(**both)
    with pytest.raises(TypeError, match=r"n_clusters must be a whole number, got 2\.5"):
        fitted.labels(n_clusters=2.5)
    lazy = MahalanobisHCA(n_clusters=99).fit(chunked(X))
    with pytest.raises(ValueError, match="60 points have at most 60 clusters"):
        lazy.labels_.compute()


def test_coordinates_that_are_no_numbers_are_seen_by_kmeans():
    bad = X.copy()
    bad[47, 1] = np.nan
    for points in (bad, chunked(bad), chunked(bad, 60)):
        with pytest.raises(ValueError, match=r"NaN or infinity.*isfinite"):
            compute(points, "kmeans")


def test_coordinates_whose_squares_are_no_numbers():
    for value in (2e150, -1e200):
        bad = X.copy()
        bad[7, 1] = value
        for points in (bad, chunked(bad)):
            with pytest.raises(
                ValueError, match=r"X reaches .*, whose square is too large for float64; divide X by a power"
            ):
                compute(points)
    assert np.isfinite(compute(X * 1e148)).all()
    for points in (X * 1e-160, chunked(X * 1e-160)):
        with pytest.raises(ValueError, match=r"squares of such distances are too small for float64; give it in a sm"):
            compute(points)


@pytest.mark.parametrize(
    ("apriori", "error", "words"),
    [
        (APRIORI[:59], ValueError, r"one label for each of the 60 points of X.*got shape \(59,\)"),
        (APRIORI.reshape(30, 2), ValueError, r"got shape \(30, 2\)"),
        (np.empty((60, 0), int), ValueError, r"got shape \(60, 0\)"),
        (APRIORI + 0.5, ValueError, r"apriori must be whole numbers, got float64; .*: apriori\[0\] = [0-3]\.5"),
        (np.where(APRIORI == 1, np.nan, APRIORI), ValueError, r"whole numbers, got float64; .*: apriori\[\d+\] = nan"),
        (np.full(60, 2**64 - 1, np.uint64), ValueError, r"apriori\[0\] = 18446744073709551615 is beyond 2\*\*63 - 1"),
        (np.full(60, 2**63 - 1), ValueError, r"below 2\*\*63 - 1, got 9223372036854775807"),
        (APRIORI.astype(str), ValueError, "apriori must be numbers, got dtype <U.*return_inverse"),
        ("median", ValueError, "apriori must be labels, a number of clusters, \"kmeans\" or None, got 'median'"),
        (61, ValueError, "apriori must be at most the number of points, 60, got 61"),
        (2.5, TypeError, r"apriori must be a whole number, got 2\.5"),
    ],
)
def test_apriori(apriori, error, words):
    for points in (X, chunked(X)):
        with pytest.raises(error, match=words):
            compute(points, apriori)


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ([FINE, APRIORI], "cluster 0 of level 0 is not within one cluster of level 1; give the finest level first"),
        ([FINE, FINE // 3, FINE // 2], "cluster 0 of level 1 is not within one cluster of level 2"),
        ([FINE, FINE, np.where(np.arange(60) == 59, 3, 2)], "cluster 11 of level 1"),
        ([FINE, np.where(FINE == 7, -1, 0)], "cluster 7 of level 0"),  # in no cluster of the next level
        ([np.where(np.arange(60) < 55, np.arange(60), 0), np.arange(60) // 30], "cluster 0 of level 0"),
    ],
)
def test_levels_that_are_not_nested(levels, words):
    """Also where the points of a cluster are in chunks that do not know of each other."""
    apriori = np.stack(levels, axis=1)
    for points in (X, chunked(X, 60), chunked(X), chunked(X, 5)):
        with pytest.raises(ValueError, match=words):
            compute(points, apriori)
    with pytest.raises(ValueError, match=r"level|several chunks"):
        compute(chunked(X), apriori, "chunks")


def test_chunks_that_do_not_hold_apriori_clusters_whole():
    words = r'apriori cluster 3 has points in several chunks; partition="auto" brings them together'
    apriori = np.where(FINE == 5, 3, FINE + 100)
    with pytest.raises(ValueError, match=words):
        compute(chunked(X, 28), apriori, "chunks")
    with pytest.raises(ValueError, match=words):
        compute(chunked(X, 28), np.stack([FINE, apriori], axis=1), "chunks")
    np.testing.assert_array_equal(compute(chunked(X, 25), apriori, "chunks"), compute(X, apriori))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("distance", ["centroid", "full"])
def test_odd_points(distance, rule):
    """Few, as many as axes, so that no covariance is regular, constant channels, and one axis."""
    wide = np.hstack([X, X**2, X**3])
    for points in (X[:2], X[:3], wide[:9], wide[:10], X * [1, 0, 1], X * [0, 0, 1], X[:, :1]):
        for threshold in (2, 0.5):
            assert_brute(Case(points, threshold, None, {"rule": rule, "distance": distance}))


def test_one_point():
    for points in (X[:1], chunked(X[:1])):
        fitted = MahalanobisHCA(n_clusters=1).fit(points)
        assert np.asarray(fitted.linkage_).shape == (0, 4)
        assert np.asarray(fitted.labels_).tolist() == [0]
        assert np.asarray(fitted.point_heights_).tolist() == [0]
        assert bool(np.asarray(fitted.is_monotone_))
        assert int(fitted.n_apriori_merges_) == 0
        assert compute(points, [3]).shape == (0, 4)


def test_data_frames():
    wanted, apriori = MahalanobisHCA(0.2).fit(X), MahalanobisHCA(0.2).fit(X, apriori=APRIORI)
    with_labels = pd.DataFrame(X, columns=["CD3", "CD4", "CD8"]).assign(apriori=APRIORI)
    for points in (with_labels, with_labels[["CD3", "apriori", "CD4", "CD8"]], dd.from_pandas(with_labels, 3)):
        fitted = MahalanobisHCA(0.2).fit(points)
        assert fitted.n_features_in_ == 3
        assert fitted.apriori_source_ == "given"
        assert_same_results(fitted, apriori)
        assert_same_results(MahalanobisHCA(0.2).fit(points, apriori=None), wanted)
    assert MahalanobisHCA(0.2).fit(with_labels).feature_names_in_.tolist() == ["CD3", "CD4", "CD8"]
