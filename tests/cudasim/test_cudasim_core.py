"""What all systems share, in the simulator."""

from __future__ import annotations

import importlib
import pickle
import time

import numpy as np
import pytest
from laws.on_devices import assert_running_sum, assert_union_find
from numba import cuda

from daskclust.core.device.arrays import device_of, is_cuda

pytestmark = pytest.mark.cudasim


def test_running_sum_where_threads_ask_for_shared_memory_at_once(monkeypatch):
    """A simulator that is slow in making arrays: all threads of a block must still share one."""
    simulator = importlib.import_module("numba.cuda.simulator.kernelapi")

    class SlowNumpy:
        def __getattr__(self, name):
            return getattr(np, name)

        def empty(self, *args):
            time.sleep(0.001)
            return np.empty(*args)

    monkeypatch.setattr(simulator, "np", SlowNumpy())
    values = np.random.default_rng(0).integers(0, 3, 61).astype(np.int32)
    on_device = cuda.to_device(values)
    device_of(on_device).running_sum(on_device, on_device)
    np.testing.assert_array_equal(on_device.copy_to_host(), values.cumsum())


@pytest.mark.parametrize("values", [np.arange(5, dtype=np.int32), np.ones((3, 2)), np.empty((0, 2), np.float32)])
def test_device_arrays_travel_between_processes(cupy, values):
    """Measures and local results may go to another worker."""
    device = device_of(cupy.asarray(values))
    for array in (device.from_host(values), device.argument(cupy.asarray(values)), device.cast(values, values.dtype)):
        for _ in range(2):
            array = pickle.loads(pickle.dumps(array))
        assert is_cuda(array)
        found = device.to_host(array)
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 64, 65, 600])
@pytest.mark.parametrize("dtype", [np.int32, np.bool_])
def test_running_sum(n, dtype):
    """Blocks of 8 threads in the simulator: 600 elements are summed on four levels."""
    assert_running_sum(cuda.to_device, n, dtype)


def test_union_find():
    assert_union_find(cuda.to_device, 80, 60)
