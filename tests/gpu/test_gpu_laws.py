"""Laws of all systems on a GPU with cupy."""

from __future__ import annotations

import pytest
from laws.on_devices import assert_points_stay, assert_wrong_input_is_refused
from laws.registry import RUNS

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore:Grid size"),  # of numba-cuda, on launches too small to fill a GPU
]


@pytest.mark.parametrize("name", RUNS)
def test_points_stay_on_the_device(cupy, name, monkeypatch):
    assert_points_stay(cupy, name, 1 if name.startswith("hca") else 1250, monkeypatch)


@pytest.mark.parametrize("name", RUNS)
def test_wrong_input_is_refused(cupy, name):
    assert_wrong_input_is_refused(name, cupy.asarray)
