"""New points take the label of the nearest core point within eps, of equally near ones the smallest."""

import awkward as ak
import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskclust import DBSCAN, FriendsOfFriends


def expected_of(X, model, new, eps, side):
    core, labels = X[model.is_core_], model.labels_[model.is_core_]
    step = np.abs(new[:, None] - core)
    step = np.minimum(step, side - step) if side else step
    d2 = (step * step).sum(axis=2)
    nearest = d2.min(axis=1, initial=np.inf)
    own = [labels[row == least].min() if least <= eps**2 else -1 for row, least in zip(d2, nearest, strict=True)]
    return np.array(own, np.int64)


@given(n=st.integers(1, 80), seed=st.integers(0, 10**6), d=st.integers(1, 4), side=st.sampled_from([None, 8.0]))
def test_predict_is_brute_force(n, seed, d, side):
    rng = np.random.default_rng(seed)
    X, new = rng.integers(0, 16, (n, d)) / 2, rng.integers(0, 16, (30, d)) / 2
    for model in (DBSCAN(1.0, min_samples=3, boxsize=side), FriendsOfFriends(1.0, boxsize=side)):
        labels = model.fit(X).predict(new)
        np.testing.assert_array_equal(labels, expected_of(X, model, new, 1.0, side))
        core = model.is_core_
        if core.any():
            np.testing.assert_array_equal(model.predict(X[core]), model.labels_[core])


def test_predict_on_dask_is_that_in_memory():
    rng = np.random.default_rng(3)
    X, new = rng.normal(0, 2, (400, 2)), rng.normal(0, 3, (300, 2))
    expected = DBSCAN(0.5).fit(X).predict(new)
    assert len(set(expected.tolist())) > 2
    for fitted in (X, da.from_array(X, chunks=(130, 2))):
        model = DBSCAN(0.5).fit(fitted)
        for given_points in (new, da.from_array(new, chunks=((1, 199, 0, 100), 2))):
            labels = model.predict(given_points)
            assert isinstance(labels, np.ndarray if fitted is X and given_points is new else da.Array)
            np.testing.assert_array_equal(np.asarray(labels), expected)


def test_parameters_of_the_fit_count():
    model = FriendsOfFriends(1.0).fit(np.array([[0.0], [1.0]]))
    model.set_params(linking_length=0.1, metric="haversine")
    assert model.predict([[2.0], [2.1]]).tolist() == [0, -1]
    sphere = FriendsOfFriends(1.0, metric="haversine", units="degrees").fit([[0.0, 0.0], [0.0, 1.0]])
    for changed in ({"units": "radians"}, {"metric": "euclidean"}):
        assert sphere.set_params(**changed).predict([[0.0, 359.5], [0.0, 2.5]]).tolist() == [0, -1]


@pytest.mark.parametrize("estimator", [DBSCAN(1.0), FriendsOfFriends(1.0)], ids=str)
def test_flat_awkward_points_are_one_set(estimator):
    X, new = np.random.default_rng(0).normal(0, 3, (2, 200, 2))
    flat, flat_new = (ak.zip({"x": points[:, 0], "y": points[:, 1]}) for points in (X, new))
    expected = estimator.fit(X).predict(new)
    for fitted in (X, flat):
        labels = estimator.fit(fitted).predict(flat_new)
        assert isinstance(labels, ak.Array)
        np.testing.assert_array_equal(labels, expected)
        np.testing.assert_array_equal(estimator.predict(new), expected)
        with pytest.raises(TypeError, match="one set, got events"):
            estimator.predict(ak.unflatten(flat_new, [50, 150]))


def test_messages():
    with pytest.raises(ValueError, match="is not fitted yet"):
        DBSCAN().predict([[0.0]])
    model = DBSCAN().fit(np.zeros((9, 2)))
    with pytest.raises(ValueError, match="X has 3 features, but DBSCAN is expecting 2"):
        model.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="X has 3 features, but DBSCAN is expecting 2"):
        model.predict(da.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"X\[1, 0\] = inf"):
        model.predict([[0.0, 0.0], [np.inf, 0.0]])
