"""Equal points in DBSCAN: the labels are those of each by itself, the cost is that of the places."""

from __future__ import annotations

import numpy as np
import pytest
from cases.dbscan import Case, as_sklearn, assert_answer
from cases.lanes import every_shape, quick_first
from hypothesis import given
from hypothesis import strategies as st

from daskclust import DBSCAN, FriendsOfFriends


@st.composite
def cases(draw):
    """Draw points in few places, with weights that are added exactly, and friends-of-friends."""
    n, d, places = draw(st.integers(1, 90)), draw(st.sampled_from([2, 5])), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = (rng.integers(-4, 5, (places, d)) / 2)[rng.integers(0, places, n)]
    few = draw(st.integers(0, n))
    X[:few] += rng.integers(0, 2, (few, 1)) / 4
    weight = draw(st.sampled_from([None, rng.integers(0, 9, n) / 4, rng.integers(-3, 9, n) / 4, rng.random(n) / 8]))
    friends = draw(st.sampled_from([None, None, 3])) if weight is None else None
    period = draw(st.sampled_from([(), (3.0,) * d]))
    return Case(X[rng.permutation(n)], 1.0, draw(st.sampled_from([1, 2, 3, 12])), weight, period, friends)


@every_shape
@given(cases(), st.integers(5, 90))
def test_labels_are_those_of_each_point(case, rows):
    wanted = case.answer()
    assert_answer(case.fit(), wanted)
    assert_answer(case.chunked(rows, case.partition([0.0, 1.0])), wanted)
    if case.weight is None and case.min_members is None and not case.period:
        assert_answer(case.fit(), as_sklearn(case.X, case.eps, case.min_samples))


@pytest.mark.parametrize(("d", "weights"), quick_first([(2, None), (3, "of both signs"), (5, "small"), (5, None)], 2))
def test_any_number_of_equal_points(d, weights):
    """Where each looks at all others of its place, this takes hours: a million points at a few hundred places."""
    n = 1_000_000
    rng = np.random.default_rng(d)
    places = rng.integers(-8, 8, (300, d)).astype(float)
    at = np.where(rng.random(n) < 0.5, 0, rng.integers(0, 300, n))
    weight = {None: None, "small": np.full(n, 2.0**-12), "of both signs": rng.integers(-1, 3, n) / 4}[weights]
    counts = np.bincount(at) if weight is None else np.bincount(at, weight)
    fitted = DBSCAN(1.0, min_samples=2000 if weight is None else 1).fit(places[at], sample_weight=weight)
    of_places = DBSCAN(1.0, min_samples=2000 if weight is None else 1).fit(places, sample_weight=counts)
    # the same sets; labels are by the first core point of each
    first = np.unique(at, return_index=True)[1]
    np.testing.assert_array_equal(fitted.is_core_, of_places.is_core_[at])
    np.testing.assert_array_equal(fitted.labels_, fitted.labels_[first][at])
    np.testing.assert_array_equal(fitted.labels_[first] < 0, of_places.labels_ < 0)
    if weight is None:
        friends = FriendsOfFriends(1.0).fit(places[at])
        np.testing.assert_array_equal(friends.labels_, friends.labels_[first][at])
