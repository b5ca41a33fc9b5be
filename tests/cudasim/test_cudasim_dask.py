"""Dask arrays of device arrays, all systems: the CPU's answer, without a way over the host, and from processes."""

from __future__ import annotations

import os
import sys

import dask
import numpy as np
import pytest
from cases.device import NAMES, assert_points_stay, fit, lazy

from daskclust import EventBuilder, workers
from daskclust.datasets import timepix

pytestmark = [
    pytest.mark.cudasim,
    pytest.mark.filterwarnings("ignore:.*overflow encountered in scalar subtract:RuntimeWarning"),
]

N = 240
PIXELS = timepix(N, rng=0, rate=2e4)
HITS = {name: PIXELS[name].values for name in ("x", "y", "toa")}


@pytest.mark.parametrize("name", NAMES)
def test_points_stay_on_the_device(cupy, name, monkeypatch):
    assert_points_stay(cupy, name, N, monkeypatch)


@pytest.mark.parametrize("name", ["clue", "fof", "dbscan"])
def test_merges_in_a_tree(cupy, name):
    """What is merged is on the host, as with one merge."""
    with dask.config.set({"daskclust.merge-width": 2}):
        found, wanted = fit(cupy, name, N)
        assert any("-merge-rank" in str(key) for key in found.dask)
        np.testing.assert_array_equal(found.compute(scheduler="synchronous").get(), wanted)


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
            found, wanted = fit(cupy, name, N)
            np.testing.assert_array_equal(found.compute().get(), wanted, err_msg=name)
