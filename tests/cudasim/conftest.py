"""The simulator needs a process of its own, and hands over between its threads too rarely by default."""

import importlib
import os
import sys
from pathlib import Path

import dask
import pytest


@pytest.fixture(autouse=True, scope="module")
def simulator():
    if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
        pytest.fail("these tests need a process with NUMBA_ENABLE_CUDASIM=1")
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # the simulator waits for its threads in a busy loop
    with dask.config.set({"distributed.worker.profile.enabled": False}):  # it looks at each thread, again and again
        yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="session")
def cupy():
    """A stand-in for CuPy, strict about what is on which side; worker processes find it, too."""
    folder = str(Path(__file__).parent / "simulated")
    sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    return importlib.import_module("cupy")
