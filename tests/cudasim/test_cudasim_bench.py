"""What measures a GPU, in the simulator: the right work is done."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

from daskclust.bench import kernels, roofline
from daskclust.core.device.arrays import device_of

pytestmark = pytest.mark.cudasim


def test_ceilings():
    place = device_of(cuda.to_device(np.zeros(1)))
    found = roofline.measure_ceilings(place, lambda: None, copied=400, points=5, rounds=4)
    assert all(value > 0 for value in found.values())


def test_a_device_computes_what_the_host_does():
    host = [np.linspace(0, 1, 36).astype(np.float32) for _ in range(2)]
    on_device = cuda.to_device(host[0])
    place, row = device_of(on_device), np.zeros(36, np.int32)
    place.run(kernels.multiply_add, 20, cuda.to_device(row), 3, on_device)
    function = kernels.multiply_add.rebound("cuda")
    for i in range(20):
        function(i, 1, row, 3, host[1])
    np.testing.assert_allclose(on_device.copy_to_host(), host[1], rtol=1e-5)
    assert not np.allclose(host[1], host[0])
