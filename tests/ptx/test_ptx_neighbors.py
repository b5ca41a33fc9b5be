"""Compile and assemble every CUDA kernel that searches of neighbours launch, without a GPU."""

import numpy as np
import pytest

from daskclust import galaxy_groups, neighbors
from ptx.assembling import check
from ptx.recorder import names, stand_in

pytestmark = pytest.mark.ptx


@pytest.mark.parametrize(("d", "boxsize"), [(2, None), (3, 8.0)])
def test_every_kernel_assembles(monkeypatch, tmp_path, d, boxsize):
    from daskclust.core.space import extent, near
    from daskclust.dbscan import galaxies

    X = np.random.default_rng(d).uniform(0, 8, (300, d)).astype(np.float32)
    calls = [
        lambda: neighbors.count_within(X, 1.0, boxsize=boxsize),
        lambda: neighbors.pairs_within(X, 1.0, boxsize=boxsize),
        lambda: neighbors.nearest(X, X[::2] + np.float32(0.01), boxsize=boxsize).index,
        lambda: galaxy_groups(X[:, 0], X[:, 1], X[:, -1] + 1, 0.3, 0.6),
    ]
    wanted = [call() for call in calls]
    recorder = stand_in(monkeypatch, near, extent, galaxies)
    for call, right in zip(calls, wanted, strict=True):
        np.testing.assert_array_equal(call(), right)
    assert check(recorder.launched, tmp_path)
    assert names(recorder.launched) >= {"count_near", "pair_near", "find_nearest"}
