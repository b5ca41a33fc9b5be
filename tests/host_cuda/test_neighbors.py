"""Neighbours of points on a GPU are those of the CPU, and so is what is predicted from them."""

import numpy as np
import pytest

from daskclust import DBSCAN, galaxy_groups, neighbors

pytestmark = pytest.mark.host_cuda


@pytest.mark.parametrize(("d", "boxsize"), [(2, None), (3, 8.0), (5, (8.0, None) * 2 + (8.0,))])
def test_neighbours_are_those_of_the_cpu(cupy, d, boxsize):
    rng = np.random.default_rng(d)
    X, of = (rng.integers(0, 32, (n, d)).astype(np.float32) / 4 for n in (400, 150))
    here, there, options = cupy.asarray(X), cupy.asarray(of), {"boxsize": boxsize}
    counts, pairs = neighbors.count_within(here, 1.0, **options), neighbors.pairs_within(here, 1.0, **options)
    assert type(counts) is type(pairs) is type(here)
    np.testing.assert_array_equal(counts.get(), neighbors.count_within(X, 1.0, **options))
    np.testing.assert_array_equal(pairs.get(), neighbors.pairs_within(X, 1.0, **options))
    for found, wanted in zip(
        neighbors.nearest(here, there, **options), neighbors.nearest(X, of, **options), strict=True
    ):
        np.testing.assert_array_equal(found.get(), wanted)
    model, wanted = (DBSCAN(1.0, boxsize=boxsize).fit(points).predict(of) for points in (here, X))
    np.testing.assert_array_equal(model, wanted)
    np.testing.assert_array_equal(DBSCAN(1.0, boxsize=boxsize).fit(here).predict(there).get(), wanted)


def test_groups_of_galaxies_are_those_of_the_cpu(cupy):
    rng = np.random.default_rng(0)
    columns = [*rng.uniform(0, 8, (2, 400)), rng.uniform(100, 200, 400), rng.uniform(0.5, 1.5, 400), np.full(400, 9.0)]
    wanted, found = galaxy_groups(*columns), galaxy_groups(*map(cupy.asarray, columns))
    assert wanted.max() > 20
    assert type(found) is cupy.ndarray
    np.testing.assert_array_equal(found.get(), wanted)
    wanted = galaxy_groups(*columns[:3], 1.0, 9.0)
    np.testing.assert_array_equal(galaxy_groups(*map(cupy.asarray, columns[:3]), 1.0, 9.0).get(), wanted)
