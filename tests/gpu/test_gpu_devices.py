"""Several GPUs in one process, or one where there is one: a fit runs where its points lie."""

import numpy as np
import pytest
from laws.registry import RUNS, fit, sample_of

from daskclust.core.device.arrays import keeping_device
from daskclust.core.merge.own_ids import OwnIds
from daskclust.core.run import steps
from daskclust.core.space.partition import Chunk
from daskclust.systems import SYSTEMS

pytestmark = pytest.mark.gpu
NAMES = {system.name: name for name, (system, _) in RUNS.items() if system.name in SYSTEMS}  # a run of each system


@pytest.fixture
def devices(cupy):
    """Return two devices' numbers, or the only one's twice."""
    return 0, min(1, cupy.cuda.runtime.getDeviceCount() - 1)


def put(cupy, device, values):
    with cupy.cuda.Device(device):
        return cupy.asarray(values)


def on_device(cupy, device, sample):
    return sample.map(lambda values: put(cupy, device, values))


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_thread_keeps_its_device(cupy, devices, name):
    sample = sample_of(name, RUNS[name][0].size, np.float32)
    wanted = fit(name, sample).labels_
    for mine, its in (devices, devices[::-1]):
        with cupy.cuda.Device(mine):
            labels = fit(name, on_device(cupy, its, sample)).labels_
            assert cupy.cuda.runtime.getDevice() == mine
        assert labels.device.id == its
        np.testing.assert_array_equal(labels.get(), wanted)


def test_columns_come_to_the_points_device(cupy, devices):
    name = next(name for name in RUNS if name.startswith("clue") and "layer" in name)
    sample = sample_of(name, RUNS[name][0].size, np.float32)
    X, layer = put(cupy, devices[1], sample.X), put(cupy, devices[0], sample.columns["layer"])
    labels = fit(name, sample._replace(X=X, columns={**sample.columns, "layer": layer})).labels_
    assert labels.device.id == devices[1]
    np.testing.assert_array_equal(labels.get(), fit(name, sample).labels_)


def test_parts_of_a_chunk_come_to_the_device_of_the_first(cupy, devices):
    X, ids = np.arange(12.0).reshape(6, 2), np.array([1, 2, 5, 7, 8, 2**40])
    sides = [(devices[1], slice(0, 2)), (devices[0], slice(2, 6))]
    with keeping_device():
        parts = [
            Chunk({"X": put(cupy, device, X[rows])}, OwnIds.of(put(cupy, device, ids[rows]))) for device, rows in sides
        ]
        joined = steps.join(parts)
    for array, values in ((joined.columns["X"], X), (joined.ids, ids)):
        assert array.device.id == devices[1]
        np.testing.assert_array_equal(array.get(), values)
