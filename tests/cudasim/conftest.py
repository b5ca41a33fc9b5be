"""The simulator needs a process of its own, hands over between threads too rarely, and takes arrays of the host."""

import importlib
import os
import sys
from pathlib import Path

import dask
import numpy as np
import pytest

from daskclust.core.device.kernels import Kernel, TeamKernel


@pytest.fixture(autouse=True, scope="module")
def simulator():
    if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
        pytest.fail("these tests need a process with NUMBA_ENABLE_CUDASIM=1")
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # the simulator waits for its threads in a busy loop
    with dask.config.set({"distributed.worker.profile.enabled": False}):  # it looks at each thread, again and again
        yield
    sys.setswitchinterval(before)


@pytest.fixture(autouse=True)
def arguments_on_the_device(monkeypatch):
    """Refuse arrays of the host: the simulator, like numba, copies them there and back, which hides a wrong branch."""

    def checked(launch):
        def call(kernel, *args, **options):
            assert not any(map(has_host_array, args)), f"{kernel.__name__} is launched with an array of the host"
            return launch(kernel, *args, **options)

        return call

    monkeypatch.setattr(Kernel, "launch", checked(Kernel.launch))
    monkeypatch.setattr(TeamKernel, "launch_teams", checked(TeamKernel.launch_teams))


def has_host_array(value):
    if isinstance(value, tuple):
        return any(map(has_host_array, value))
    return type(value) is np.ndarray and value.ndim > 0  # not the class of the stand-in for CuPy


@pytest.fixture(scope="session")
def cupy():
    """A stand-in for CuPy, strict about what is on which side; worker processes find it, too."""
    folder = str(Path(__file__).parent / "simulated")
    sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    return importlib.import_module("cupy")
