"""What SciPy and scikit-learn do with the results of MahalanobisHCA."""

import numpy as np
import pytest
from cases.hca import DISTANCES, Case, gaussians, merges_of, results
from oracles.hca_brute import RULES
from oracles.hca_reference import clusters_of
from scipy.cluster import hierarchy

from daskclust import MahalanobisHCA
from daskclust.core import hierarchy as core
from daskclust.datasets import cytometry


@pytest.mark.parametrize(("rule", "distance"), list(zip(RULES, [*DISTANCES] * 3, strict=False)))
def test_linkages_cuts_and_heights(rule, distance):
    """Of a hierarchy with inversions, of 150 points in apriori clusters and outside."""
    rng = np.random.default_rng(1)
    case = Case(gaussians(rng, 150, 4, apart=2.0), 0.1, rng.integers(-1, 5, 150), {"rule": rule, "distance": distance})
    fitted = case.fit()
    Z = fitted.linkage_
    assert Z.dtype == np.float64
    assert hierarchy.is_valid_linkage(Z)
    assert np.all(Z[:, 0] < Z[:, 1])
    np.testing.assert_array_equal(Z[:, 3], [len(members) for members in clusters_of(merges_of(Z)[0])])
    for how in ({"height": Z[70, 2]}, {"n_clusters": 7, "min_size": 1}):
        np.testing.assert_array_equal(fitted.labels(**how), core.cut(Z, **how))
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


def test_n_clusters_needs_no_other_fit():
    cells = cytometry(400, 5, rng=4)["X"].values
    hca = MahalanobisHCA(0.05).fit(cells)
    before = hca.linkage_.copy()
    for k in (1, 2, 9):
        assert len(np.unique(hca.set_params(n_clusters=k).labels_)) == k
    np.testing.assert_array_equal(hca.linkage_, before)
    assert set(results(hca)) == {"linkage_", "n_apriori_merges_", "is_monotone_", "labels_", "point_heights_"}
    assert hca.fit(cells[:100]).labels_.shape == (100,)
