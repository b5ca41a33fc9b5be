"""What SciPy and scikit-learn do with the results of MahalanobisHCA, and what is read from a hierarchy."""

from __future__ import annotations

import numpy as np
import pytest
from cases.hca import DISTANCES, Case, gaussians, merges_of, results
from oracles.hca_brute import RULES
from oracles.hca_reference import clusters_of
from scipy.cluster import hierarchy

from daskclust import MahalanobisHCA
from daskclust.core import hierarchy as core
from daskclust.core.merge.labels import same_partition
from daskclust.datasets import cytometry


@pytest.fixture(params=zip(RULES, [*DISTANCES] * 3, strict=False), ids=str, scope="module")
def fitted(request):
    """Return a hierarchy with inversions, of 150 points in apriori clusters and outside."""
    rule, distance = request.param
    rng = np.random.default_rng(1)
    case = Case(gaussians(rng, 150, 4, apart=2.0), 0.1, rng.integers(-1, 5, 150), {"rule": rule, "distance": distance})
    return case.fit()


# --------------------------------------------------------------------------------------------------------------- SciPy
def test_is_a_linkage(fitted):
    Z = fitted.linkage_
    assert Z.dtype == np.float64
    assert hierarchy.is_valid_linkage(Z)
    assert np.all(Z[:, 0] < Z[:, 1])
    np.testing.assert_array_equal(Z[:, 3], [len(members) for members in clusters_of(merges_of(Z)[0])])
    assert hierarchy.num_obs_linkage(Z) == 150


def test_cuts_and_heights_are_read_from_the_linkage(fitted):
    Z = fitted.linkage_
    for height in (0.0, Z[70, 2], np.nextafter(Z[70, 2], 0), Z[:, 2].max()):
        labels = fitted.labels(height=height)
        np.testing.assert_array_equal(labels, core.cut(Z, height=height))
        assert same_partition(labels, hierarchy.fcluster(Z, height, criterion="distance"))
    for k in (1, 2, 7, 150):
        np.testing.assert_array_equal(fitted.labels(n_clusters=k, min_size=1), core.cut(Z, n_clusters=k))
    np.testing.assert_array_equal(fitted.labels_, core.cut(Z, n_clusters=2))
    np.testing.assert_array_equal(fitted.point_heights_, core.point_heights(Z))


def test_inversions_are_kept_and_said():
    triangle = np.array([[0, 0], [1, 0], [0.5, 0.9]])
    hca = MahalanobisHCA(9).fit(triangle)
    assert hca.linkage_[:, 2].tolist() == [1.0, 0.9]
    assert not hca.is_monotone_
    assert hierarchy.fcluster(hca.linkage_, 2, criterion="maxclust").max() == 1
    assert hca.labels(n_clusters=2).tolist() == [0, 0, 1]
    assert MahalanobisHCA(9).fit(triangle * [1, 2]).is_monotone_


# -------------------------------------------------------------------------------------------------------- scikit-learn
def test_n_clusters_needs_no_other_fit():
    cells = cytometry(400, 5, rng=4)["X"].values
    hca = MahalanobisHCA(0.05).fit(cells)
    before = hca.linkage_.copy()
    for k in (1, 2, 9):
        assert len(np.unique(hca.set_params(n_clusters=k).labels_)) == k
    np.testing.assert_array_equal(hca.linkage_, before)
    assert set(results(hca)) == {"linkage_", "n_apriori_merges_", "is_monotone_", "labels_", "point_heights_"}
    again = hca.fit(cells[:100])
    assert again.linkage_.shape == (99, 4)
    assert hca.labels_.shape == (100,)
