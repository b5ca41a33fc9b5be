"""The systems of the how-to page, in the simulator."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from numba import cuda

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "examples"))
from grid_density.estimator import GridDensity
from redshift_fof.estimator import RedshiftFriends

pytestmark = pytest.mark.cudasim


@pytest.mark.parametrize(
    "system", [GridDensity(0.5, min_samples=3), RedshiftFriends(0.4, 0.9)], ids=lambda system: type(system).__name__
)
def test_labels_are_those_of_the_cpu(system):
    X = np.random.default_rng(0).normal(size=(150, 3 if isinstance(system, RedshiftFriends) else 2))
    X[::2] += 8.0
    on_host, n_clusters = system.fit(X).labels_, system.n_clusters_
    on_device = system.fit(cuda.to_device(X))
    np.testing.assert_array_equal(on_device.labels_.copy_to_host(), on_host)
    assert on_device.n_clusters_ == n_clusters > 1
