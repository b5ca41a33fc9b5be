"""Equal points in DBSCAN: the labels are those of each by itself, the cost is that of the places."""

import numpy as np
import pytest
from cases.lanes import quick_first

from daskclust import DBSCAN, FriendsOfFriends


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
