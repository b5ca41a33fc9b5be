"""Generators of cells."""

from __future__ import annotations

import pickle
from typing import Any

import dask
import numpy as np
import pytest
import xarray as xr
from scipy import stats

from daskclust import datasets

GENERATORS = [
    (datasets.cytometry, {"n": 500}, "population"),
    (datasets.cytometry, {"n": 500, "channels": 3, "populations": 2, "noise": 0.0, "shuffle": False}, "population"),
    (datasets.apriori_gaussians, {"groups": 50, "size": 10}, "apriori"),
    (datasets.apriori_gaussians, {"groups": 50, "size": 10, "channels": 1, "shuffle": True}, "apriori"),
]


def raise_if_computed(*args: Any, **kwargs: Any) -> None:
    """Be a dask scheduler for laziness tests."""
    raise AssertionError("computed")


def scatter(X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return standard deviations along the axes of the ellipsoid of points."""
    return np.sqrt(np.linalg.eigvalsh(np.cov(X.astype(float), rowvar=False)))


@pytest.mark.parametrize(("make", "kwargs", "truth"), GENERATORS)
def test_generators_repeat_and_conform(make: Any, kwargs: dict[str, Any], truth: str) -> None:
    ds = make(**kwargs, rng=1)
    xr.testing.assert_identical(ds, make(**kwargs, rng=np.random.default_rng(1)))
    assert not ds["X"].equals(make(**kwargs, rng=2)["X"])
    assert ds["X"].dims == ("cell", "channel")
    assert ds["X"].dtype == np.float32
    assert ds[truth].dtype == np.int64
    assert ds["X"].shape == (500, len(ds["channel"]))
    assert ds.sizes["channel"] == kwargs.get("channels", ds.sizes["channel"])
    assert np.isfinite(ds["X"]).all()
    assert ds["X"].values.flags.c_contiguous
    assert ds.attrs["generator"] == make.__name__
    assert all(isinstance(value, str | int | float) and not isinstance(value, bool) for value in ds.attrs.values())


@pytest.mark.parametrize(("make", "kwargs", "truth"), GENERATORS)
@pytest.mark.parametrize("many", [False, True])
def test_any_chunks_give_the_same_cells(make: Any, kwargs: dict[str, Any], truth: str, many: bool) -> None:
    # More than the generators make at a time.
    sizes = {"n": 70_001} if make is datasets.cytometry else {"groups": 101, "size": 701}
    kwargs = {**kwargs, **(sizes if many else {})}
    whole = make(**kwargs, rng=5)
    n = whole.sizes["cell"]
    for chunks in (n // 7 + 1, 65_536, 10**6):
        with dask.config.set(scheduler=raise_if_computed):
            lazy = make(**kwargs, rng=5, chunks=chunks)
        assert max(lazy.chunks["cell"]) <= chunks
        assert len(lazy.chunks["channel"]) == 1
        assert all(lazy[v].data._meta.dtype == lazy[v].dtype == whole[v].dtype for v in lazy)
        xr.testing.assert_identical(pickle.loads(pickle.dumps(lazy)).compute(), whole)
    part = slice(n // 3, n // 2)
    xr.testing.assert_identical(lazy.isel(cell=part).compute(), whole.isel(cell=part))


@pytest.mark.parametrize(("make", "kwargs", "truth"), GENERATORS)
def test_shuffling_is_an_order(make: Any, kwargs: dict[str, Any], truth: str) -> None:
    mixed, sorted_ = (make(**{**kwargs, "shuffle": shuffle}, rng=3) for shuffle in (True, False))
    tables = [np.column_stack([ds["X"], ds[truth]]) for ds in (mixed, sorted_)]
    np.testing.assert_array_equal(*[table[np.lexsort(table.T)] for table in tables])
    number = sorted_[truth].values
    assert (np.diff(number[number >= 0]) >= 0).all()
    assert (number[np.argmax(number < 0) :] < 0).all() or (number >= 0).all()
    assert (np.diff(mixed[truth].values[mixed[truth].values >= 0]) < 0).any()


def test_populations_are_gaussians_of_unequal_sizes() -> None:
    ds = datasets.cytometry(200_000, 10, populations=6, rarest=0.02, noise=0.05, rng=0)
    number = ds["population"].values
    assert (number == -1).sum() == 10_000
    sizes = np.bincount(number[number >= 0])
    assert len(sizes) == 6
    np.testing.assert_allclose(sizes[1:] / sizes[:-1], 0.02 ** (1 / 5), rtol=0.01)
    for k in range(6):
        X = ds["X"].values[number == k]
        deviations = scatter(X)
        assert 0.09 < deviations[0] < deviations[-3] < 0.33
        assert 0.3 < deviations[-2] < deviations[-1] < 0.95
        # Squared Mahalanobis distances of a Gaussian are chi squared.
        centred = X - X.mean(axis=0)
        squared = (centred @ np.linalg.inv(np.cov(X, rowvar=False)) * centred).sum(axis=1)
        assert stats.kstest(squared[:2000], "chi2", (10,)).pvalue > 1e-4
    noise = ds["X"].values[number == -1]
    assert all(stats.kstest(column, "uniform", (-1, 8)).pvalue > 1e-4 for column in noise.T)


def test_apriori_groups_are_gaussians_apart() -> None:
    ds = datasets.apriori_gaussians(30, 2000, channels=5, spread=0.25, extent=50.0, rng=0)
    np.testing.assert_array_equal(ds["apriori"], np.repeat(np.arange(30), 2000))
    X = ds["X"].values.reshape(30, 2000, 5)
    centres = X.mean(axis=1)
    assert centres.min() > -1
    assert centres.max() < 51
    distance = np.sqrt(((centres[:, None] - centres) ** 2).sum(axis=2))
    assert distance[np.triu_indices(30, 1)].min() > 2
    for group in X:
        deviations = scatter(group)
        assert 0.11 < deviations[0] < deviations[-1] < 0.55
    assert np.median([scatter(group)[-1] / scatter(group)[0] for group in X]) > 1.5


def test_extremes() -> None:
    for n in (0, 1, 2, 3):
        assert datasets.cytometry(n, 2, rng=0).sizes == {"cell": n, "channel": 2}
    assert datasets.apriori_gaussians(0, 5, rng=0).sizes["cell"] == 0
    assert datasets.apriori_gaussians(3, 0, rng=0, chunks=4).compute().sizes["cell"] == 0
    assert datasets.apriori_gaussians(3, 1, rng=0)["apriori"].values.tolist() == [0, 1, 2]
    assert (datasets.cytometry(50, noise=1.0, rng=0)["population"] == -1).all()
    assert (datasets.cytometry(50, populations=1, noise=0.0, rng=0)["population"] == 0).all()


@pytest.mark.parametrize(
    ("make", "kwargs", "message"),
    [
        (datasets.cytometry, {"n": -1}, "n must be a whole number of at least 0, got -1"),
        (datasets.cytometry, {"channels": 0}, "channels must be a whole number of at least 1, got 0"),
        (datasets.cytometry, {"populations": 2.5}, "populations must be a whole number of at least 1, got 2.5"),
        (datasets.cytometry, {"noise": 1.5}, "noise must be from 0 to 1, got 1.5"),
        (datasets.cytometry, {"rarest": 0.0}, "rarest must be positive and finite, got 0.0"),
        (datasets.cytometry, {"chunks": 0}, "chunks must be a whole number of at least 1, got 0"),
        (datasets.apriori_gaussians, {"groups": -1}, "groups must be a whole number of at least 0, got -1"),
        (datasets.apriori_gaussians, {"size": 1.5}, "size must be a whole number of at least 0, got 1.5"),
        (datasets.apriori_gaussians, {"spread": -1.0}, "spread must be positive and finite, got -1.0"),
        (datasets.apriori_gaussians, {"extent": np.inf}, "extent must be finite and not negative, got inf"),
    ],
)
def test_wrong_arguments(make: Any, kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**kwargs)
