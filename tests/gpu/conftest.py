"""Tests on a GPU."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def a_gpu():
    """Fail where the lane is asked for and cannot run: it is chosen with ``-m gpu`` and never skips."""
    try:
        import cupy

        devices = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        pytest.fail(f"these tests need a GPU and cupy, and were asked for: {error!r}")
    if not devices:
        pytest.fail("these tests need a GPU, and were asked for")


@pytest.fixture
def cupy():
    import cupy

    return cupy
