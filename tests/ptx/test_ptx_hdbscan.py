"""Compile and assemble every CUDA kernel that HDBSCAN* and its minimum spanning tree launch, without a GPU.

The CUDA path's trees, as the recorder finds them on the CPU, are compared with brute force too.
"""

import numpy as np
import pytest
from oracles.spanning_tree import brute_force

from ptx.assembling import check
from ptx.recorder import names, stand_in

pytestmark = pytest.mark.ptx


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_every_kernel_assembles(monkeypatch, tmp_path, d, dtype):
    """Of points with and without equal ones, open and periodic."""
    from daskclust.hdbscan import spanning_tree as trees

    recorder = stand_in(monkeypatch, trees)
    X = np.random.default_rng(d).uniform(0, 4.0, (200, d)).astype(dtype)
    for points, min_samples, period, alpha in (
        (X, 1, (), 1.0),
        (X, 5, (4.0,) * d, 1.3),
        (X, 40, (), 1.0),
        (np.concatenate([X, *9 * [X[::9]]]), 12, (4.0, *(0.0,) * (d - 1)), 1.0),
    ):
        found = trees.spanning_tree(points, min_samples, period, alpha)
        for one, other in zip(found, brute_force(points, min_samples, period, alpha), strict=True):
            np.testing.assert_array_equal(one, other)
    assert check(recorder.launched, tmp_path) == names(recorder.launched)
