"""Bad input to DBSCAN: each error shows the value and says what to do; and input of every class."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from cases.dbscan import Case, assert_answer
from scipy import sparse

from daskclust import DBSCAN, FriendsOfFriends
from daskclust.core.space.partition import Partition

RNG = np.random.default_rng(5)
X = RNG.uniform(0, 10, (80, 2))
WEIGHT = RNG.integers(1, 9, 80) / 4
NAMES = [(DBSCAN, "eps"), (FriendsOfFriends, "linking_length")]


def with_value(row, axis, value):
    changed = X.copy()
    changed[row, axis] = value
    return changed


@pytest.mark.parametrize(("kind", "name"), NAMES)
@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (0, ValueError, "must be finite and positive, got 0"),
        (-1.5, ValueError, r"must be finite and positive, got -1\.5"),
        (np.nan, ValueError, "must be finite and positive, got nan"),
        (np.inf, ValueError, "must be finite and positive, got inf"),
        ("wide", TypeError, "must be a number, got 'wide'"),
        (None, TypeError, "must be a number, got None"),
        (True, TypeError, "must be a number, got True"),
        ([0.5], TypeError, r"must be a number, got \[0\.5\]"),
    ],
)
def test_distances(kind, name, value, error, words):
    for points in (X, da.from_array(X, chunks=(30, 2))):
        with pytest.raises(error, match=f"{name} {words}"):
            kind(value).fit(points)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (0, ValueError, "must be 1 or more, got 0"),
        (-3, ValueError, "must be 1 or more, got -3"),
        (2.5, TypeError, r"must be a whole number, got 2\.5"),
        (2.0, TypeError, r"must be a whole number, got 2\.0"),
        (True, TypeError, "must be a whole number, got True"),
        ("few", TypeError, "must be a whole number, got 'few'"),
        (None, TypeError, "must be a whole number, got None"),
    ],
)
def test_counts(value, error, words):
    with pytest.raises(error, match=f"min_samples {words}"):
        DBSCAN(1.0, min_samples=value).fit(X)
    with pytest.raises(error, match=f"min_members {words}"):
        FriendsOfFriends(1.0, min_members=value).fit(X)


@pytest.mark.parametrize(("kind", "name"), NAMES)
@pytest.mark.parametrize(
    ("boxsize", "error", "words"),
    [
        (0, ValueError, "boxsize must be finite and positive, got 0"),
        (0.0, ValueError, r"boxsize must be finite and positive, got 0\.0"),
        (-10.0, ValueError, r"boxsize must be finite and positive, got -10\.0"),
        (np.nan, ValueError, "boxsize must be finite and positive, got nan"),
        (np.inf, ValueError, "boxsize must be finite and positive, got inf"),
        ([10.0, -1.0], ValueError, r"boxsize must be finite and positive, got -1\.0"),
        (1.99, ValueError, r"boxsize must be at least 2 {name} = 2, got 1\.99.*smaller {name}, or boxsize=None"),
        ([None, 1.5], ValueError, r"boxsize must be at least 2 {name} = 2, got 1\.5"),
        ([10.0], ValueError, r"one number or one for each of the 2 axes of X, got \[10\.0\]"),
        ((10.0, 10.0, 10.0), ValueError, r"each of the 2 axes of X, got \(10\.0, 10\.0, 10\.0\)"),
        (True, TypeError, "boxsize must be a number, got True"),
        ("cube", (TypeError, ValueError), "boxsize.*'cube'"),
        (1e14, ValueError, r"boxsize must be at most 2\*\*45 {name} = 3\.51844e\+13, got 1e\+14.*boxsize=None"),
    ],
    ids=str,
)
def test_boxes(kind, name, boxsize, error, words):
    for points in (X, da.from_array(X, chunks=(30, 2))):
        with pytest.raises(error, match=words.replace("{name}", name)):
            kind(1.0, boxsize=boxsize).fit(points)


def test_boxes_that_are_right():
    wanted = DBSCAN(1.0, boxsize=10).fit(X)
    for boxsize in (10.0, np.float32(10), [10, 10], (10.0, 10.0), np.array([10.0, 10.0])):
        assert_answer(DBSCAN(1.0, boxsize=boxsize).fit(X), wanted)
    assert_answer(DBSCAN(1.0, boxsize=[None, None]).fit(X), DBSCAN(1.0).fit(X))
    assert_answer(DBSCAN(1.0, boxsize=2.0).fit(X), Case(X, 1.0, 5, None, (2.0, 2.0)).answer())


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"metric": "manhattan"}, r"metric must be 'euclidean', got 'manhattan'.*sklearn\.cluster\.DBSCAN"),
        ({"metric": "precomputed"}, "metric must be 'euclidean', got 'precomputed'"),
        ({"metric": max}, "metric must be 'euclidean', got <built-in function max>"),
        ({"p": 1}, r"p=1 and metric_params=None.*sklearn\.cluster\.DBSCAN"),
        ({"metric_params": {"p": 3}}, r"metric_params=\{'p': 3\}"),
    ],
)
def test_other_metrics(parameters, words):
    with pytest.raises(ValueError, match=words):
        DBSCAN(1.0, **parameters).fit(X)


@pytest.mark.parametrize(
    "parameters",
    [{"metric": "l2"}, {"metric": "minkowski", "p": 2}, {"algorithm": "brute"}, {"leaf_size": 3, "n_jobs": 2}],
)
def test_parameters_without_effect(parameters):
    assert_answer(DBSCAN(1.0, **parameters).fit(X), DBSCAN(1.0).fit(X))


# --------------------------------------------------------------------------------------------------------- coordinates
@pytest.mark.parametrize(("value", "word"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
@pytest.mark.parametrize("chunks", [None, 30, 80])
@pytest.mark.parametrize("boxsize", [None, 10.0, [None, 10.0]], ids=str)
def test_coordinates_that_are_no_numbers(value, word, chunks, boxsize):
    """The index is that of the whole data set, whichever chunk finds it; lazily, the error comes with the labels."""
    for row, axis in ((47, 1), (79, 0), (0, 0)):
        bad = with_value(row, axis, value)
        points = bad if chunks is None else da.from_array(bad, chunks=(chunks, 2))
        for estimator in (DBSCAN(1.0, boxsize=boxsize), FriendsOfFriends(1.0, boxsize=boxsize)):
            with pytest.raises(ValueError, match=rf"X\[{row}, {axis}\] = {word};.*isfinite"):
                np.asarray(estimator.fit(points).labels_)


@pytest.mark.parametrize("d", [1, 3, 5])
def test_coordinates_that_are_no_numbers_on_any_number_of_axes(d):
    bad = RNG.uniform(0, 10, (50, d)).astype(np.float32)
    bad[33, d - 1] = np.nan
    for points in (bad, da.from_array(bad, chunks=(20, d))):
        with pytest.raises(ValueError, match=rf"X contains NaN: X\[33, {d - 1}\] = nan"):
            np.asarray(DBSCAN(1.0).fit(points).labels_)


def test_a_data_set_without_any_number():
    nothing = np.full((40, 2), np.nan)
    for points in (nothing, da.from_array(nothing, chunks=(15, 2))):
        with pytest.raises(ValueError, match=r"X\[\d+, 0\] = nan"):
            np.asarray(DBSCAN(1.0).fit(points).labels_)


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (np.empty((0, 2)), "0 sample"),
        (np.empty((4, 0)), "0 feature"),
        (X[:, 0], "1D array"),
        (da.from_array(X[:, 0], chunks=30), r"shape \(n, d\), got \(80,\); one coordinate: X\[:, None\]"),
        (X[None], "dim 3"),
        (X.astype(complex), "Complex"),
        (with_value(3, 0, 1e15), r"X extends from .* to 1e\+15 along axis 0, over 2\*\*45 times eps.*remove far"),
        (da.from_array(with_value(3, 1, 1e15), chunks=(80, 2)), r"to 1e\+15 along axis 1"),
    ],
)
def test_points(points, words):
    with pytest.raises(ValueError, match=words):
        np.asarray(DBSCAN(1.0).fit(points).labels_)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.coo_matrix, sparse.lil_array])
def test_sparse_matrices(make):
    for estimator in (DBSCAN(1.0), FriendsOfFriends(1.0)):
        with pytest.raises(TypeError, match=r"(?s)[Ss]parse.*dense"):
            estimator.fit(make(X))


def test_unknown_chunk_sizes():
    lazy = da.from_array(X, chunks=(30, 2))
    for estimator in (DBSCAN(1.0), FriendsOfFriends(1.0)):
        with pytest.raises(ValueError, match=r"unknown chunk sizes; call X\.compute_chunk_sizes\(\) first"):
            estimator.fit(lazy[lazy[:, 0] > 1])


# ------------------------------------------------------------------------------------------------------------- weights
@pytest.mark.parametrize("chunks", [None, 30, 80])
@pytest.mark.parametrize(
    ("weight", "shape"), [(WEIGHT[:79], r"\(79,\)"), (WEIGHT[:, None], r"\(80, 1\)"), (2.0, r"\(\)")]
)
def test_shapes_of_weights(chunks, weight, shape):
    points = X if chunks is None else da.from_array(X, chunks=(chunks, 2))
    words = rf"sample_weight must have one value for each of the 80 points of X, got shape {shape}"
    with pytest.raises(ValueError, match=words):
        DBSCAN(1.0).fit(points, sample_weight=weight)


@pytest.mark.parametrize("chunks", [None, 30, 80])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("d", [2, 4])
def test_weights_that_are_no_numbers(chunks, value, d):
    positions, weight = RNG.uniform(0, 5, (80, d)), WEIGHT.copy()
    weight[51] = value
    points = positions if chunks is None else da.from_array(positions, chunks=(chunks, d))
    with pytest.raises(ValueError, match=rf"sample_weight must be finite, got sample_weight\[51\] = {value}"):
        np.asarray(DBSCAN(1.0).fit(points, sample_weight=weight).labels_)


def test_dask_and_numpy_mixed():
    with pytest.raises(TypeError, match=r"sample_weight is a dask collection and X is not.*sample_weight\.compute\(\)"):
        DBSCAN(1.0).fit(X, sample_weight=da.from_array(WEIGHT))
    wanted = DBSCAN(1.0).fit(X, sample_weight=WEIGHT)
    for weight in (WEIGHT, list(WEIGHT), da.from_array(WEIGHT, chunks=50), pd.Series(WEIGHT)):
        assert_answer(DBSCAN(1.0).fit(da.from_array(X, chunks=(30, 2)), sample_weight=weight), wanted)


# ---------------------------------------------------------------------------------------------------------- partitions
def planes(cuts=((5.0,), ()), period=(0.0, 0.0), halo=2.0, **others):
    return Partition(cuts=tuple(np.array(each, float) for each in cuts), period=period, halo=halo, **others)


@pytest.mark.parametrize(
    ("parameters", "partition", "words"),
    [
        ({}, "tiles", "partition must be .*space.*got 'tiles'"),
        ({}, "layers", "got 'layers'"),
        ({}, None, "got None"),
        ({}, "chunks", r'partition="chunks" needs one chunk, X has 3.*"space", or X\.rechunk'),
        ({}, planes(halo=1.999), r"halo of 1\.999; it must be at least 2, two times"),
        ({"min_samples": 2}, planes(halo=0.5), r"halo of 0\.5; it must be at least 1, one times"),
        ({}, planes(period=(10.0, 0.0)), r"axes of periods \(10\.0, 0\.0\).*of periods \(0\.0, 0\.0\) \(0: open\)"),
        ({"boxsize": 10.0}, planes(), r"axes of periods \(0\.0, 0\.0\).*of periods \(10\.0, 10\.0\)"),
        ({"boxsize": 10.0}, planes(period=(10.0, 11.0)), r"periods \(10\.0, 11\.0\)"),
        ({}, planes(((5.0,), (), (1.0,)), (0.0,) * 3), r"cuts 3 axes.*the points have 2 axes"),
        ({}, planes(groups=2), "2 groups of layers; the points have no layer"),
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


# -------------------------------------------------------------------------------------------------------- odd but right
@pytest.mark.parametrize(
    "points",
    [
        X[:1],
        X[:2],
        np.repeat(X[:1], 50, axis=0),
        np.stack([X[:, 0], np.full(80, 3.0)], axis=1),
        pytest.param(X[:, :1], marks=pytest.mark.slow),
        pytest.param(X.astype(np.float32), marks=pytest.mark.slow),
        pytest.param(X.astype(np.float16), marks=pytest.mark.slow),
        (X * 10).astype(int),
        np.asfortranarray(X),
        np.repeat(X, 2, axis=0)[::2],
        X.astype(">f8"),
        X.tolist(),
    ],
    ids=["1", "2", "equal", "constant", "1-d", "float32", "float16", "int", "fortran", "strided", "big-endian", "list"],
)
def test_odd_but_right(points):
    array = np.asarray(points)
    array = array if array.dtype in (np.float32, np.float64) else array.astype(float)
    for case in (Case(array, 1.0, 3), Case(array, 1.0, min_members=1), Case(array, 1.0, 2, np.ones(len(array)))):
        weights = {} if case.weight is None else {"sample_weight": case.weight}
        assert_answer(case.estimator().fit(points, **weights), case.answer())


def test_read_only_input_is_not_changed():
    frozen, weight = X.copy(), WEIGHT.copy()
    frozen.setflags(write=False)
    weight.setflags(write=False)
    wanted = DBSCAN(1.0, boxsize=4.0).fit(X, sample_weight=WEIGHT)
    assert_answer(DBSCAN(1.0, boxsize=4.0).fit(frozen, sample_weight=weight), wanted)
    np.testing.assert_array_equal(frozen, X)


def test_data_frames_and_data_sets():
    columns = {"x": X[:, 0], "y": X[:, 1], "mass": WEIGHT}
    expected = DBSCAN(1.0, boxsize=(10.0, None)).fit(X)
    frame = pd.DataFrame(columns)
    dataset = xr.Dataset({name: ("particle", values) for name, values in columns.items()})
    classes = (frame, dd.from_pandas(frame, npartitions=3), dataset, dataset.chunk(particle=25))
    for points in (*classes, pd.DataFrame(X), xr.DataArray(X, dims=("particle", "axis"))):
        fitted = DBSCAN(1.0, boxsize=(10.0, None)).fit(points)
        assert_answer(fitted, expected)
        assert fitted.n_features_in_ == 2
    friends = FriendsOfFriends(1.0).fit(X)
    for points in classes:
        assert_answer(FriendsOfFriends(1.0).fit(points), friends)
    weighted = DBSCAN(1.0).fit(X, sample_weight=WEIGHT)
    for points in (frame, dataset):
        assert_answer(DBSCAN(1.0).fit(points, sample_weight=points["mass"]), weighted)


def test_components_of_every_class():
    wanted = X[DBSCAN(1.0).fit(X).core_sample_indices_]
    for points in (X, pd.DataFrame(X, columns=["x", "y"]), da.from_array(X, chunks=(30, 2)), X.tolist()):
        np.testing.assert_array_equal(np.asarray(DBSCAN(1.0).fit(points).components_), wanted)


def test_results_before_fit():
    from sklearn.exceptions import NotFittedError

    for estimator in (DBSCAN(1.0), FriendsOfFriends(1.0)):
        for name in ("core_sample_indices_", "components_"):
            with pytest.raises(NotFittedError):
                getattr(estimator, name)
