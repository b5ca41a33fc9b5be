"""Laws of all systems on a GPU: the CPU's answer in memory and on dask, without a way over the host, on workers."""

from concurrent.futures import ThreadPoolExecutor

import dask
import dask.array as da
import numpy as np
import pytest
from cases.lanes import size
from laws.registry import ENTRIES, RUNS, assert_same, computed, fit, name_of

from daskclust import workers
from daskclust.core.device.arrays import Cuda
from daskclust.systems import SYSTEMS

pytestmark = pytest.mark.gpu

FIRST = {system.name: name_of(system, system.runs[0]) for system in ENTRIES}


def lazy(cupy, values):
    """Return an array as a dask array of three chunks on the device."""
    chunks = da.from_array(values, chunks=(len(values) // 3, *values.shape[1:]))
    return chunks.map_blocks(cupy.asarray, meta=cupy.empty((0,) * values.ndim, values.dtype))


def fit_lazily(cupy, name, times=1):
    """Return the labels on the device, lazy, and those of the CPU, of so many times the sample."""
    system, run = RUNS[name]
    sample = system.sample(times * system.size, run, np.float32)
    on_device = sample.map(lambda values: lazy(cupy, values))
    return fit(name, on_device).labels_, fit(name, sample).labels_


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
    """What goes to the host or comes from there is of borders, clusters, and a few numbers."""
    system, run = RUNS[name]
    times = 1 if name.startswith("hca") else size(1250, on_host=5)
    found, wanted = fit_lazily(cupy, name, times)
    carried = []

    def counted(carry):
        return lambda device, array: carried.append(int(np.size(array))) or carry(device, array)

    for way in ("to_host", "from_host"):
        monkeypatch.setattr(Cuda, way, counted(getattr(Cuda, way)))
    found = found.compute(scheduler="synchronous")
    assert type(found) is cupy.ndarray
    np.testing.assert_array_equal(found.get(), wanted)
    assert wanted.max() > 1
    # merges of HCA, what is between blocks of HDBSCAN*, and the pages' examples are on the host
    if system.name in set(SYSTEMS) - {"hca", "hdbscan"} and run.parameters.get("variant", "local") == "local":
        points = [each for each in carried if each != 64 * 27]  # the table of which cells are within reach
        assert max(points) < 0.6 * times * system.size / 3, sorted(points)


@pytest.mark.parametrize("name", RUNS)
def test_wrong_input_is_refused(cupy, name):
    """In the words of the CPU: values that are no numbers, columns that are too short."""
    system, run = RUNS[name]
    sample = system.sample(60, run, np.float32)
    wrong = []
    for value in (np.nan, np.inf, -np.inf):
        X = {key: v.copy() for key, v in sample.X.items()} if isinstance(sample.X, dict) else sample.X.copy()
        (X["toa" if "toa" in X else "frame"] if isinstance(X, dict) else X)[47] = value
        wrong.append((sample._replace(X=X), rf"\[47(, 0)?\] = {value}"))
    for column, values in sample.columns.items():
        spoiled = {**sample.columns, column: np.where(np.arange(60) == 11, np.nan, values)}
        short = {**sample.columns, column: values[:-1]}
        wrong.append((sample._replace(columns=spoiled), rf"{column}\[11\] = nan"))
        wrong.append((sample._replace(columns=short), rf"{column} must have one \w+ for each of the 60 points"))
    for each, words in wrong:
        with pytest.raises(ValueError, match=words):
            fit(name, each.map(cupy.asarray))


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
