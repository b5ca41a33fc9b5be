"""The condensed tree and what is selected of it, by definition and for any order of points."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from oracles import hdbscan_brute
from scipy.cluster import hierarchy

from daskclust import HDBSCAN
from daskclust.core.hierarchy import check_linkage, single_linkage
from daskclust.core.merge.labels import same_partition
from daskclust.hdbscan.condensed import Selection, as_table, condensed_tree, labels_of, walk_down


def tied(kind: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return points with many equal distances, two groups of different density."""
    X = np.concatenate([rng.normal(0, 1, (n // 2, d)), rng.normal(5, 3, (n - n // 2, d))])
    match kind:
        case "lattice":
            return rng.integers(0, 6, (n, d)).astype(float)
        case "duplicates":
            return X[rng.integers(0, n // 2, n)]
        case "rounded":
            return np.round(X, 1)
        case "coarse":
            return np.round(X)
        case "line":
            return np.sort(rng.integers(0, 3 * n, n))[:, None] * np.ones(d)
        case "two scales":
            return np.concatenate([np.round(X[: n // 2]), 0.01 * np.round(X[n // 2 :])])
    return X


KINDS = "lattice", "duplicates", "rounded", "coarse", "line", "two scales", "free"
HOW: list[dict[str, Any]] = [
    {},
    {"method": "leaf"},
    {"single": True},
    {"epsilon": 0.8},
    {"method": "leaf", "epsilon": 1.0},
    {"single": True, "epsilon": 2.0},
    {"most": 9},
]
NAMES = {
    "method": "cluster_selection_method",
    "epsilon": "cluster_selection_epsilon",
    "most": "max_cluster_size",
    "single": "allow_single_cluster",
}


def parameters(how: dict[str, Any]) -> dict[str, Any]:
    return {NAMES[name]: value for name, value in how.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 15), marks=pytest.mark.slow)], ids=["few", "many"])
def test_equals_the_definition(kind: str, seeds: range) -> None:
    for seed in seeds:
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        n, d = int(rng.integers(2, 42)), int(rng.integers(1, 4))
        X = tied(kind, n, d, rng)
        samples = int(rng.integers(1, min(n, 7) + 1))
        heights = hdbscan_brute.mutual_reachability(X, samples)
        fitted = HDBSCAN(2, min_samples=samples).fit(X)
        for least, how in itertools.product((2, 3, 5), HOW):
            found = fitted.rethreshold(min_cluster_size=least, **parameters(how))
            labels, probability, score = hdbscan_brute.hdbscan(heights, least, **how)
            np.testing.assert_array_equal(found.labels_, labels, err_msg=f"{seed} {least} {how}")
            np.testing.assert_array_equal(found.probabilities_, probability)
            np.testing.assert_array_equal(found.outlier_scores_, score)
            assert found.n_clusters_ == labels.max() + 1


@pytest.mark.parametrize("kind", KINDS)
def test_order_of_points_changes_nothing(kind: str) -> None:
    """To the last bit, in 20 orders; merges one by one depend on it where lengths, too, are equal."""
    rng = np.random.default_rng(KINDS.index(kind))
    X = tied(kind, 120, 2, rng)
    cases = list(itertools.product((1, 4, 10), (3, 8), HOW[:4]))
    wanted = [HDBSCAN(least, min_samples=samples, **parameters(how)).fit(X) for samples, least, how in cases]
    others = 0
    for _ in range(20):
        order = rng.permutation(len(X))
        trees = {samples: HDBSCAN(min_samples=samples).fit(X[order]) for samples in (1, 4, 10)}
        for (samples, least, how), before in zip(cases, wanted, strict=True):
            found = trees[samples].rethreshold(min_cluster_size=least, **parameters(how))
            assert same_partition(found.labels_, before.labels_[order])
            np.testing.assert_array_equal(found.probabilities_, before.probabilities_[order])
            np.testing.assert_array_equal(found.outlier_scores_, before.outlier_scores_[order])
            if not how:
                one, two = (
                    labels_of(condensed_tree(walk, least, at_once=False), Selection())["labels"]
                    for walk in (walk_down(each.single_linkage_tree_) for each in (before, found))
                )
                others += not same_partition(two, one[order])
    assert (others > 0) == (kind not in ("duplicates", "free"))


def some_tree(heights: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a minimum spanning tree by Kruskal's rule, of equal edges those that come first at random."""
    a, b = np.triu_indices(len(heights), 1)
    sets, edges = np.arange(len(heights)), []
    for k in np.lexsort((rng.random(len(a)), heights[a, b])):
        if sets[a[k]] != sets[b[k]]:
            sets[sets == sets[b[k]]] = sets[a[k]]
            edges.append((a[k], b[k]))
    found = np.array(edges)
    return found, heights[found[:, 0], found[:, 1]]


@pytest.mark.parametrize("kind", KINDS)
def test_any_minimum_spanning_tree_serves(kind: str) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    X = tied(kind, 60, 2, rng)
    heights, fitted = hdbscan_brute.mutual_reachability(X, 5), HDBSCAN(4, min_samples=5).fit(X)
    trees = []
    for _ in range(5):
        edges, lengths = some_tree(heights, rng)
        trees.append(edges)
        Z = check_linkage(single_linkage(edges, lengths))
        np.testing.assert_array_equal(Z[:, 2], fitted.single_linkage_tree_[:, 2])
        found = labels_of(condensed_tree(walk_down(Z), 4), Selection())
        np.testing.assert_array_equal(found["labels"], fitted.labels_)
        np.testing.assert_array_equal(found["probability"], fitted.probabilities_)
        np.testing.assert_array_equal(found["outlier_score"], fitted.outlier_scores_)
        np.testing.assert_array_equal(as_table(condensed_tree(walk_down(Z), 4)), fitted.condensed_tree_)
    assert any(not np.array_equal(edges, trees[0]) for edges in trees)


def test_linkage_is_that_of_scipy() -> None:
    X = np.random.default_rng(3).normal(0, 1, (200, 3))
    fitted, wanted = HDBSCAN(min_samples=1).fit(X), hierarchy.linkage(X, "single")
    np.testing.assert_allclose(fitted.single_linkage_tree_, wanted, rtol=1e-12)
    for k in (1, 2, 5):
        assert single_linkage(np.empty((0, 2)), []).shape == (0, 4)
        np.testing.assert_array_equal(
            hierarchy.fcluster(fitted.single_linkage_tree_, k, "maxclust"), hierarchy.fcluster(wanted, k, "maxclust")
        )


def test_rows_of_the_tree() -> None:
    """Each point and each cluster but the root has one row, and clusters the points of theirs."""
    for kind, least in itertools.product(KINDS, (2, 3, 7)):
        X = tied(kind, 90, 2, np.random.default_rng(7))
        fitted = HDBSCAN(least, min_samples=3).fit(X)
        rows, tree = fitted.condensed_tree_, fitted._condensed
        n, last = len(X), rows["child"].max()
        last = max(last, n)
        np.testing.assert_array_equal(np.sort(rows["child"]), np.delete(np.arange(last + 1), n))
        assert (rows["parent"] >= n).all()
        assert (np.diff(rows["parent"]) >= 0).all()
        is_cluster = rows["child"] >= n
        assert (rows["child"] > rows["parent"])[is_cluster].all()
        sums = np.bincount(rows["parent"] - n, rows["child_size"], last - n + 1)
        np.testing.assert_array_equal(sums[rows["child"][is_cluster] - n], rows["child_size"][is_cluster])
        assert sums[0] == n
        born = np.bincount(rows["parent"][is_cluster] - n)
        assert set(born) <= {0, 2}  # others read pairs only
        births = np.append(0.0, rows["lambda_val"][is_cluster][np.argsort(rows["child"][is_cluster])])
        assert (rows["lambda_val"] >= births[rows["parent"] - n]).all()
        np.testing.assert_array_equal(np.sort(rows["lambda_val"][~is_cluster]), np.sort(tree.left))


def test_many_clusters_born_at_once() -> None:
    """Five groups at equal distances are five clusters, not the four and then fewer that pairs of merges give."""
    angles = np.arange(5) * 100.0
    X = (angles[:, None] + np.arange(4)).ravel()[:, None]
    fitted = HDBSCAN(4, min_samples=1).fit(X)
    np.testing.assert_array_equal(fitted.labels_, np.repeat(np.arange(5), 4))
    rows = fitted.condensed_tree_
    clusters = rows[rows["child"] >= 20]
    np.testing.assert_array_equal(clusters["child_size"], [4, 16, 4, 12, 4, 8, 4, 4])
    np.testing.assert_array_equal(clusters["parent"], [20, 20, 22, 22, 24, 24, 26, 26])
    assert len(np.unique(clusters["lambda_val"])) == 1


def test_equal_points_are_no_birth() -> None:
    """At no distance at all nothing is born, and densities are infinite: no NaN comes of that."""
    X = np.repeat([[0.0], [1.0], [5.0], [7.0]], [6, 6, 1, 6], axis=0)
    fitted = HDBSCAN(3, min_samples=1).fit(X)
    np.testing.assert_array_equal(fitted.labels_, np.repeat([0, 1, 2], [6, 6, 7]))
    np.testing.assert_array_equal(fitted.probabilities_, X[:, 0] != 5)
    np.testing.assert_array_equal(fitted.outlier_scores_, X[:, 0] == 5)
    same = HDBSCAN(3).fit(np.zeros((9, 2)))
    assert (same.labels_ == -1).all()
    assert (same.rethreshold(allow_single_cluster=True).labels_ == 0).all()
