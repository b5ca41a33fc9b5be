"""Minimum spanning trees: what one asks of the driver, and that the order of threads does not matter."""

import numpy as np
import pytest
from gpu.test_gpu_hdbscan import assert_same_tree, crowds

from daskclust.hdbscan import spanning_tree as trees

pytestmark = pytest.mark.host_cuda


@pytest.mark.parametrize("min_samples", [1, 8, 30])
def test_a_tree_asks_little_of_the_driver(cupy, counts, min_samples):
    """A round reads four numbers; before the first one keys go to the host, and memory comes from the pool."""
    n = 3000
    X = cupy.asarray(np.random.default_rng(0).normal(size=(n, 3)))
    for _ in range(2):  # what numba compiles holds arrays for a while
        trees.spanning_tree(X, min_samples)
    counts()
    trees.spanning_tree(X, min_samples)
    found = counts()
    rounds = sum("renumber" in each.name for each in found.launched)
    assert found.launches <= 33 + 21 * rounds, found.kernels
    assert found.to_host <= 2 + 3 * rounds
    assert found.bytes_to_host <= 56 + 8 * n + 32 * rounds
    assert found.bytes_to_device < 8 * n
    assert found.allocations == found.frees == 0


@pytest.mark.parametrize("min_samples", [1, 8, 30])
def test_the_order_of_threads_does_not_matter(cupy, order, min_samples):
    X = crowds(1500, 3)
    assert_same_tree(cupy, X, min_samples)
    assert_same_tree(cupy, X.round(1), min_samples, (8.0,) * 3)
