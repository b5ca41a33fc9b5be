"""What measures a GPU does the right work."""

from __future__ import annotations

import numpy as np
import pytest
from bench import roofline

from daskclust.core.device.arrays import device_of

pytestmark = pytest.mark.gpu


def test_ceilings(cupy):
    place = device_of(cupy.zeros(1))
    found = roofline.measure_ceilings(place, cupy.cuda.Device().synchronize, copied=400, points=5, rounds=4)
    assert all(value > 0 for value in found.values())


def test_a_device_computes_what_the_host_does(cupy):
    numbers, row = np.linspace(0, 1, 36).astype(np.float32), np.zeros(36, np.int32)
    on_device, on_host = cupy.asarray(numbers), numbers.copy()
    device_of(on_device).run(roofline.multiply_add, 20, cupy.asarray(row), 3, on_device)
    device_of(on_host).run(roofline.multiply_add, 20, row, 3, on_host)
    np.testing.assert_allclose(on_device.get(), on_host, rtol=1e-5)  # a GPU fuses products and sums
    assert not np.allclose(numbers, on_host)
