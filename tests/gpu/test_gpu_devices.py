"""Several GPUs in one process, or as many as there are, one: each chunk is worked on where it lies."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import dask
import dask.array as da
import numpy as np
import pytest
from laws.registry import RUNS, fit

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore:Grid size")]
NAMES = {system.name: name for name, (system, _) in reversed(RUNS.items())}  # a run of each system


@pytest.fixture
def devices(cupy):
    """Return two devices' numbers, or the only one's twice."""
    return 0, min(1, cupy.cuda.runtime.getDeviceCount() - 1)


def put(cupy, device, values):
    with cupy.cuda.Device(device):
        return cupy.asarray(values)


def on_all(cupy, devices, values, chunks=4):
    """Return a dask array whose chunks lie on the devices by turns."""
    blocks = [dask.delayed(put)(cupy, devices[k % 2], part) for k, part in enumerate(np.array_split(values, chunks))]
    meta, lengths = cupy.empty((0,) * values.ndim, values.dtype), [len(p) for p in np.array_split(values, chunks)]
    parts = zip(blocks, lengths, strict=True)
    return da.concatenate([da.from_delayed(block, (n, *values.shape[1:]), meta=meta) for block, n in parts])


def sample_of(name):
    system, run = RUNS[name]
    return system.sample(system.size, run, np.float32)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_results_are_on_the_points_device_and_the_thread_keeps_its_own(cupy, devices, name):
    sample = sample_of(name)
    for mine, its in (devices, devices[::-1]):
        with cupy.cuda.Device(mine):
            labels = fit(name, sample.map(partial(put, cupy, its))).labels_
            assert cupy.cuda.runtime.getDevice() == mine
        assert labels.device.id == its
        np.testing.assert_array_equal(labels.get(), fit(name, sample).labels_)


def test_columns_come_to_the_points_device(cupy, devices):
    name = next(name for name in RUNS if name.startswith("clue") and "layer" in name)
    sample = sample_of(name)
    X = put(cupy, devices[1], sample.X)
    columns = {column: put(cupy, devices[0], values) for column, values in sample.columns.items()}
    labels = fit(name, sample._replace(X=X, columns=columns)).labels_
    assert labels.device.id == devices[1]
    np.testing.assert_array_equal(labels.get(), fit(name, sample).labels_)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_chunks_on_several_devices(cupy, devices, name, scheduler):
    """Parts that are put together come to the first one's device, so results lie on any of them."""
    sample = sample_of(name)
    labels = fit(name, sample.map(partial(on_all, cupy, devices))).labels_
    with ThreadPoolExecutor(2) as pool, dask.config.set(scheduler=scheduler, pool=pool):
        blocks = dask.compute(*labels.to_delayed().ravel())
    assert cupy.cuda.runtime.getDevice() == 0
    np.testing.assert_array_equal(np.concatenate([block.get() for block in blocks]), fit(name, sample).labels_)
