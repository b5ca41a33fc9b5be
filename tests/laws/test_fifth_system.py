"""The system of the how-to page: three files beside the package, on the engine as it is."""

from __future__ import annotations

import sys
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from scipy import ndimage
from sklearn.utils.estimator_checks import parametrize_with_checks

from daskclust.core.merge.labels import same_partition

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "examples"))
from grid_density.estimator import GridDensity


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


@pytest.mark.parametrize("rows", [1, 37, 400, 1000])
def test_chunks_do_not_matter(rows):
    X = np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)
    whole = GridDensity(0.3).fit(X)
    lazy = GridDensity(0.3).fit(da.from_array(X, chunks=(rows, 2)))
    np.testing.assert_array_equal(lazy.labels_.compute(), whole.labels_)
    assert int(lazy.n_clusters_) == whole.n_clusters_ > 1


def test_noise_alone():
    assert (GridDensity(1.0, min_samples=3).fit([[0.5], [1.5], [9.0]]).labels_ == -1).all()


def test_a_point_that_is_no_number_is_named():
    X = da.from_array(np.array([[0.0], [1.0], [np.nan]]), chunks=(2, 1))
    with pytest.raises(ValueError, match=r"X\[2, 0\] = nan"):
        GridDensity(1.0).fit(X).labels_.compute()


@parametrize_with_checks([GridDensity(1.0)])
def test_estimator_checks_of_scikit_learn(estimator, check):
    check(estimator)
