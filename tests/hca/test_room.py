"""How much room Mahalanobis clustering takes: that of the points, and of the sets that are worked on at once."""

from __future__ import annotations

import tracemalloc

import dask.array as da
import numpy as np
import pytest
from cases.lanes import quick_first

from daskclust import MahalanobisHCA
from daskclust.core.device.arrays import CUDA, HOST
from daskclust.hca import levels


def peak_of(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("apriori", quick_first([None, "few"]))
def test_points_of_several_chunks_have_no_matrices(apriori):
    """The matrices of all points alone would be more than what is allowed."""
    n, d = 5000, 40
    X = np.random.default_rng(0).normal(size=(n, d))
    labels = None if apriori is None else np.where(np.arange(n) < 40, np.arange(n) // 20, -1)
    lazy = da.from_array(X, chunks=(500, -1))

    def run():
        return MahalanobisHCA(0.5).fit(lazy, apriori=labels).linkage_.compute(scheduler="synchronous")

    np.testing.assert_array_equal(run(), MahalanobisHCA(0.5).fit(X, apriori=labels).linkage_)
    # in memory at most 9 arrays like X and 40 numbers a point; here three more: blocks, frontiers, and all together
    allowed = 8 * n * (12 * d + 40)
    assert 8 * n * d * (d + 1) // 2 > 1.5 * allowed
    assert peak_of(run) < allowed


@pytest.mark.parametrize("device", [HOST, CUDA], ids=["cpu", "cuda"])
def test_many_small_sets_are_worked_on_in_parts(device):
    """Each set has matrices to work in, and on CUDA a desk for each thread: as many as there are sets at once."""
    parts = levels._parts(np.full(10_000, 2), device)
    assert parts == list(range(0, 10_000, levels.SETS))


def test_many_small_apriori_clusters():
    X = np.random.default_rng(1).normal(size=(6000, 3))
    apriori = np.arange(6000) // 2
    linkage = MahalanobisHCA(10).fit(X, apriori=apriori).linkage_
    pairs = linkage[:3000]
    np.testing.assert_array_equal(np.sort(pairs[:, 0]), np.arange(0, 6000, 2))
    np.testing.assert_array_equal(pairs[:, 1], pairs[:, 0] + 1)
    wanted = np.sqrt(((X[::2] - X[1::2]) ** 2).sum(axis=1))
    np.testing.assert_allclose(pairs[:, 2], np.sort(wanted), rtol=1e-14)
