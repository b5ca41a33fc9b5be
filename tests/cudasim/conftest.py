"""The simulator needs a process of its own, and hands over between its threads too rarely by default."""

import os
import sys

import pytest


@pytest.fixture(autouse=True, scope="module")
def simulator():
    if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
        pytest.fail("these tests need a process with NUMBA_ENABLE_CUDASIM=1")
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # the simulator waits for its threads in a busy loop
    yield
    sys.setswitchinterval(before)
