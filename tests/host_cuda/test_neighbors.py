"""Neighbours of points on a GPU are those of the CPU, and so is what is predicted from them."""

import numpy as np
import pytest

from daskclust import CLUE, DBSCAN, galaxy_groups, neighbors

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


@pytest.mark.parametrize("many", [1, 70])
def test_labels_of_new_points_are_those_of_the_cpu(cupy, many):
    """Of points among them that are equal, too."""
    rng = np.random.default_rng(many)
    X, new = (rng.integers(0, 32, (n, 2)).astype(np.float32) / 4 for n in (300, 150))
    X = np.concatenate([X, np.repeat(X[:3], many, axis=0)])
    layer, asked = X[:, 0].astype(int) // 3, rng.integers(0, 4, len(new))
    options = {"dc": {0: 1.0, 1: 0.75, 2: 1.5, 3: 1.0}, "rhoc": 5.0, "delta_c": 1.5, "wrap": {1: 8.0}}
    here, there = CLUE(**options).fit(X, layer=layer), CLUE(**options).fit(cupy.asarray(X), layer=cupy.asarray(layer))
    wanted = here.predict(new, layer=asked)
    assert len(set(wanted.tolist())) > 3
    np.testing.assert_array_equal(there.predict(cupy.asarray(new), layer=asked).get(), wanted)
    np.testing.assert_array_equal(there.predict(new, layer=asked), wanted)
    np.testing.assert_array_equal(here.predict(cupy.asarray(new), layer=asked).get(), wanted)
