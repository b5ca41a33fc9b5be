"""The system of the how-to page, in the simulator."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from numba import cuda

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "examples"))
from grid_density.estimator import GridDensity

pytestmark = pytest.mark.cudasim


def test_labels_are_those_of_the_cpu():
    X = np.random.default_rng(0).normal(size=(150, 2))
    X[::2] += 8.0
    on_host = GridDensity(0.5, min_samples=3).fit(X)
    on_device = GridDensity(0.5, min_samples=3).fit(cuda.to_device(X))
    np.testing.assert_array_equal(on_device.labels_.copy_to_host(), on_host.labels_)
    assert on_device.n_clusters_ == on_host.n_clusters_ > 1
