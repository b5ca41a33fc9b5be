"""How much room Mahalanobis clustering takes: that of the points, and of the sets that are worked on at once."""

import tracemalloc

import dask.array as da
import numpy as np
import pytest
from cases.lanes import quick_first

from daskclust import MahalanobisHCA


@pytest.mark.parametrize("apriori", quick_first([None, "few"]))
def test_points_of_several_chunks_have_no_matrices(apriori):
    """The matrices of all points alone would be more than what is allowed."""
    n, d = 2500, 40
    X = np.random.default_rng(0).normal(size=(n, d))
    labels = None if apriori is None else np.where(np.arange(n) < 40, np.arange(n) // 20, -1)
    lazy = da.from_array(X, chunks=(500, -1))

    def run():
        return MahalanobisHCA(0.5).fit(lazy, apriori=labels).linkage_.compute(scheduler="synchronous")

    np.testing.assert_array_equal(run(), MahalanobisHCA(0.5).fit(X, apriori=labels).linkage_)
    # in memory at most 9 arrays like X and 40 numbers a point; here three more: blocks, frontiers, and all together
    allowed = 8 * n * (12 * d + 40)
    assert 8 * n * d * (d + 1) // 2 > 1.5 * allowed
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < allowed


def test_many_small_apriori_clusters():
    X = np.random.default_rng(1).normal(size=(6000, 3))
    apriori = np.arange(6000) // 2
    linkage = MahalanobisHCA(10).fit(X, apriori=apriori).linkage_
    pairs = linkage[:3000]
    np.testing.assert_array_equal(np.sort(pairs[:, 0]), np.arange(0, 6000, 2))
    np.testing.assert_array_equal(pairs[:, 1], pairs[:, 0] + 1)
    wanted = np.sqrt(((X[::2] - X[1::2]) ** 2).sum(axis=1))
    np.testing.assert_allclose(pairs[:, 2], np.sort(wanted), rtol=1e-14)
