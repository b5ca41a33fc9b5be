"""What a fit asks of the driver: launches, copies to the host and allocations, held to what they are today."""

import numpy as np
import pytest

from daskclust import CLUE, MahalanobisHCA
from daskclust.datasets import cytometry

pytestmark = pytest.mark.host_cuda


def hits(cupy, n=2000, size=60.0):
    rng = np.random.default_rng(0)
    columns = {"layer": rng.integers(0, 3, n), "sample_weight": rng.exponential(1.0, n).astype(np.float32)}
    X = rng.uniform(0, size, (n, 2)).astype(np.float32)
    return cupy.asarray(X), {name: cupy.asarray(values) for name, values in columns.items()}


def asked(counts, fit):
    """Return what a fit asks of the driver: a later one, as what numba compiles holds arrays for a while."""
    for _ in range(2):
        fit()
    counts()
    fit()
    return counts()


@pytest.mark.parametrize("others", [{}, {"kernel": "gaussian"}, {"wrap": {0: 60.0}}, {"delta_o": 2.5}], ids=str)
def test_clue_waits_once(cupy, counts, others):
    X, columns = hits(cupy)
    found = asked(counts, lambda: CLUE(dc=1.0, rhoc=3.0, **others).fit(X, **columns))
    assert found.launches <= 12, found.kernels
    assert found.to_host == 1
    assert found.allocations == found.frees == 0


def test_clue_of_few_points_in_a_whole_detector_waits_once(cupy, counts):
    X, columns = hits(cupy, size=1000.0)  # a million cells a layer
    found = asked(counts, lambda: CLUE(dc=1.0, rhoc=3.0).fit(X, **columns))
    assert found.to_host == 1, found.kernels
    assert found.allocations == found.frees == 0


@pytest.mark.parametrize("size", [2.0, 1e7], ids=["crowded cells", "more cells than a table has"])
def test_clue_of_unusual_points_begins_anew(cupy, counts, size):
    """What was begun in one go does no harm, and a fit still keeps no memory."""
    X, columns = hits(cupy, size=size)
    found = asked(counts, lambda: CLUE(dc=1.0, rhoc=3.0).fit(X, **columns))
    assert found.to_host > 1
    assert found.allocations == found.frees == 0


@pytest.mark.parametrize(("apriori", "launches", "reads"), [(False, 14, 6), (True, 24, 11)])
def test_mahalanobis(cupy, counts, apriori, launches, reads):
    X = cupy.asarray(cytometry(300, channels=4, rng=1)["X"].values)
    groups = {"apriori": cupy.asarray(np.arange(300) % 5)} if apriori else {}
    found = asked(counts, lambda: MahalanobisHCA(20).fit(X, **groups))
    assert found.launches <= launches, found.kernels
    assert found.to_host <= reads
    assert found.allocations == found.frees == 0
