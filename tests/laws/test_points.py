"""What all systems that take points say of wrong ones, and take of odd ones: errors show the value and the remedy."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from laws.registry import RUNS, assert_same, computed, fit, name_of, results_of, sample_of
from scipy import sparse
from sklearn.exceptions import NotFittedError

from daskclust import CLUE, DBSCAN, MahalanobisHCA
from daskclust.systems import SYSTEMS, Sample, System

N = 150
SYSTEMS_OF_POINTS = [system for system in SYSTEMS.values() if system.any_columns]
FIRST_RUNS = [name_of(system, system.runs[0]) for system in SYSTEMS_OF_POINTS]
COLUMNS = [
    (name, column) for name, (system, run) in RUNS.items() if system in SYSTEMS_OF_POINTS for column in run.columns
]
X = np.random.default_rng(5).uniform(0, 5, (80, 2))
every_system = pytest.mark.parametrize("system", SYSTEMS_OF_POINTS, ids=str)


def in_chunks(values: np.ndarray, rows: Any) -> Any:
    return values if rows is None else da.from_array(values, chunks=(rows, *values.shape[1:]))


def unknown(points: np.ndarray) -> Any:
    lazy = in_chunks(points, 30)
    return lazy[lazy[:, 0] > 1]


REFUSED = [
    (np.empty((4, 0)), ValueError, "0 feature"),
    (X[:, 0], ValueError, "1D array"),
    (in_chunks(X[:, 0], 30), ValueError, r"shape \(n, d\), got \(80,\); one coordinate: X\[:, None\]"),
    (X[None], ValueError, "dim 3"),
    (X + 1j, ValueError, "Complex data not supported"),
    (in_chunks(X + 1j, 30), ValueError, "Complex data not supported"),
    (dd.from_pandas(pd.Series(X[:, 0]), npartitions=3), TypeError, "must be an array, a DataFrame or"),
    (unknown(X), ValueError, r"X has unknown chunk sizes; call \.compute_chunk_sizes\(\) on it first"),
    (dict(zip("xyzw", unknown(X).T, strict=False)), ValueError, r"x has unknown chunk sizes; call"),
    (sparse.csr_array(X), TypeError, "(?s)[Ss]parse.*dense"),
    (np.full_like(X, np.nan), ValueError, r"X\[\d+, 0\] = nan"),
    (in_chunks(np.full_like(X, np.nan), 30), ValueError, r"X\[\d+, 0\] = nan"),
]


@every_system
def test_points_that_are_refused(system: System) -> None:
    for points, error, words in REFUSED:
        with pytest.raises(error, match=words):
            np.asarray(system.estimator(**system.runs[0].parameters).fit(points).labels_)


@pytest.mark.parametrize(("name", "column"), COLUMNS)
@pytest.mark.parametrize("rows", [None, (40, 60, 50)], ids=["memory", "dask"])
def test_columns_that_are_wrong(name: str, column: str, rows: Any) -> None:
    """Of another length or shape, or with values that are no numbers."""
    sample = sample_of(name)

    def with_column(values: np.ndarray) -> Sample:
        return Sample(sample.X, {**sample.columns, column: values}).map(partial(in_chunks, rows=rows))

    for values in (sample.columns[column][:-1], np.zeros((N, 1, 1))):
        shape = re.escape(str(values.shape))
        words = rf"{column} must have one (value|label) for each of the {N} points of X.*got shape {shape}"
        wrong = Sample(in_chunks(sample.X, rows), {**sample.columns, column: values})
        with pytest.raises(ValueError, match=words):
            fit(name, wrong)
    unknown = da.from_array(sample.columns[column], chunks=40)
    unknown = unknown[da.ones(len(unknown), chunks=40) > 0]
    with pytest.raises(ValueError, match=rf"{column} has unknown chunk sizes; call"):
        fit(name, Sample(in_chunks(sample.X, 40), {**sample.columns, column: unknown}))
    for value in (np.nan, -np.inf):
        values = sample.columns[column].astype(float)
        values[51] = value
        with pytest.raises(ValueError, match=rf"{column}\[51\] = {value}"):
            np.asarray(fit(name, with_column(values)).labels_)


@pytest.mark.parametrize(("name", "column"), COLUMNS)
def test_columns_of_any_class_with_points(name: str, column: str) -> None:
    sample = sample_of(name)
    values, wanted = sample.columns[column], computed(fit(name, sample))
    with pytest.raises(TypeError, match=rf"{column} is a dask \w+ and X is not.*{column}\.compute\(\)"):
        fit(name, Sample(sample.X, {**sample.columns, column: in_chunks(values, 50)}))
    series = pd.Series(values)
    labelled = (series, dd.from_pandas(series, npartitions=3), xr.DataArray(values, dims="point"))
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


CLOUD = np.random.default_rng(0).normal(size=(60, 2))


@pytest.mark.parametrize("estimator", [CLUE(0.5, 2.0), DBSCAN(0.5)], ids=lambda estimator: type(estimator).__name__)
def test_weights_of_zero_make_noise(estimator: Any) -> None:
    fitted = estimator.fit(CLOUD, sample_weight=np.zeros(len(CLOUD)))
    assert (fitted.labels_ == -1).all()
    assert fitted.n_clusters_ == 0
    assert not np.any(getattr(fitted, "density_", 0))
