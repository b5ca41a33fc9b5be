"""What the packages hdbscan, fast_hdbscan and scikit-learn answer: the same without ties, and why not with them."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import cluster

from daskclust import HDBSCAN
from daskclust.core.merge.labels import same_partition
from daskclust.hdbscan.condensed import Selection, condensed_tree, labels_of, walk_down

METHODS = "eom", "leaf"
SETS = 12
FLOAT32 = 2.0**-22  # three roundings: of two densities and their ratio


@functools.cache
def points(seed: int) -> np.ndarray:
    """Return groups of different densities and sizes in noise, no two distances of which are equal."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    sizes, scales = rng.integers(8, 60, 4), rng.uniform(0.2, 2, 4)
    groups = [rng.normal(rng.uniform(-9, 9, d), scale, (n, d)) for n, scale in zip(sizes, scales, strict=True)]
    return np.concatenate([*groups, rng.uniform(-15, 15, (40, d))])


def linkage_of_scikit_learn(fitted: Any) -> np.ndarray:
    tree = fitted._single_linkage_tree_
    return np.column_stack([tree[name] for name in ("left_node", "right_node", "value", "cluster_size")]).astype(float)


def by_scikit_learn(X: np.ndarray, least: int, samples: int, method: str) -> tuple[Any, np.ndarray]:
    fitted = cluster.HDBSCAN(least, min_samples=samples, cluster_selection_method=method, copy=True).fit(X)
    return fitted, linkage_of_scikit_learn(fitted)


def by_hdbscan(X: np.ndarray, least: int, samples: int, method: str) -> tuple[Any, np.ndarray]:
    """The point itself does not count there; so its 1 is 2 here, as is 1, whose distances are the same."""
    import hdbscan

    how = {"cluster_selection_method": method, "algorithm": "prims_kdtree"}
    fitted = hdbscan.HDBSCAN(least, min_samples=max(samples - 1, 1), **how).fit(X)
    return fitted, fitted.single_linkage_tree_.to_numpy()


def by_fast_hdbscan(X: np.ndarray, least: int, samples: int, method: str) -> tuple[Any, np.ndarray]:
    import fast_hdbscan

    how = {"min_cluster_size": least, "min_samples": max(samples - 1, 1), "cluster_selection_method": method}
    fitted = fast_hdbscan.HDBSCAN(**how).fit(X)
    return fitted, np.asarray(fitted._single_linkage_tree, float)


PEERS = {"scikit-learn": by_scikit_learn, "hdbscan": by_hdbscan, "fast_hdbscan": by_fast_hdbscan}
every_peer = pytest.mark.parametrize("peer", PEERS)


@pytest.fixture(autouse=True)
def _their_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def answer(Z: np.ndarray, least: int, method: str, peer: str, at_once: bool) -> dict[str, Any]:
    """Return our results for a linkage, and probabilities by fast_hdbscan's rule if it is of that.

    There the density at which a cluster ends is that at which its last single point leaves it, so a split is no end.
    """
    tree = condensed_tree(walk_down(Z), least, at_once)
    if peer == "fast_hdbscan":
        last = np.full(len(tree.death), 1e-300)
        np.maximum.at(last, tree.cluster, tree.left)
        tree = tree._replace(death=last)
    return labels_of(tree, Selection(method == "eom"))


@every_peer
@pytest.mark.parametrize("samples", [1, 2])
def test_without_ties_all_are_equal(peer: str, samples: int) -> None:
    for seed in range(SETS):
        X = points(seed)
        fitted = HDBSCAN(min_samples=samples).fit(X)
        for least in (3, 5, 12):
            for method in METHODS:
                theirs, Z = PEERS[peer](X, least, samples, method)
                ours = fitted.rethreshold(min_cluster_size=least, cluster_selection_method=method)
                assert same_partition(ours.labels_, theirs.labels_)
                if peer == "fast_hdbscan":
                    probability = answer(Z, least, method, peer, at_once=True)["probability"]
                    assert_allclose(theirs.probabilities_, probability, rtol=FLOAT32)
                else:
                    assert_allclose(ours.probabilities_, theirs.probabilities_, rtol=0, atol=1e-12)


@every_peer
def test_their_trees_give_our_labels_and_ours_merge_by_merge_theirs(peer: str) -> None:
    differ = 0
    for seed in range(SETS):
        X = points(seed)
        for samples in (3, 5, 10):
            fitted = HDBSCAN(min_samples=samples).fit(X)
            for least in (3, 8):
                for method in METHODS:
                    theirs, Z = PEERS[peer](X, least, samples, method)
                    ours = fitted.rethreshold(min_cluster_size=least, cluster_selection_method=method)
                    at_once, one_by_one = (answer(Z, least, method, peer, way) for way in (True, False))
                    assert_array_equal(at_once["labels"], ours.labels_)
                    assert same_partition(one_by_one["labels"], theirs.labels_)
                    if peer == "fast_hdbscan":
                        assert_allclose(theirs.probabilities_, one_by_one["probability"], rtol=FLOAT32)
                    else:
                        assert_allclose(at_once["probability"], ours.probabilities_, rtol=0, atol=1e-12)
                        assert_allclose(one_by_one["probability"], theirs.probabilities_, rtol=0, atol=1e-12)
                    differ += not same_partition(ours.labels_, theirs.labels_)
    assert differ > 10


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("single", [False, True])
def test_epsilon_sizes_and_single_clusters_are_those_of_hdbscan(method: str, single: bool) -> None:
    import hdbscan

    found = []
    for seed in range(SETS):
        X = points(seed)
        fitted = HDBSCAN(5, min_samples=2, cluster_selection_method=method, allow_single_cluster=single).fit(X)
        every: list[dict[str, Any]] = [{"cluster_selection_epsilon": eps} for eps in (0.1, 0.5, 1.1, 3.0, 9.0)]
        for changed in (*every, {"max_cluster_size": 30}):
            how = {"cluster_selection_method": method, "allow_single_cluster": single, **changed}
            theirs = hdbscan.HDBSCAN(5, min_samples=1, algorithm="prims_kdtree", **how).fit(X)
            ours = fitted.rethreshold(**changed)
            if single and "max_cluster_size" in changed and ours.n_clusters_ == 1:
                continue  # the root has all points; there only those of its two children
            assert same_partition(ours.labels_, theirs.labels_), (seed, changed)
            assert_allclose(ours.probabilities_, theirs.probabilities_, rtol=0, atol=1e-12)
            found.append(ours.n_clusters_)
    assert len(set(found)) > 3


def test_outlier_scores_and_trees_are_those_of_hdbscan() -> None:
    for seed in range(SETS):
        X = points(seed)
        theirs, _ = by_hdbscan(X, 5, 2, "eom")
        ours = HDBSCAN(5, min_samples=2).fit(X)
        assert_allclose(ours.outlier_scores_, theirs.outlier_scores_, rtol=0, atol=1e-9)
        wanted, rows = theirs.condensed_tree_.to_numpy(), ours.condensed_tree_
        assert len(rows) == len(wanted)
        for a, b in ((rows, wanted),):
            for name in ("lambda_val", "child_size"):
                assert_allclose(np.sort(a[name]), np.sort(b[name]), rtol=1e-9)
        left = np.empty((2, len(X)))
        for each, tree in zip(left, (rows, wanted), strict=True):
            is_point = tree["child"] < len(X)
            each[tree["child"][is_point]] = tree["lambda_val"][is_point]
        assert_allclose(left[0], left[1], rtol=1e-9)


@pytest.mark.parametrize("kind", ["free", "lattice", "groups"])
def test_plots_of_hdbscan_read_the_trees(kind: str) -> None:
    plots = pytest.importorskip("hdbscan.plots")
    plt = pytest.importorskip("matplotlib.pyplot")
    X = {
        "free": points(0),
        "lattice": np.random.default_rng(0).integers(0, 12, (200, 2)).astype(float),
        "groups": (100 * np.arange(5)[:, None] + np.arange(4)).reshape(-1, 1).astype(float),  # born at once
    }[kind]
    fitted = HDBSCAN(4, min_samples=2).fit(X)
    for axis in (
        plots.CondensedTree(fitted.condensed_tree_, fitted.labels_).plot(select_clusters=kind != "lattice"),
        plots.SingleLinkageTree(fitted.single_linkage_tree_).plot(),
    ):
        assert axis.patches or axis.lines or axis.collections
        plt.close(axis.figure)
    tree = plots.CondensedTree(fitted.condensed_tree_, fitted.labels_)
    assert len(tree.to_pandas()) == len(fitted.condensed_tree_)
