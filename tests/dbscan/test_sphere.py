"""Points of a sphere, against scikit-learn's haversine distance."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from cases.dbscan import assert_answer, results
from cases.lanes import some_of
from dask.array.utils import assert_eq
from sklearn import cluster

from daskclust import DBSCAN, FriendsOfFriends


def places(seed, n=900):
    """Return latitudes and longitudes in degrees, many of them near the poles and the date line."""
    rng = np.random.default_rng(seed)
    lat, lon = np.degrees(np.arcsin(rng.uniform(-1, 1, n))), rng.uniform(-180, 180, n)
    part = n // 6
    lat[:part] = 90 - rng.exponential(2, part)
    lat[part : 2 * part] = rng.exponential(2, part) - 90
    lat[2 * part : 3 * part] = rng.normal(0, 5, part)
    lon[2 * part : 3 * part] = rng.choice([-180, 180], part) + rng.normal(0, 2, part)
    return np.stack([lat, lon % 360 if seed % 2 else lon], axis=1)


@some_of(12, seed=range(6), eps=[0.5, 3.0, 40.0, 179.0, 200.0], min_samples=[2, 5])
def test_labels_are_those_of_scikit_learn(seed, eps, min_samples):
    X = places(seed)
    theirs = cluster.DBSCAN(eps=np.radians(eps), min_samples=min_samples, metric="haversine").fit(np.radians(X))
    degrees = DBSCAN(eps, min_samples=min_samples, metric="haversine", units="degrees")
    radians = DBSCAN(np.radians(eps), min_samples=min_samples, metric="haversine")
    chunked = da.from_array(X, chunks=(200, 1))
    fits = [degrees.fit(X), radians.fit(np.radians(X)), degrees.fit(chunked, partition="space")]
    for fitted in fits:
        np.testing.assert_array_equal(results(fitted)[0], theirs.labels_)
    assert_eq(fits[2].components_.compute(), chunked[theirs.core_sample_indices_])
    if min_samples == 2:
        friends = FriendsOfFriends(eps, metric="haversine", units="degrees").fit(X)
        np.testing.assert_array_equal(friends.labels_, theirs.labels_)
        assert friends.linking_length_ == eps


def test_events_and_weights():
    X, event, weight = places(1), np.arange(900) % 4, np.arange(900) % 3 + 0.5
    found = DBSCAN(3.0, metric="haversine", units="degrees").fit(X, None, weight, event=event)
    for each in range(4):
        rows = event == each
        theirs = cluster.DBSCAN(eps=np.radians(3.0), metric="haversine").fit(np.radians(X[rows]), None, weight[rows])
        assert theirs.labels_.max() > 1
        np.testing.assert_array_equal(np.unique(found.labels_[rows], return_inverse=True)[1] - 1, theirs.labels_)


def test_a_dataset_with_names_of_its_own():
    X = places(2)
    ds = xr.Dataset({name: ("star", values) for name, values in zip(("dec", "ra"), X.T, strict=True)})
    how = {"metric": "haversine", "units": "degrees"}
    wanted = DBSCAN(2.0, **how).fit(X)
    for each in (ds, ds.chunk(star=300)):
        found = each.clust.dbscan(2.0, coordinates=("dec", "ra"), **how)
        np.testing.assert_array_equal(found["label"], wanted.labels_)
        assert found["label"].attrs["eps_units"] == "degree"
        assert "eps=2 degree" in found.attrs["dbscan"]
        assert "metric=haversine" in found.attrs["dbscan"]
    for name in ds:
        ds[name].attrs["units"] = "deg"
    groups = ds.clust.fof(2.0, coordinates=("dec", "ra"), **how)
    np.testing.assert_array_equal(groups["label"], FriendsOfFriends(2.0, **how).fit(X).labels_)
    with pytest.raises(ValueError, match="coordinates have the unit 'deg', got units='radians'"):
        ds.clust.fof(2.0, coordinates=("dec", "ra"), metric="haversine")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_poles_are_in_reach(dtype):
    X = np.radians(np.array([[90, 0], [90, 137], [-90, 5], [-90, -5], [0, 180], [0, -180]])).astype(dtype)
    fitted = FriendsOfFriends(1e-6, metric="haversine").fit(X)
    assert fitted.labels_.tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("X", "how", "words"),
    [
        (
            [[120.0, 10.0]],
            {"units": "degrees"},
            r"a latitude of 120 degrees is beyond a pole; .*\(latitude, longitude\)",
        ),
        ([[45.0, 10.0]], {}, "a latitude of 45 radians"),
        ([[np.nan, 0.1]], {}, "X contains NaN"),
        ([[0.1, np.inf]], {}, r"X contains infinity|X contains NaN"),
        ([[0.1, 0.2]], {"boxsize": 7.0}, r"a sphere has no box, got boxsize=7\.0"),
        ([[0.1, 0.2]], {"units": "deg"}, "units must be 'radians' or 'degrees', got 'deg'"),
        ([[0.1, 0.2, 0.3]], {}, r"two coordinates, \(latitude, longitude\), got 3"),
    ],
    ids=str,
)
def test_what_is_refused(X, how, words):
    for kind in (DBSCAN, FriendsOfFriends):
        for points in (np.array(X), da.from_array(np.array(X))):
            with pytest.raises(ValueError, match=words):
                np.asarray(kind(0.1, metric="haversine", **how).fit(points).labels_)
    with pytest.raises(ValueError, match="metric must be 'euclidean' or 'haversine', got 'cosine'"):
        FriendsOfFriends(0.1, metric="cosine").fit(X)


def test_without_effect_on_a_plane():
    X = places(0)
    assert_answer(DBSCAN(2.0, units="degrees").fit(X), DBSCAN(2.0).fit(X))
