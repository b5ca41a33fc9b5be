"""Agreement of clusterings, against scikit-learn and against loops."""

from __future__ import annotations

import math
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage
from sklearn.metrics import adjusted_rand_score, completeness_score, homogeneity_score

from daskclust import metrics

Case = tuple[np.ndarray, np.ndarray, np.ndarray]


@st.composite
def cases(draw: Any, least: int = -1, min_size: int = 0) -> Case:
    """Draw truth, labels and weights."""
    n = draw(st.integers(min_size, 40))
    sides = [np.array(draw(st.lists(st.integers(least, 4), min_size=n, max_size=n)), dtype=int) for _ in range(2)]
    weight = np.array(draw(st.lists(st.integers(0, 8), min_size=n, max_size=n)), dtype=float) / 4
    return sides[0], sides[1], weight


def share_by_loops(judged: np.ndarray, other: np.ndarray, weight: np.ndarray, noise: str) -> float:
    """Return the sum over clusters of the largest overlap, with noise as the module says."""
    matched, total = 0.0, 0.0
    for cluster in set(judged.tolist()):
        if noise == "ignore" and cluster == -1:
            continue
        inside = judged == cluster
        total += weight[inside].sum()
        partners = [p for p in set(other[inside].tolist()) if noise == "cluster" or p != -1]
        matched += max((weight[inside & (other == p)].sum() for p in partners), default=0.0)
    return matched / total if total > 0 else math.nan


@settings(deadline=None)
@given(case=cases(), noise=st.sampled_from(["ignore", "cluster"]), weighted=st.booleans())
def test_shares_equal_loops(case: Case, noise: Any, weighted: bool) -> None:
    truth, labels, weight = case
    given_weight = weight if weighted else None
    weight = weight if weighted else np.ones(len(truth))
    pure = metrics.purity(truth, labels, sample_weight=given_weight, noise=noise)
    complete = metrics.completeness(truth, labels, sample_weight=given_weight, noise=noise)
    assert pure == pytest.approx(share_by_loops(labels, truth, weight, noise), nan_ok=True)
    assert complete == pytest.approx(share_by_loops(truth, labels, weight, noise), nan_ok=True)
    assert type(pure) is type(complete) is float
    assert not pure < 0
    assert not pure > 1
    both = metrics.f_score(truth, labels, sample_weight=given_weight, noise=noise)
    if math.isnan(pure) and math.isnan(complete):
        assert math.isnan(both)
    elif math.isnan(pure) or math.isnan(complete) or pure + complete == 0:
        assert both == 0.0
    else:
        assert both == pytest.approx(2 * pure * complete / (pure + complete))


@settings(deadline=None)
@given(case=cases(least=0, min_size=1))
def test_one_exactly_where_scikit_learn_has_one(case: Case) -> None:
    truth, labels, _ = case
    assert (metrics.purity(truth, labels) == 1) == (homogeneity_score(truth, labels) > 1 - 1e-12)
    assert (metrics.completeness(truth, labels) == 1) == (completeness_score(truth, labels) > 1 - 1e-12)


@settings(deadline=None)
@given(case=cases())
def test_rand_index_equals_scikit_learn(case: Case) -> None:
    truth, labels, _ = case
    assert metrics.adjusted_rand_index(truth, labels, noise="cluster") == adjusted_rand_score(truth, labels)
    apart = [np.where(v < 0, 100 + np.arange(len(v)), v) for v in (truth, labels)]
    assert metrics.adjusted_rand_index(truth, labels) == adjusted_rand_score(*apart)


def iou_by_loops(a: np.ndarray, b: np.ndarray, above: float, noise: str) -> tuple[float, float]:
    """Return mean and fraction over all pairs of clusters as sets of points."""
    names = [sorted(set(side.tolist()) - ({-1} if noise == "ignore" else set())) for side in (a, b)]
    one, other = ([set(np.flatnonzero(side == k)) for k in ks] for side, ks in zip((a, b), names, strict=True))
    best = [
        max((len(mine & theirs) / len(mine | theirs) for theirs in others), default=0.0)
        for clusters, others in ((one, other), (other, one))
        for mine in clusters
    ]
    return (float(np.mean(best)), float(np.mean(np.array(best) > above))) if best else (math.nan, math.nan)


@settings(deadline=None)
@given(case=cases(), above=st.sampled_from([0.0, 0.5, 0.95, 1.0]), noise=st.sampled_from(["ignore", "cluster"]))
def test_iou_equals_loops(case: Case, above: float, noise: Any) -> None:
    a, b, _ = case
    found = metrics.cluster_iou(a, b, above=above, noise=noise)
    assert found == pytest.approx(iou_by_loops(a, b, above, noise), nan_ok=True)
    assert metrics.cluster_iou(b, a, above=above, noise=noise) == pytest.approx(found, rel=0, abs=0, nan_ok=True)
    assert [type(value) for value in found] == [float, float]
    lazy = da.from_array(b, chunks=max(1, len(b) // 3))
    assert metrics.cluster_iou(a, lazy, above=above, noise=noise) == pytest.approx(found, rel=0, abs=0, nan_ok=True)


def test_iou_of_what_has_no_clusters() -> None:
    assert metrics.cluster_iou([0, 0, 1], [4, 4, 2]) == (1.0, 1.0)
    assert metrics.cluster_iou([0, 0, 1], [-1, -1, -1]) == (0.0, 0.0)
    assert metrics.cluster_iou([0, 0, 0, 0], [0, 0, 0, -1]) == (0.75, 0.0)  # noise counts in the size
    for labels in ([], [-1, -1]):
        assert all(map(math.isnan, metrics.cluster_iou(labels, labels)))
    with pytest.raises(ValueError, match=r"equal lengths, got \{'labels_a': 2, 'labels_b': 1"):
        metrics.cluster_iou([0, 1], [0])
    for bad in (-0.1, 1.5, math.nan):
        with pytest.raises(ValueError, match="above must be"):
            metrics.cluster_iou([0], [0], above=bad)


@settings(deadline=None)
@given(case=cases(), shift=st.integers(1, 1000), seed=st.integers(0, 99))
def test_names_and_order_do_not_matter(case: Case, shift: int, seed: int) -> None:
    truth, labels, weight = case
    order = np.random.default_rng(seed).permutation(len(truth))
    other = np.where(labels < 0, labels, (labels * 7 + shift) ** 2)[order]
    for metric in (metrics.purity, metrics.completeness, metrics.f_score):
        expected = metric(truth, labels, sample_weight=weight)
        assert metric(truth[order], other, sample_weight=weight[order]) == pytest.approx(expected, nan_ok=True)
    expected = metrics.adjusted_rand_index(truth, labels)
    assert metrics.adjusted_rand_index(truth[order], other) == pytest.approx(expected)


def test_what_noise_means() -> None:
    truth, labels = [0, 0, 0, 0, -1, -1], [0, 0, -1, -1, 0, -1]
    assert metrics.purity(truth, labels) == pytest.approx(2 / 3)
    assert metrics.completeness(truth, labels) == pytest.approx(2 / 4)
    assert metrics.purity(truth, labels, noise="cluster") == pytest.approx(4 / 6)
    assert math.isnan(metrics.purity([0, 1], [-1, -1]))
    assert metrics.completeness([0, 1], [-1, -1]) == 0.0
    assert metrics.f_score([0, 1], [-1, -1]) == 0.0
    assert math.isnan(metrics.f_score([-1, -1], [-1, -1]))
    assert math.isnan(metrics.purity([], []))
    assert metrics.adjusted_rand_index([-1, -1, 0, 0], [-1, -1, 0, 0]) == 1.0


@pytest.mark.parametrize("metric", [metrics.purity, metrics.completeness, metrics.f_score, metrics.adjusted_rand_index])
def test_wrong_labels(metric: Any) -> None:
    with pytest.raises(ValueError, match=r"equal lengths, got \{'truth': 2, 'labels': 1"):
        metric([0, 1], [0])
    with pytest.raises(ValueError, match=r"labels must be integers, got dtype float64; use .astype\(int\)"):
        metric([0], [0.5])
    with pytest.raises(ValueError, match=r"truth must be -1 \(noise\) or larger, got -2 at index 1"):
        metric([0, -2], [0, 0])
    with pytest.raises(ValueError, match="noise must be 'ignore' or 'cluster', got 'drop'"):
        metric([0], [0], noise="drop")
    for bad in ([1.0, -1.0], [1.0, math.inf], [1.0], [[1.0]]) if metric is not metrics.adjusted_rand_index else ():
        with pytest.raises(ValueError, match="sample_weight"):
            metric([0, 0], [0, 0], sample_weight=bad)


# ---------------------------------------------------------------------------------------------------------- hierarchies
@pytest.mark.parametrize("n", [3, 40, 500])
def test_correlation_of_point_heights(n: int) -> None:
    X = np.random.default_rng(n).normal(size=(n, 3))
    Z1, Z2 = (linkage(X, method) for method in ("centroid", "average"))
    expected = np.corrcoef(metrics.point_heights(Z1), metrics.point_heights(Z2))[0, 1]
    assert metrics.point_height_correlation(Z1, Z2) == pytest.approx(expected, abs=1e-12)
    assert metrics.point_height_correlation(Z2, Z1) == metrics.point_height_correlation(Z1, Z2)
    scaled = Z1 * [1, 1, 1e-200, 1]
    assert metrics.point_height_correlation(Z1, scaled) == pytest.approx(1.0)
    assert type(metrics.point_height_correlation(Z1, Z1)) is float


def test_point_heights_without_a_correlation() -> None:
    one, two = np.empty((0, 4)), [[0, 1, 2.0, 2]]
    assert math.isnan(metrics.point_height_correlation(one, one))
    assert math.isnan(metrics.point_height_correlation(two, two))
    with pytest.raises(ValueError, match="must be of the same points, got 1 and 2"):
        metrics.point_height_correlation(one, two)
