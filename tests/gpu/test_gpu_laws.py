"""Laws of all systems on a GPU: the CPU's answer in memory and on dask, without a way over the host, on workers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import dask
import numpy as np
import pytest
from cases.lanes import size
from laws.on_devices import assert_points_stay, assert_wrong_input_is_refused, fit_lazily
from laws.registry import ENTRIES, RUNS, assert_same, computed, fit, name_of

from daskclust import workers

pytestmark = pytest.mark.gpu

FIRST = {system.name: name_of(system, system.runs[0]) for system in ENTRIES}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", RUNS)
def test_in_memory(cupy, name, dtype):
    system, run = RUNS[name]
    sample = system.sample(150, run, dtype)
    found, wanted = fit(name, sample.map(cupy.asarray)), fit(name, sample)
    assert_same({key: on_host(values) for key, values in computed(found).items()}, computed(wanted))


def on_host(values):
    return values.get() if hasattr(values, "get") else values


@pytest.mark.parametrize("name", RUNS)
def test_points_stay_on_the_device(cupy, name, monkeypatch):
    assert_points_stay(cupy, name, 1 if name.startswith("hca") else size(1250, on_host=5), monkeypatch)


@pytest.mark.parametrize("name", RUNS)
def test_wrong_input_is_refused(cupy, name):
    assert_wrong_input_is_refused(name, cupy.asarray)


@pytest.mark.parametrize("name", ["clue", "fof", "dbscan"])
def test_merges_in_a_tree(cupy, name):
    """What is merged is on the host, as with one merge."""
    with dask.config.set({"daskclust.merge-width": 2}):
        found, wanted = fit_lazily(cupy, FIRST[name])
        assert any("-merge-rank" in str(key) for key in found.dask)
        np.testing.assert_array_equal(found.compute(scheduler="synchronous").get(), wanted)


def test_worker_processes(cupy):
    """A process for each GPU: device arrays from task to task, labels back in their class."""
    with workers.start(cuda=True) as client, dask.config.set(scheduler=client):
        for name in FIRST.values():
            found, wanted = fit_lazily(cupy, name)
            found = found.compute()
            assert type(found) is cupy.ndarray
            np.testing.assert_array_equal(found.get(), wanted, err_msg=name)


@pytest.mark.parametrize("name", FIRST.values())
def test_a_thread_for_each_device(cupy, name):
    """Each device has arrays, scratch and kernels of its own; with one GPU the threads share it."""
    devices = 2 * list(range(cupy.cuda.runtime.getDeviceCount()))
    system, run = RUNS[name]
    samples = [system.sample(150 + 10 * k, run, np.float32) for k in range(len(devices))]

    def fit_on(device, sample):
        with cupy.cuda.Device(device):
            labels = fit(name, sample.map(cupy.asarray)).labels_
            assert labels.device.id == device
            return labels.get()

    with ThreadPoolExecutor(len(devices)) as threads:
        found = list(threads.map(fit_on, devices, samples))
    for labels, sample in zip(found, samples, strict=True):
        np.testing.assert_array_equal(labels, fit(name, sample).labels_)
