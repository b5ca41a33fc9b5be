"""F1 of populations, against all matchings and scikit-learn's precision and recall."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_recall_fscore_support

from daskclust import metrics

labels_of_points = st.integers(0, 40).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(-1, 3), min_size=n, max_size=n)] * 2)
)


def scores(truth: np.ndarray, labels: np.ndarray) -> tuple[list[int], list[int], dict[tuple[int, int], Any]]:
    """Return populations, clusters and scikit-learn's precision, recall and F1 of each pair, of gated points."""
    truth, labels = truth[truth >= 0], labels[truth >= 0]
    sides = [sorted({*side.tolist()} - {-1}) for side in (truth, labels)]
    how = {"average": "binary", "zero_division": 0.0}
    pairs = {
        (p, c): precision_recall_fscore_support(truth == p, labels == c, **how)[:3] for p in sides[0] for c in sides[1]
    }
    return sides[0], sides[1], pairs


@settings(max_examples=60, deadline=None)
@given(labels_of_points)
def test_each_population_is_scored_as_scikit_learn_scores_its_cluster(drawn: tuple[list[int], list[int]]) -> None:
    truth, labels = (np.array(side, dtype=int) for side in drawn)
    populations, clusters, pairs = scores(truth, labels)
    one, best = metrics.population_f1(truth, labels), metrics.population_f1(truth, labels, match="best")
    for found in (one, best):
        assert found.population.tolist() == populations
        assert found.size.tolist() == [int((truth == p).sum()) for p in populations]
        wanted = [(0, 0, 0) if c < 0 else pairs[p, c] for p, c in zip(populations, found.cluster.tolist(), strict=True)]
        got = np.column_stack([found.precision, found.recall, found.f1])
        np.testing.assert_allclose(got, np.reshape(wanted, (len(got), 3)), rtol=1e-14)
        if populations:
            assert found.mean == pytest.approx(found.f1.mean())
            assert found.weighted_mean == pytest.approx(np.average(found.f1, weights=found.size))
    used = one.cluster[one.cluster >= 0].tolist()
    assert len(used) == len(set(used))
    choices = permutations([*clusters, *[None] * len(populations)], len(populations))
    largest = max(
        sum(pairs[p, c][2] for p, c in zip(populations, each, strict=True) if c is not None) for each in choices
    )
    assert one.f1.sum() == pytest.approx(largest)
    for p, c, value in zip(populations, best.cluster.tolist(), best.f1.tolist(), strict=True):
        values = [pairs[p, k][2] for k in clusters]
        assert value == pytest.approx(max(values, default=0.0))
        assert c == (clusters[int(np.argmax(values))] if value else -1)


def test_a_relabelled_clustering_has_the_macro_average_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 6, 3000)
    labels = np.where(rng.random(3000) < 0.8, (truth + 2) % 6 + 10, rng.integers(10, 16, 3000))
    found = metrics.population_f1(da.from_array(truth, chunks=700), labels)
    to_truth = dict(zip(found.cluster.tolist(), found.population.tolist(), strict=True))
    named = np.array([to_truth[label] for label in labels.tolist()])
    assert found.mean == pytest.approx(f1_score(truth, named, average="macro"))
    assert found.weighted_mean == pytest.approx(f1_score(truth, named, average="weighted"))


def test_a_missed_rare_population_shows_in_the_mean() -> None:
    truth = np.repeat([0, 1, -1], [990, 10, 50])
    found = metrics.population_f1(truth, np.zeros(1050, int))
    assert found.f1.tolist() == [2 * 990 / 1990, 0.0]
    assert found.cluster.tolist() == [0, -1]
    assert found.mean < 0.5 < 0.99 < metrics.f_score(truth[:1000], np.zeros(1000, int))
    assert np.isnan(metrics.population_f1([-1, -1], [0, 1]).mean)
    assert metrics.population_f1([0, 0], [-1, -1]).mean == 0.0


def test_an_unknown_match_is_refused() -> None:
    with pytest.raises(ValueError, match="match must be 'one-to-one' or 'best', got 'hungarian'"):
        metrics.population_f1([0], [0], match="hungarian")  # type: ignore[arg-type]
