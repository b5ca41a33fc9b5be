"""The system of the how-to page against another program; `test_systems.py` holds it to the laws."""

from __future__ import annotations

import numpy as np
import pytest
from cases import registry
from scipy import ndimage

from daskclust.core.merge.labels import same_partition

GridDensity = next(entry.estimator for entry in registry.ENTRIES if entry.name == "grid")


def by_image(X, width, least, corners):
    """Return labels by SciPy's connected components of an image; clusters in another order."""
    cell = np.floor(X / width).astype(int)
    cell -= cell.min(axis=0)
    image = np.zeros(cell.max(axis=0) + 1, int)
    np.add.at(image, tuple(cell.T), 1)
    touching = ndimage.generate_binary_structure(X.shape[1], X.shape[1] if corners else 1)
    number, _ = ndimage.label(image >= least, structure=touching)
    return number[tuple(cell.T)] - 1


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("corners", [True, False])
def test_labels_are_those_of_an_image(d, corners):
    X = np.random.default_rng(d).normal(size=(3000, d))
    fit = GridDensity(0.2, min_samples=4, corners=corners).fit(X)
    assert same_partition(fit.labels_, by_image(X, 0.2, 4, corners))
    found = fit.labels_[fit.labels_ >= 0]
    assert fit.n_clusters_ == len(np.unique(found)) > 1
    np.testing.assert_array_equal(found[np.sort(np.unique(found, return_index=True)[1])], np.arange(fit.n_clusters_))


def test_noise_alone():
    assert (GridDensity(1.0, min_samples=3).fit([[0.5], [1.5], [9.0]]).labels_ == -1).all()
