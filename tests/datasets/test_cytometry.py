"""Generators of cells: what they say is true."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from daskclust import datasets


def scatter(X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return standard deviations along the axes of the ellipsoid of points."""
    return np.sqrt(np.linalg.eigvalsh(np.cov(X.astype(float), rowvar=False)))


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
