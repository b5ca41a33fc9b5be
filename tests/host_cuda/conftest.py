"""Tests of the lane itself, which only run.py starts."""

import pytest


@pytest.fixture
def cupy():
    """Return the stand-in for CuPy."""
    import cupy

    return cupy


@pytest.fixture(autouse=True, scope="module")
def the_stand_in(request):
    if not request.config.pluginmanager.hasplugin("fake_gpu.plugin"):
        pytest.fail("start these tests by tests/host_cuda/run.py")
