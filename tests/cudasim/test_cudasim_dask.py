"""Dask arrays of device arrays, all systems: the CPU's answer, without a way over the host, and from processes."""

from __future__ import annotations

import os
import sys

import dask
import dask.array as da
import numpy as np
import pytest

from daskclust import CLUE, DBSCAN, EventBuilder, FriendsOfFriends, MahalanobisHCA, workers
from daskclust.core import arrays
from daskclust.datasets import timepix

pytestmark = [
    pytest.mark.cudasim,
    pytest.mark.filterwarnings("ignore:.*overflow encountered in scalar subtract:RuntimeWarning"),
]

N, CHUNK = 240, 80
RNG = np.random.default_rng(0)
LONG = np.stack([RNG.uniform(0, 40, N), RNG.uniform(0, 2, N)], axis=1).astype(np.float32)  # few points near a plane
CELLS = RNG.normal(size=(45, 3))
PIXELS = timepix(N, rng=0, rate=2e4)
HITS = {name: PIXELS[name].values for name in ("x", "y", "toa")}

CASES = {
    "clue": (CLUE(dc=0.6, rhoc=2.0), LONG, {}),
    "clue, layers": (CLUE(dc=0.6, rhoc=2.0), LONG, {"layer": np.repeat([0, 1, 2], N // 3)}),
    "fof": (FriendsOfFriends(0.4), LONG, {}),
    "dbscan": (DBSCAN(0.4, min_samples=3), LONG, {}),
    "dbscan, weights": (DBSCAN(0.4, min_samples=3), LONG, {"sample_weight": RNG.integers(0, 4, N) / 2}),
    "events": (EventBuilder(100.0), HITS, {}),
    "events, larger": (EventBuilder(100.0, min_hits=2), HITS, {}),
    "hca": (MahalanobisHCA(0.3, n_clusters=3), CELLS, {"apriori": np.arange(45) % 3}),
}


def lazy(cupy, values):
    """Return an array as a dask array whose chunks are on the device."""
    chunks = da.from_array(values, chunks=(CHUNK if len(values) == N else 15, *values.shape[1:]))
    return chunks.map_blocks(cupy.asarray, meta=cupy.empty((0,) * values.ndim, values.dtype))


def fit(cupy, name):
    """Return the labels on the device, lazy, and those of the CPU."""
    estimator, X, columns = CASES[name]
    labels = estimator.fit(X, **columns).labels_
    on_device = {key: lazy(cupy, column) for key, column in columns.items()}
    X = {key: lazy(cupy, column) for key, column in X.items()} if isinstance(X, dict) else lazy(cupy, X)
    return estimator.fit(X, **on_device).labels_, labels


@pytest.mark.parametrize("name", CASES)
def test_points_stay_on_the_device(cupy, name, monkeypatch):
    """Arrays that go to the host or come from there are of borders, of clusters, and of a few numbers."""
    found, wanted = fit(cupy, name)
    carried = []

    def counted(carry):
        def call(device, array):
            carried.append(np.size(array) if isinstance(array, np.ndarray) else array.size)
            return carry(device, array)

        return call

    for way in ("to_host", "from_host"):
        monkeypatch.setattr(arrays.Cuda, way, counted(getattr(arrays.Cuda, way)))
    found = found.compute(scheduler="synchronous")
    assert type(found) is cupy.ndarray
    np.testing.assert_array_equal(found.get(), wanted)
    assert wanted.max() > 1
    if name != "hca":  # whose merges are put in order on the host
        points = [size for size in carried if size != 64 * 27]  # the table of which cells are within reach
        assert max(points) < 0.6 * CHUNK, sorted(points)


@pytest.mark.parametrize("variant", ["global", "static"])
def test_rules_that_need_a_chain(cupy, variant):
    """They are worked on the host, hit after hit; labels come back to the device."""
    lazy_hits = {name: lazy(cupy, values) for name, values in HITS.items()}
    builder = EventBuilder(100.0, variant=variant)
    found = builder.fit(lazy_hits).labels_.compute(scheduler="synchronous")
    np.testing.assert_array_equal(found.get(), builder.fit(HITS).labels_)


def test_worker_processes(cupy):
    """As on GPUs: a process each, device arrays from task to task, labels back in their class."""
    with workers.start(2) as client, dask.config.set(scheduler=client):
        assert all(client.run(lambda: os.environ["NUMBA_ENABLE_CUDASIM"] == "1").values())
        client.run(sys.setswitchinterval, sys.getswitchinterval())  # as in this process: see conftest.py
        for name in ("clue", "fof", "dbscan", "events", "hca"):
            found, wanted = fit(cupy, name)
            np.testing.assert_array_equal(found.compute().get(), wanted, err_msg=name)
