"""The nearest cluster of new points, against plain NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import awkward as ak
import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from oracles.hca_brute import RULES
from scipy.spatial.distance import mahalanobis

from daskclust import MahalanobisHCA, datasets
from daskclust.hca import shapes_of_cut as module

NEW = np.random.default_rng(1).normal(0, 6, (400, 3))


def elongated() -> np.ndarray:
    """Return two elongated clusters, one of 3 points, and one of 30 whose last channel has no variance."""
    rng = np.random.default_rng(0)
    flat = rng.normal([-20, 9, 0], [1, 1, 0], (30, 3))
    parts = [rng.normal(0, [3, 0.3, 1], (150, 3)), rng.normal([0, 5, 0], [0.3, 1, 1], (100, 3)), flat]
    return np.concatenate([*parts, rng.normal([20, 0, 0], 0.1, (3, 3))])


def by_scipy(X: np.ndarray, labels: np.ndarray, new: np.ndarray, least: int) -> np.ndarray:
    """Return the nearest of the clusters by rule "thesis", point by point."""
    best = np.full(len(new), -1)
    nearest = np.full(len(new), np.inf)
    for k in range(labels.max() + 1):
        members = X[labels == k]
        cov = np.cov(members.T, bias=True)
        is_shaped = len(members) >= least and np.linalg.matrix_rank(cov) == X.shape[1]
        inverse = np.linalg.inv(cov) if is_shaped else np.eye(X.shape[1])
        away = np.array([mahalanobis(point, members.mean(axis=0), inverse) for point in new])
        best[away < nearest] = k
        nearest = np.minimum(away, nearest)
    return best


@pytest.mark.parametrize(("n_clusters", "min_size"), [(2, 1), (4, 1), (9, 1), (3, 20)])
def test_equal_to_scipy(n_clusters: int, min_size: int) -> None:
    X = elongated()
    fitted = MahalanobisHCA(20, n_clusters=n_clusters).fit(X)
    cut = {"n_clusters": n_clusters, "min_size": min_size}
    new = np.concatenate([NEW, X])
    wanted = by_scipy(X, fitted.labels(**cut), new, 20)
    np.testing.assert_array_equal(fitted.predict(new, **cut), wanted)
    assert len(np.unique(wanted)) > 1
    if min_size == 1:
        np.testing.assert_array_equal(fitted.predict(new), wanted)


@pytest.mark.parametrize("rule", RULES)
def test_chunks_and_containers_do_not_matter(rule: str) -> None:
    X = elongated()
    model = MahalanobisHCA(0.1, rule=rule, n_clusters=4)
    wanted = model.fit(X).predict(NEW)
    with dask.config.set(scheduler=_never):
        lazy = [model.predict(da.from_array(NEW, chunks=(150, 2)))]
        model.fit(da.from_array(X, chunks=(70, 3)))
        lazy += [model.predict(da.from_array(NEW, chunks=(90, 3))), model.predict(NEW)]
    assert [each.chunks[0][0] for each in lazy] == [150, 90, len(NEW)]
    for each in lazy:
        np.testing.assert_array_equal(each, wanted)
    model.fit(pd.DataFrame(X, columns=[*"abc"]))
    np.testing.assert_array_equal(model.predict(pd.DataFrame(NEW, columns=[*"abc"])), wanted)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame(NEW, columns=[*"abe"]))
    model.fit(ak.Array([{"x": x, "y": y, "z": z} for x, y, z in X]))
    np.testing.assert_array_equal(model.predict(NEW), wanted)


def _never(*args: Any, **options: Any) -> None:
    raise AssertionError("computed")


@pytest.mark.parametrize("rule", RULES)
def test_shapes_are_those_that_merges_use(rule: str) -> None:
    """The last merge's height is the mean of both clusters' distances to the other's centroid."""
    X = elongated()[:250]
    fitted = MahalanobisHCA(0.1, rule=rule).fit(X)
    labels = fitted.labels_
    shapes = module.shapes_of_cut(X, labels, fitted._plan(len(X)).rule)
    lengths = []
    for k in range(2):
        W = np.eye(3)
        if shapes.row[k] >= 0:
            W = np.zeros((3, 3))
            W[np.tril_indices(3)] = shapes.whiten[shapes.row[k]]
        lengths.append(np.linalg.norm(W @ (X[labels == 0].mean(axis=0) - X[labels == 1].mean(axis=0))))
    assert fitted.linkage_[-1, 2] == pytest.approx(np.mean(lengths), rel=1e-9)


def test_ties_go_to_the_smallest_label() -> None:
    fitted = MahalanobisHCA(100).fit([[0.0], [1.0], [10.0], [11.0]])
    assert fitted.predict([[5.5], [5.4], [5.6]]).tolist() == [0, 0, 1]


def test_what_cannot_be_predicted_is_said() -> None:
    fitted = MahalanobisHCA(0.5).fit(elongated())
    with pytest.raises(ValueError, match="X contains NaN, infinity"):
        fitted.predict([[0.0, np.nan, 0.0]])
    with pytest.raises(ValueError, match="2 features, but MahalanobisHCA is expecting 3"):
        fitted.predict([[0.0, 0.0]])
    with pytest.raises(ValueError, match="the cut has no clusters; give a smaller min_size"):
        fitted.predict(NEW, height=0.0, min_size=2)


def test_cells_of_a_dataset() -> None:
    cells = datasets.cytometry(600, 3, rng=0)
    fitted = MahalanobisHCA(50, n_clusters=3).fit(cells.isel(cell=slice(300)))
    found = fitted.predict(cells)
    np.testing.assert_array_equal(found, fitted.predict(cells["X"].values))
    assert len(found) == 600


def test_parameters_of_the_fit_count() -> None:
    fitted = MahalanobisHCA(20, n_clusters=4).fit(elongated())
    before = fitted.predict(NEW)
    fitted.set_params(threshold=1.0, rule="mahal", distance="full", normalize=True)
    np.testing.assert_array_equal(fitted.predict(NEW), before)
