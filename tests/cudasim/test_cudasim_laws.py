"""All systems on a device: the CPU's answer in memory and on dask, without a way over the host, and from processes."""

from __future__ import annotations

import os
import sys

import dask
import numpy as np
import pytest
from cases.lanes import on_host
from laws.on_devices import assert_points_stay, assert_wrong_input_is_refused, fit_lazily
from laws.registry import ENTRIES, RUNS, fit, name_of
from numba import cuda

from daskclust import workers
from daskclust.systems import SYSTEMS

pytestmark = [
    pytest.mark.cudasim,
    pytest.mark.filterwarnings("ignore:.*overflow encountered in scalar subtract:RuntimeWarning"),
]

FIRST = {system.name: name_of(system, system.runs[0]) for system in ENTRIES}


@pytest.mark.parametrize("name", [name for name, (system, _) in RUNS.items() if system.name not in SYSTEMS])
def test_examples_in_memory(name):
    """The systems have tests of their own."""
    system, run = RUNS[name]
    sample = system.sample(150, run, np.float64)
    found, wanted = fit(name, sample.map(cuda.to_device)), fit(name, sample)
    np.testing.assert_array_equal(on_host(found.labels_), wanted.labels_)
    assert found.n_clusters_ == wanted.n_clusters_ > 1


@pytest.mark.filterwarnings("ignore:.*invalid value:RuntimeWarning")  # the simulator computes inf - inf with numpy
@pytest.mark.parametrize("name", RUNS)
def test_wrong_input_is_refused(name):
    assert_wrong_input_is_refused(name, cuda.to_device)


@pytest.mark.parametrize("name", RUNS)
def test_points_stay_on_the_device(cupy, name, monkeypatch):
    assert_points_stay(cupy, name, 1, monkeypatch)


@pytest.mark.parametrize("name", ["clue", "fof", "dbscan"])
def test_merges_in_a_tree(cupy, name):
    """What is merged is on the host, as with one merge."""
    with dask.config.set({"daskclust.merge-width": 2}):
        found, wanted = fit_lazily(cupy, FIRST[name])
        assert any("-merge-rank" in str(key) for key in found.dask)
        np.testing.assert_array_equal(found.compute(scheduler="synchronous").get(), wanted)


def test_worker_processes(cupy):
    """As on GPUs: a process each, device arrays from task to task, labels back in their class."""
    with workers.start(2) as client, dask.config.set(scheduler=client):
        assert all(client.run(lambda: os.environ["NUMBA_ENABLE_CUDASIM"] == "1").values())
        client.run(sys.setswitchinterval, sys.getswitchinterval())  # as in this process: see conftest.py
        for name in FIRST.values():
            found, wanted = fit_lazily(cupy, name)
            np.testing.assert_array_equal(found.compute().get(), wanted, err_msg=name)
