"""scikit-learn's conventions; its own checks of estimators are in `test_systems.py`."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from daskclust import CLUE, DBSCAN, FriendsOfFriends, GaussianKernel


@pytest.fixture
def X():  # noqa: N802
    return np.random.default_rng(0).normal(size=(60, 2))


def test_parameters_are_stored_as_given():
    wrap, kernel = {1: 6.28}, GaussianKernel(0.5)
    clue = CLUE(1, 2, delta_c=3, kernel=kernel, wrap=wrap)
    assert clue.get_params() == {
        "dc": 1,
        "rhoc": 2,
        "delta_c": 3,
        "delta_o": None,
        "kernel": kernel,
        "neighbor_weight": 1.0,
        "wrap": wrap,
    }
    assert clone(clue).get_params() == clue.get_params()
    assert clue.set_params(dc=7).dc == 7


def test_pickle_and_fit_predict(X):
    clue = CLUE(0.5, 2.0, kernel="gaussian").fit(X)
    again = pickle.loads(pickle.dumps(clue))
    np.testing.assert_array_equal(again.labels_, clue.labels_)
    np.testing.assert_array_equal(again.rethreshold(rhoc=3.0).labels_, clue.rethreshold(rhoc=3.0).labels_)
    np.testing.assert_array_equal(CLUE(0.5, 2.0, kernel="gaussian").fit_predict(X), clue.labels_)


def test_zero_weights_are_zero_densities(X):
    clue = CLUE(0.5, 2.0).fit(X, sample_weight=np.zeros(len(X)))
    assert (clue.density_ == 0).all()
    assert (clue.labels_ == -1).all()


def test_rhoc_zero_makes_no_outliers(X):
    assert (CLUE(0.5, 0.0).fit(X).labels_ >= 0).all()


def test_parameters_of_dbscan_are_stored_as_given(X):
    boxsize = [None, 6.28]
    dbscan, friends = DBSCAN(1, min_samples=3, boxsize=boxsize), FriendsOfFriends(1, min_members=3, boxsize=boxsize)
    assert dbscan.get_params()["boxsize"] is boxsize
    assert friends.get_params() == {"linking_length": 1, "min_members": 3, "boxsize": boxsize}
    for estimator in (dbscan, friends):
        assert clone(estimator).get_params() == estimator.get_params()
        before = dict(estimator.get_params())
        assert estimator.fit(X) is estimator
        assert estimator.get_params() == before
        again = pickle.loads(pickle.dumps(estimator))
        np.testing.assert_array_equal(again.labels_, estimator.labels_)
        np.testing.assert_array_equal(again.components_, estimator.components_)
        np.testing.assert_array_equal(clone(estimator).fit_predict(X), estimator.labels_)
    assert dbscan.set_params(eps=7).eps == 7


def test_all_parameters_of_their_dbscan():
    """A grid of its parameters, and code that sets them by name, works with ours."""
    import sklearn.cluster

    theirs = sklearn.cluster.DBSCAN().get_params()
    assert DBSCAN().get_params() == {**theirs, "boxsize": None}
    assert DBSCAN(**theirs).get_params() == DBSCAN().get_params()


def test_zero_weights_make_no_core_points(X):
    fitted = DBSCAN(0.5).fit(X, sample_weight=np.zeros(len(X)))
    assert (fitted.labels_ == -1).all()
    assert fitted.n_clusters_ == 0
