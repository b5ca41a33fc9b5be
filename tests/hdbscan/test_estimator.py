"""HDBSCAN and EMST as estimators: parameters, input, events, cuts of one density."""

from __future__ import annotations

from typing import Any

import awkward as ak
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_array_equal
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform
from sklearn.utils.estimator_checks import parametrize_with_checks

from daskclust import DBSCAN, EMST, HDBSCAN, FriendsOfFriends
from daskclust.core.hierarchy import cut

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(0, 1, (60, 2)), RNG.normal(7, 1, (60, 2)), RNG.uniform(-5, 12, (30, 2))])
RESULTS = "labels_", "probabilities_", "outlier_scores_", "core_distances_"


@pytest.mark.slow
@parametrize_with_checks([HDBSCAN(), HDBSCAN(3, min_samples=1, cluster_selection_method="leaf"), EMST()])
def test_estimator_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def assert_equal_results(found: HDBSCAN, wanted: HDBSCAN) -> None:
    for name in (*RESULTS, "n_clusters_", "condensed_tree_", "single_linkage_tree_", "minimum_spanning_tree_"):
        assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)


def test_core_distances_count_the_point_itself() -> None:
    distances = np.sort(squareform(pdist(X)), axis=1)
    for samples in (1, 2, 7):
        np.testing.assert_allclose(HDBSCAN(min_samples=samples).fit(X).core_distances_, distances[:, samples - 1])
    assert_array_equal(HDBSCAN(7).fit(X).core_distances_, HDBSCAN(min_samples=7).fit(X).core_distances_)


def test_rethreshold_is_a_fit_with_other_parameters() -> None:
    fitted = HDBSCAN().fit(X)
    for changed in (
        {"min_cluster_size": 15},
        {"cluster_selection_method": "leaf"},
        {"cluster_selection_epsilon": 1.0},
        {"max_cluster_size": 20},
        {"min_cluster_size": 30, "allow_single_cluster": True},
    ):
        other = fitted.rethreshold(**changed)
        assert_equal_results(other, HDBSCAN(**{"min_samples": 5, **changed}).fit(X))
        assert_equal_results(other, HDBSCAN(**other.get_params()).fit(X))
        assert "max_cluster_size" not in changed or other.n_clusters_ != fitted.n_clusters_
    assert_equal_results(fitted, HDBSCAN().fit(X))


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"min_cluster_size": 1}, ValueError, "min_cluster_size must be 2 or more, got 1"),
        ({"min_cluster_size": 2.5}, TypeError, "min_cluster_size must be a whole number, got 2.5"),
        ({"min_samples": 0}, ValueError, "min_samples must be 1 or more, got 0"),
        ({"cluster_selection_method": "EOM"}, ValueError, "must be 'eom' or 'leaf', got 'EOM'"),
        ({"cluster_selection_epsilon": -1.0}, ValueError, "cluster_selection_epsilon must be finite and not negative"),
        ({"max_cluster_size": 0}, ValueError, "max_cluster_size must be 1 or more, got 0"),
        ({"alpha": 0.0}, ValueError, "alpha must be finite and positive, got 0.0"),
        ({"boxsize": [1.0]}, ValueError, "boxsize must be one number or one for each of the 2 axes"),
        ({"boxsize": -1.0}, ValueError, "boxsize must be finite and positive"),
    ],
)
def test_wrong_parameters_are_named(changed: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        HDBSCAN(**changed).fit(X)
    if next(iter(changed)) not in ("min_samples", "alpha", "boxsize"):
        with pytest.raises(error, match=said):
            HDBSCAN().fit(X).rethreshold(**changed)


def test_what_is_refused() -> None:
    for estimator in (HDBSCAN(), EMST()):
        with pytest.raises(TypeError, match="unexpected keyword argument 'sample_weight'"):
            estimator.fit(X, sample_weight=np.ones(len(X)))
        with pytest.raises(ValueError, match=r"X\[3, 1\] = nan"):
            estimator.fit(np.where(np.arange(len(X))[:, None] + [0, 1] == [-1, 4], np.nan, X))
        with pytest.raises(ValueError, match="squares of such distances are not finite"):
            estimator.fit(1e300 * X)
        for tiny in (1e-160 * X, da.from_array(1e-160 * X, chunks=(50, 2))):
            with pytest.raises(ValueError, match="too small for float64; give it in a smaller unit"):
                np.asarray(estimator.fit(tiny)._tree.edges)
    with pytest.raises(ValueError, match="event must have one value for each of the 150 points"):
        HDBSCAN().fit(X, event=[0, 1])
    with pytest.raises(ValueError, match='partition must be "auto", "layers" or a Partition'):
        HDBSCAN().fit(da.from_array(X), event=da.zeros(150, int), partition="space")
    with pytest.raises(ValueError, match="eps must be finite and positive"):
        HDBSCAN().fit(X).dbscan_clustering(0.0)


def test_fewer_points_than_min_samples_are_noise() -> None:
    for n in (1, 2, 4):
        fitted = HDBSCAN(2, min_samples=5, allow_single_cluster=True).fit(X[:n])
        assert_array_equal(fitted.labels_, np.full(n, -1))
        assert_array_equal(fitted.outlier_scores_, np.zeros(n))
        assert np.isinf(fitted.core_distances_).all()
        assert (fitted.dbscan_clustering(1e9, 1) == -1).all()
        assert (DBSCAN(1e9, min_samples=5).fit(X[:n]).labels_ == -1).all()


@pytest.mark.parametrize("single", [False, True])
def test_events_are_clustered_by_themselves(single: bool) -> None:
    """Each as in a fit of its own, small ones and single points, too; clusters are numbered through all."""
    event = np.array([7, -2, 3, 5, 11])[np.concatenate([RNG.integers(0, 3, len(X) - 4), [3, 4, 4, 4]])]
    for how in ({"min_samples": 2}, {"cluster_selection_epsilon": 0.7}, {"cluster_selection_method": "leaf"}):
        fitted = HDBSCAN(4, allow_single_cluster=single, **how).fit(X, event=event)
        labels, used = np.full(len(X), -1), 0
        for each in np.unique(event):
            rows = event == each
            alone = HDBSCAN(4, allow_single_cluster=single, **how).fit(X[rows])
            labels[rows] = np.where(alone.labels_ < 0, -1, alone.labels_ + used)
            used += alone.n_clusters_
            assert_array_equal(fitted.probabilities_[rows], alone.probabilities_)
            assert_array_equal(fitted.outlier_scores_[rows], alone.outlier_scores_)
            assert_array_equal(fitted.core_distances_[rows], alone.core_distances_)
            assert_array_equal(fitted.dbscan_clustering(0.8)[rows] < 0, alone.dbscan_clustering(0.8) < 0)
        assert used == fitted.n_clusters_ > 2
        seen, numbers = np.unique(labels[labels >= 0], return_index=True)
        wanted = np.full(used + 1, -1)
        wanted[seen[np.argsort(numbers)]] = np.arange(used)
        assert_array_equal(fitted.labels_, wanted[labels])
        joins = np.isinf(fitted.single_linkage_tree_[:, 2])
        assert joins.sum() >= 4
        assert len(fitted.condensed_tree_) >= len(X)


def test_events_by_columns_and_by_lists() -> None:
    event = np.sort(RNG.integers(0, 4, len(X)))
    wanted = HDBSCAN(4).fit(X, event=event)
    columns = {"x": X[:, 0], "y": X[:, 1]}
    assert_equal_results(HDBSCAN(4).fit(pd.DataFrame(columns | {"event": event})), wanted)
    lists = ak.unflatten(ak.zip(columns), np.bincount(event))
    found = HDBSCAN(4).fit(lists)
    for name in RESULTS:
        assert_array_equal(ak.flatten(getattr(found, name)), getattr(wanted, name))
        assert_array_equal(ak.num(getattr(found, name)), np.bincount(event))
    with pytest.raises(ValueError, match="EMST clusters all points together"):
        EMST().fit(lists)


def test_cuts_of_one_density_are_core_points_of_dbscan() -> None:
    """Number for number, at every distance, those of the tree included: squares are compared in both."""
    lattice = RNG.integers(0, 9, (70, 2)).astype(float)
    for points, samples in ((X, 1), (X, 2), (X, 6), (lattice, 3), (np.sqrt(3) * lattice, 5)):
        fitted = HDBSCAN(min_samples=samples).fit(points)
        for eps in (*np.unique(fitted.single_linkage_tree_[::5, 2]), 0.3, 1.0, np.sqrt(3), 2.5, 99.0):
            if eps > 0:
                dbscan = DBSCAN(eps, min_samples=samples).fit(points)
                wanted = np.where(dbscan.is_core_, dbscan.labels_, -1)
                assert_array_equal(fitted.dbscan_clustering(eps, min_cluster_size=1), wanted)
                sizes = np.bincount(wanted[wanted >= 0], minlength=1)
                large = (wanted >= 0) & (sizes[wanted] >= 5)
                assert_array_equal(fitted.dbscan_clustering(eps) >= 0, large)


@pytest.mark.parametrize("boxsize", [None, 12.0, [None, 9.0]])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_tree_has_the_friends_at_every_length(boxsize: Any, dtype: Any) -> None:
    points = RNG.uniform(0, 9, (150, 2)).astype(dtype)
    emst = EMST(boxsize=boxsize).fit(points)
    assert_array_equal(np.sort(emst.lengths_), emst.lengths_)
    lengths = (emst.lengths_[:-1:3] + emst.lengths_[1::3]) / 2
    for length in lengths[np.diff(emst.lengths_)[::3] > 0]:
        friends = FriendsOfFriends(length, min_members=1, boxsize=boxsize).fit(points)
        assert_array_equal(cut(emst.linkage_, height=length), friends.labels_)
        friends = FriendsOfFriends(length, min_members=4, boxsize=boxsize).fit(points)
        assert_array_equal(cut(emst.linkage_, height=length, min_size=4), friends.labels_)


def test_a_tree_is_that_of_scipy() -> None:
    emst, wanted = EMST().fit(X), minimum_spanning_tree(squareform(pdist(X)))
    np.testing.assert_allclose(emst.graph_.toarray(), np.triu(wanted.toarray() + wanted.toarray().T), rtol=1e-12)
    assert (emst.edges_[:, 0] < emst.edges_[:, 1]).all()
    assert_array_equal(HDBSCAN(min_samples=1).fit(X).minimum_spanning_tree_[:, 2], emst.lengths_)
    one = EMST().fit(X[:1])
    assert one.edges_.shape == (0, 2)
    assert one.lengths_.shape == (0,)
    assert one.graph_.shape == (1, 1)
    assert one.linkage_.shape == (0, 4)


def test_the_box_of_a_dataset() -> None:
    points = RNG.uniform(0, 5, (80, 2))
    ds = xr.Dataset({name: ("point", points[:, k]) for k, name in enumerate("xy")}, attrs={"boxsize": 5.0})
    assert_equal_results(HDBSCAN().fit(ds), HDBSCAN(boxsize=5.0).fit(points))
    assert_array_equal(EMST().fit(ds).edges_, EMST(boxsize=5.0).fit(points).edges_)
    assert not np.array_equal(EMST().fit(points).edges_, EMST(5.0).fit(points).edges_)


def test_one_spanning_tree_of_all_events() -> None:
    """`EMST` has no events: those of the data are no bounds of its tree."""
    X = np.random.default_rng(5).uniform(0, 9, (40, 2))
    table = {"x": X[:, 0], "y": X[:, 1], "event": np.arange(40) % 3}
    np.testing.assert_array_equal(EMST().fit(table).edges_, EMST().fit(X).edges_)
