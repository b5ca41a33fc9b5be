"""pytest's plugin of the lane: every test answers for what the stand-in driver found."""

from __future__ import annotations

import gc

import cupy  # the stand-in: numba-cuda compiles for the host from here on
import pytest

from fake_gpu import driver

assert cupy.__file__.endswith("host_cuda/path/cupy/__init__.py"), f"this is not the stand-in for CuPy: {cupy.__file__}"

gc.set_threshold(100_000, 50, 50)  # looking for garbage is a sixth of the time that compiling takes


@pytest.fixture(autouse=True)
def no_faults(request):
    """Fail a test that wrote outside of memory, whose launches the driver refused, or that leaves another device."""
    driver.faults()
    yield
    found = driver.faults()
    if cupy.cuda.runtime.getDevice() != 0:
        found.append(f"device {cupy.cuda.runtime.getDevice()} is current; before, device 0 was")
        cupy.cuda.runtime.setDevice(0)
    if found:
        pytest.fail("the stand-in driver found:\n" + "\n".join(found))


@pytest.fixture
def faults():
    """Return a function that returns what the driver found wrong, of which the test is then free."""
    return driver.faults


@pytest.fixture
def counts():
    """Return a function that returns what the driver did since the last call, or since the test began."""
    driver.reset()

    def since():
        found = driver.counts()
        driver.reset()
        return found

    return since


@pytest.fixture(params=driver.ORDERS)
def order(request):
    """Run a test three times: threads and blocks forward, in reverse, and shuffled."""
    with driver.in_order(request.param):
        yield request.param
