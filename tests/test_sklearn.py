"""scikit-learn's own checks of estimators, and its conventions."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from daskclust import CLUE, GaussianKernel

EXCEPTIONS = {
    "check_all_zero_sample_weights_error": "weights of zero have a right answer here, densities of zero",
}


@parametrize_with_checks([CLUE(1.0, 2.0)], expected_failed_checks=lambda estimator: EXCEPTIONS)
def test_estimator_checks(estimator, check):
    check(estimator)


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
