"""What SciPy and scikit-learn do with the results of MahalanobisHCA, and what is read from a hierarchy."""

from __future__ import annotations

import numpy as np
import pytest
from cases.hca import DISTANCES, Case, cases, gaussians, merges_of, results
from hypothesis import given
from hypothesis import strategies as st
from oracles.hca_brute import RULES
from oracles.hca_reference import clusters_of
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

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


def test_dendrogram(fitted):
    drawn = hierarchy.dendrogram(fitted.linkage_, no_plot=True)
    assert sorted(drawn["leaves"]) == list(range(150))
    np.testing.assert_array_equal(sorted(top for _, top, _, _ in drawn["dcoord"]), sorted(fitted.linkage_[:, 2]))


def test_cophenetic_distances(fitted):
    heights = squareform(hierarchy.cophenet(fitted.linkage_))
    wanted = np.zeros((150, 150))
    for members, height in zip(clusters_of(merges_of(fitted.linkage_)[0]), fitted.linkage_[:, 2], strict=True):
        inside = np.array(sorted(members))
        new = wanted[np.ix_(inside, inside)]
        wanted[np.ix_(inside, inside)] = np.where(new == 0, height, new)
    np.fill_diagonal(wanted, 0)
    np.testing.assert_array_equal(heights, wanted)


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


@given(cases(), st.integers(1, 40))
def test_any_hierarchy(case, k):
    hca = case.fit()
    Z, n = hca.linkage_, len(case.X)
    assert hierarchy.is_valid_linkage(Z)
    assert len(np.unique(hca.labels(n_clusters=min(k, n)))) == min(k, n)
    sets = [{i} for i in range(n)] + [set(members) for members in clusters_of(merges_of(Z)[0])]
    assert sets[-1] == set(range(n))
    heights = np.concatenate([np.zeros(n), Z[:, 2]])
    assert hca.is_monotone_ == (heights[Z[:, :2].astype(int)] <= Z[:, 2:3]).all()
    if case.apriori is not None:
        for members in sets[n : n + hca.n_apriori_merges_]:
            assert len({case.apriori[i] for i in members}) == 1


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
