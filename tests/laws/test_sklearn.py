"""scikit-learn's conventions; its own checks of estimators are in `test_systems.py`, with copies and pickles."""

import pickle

import numpy as np
import pytest
import sklearn.cluster
from sklearn.base import clone

from daskclust import CLUE, DBSCAN, FriendsOfFriends, GaussianKernel

X = np.random.default_rng(0).normal(size=(60, 2))


@pytest.mark.parametrize(
    "estimator",
    [
        CLUE(1, 2, delta_c=3, kernel=GaussianKernel(0.5), wrap={1: 6.28}),
        DBSCAN(1, min_samples=3, boxsize=[None, 6.28]),
        FriendsOfFriends(1, min_members=3, boxsize=[None, 6.28]),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_parameters_are_stored_as_given(estimator):
    before = dict(estimator.get_params())
    assert clone(estimator).get_params() == before  # it refuses parameters that are copied
    assert estimator.fit(X) is estimator
    assert all(estimator.get_params()[name] is value for name, value in before.items())
    name = next(iter(before))
    assert estimator.set_params(**{name: 7}).get_params()[name] == 7


def test_a_pickle_can_be_cut_anew():
    clue = CLUE(0.5, 2.0, kernel="gaussian").fit(X)
    again = pickle.loads(pickle.dumps(clue))
    np.testing.assert_array_equal(again.rethreshold(rhoc=3.0).labels_, clue.rethreshold(rhoc=3.0).labels_)


def test_all_parameters_of_their_dbscan():
    """A grid of its parameters, and code that sets them by name, works with ours."""
    theirs = sklearn.cluster.DBSCAN().get_params()
    assert DBSCAN().get_params() == {**theirs, "boxsize": None}
    assert DBSCAN(**theirs).get_params() == DBSCAN().get_params()


@pytest.mark.parametrize("estimator", [CLUE(0.5, 2.0), DBSCAN(0.5)], ids=lambda estimator: type(estimator).__name__)
def test_weights_of_zero_make_noise(estimator):
    fitted = estimator.fit(X, sample_weight=np.zeros(len(X)))
    assert (fitted.labels_ == -1).all()
    assert fitted.n_clusters_ == 0
    assert not np.any(getattr(fitted, "density_", 0))


def test_rhoc_zero_makes_no_outliers():
    assert (CLUE(0.5, 0.0).fit(X).labels_ >= 0).all()
