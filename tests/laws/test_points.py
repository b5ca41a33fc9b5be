"""What all systems that take points say of wrong ones, and take of odd ones: errors show the value and the remedy."""

from __future__ import annotations

import pickle
import re
from functools import partial
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sklearn.cluster
import xarray as xr
from cases.numbers import NOT_POSITIVE, NOT_WHOLE
from laws.registry import RUNS, assert_same, computed, fit, name_of, results_of
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from daskclust import CLUE, DBSCAN, FriendsOfFriends, GaussianKernel, MahalanobisHCA
from daskclust.systems import SYSTEMS, Sample, System

N = 150
SYSTEMS_OF_POINTS = [system for system in SYSTEMS.values() if system.any_columns]
RUNS_OF_POINTS = [name for name, (system, _) in RUNS.items() if system in SYSTEMS_OF_POINTS]
FIRST_RUNS = [name_of(system, system.runs[0]) for system in SYSTEMS_OF_POINTS]
COLUMNS = [(name, column) for name in RUNS_OF_POINTS for column in RUNS[name][1].columns]
X = np.random.default_rng(5).uniform(0, 5, (80, 2))
every_system = pytest.mark.parametrize("system", SYSTEMS_OF_POINTS, ids=str)
everywhere = pytest.mark.parametrize("rows", [None, (40, 60, 50), (N,)], ids=["memory", "dask", "one chunk"])


def in_chunks(values: np.ndarray, rows: Any) -> Any:
    return values if rows is None else da.from_array(values, chunks=(rows, *values.shape[1:]))


def sample_of(name: str) -> Sample:
    system, run = RUNS[name]
    return system.sample(N, run, np.float64)


def unknown(points: np.ndarray) -> Any:
    lazy = in_chunks(points, 30)
    return lazy[lazy[:, 0] > 1]


# --------------------------------------------------------------------------------------------------------------- points
@every_system
@pytest.mark.parametrize(
    ("points", "error", "words"),
    [
        (np.empty((0, 2)), ValueError, "0 sample"),
        (np.empty((4, 0)), ValueError, "0 feature"),
        (X[:, 0], ValueError, "1D array"),
        (in_chunks(X[:, 0], 30), ValueError, r"shape \(n, d\), got \(80,\); one coordinate: X\[:, None\]"),
        (X[None], ValueError, "dim 3"),
        (X + 1j, ValueError, "Complex data not supported"),
        (in_chunks(X + 1j, 30), ValueError, "Complex data not supported"),
        (in_chunks(X[:0], 30), ValueError, "0 sample"),
        (unknown(X), ValueError, r"unknown chunk sizes; call X\.compute_chunk_sizes\(\) first"),
        *((make(X), TypeError, "(?s)[Ss]parse.*dense") for make in (sparse.csr_array, sparse.coo_matrix)),
    ],
)
def test_points_that_are_refused(system: System, points: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        np.asarray(system.estimator(**system.runs[0].parameters).fit(points).labels_)


@pytest.mark.parametrize("name", RUNS_OF_POINTS)
@everywhere
def test_coordinates_that_are_no_numbers(name: str, rows: Any) -> None:
    """The row is that of the whole data set, whichever chunk finds it; on dask the error comes with the labels."""
    partitions = () if rows is None else RUNS[name][0].partitions
    for value, row, axis in ((np.nan, 147, -1), (np.inf, 149, 0), (-np.inf, 0, 1)):
        sample = sample_of(name)
        sample.X[row, axis] = value
        for how in ({}, *({"partition": each} for each in partitions)):
            with pytest.raises(ValueError, match=rf"X\[{row}, {axis % sample.X.shape[1]}\] = {value};.*isfinite"):
                np.asarray(fit(name, sample.map(partial(in_chunks, rows=rows)), **how).labels_)


@pytest.mark.parametrize("name", FIRST_RUNS)
def test_points_without_any_number(name: str) -> None:
    for points in (np.full_like(X, np.nan), in_chunks(np.full_like(X, np.nan), 30)):
        with pytest.raises(ValueError, match=r"X\[\d+, 0\] = nan"):
            np.asarray(fit(name, Sample(points, {})).labels_)


# -------------------------------------------------------------------------------------------------------------- columns
@pytest.mark.parametrize(("name", "column"), COLUMNS)
@everywhere
def test_columns_that_are_wrong(name: str, column: str, rows: Any) -> None:
    """Of another length or shape, or with values that are no numbers."""
    sample = sample_of(name)
    for values in (sample.columns[column][:-1], np.zeros((N, 1, 1))):
        wrong = Sample(sample.X, {**sample.columns, column: values})
        shape = re.escape(str(values.shape))
        with pytest.raises(
            ValueError,
            match=rf"{column} must have one (value|label) for each of the {N} points of X.*got shape {shape}",
        ):
            fit(name, wrong._replace(X=in_chunks(wrong.X, rows)))
    for value in (np.nan, np.inf, -np.inf):
        values = sample.columns[column].astype(float)
        values[51] = value
        wrong = Sample(sample.X, {**sample.columns, column: values})
        with pytest.raises(ValueError, match=rf"{column}\[51\] = {value}"):
            np.asarray(fit(name, wrong.map(partial(in_chunks, rows=rows))).labels_)


@pytest.mark.parametrize(("name", "column"), COLUMNS)
def test_columns_of_any_class_beside_points(name: str, column: str) -> None:
    sample = sample_of(name)
    values, wanted = sample.columns[column], computed(fit(name, sample))
    with pytest.raises(TypeError, match=rf"{column} is a dask \w+ and X is not.*{column}\.compute\(\)"):
        fit(name, Sample(sample.X, {**sample.columns, column: in_chunks(values, 50)}))
    labelled = (pd.Series(values), xr.DataArray(values, dims="point"))
    for given in (values, values.tolist(), *labelled, in_chunks(values, 50), values.astype(float)):
        found = computed(fit(name, Sample(in_chunks(sample.X, 40), {**sample.columns, column: given})))
        np.testing.assert_array_equal(found["labels_"], wanted["labels_"])


# -------------------------------------------------------------------------------------------------------- odd but right
def frozen(values: np.ndarray) -> np.ndarray:
    values = values.copy()
    values.setflags(write=False)
    return values


def dataset(values: np.ndarray) -> xr.Dataset:
    """Return points as variables x and y, those of more axes as one variable."""
    if values.shape[1] == 2:
        return xr.Dataset({name: ("point", values[:, k]) for k, name in enumerate("xy")})
    return xr.Dataset({"X": (("point", "channel"), values)})


FORMS = {
    "list": np.ndarray.tolist,
    "Fortran": np.asfortranarray,
    "strided": lambda values: np.repeat(values, 2, axis=0)[::2],
    "big-endian": lambda values: values.astype(">f8"),
    "read-only": frozen,
    "DataFrame": lambda values: pd.DataFrame(values, columns=["x", "y"] if values.shape[1] == 2 else list("abcd")),
    "dask DataFrame": lambda values: dd.from_pandas(FORMS["DataFrame"](values), npartitions=3),
    "DataArray": lambda values: xr.DataArray(values, dims=("point", "axis")),
    "Dataset": dataset,
    "Dataset of chunks": lambda values: dataset(values).chunk(point=40),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FIRST_RUNS)
def test_points_of_any_class_and_layout(name: str, form: str) -> None:
    points = sample_of(name).X
    fitted = fit(name, Sample(FORMS[form](points), {}))
    names = {"feature_names_in_": None}  # of frames alone
    assert_same(computed(fitted) | names, computed(fit(name, Sample(points, {}))) | names)
    assert fitted.n_features_in_ == points.shape[1]
    np.testing.assert_array_equal(sample_of(name).X, points)


SMALL = [pytest.param(dtype, marks=pytest.mark.slow) for dtype in (np.float32, np.float16)]


@pytest.mark.parametrize("dtype", [np.int64, *SMALL])
@pytest.mark.parametrize("name", FIRST_RUNS)
def test_whole_coordinates_of_any_type(name: str, dtype: Any) -> None:
    whole = np.round(sample_of(name).X * 10)
    np.testing.assert_array_equal(
        fit(name, Sample(whole.astype(dtype), {})).labels_, fit(name, Sample(whole, {})).labels_
    )


@pytest.mark.parametrize("system", [each for each in SYSTEMS_OF_POINTS if each.name != "clue"], ids=str)
def test_results_before_fit(system: System) -> None:
    fitted = fit(name_of(system, system.runs[0]), sample_of(name_of(system, system.runs[0])))
    results = results_of(fitted) - set(vars(fitted))
    assert results
    for result in results:
        with pytest.raises(NotFittedError):
            getattr(type(fitted)(**system.runs[0].parameters), result)


def test_calls_before_fit() -> None:
    for call in (lambda: CLUE(1.0, 2.0).rethreshold(rhoc=1.0), lambda: MahalanobisHCA().labels(n_clusters=2)):
        with pytest.raises(NotFittedError):
            call()


# ----------------------------------------------------------------------------------------------------------- parameters
DISTANCES = [("clue", "dc"), ("fof", "linking_length"), ("dbscan", "eps"), ("events", "dt_max")]
COUNTS = [("fof", "min_members"), ("dbscan", "min_samples"), ("events", "min_hits"), ("hca", "n_clusters")]


@pytest.mark.parametrize("rows", [None, (N,)], ids=["memory", "dask"])
@pytest.mark.parametrize(
    ("parameter", "value", "error", "words"),
    [
        *((parameter, *wrong) for parameter in DISTANCES for wrong in NOT_POSITIVE),
        *(
            (parameter, *wrong)
            for parameter in COUNTS
            for wrong in NOT_WHOLE
            if (parameter[0], wrong[0]) != ("hca", None)
        ),
    ],
    ids=str,
)
def test_numbers_that_no_parameter_takes(
    parameter: tuple[str, str], value: Any, error: type[Exception], words: str, rows: Any
) -> None:
    system, name = SYSTEMS[parameter[0]], parameter[1]
    run = system.runs[0]
    sample = system.sample(N, run, np.float64).map(partial(in_chunks, rows=rows))
    with pytest.raises(error, match=f"{name} {words}"):
        system.estimator(**{**run.parameters, name: value}).fit(sample.X, **sample.columns).labels_


# ------------------------------------------------------------------------------------------ scikit-learn's conventions
CLOUD = np.random.default_rng(0).normal(size=(60, 2))


@pytest.mark.parametrize(
    "estimator",
    [
        CLUE(1, 2, delta_c=3, kernel=GaussianKernel(0.5), wrap={1: 6.28}),
        DBSCAN(1, min_samples=3, boxsize=[None, 6.28]),
        FriendsOfFriends(1, min_members=3, boxsize=[None, 6.28]),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_parameters_are_stored_as_given(estimator: Any) -> None:
    before = dict(estimator.get_params())
    assert clone(estimator).get_params() == before  # it refuses parameters that are copied
    assert estimator.fit(CLOUD) is estimator
    assert all(estimator.get_params()[name] is value for name, value in before.items())
    name = next(iter(before))
    assert estimator.set_params(**{name: 7}).get_params()[name] == 7


def test_a_pickle_can_be_cut_anew() -> None:
    clue = CLUE(0.5, 2.0, kernel="gaussian").fit(CLOUD)
    again = pickle.loads(pickle.dumps(clue))
    np.testing.assert_array_equal(again.rethreshold(rhoc=3.0).labels_, clue.rethreshold(rhoc=3.0).labels_)


def test_all_parameters_of_their_dbscan() -> None:
    """A grid of its parameters, and code that sets them by name, works with ours."""
    theirs = sklearn.cluster.DBSCAN().get_params()
    assert DBSCAN().get_params() == {**theirs, "boxsize": None}
    assert DBSCAN(**theirs).get_params() == DBSCAN().get_params()


@pytest.mark.parametrize("estimator", [CLUE(0.5, 2.0), DBSCAN(0.5)], ids=lambda estimator: type(estimator).__name__)
def test_weights_of_zero_make_noise(estimator: Any) -> None:
    fitted = estimator.fit(CLOUD, sample_weight=np.zeros(len(CLOUD)))
    assert (fitted.labels_ == -1).all()
    assert fitted.n_clusters_ == 0
    assert not np.any(getattr(fitted, "density_", 0))


def test_rhoc_zero_makes_no_outliers() -> None:
    assert (CLUE(0.5, 0.0).fit(CLOUD).labels_ >= 0).all()
