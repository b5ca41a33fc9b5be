"""The systems of the how-to page against other programs; `test_systems.py` holds them to the laws."""

import sys
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from cases.lanes import quick_first
from scipy import ndimage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from daskclust.core.merge.labels import same_partition
from daskclust.core.space.partition import Partition

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "examples"))
from grid_density.estimator import GridDensity
from redshift_fof.estimator import RedshiftFriends


def by_image(X, width, least, corners):
    """Return labels by SciPy's connected components of an image; clusters in another order."""
    cell = np.floor(X / width).astype(int)
    cell -= cell.min(axis=0)
    image = np.zeros(cell.max(axis=0) + 1, int)
    np.add.at(image, tuple(cell.T), 1)
    touching = ndimage.generate_binary_structure(X.shape[1], X.shape[1] if corners else 1)
    number, _ = ndimage.label(image >= least, structure=touching)
    return number[tuple(cell.T)] - 1


def by_pairs(X, across, along, least):
    """Return labels by SciPy's connected components of all pairs within a cylinder."""
    near = cKDTree(X / [across, across, along]).query_pairs(1.5, output_type="ndarray")
    steps = X[near[:, 0]] - X[near[:, 1]]
    near = near[((steps[:, :2] ** 2).sum(axis=1) <= across**2) & (abs(steps[:, 2]) <= along)]
    links = coo_array((np.ones(len(near)), tuple(near.T)), shape=(len(X), len(X)))
    _, group = connected_components(links, directed=False)
    return np.where(np.bincount(group)[group] >= least, group, -1)


def assert_numbered(fit):
    found = fit.labels_[fit.labels_ >= 0]
    assert fit.n_clusters_ == len(np.unique(found)) > 1
    np.testing.assert_array_equal(found[np.sort(np.unique(found, return_index=True)[1])], np.arange(fit.n_clusters_))


@pytest.mark.parametrize("d", quick_first([2, 1, 3]))
@pytest.mark.parametrize("corners", [True, False])
def test_labels_are_those_of_an_image(d, corners):
    X = np.random.default_rng(d).normal(size=(3000, d))
    fit = GridDensity(0.2, min_samples=4, corners=corners).fit(X)
    assert same_partition(fit.labels_, by_image(X, 0.2, 4, corners))
    assert_numbered(fit)


@pytest.mark.parametrize(("across", "along"), [(0.25, 0.9), (0.6, 0.1), (0.4, 0.4)])
@pytest.mark.parametrize("far", [0.0, 1e6], ids=["near", "far"])
def test_groups_are_those_of_pairs(across, along, far):
    X = np.random.default_rng(0).uniform(0, 10, (3000, 3)) + far
    fit = RedshiftFriends(across, along, min_members=3).fit(X)
    assert same_partition(fit.labels_, by_pairs(X, across, along, 3))
    assert_numbered(fit)


def test_friends_at_a_length_of_exactly_the_two():
    """In steps of an eighth, which are exact: a cylinder holds its edge, where both are as far as can be."""
    X = np.array([[0, 0, 0], [3, 4, 8], [6, 8, 16.125], [9, 12, 24.125], [9, 17.125, 24.125]]) / 8
    assert RedshiftFriends(5 / 8, 1).fit(X).labels_.tolist() == [0, 0, 1, 1, -1]


def test_a_halo_for_each_axis():
    """A halo that is wide along one axis serves where the other length does; one too narrow is refused."""
    X = np.random.default_rng(1).uniform(0, 4, (600, 3))
    lazy, cuts = da.from_array(X, chunks=(100, 3)), (np.array([2.0]), np.array([1.0, 3.0]), np.array([2.2]))
    friends = RedshiftFriends(0.2, 0.7)
    wanted = friends.fit(X).labels_
    for halo in (0.7, (0.2, 0.2, 0.7)):
        blocks = Partition(cuts=cuts, period=(0.0,) * 3, halo=halo)
        np.testing.assert_array_equal(friends.fit(lazy, partition=blocks).labels_.compute(), wanted)
    for halo in (0.6, (0.2, 0.1, 0.7)):
        with pytest.raises(ValueError, match=r"it must be at least 0\.2 and 0\.2 and 0\.7"):
            friends.fit(lazy, partition=Partition(cuts=cuts, period=(0.0,) * 3, halo=halo))
    with pytest.raises(ValueError, match="one for each of 3 axes"):
        Partition(cuts=cuts, period=(0.0,) * 3, halo=(0.2, 0.7))
