"""Merges of Mahalanobis clustering that threads of one block or of several make together: the CPU's, to the last bit.

`order` runs threads and blocks in several orders where there is no GPU (tests/host_cuda): a barrier that is missing
between a thread that writes and another that reads then shows.
"""

import numpy as np
import pytest
from gpu.test_gpu_hca import RULES, assert_as_on_the_host

from daskclust.core.device.arrays import CUDA, HOST
from daskclust.hca import levels
from daskclust.hca.clusters import LevelClusters
from daskclust.hca.kernels.teams import shape_roots
from daskclust.hca.levels import tables_of
from daskclust.hca.plan import rule_of

pytestmark = pytest.mark.gpu

TEAMS = [(1, 1), (1, 8), (1, 64), (3, 16)]  # blocks and threads


@pytest.fixture
def order(request):
    """Run a test in several orders of threads where that can be chosen."""
    try:
        from fake_gpu import driver
    except ImportError:
        yield "the GPU's"
        return
    with driver.in_order(request.param):
        yield request.param


orders = pytest.mark.parametrize("order", ["forward", "reverse", "shuffled"], indirect=True)


@pytest.fixture
def team(monkeypatch):
    """Return a function that lets teams be of so many blocks and threads, with or without memory of their own."""

    def chosen(blocks, threads, *, own_memory=True):
        monkeypatch.setattr(levels, "THREADS", threads)
        monkeypatch.setattr(levels, "LARGE", 1 if blocks > 1 else 1 << 20)
        monkeypatch.setattr(levels, "multiprocessors", lambda: blocks)
        monkeypatch.setattr(levels, "BLOCK_MEMORY", 48 << 10 if own_memory else 0)

    return chosen


def points(n, d, dtype=np.float64):
    """Return elongated clouds of points."""
    rng = np.random.default_rng(d)
    turns = rng.normal(size=(3, d, d))
    of = rng.integers(0, 3, n)
    return (4 * rng.normal(size=(3, d))[of] + np.einsum("ij,ijk->ik", rng.normal(size=(n, d)), turns[of])).astype(dtype)


@orders
@pytest.mark.parametrize(("blocks", "threads"), TEAMS)
@pytest.mark.parametrize("rule", RULES)
def test_teams(cupy, team, order, rule, blocks, threads):
    """With a threshold that all clusters reach while many are left: then all shapes are made anew."""
    team(blocks, threads)
    X = points(90, 5)
    for threshold, normalize in ((4, False), (30, True), (0.5, False)):
        assert_as_on_the_host(cupy, X, threshold=threshold, rule=rule, normalize=normalize)


@orders
@pytest.mark.parametrize("own_memory", [True, False])
@pytest.mark.parametrize("d", [1, 2, 7, 14, 17, 41, 56])
def test_channels(cupy, team, order, d, own_memory):
    """In the memory of blocks, where it is enough (not for 56 channels), and in that of all."""
    team(3, 32, own_memory=own_memory)
    assert_as_on_the_host(cupy, points(d + 30, d), threshold=d + 9, rule="mahal")
    team(1, 32, own_memory=own_memory)
    assert_as_on_the_host(cupy, points(d + 30, d, np.float32), threshold=d + 2)


@orders
@pytest.mark.parametrize(("blocks", "threads"), [(1, 32), (3, 16)])
@pytest.mark.parametrize("rule", ["thesis", "mahal", "mahal0"])
@pytest.mark.parametrize("distance", ["centroid", "full"])
def test_singular_scatter_and_equal_rows(cupy, team, order, distance, rule, blocks, threads):
    """Factors that stop in the middle, shapes of no cluster, and clusters whose rows of matrices are given back."""
    team(blocks, threads)
    X = points(80, 5)
    X[:, 2], X[:, 4] = 0.1, X[:, 1] + X[:, 0]
    X[60:] = X[:20]
    for threshold in (4, 20):
        assert_as_on_the_host(cupy, X, threshold=threshold, rule=rule, distance=distance)
    assert_as_on_the_host(cupy, np.round(X), threshold=9, rule=rule, distance=distance)


@orders
@pytest.mark.parametrize(("blocks", "threads"), [(1, 32), (3, 16)])
@pytest.mark.parametrize("rule", ["mahal", "euclid"])
def test_shapes_of_all_scales(cupy, team, order, rule, blocks, threads):
    """Shapes are made one after the other in the same memory: what one leaves there is not a part of the next."""
    team(blocks, threads)
    X = np.concatenate([points(30, 3) * 1e-9 + 40 * k for k in range(3)] + [points(30, 3) + 60 * k for k in (2, 3)])
    for wanted in (X, X[::-1].copy()):
        assert_as_on_the_host(cupy, wanted, threshold=20, rule=rule)


def first_shapes(device, scatter, size, rule, blocks, threads):
    """Return what `shape_roots` makes of clusters: which have a shape, the stretch of each, and W of those."""
    m, d = len(size), 6
    place, points = np.arange(m), device.from_host(np.random.default_rng(0).normal(size=(m, d)))
    start = LevelClusters(-1 - place, size, np.ones((m, d)), scatter, place, place, device.from_host(place), points)
    pairs, heights = device.empty((m - 1, 2), np.int64), device.empty(m - 1, np.float64)
    tables = tables_of(start, np.array([0, m]), rule, device, pairs, heights, blocks, threads)
    if device is HOST:
        shape_roots.run(1, rule, *tables[:5])
    else:
        shared = 0 if len(tables.shapes.memory) else 8 * tables.desk.numbers
        device.run_teams(shape_roots, 1, blocks, threads, rule, *tables[:5], shared=shared)
    row, is_shaped, stretch, whiten = map(
        device.to_host,
        (*(getattr(tables.clusters, name) for name in ("row", "is_shaped", "stretch")), tables.shapes.whiten),
    )
    return is_shaped, stretch, whiten[row[is_shaped]]


@orders
@pytest.mark.parametrize(("blocks", "threads"), [(1, 8), (1, 32), (2, 16)])
@pytest.mark.parametrize("own_memory", [True, False])
@pytest.mark.parametrize("name", ["thesis", "mahal", "euclid_mahal"])
def test_every_number_of_a_shape(cupy, team, order, name, own_memory, blocks, threads):
    """Stretches are bounds alone: merges need not show one that is wrong. One shape in three is singular."""
    team(blocks, threads, own_memory=own_memory)
    rng, i = np.random.default_rng(1), np.tril_indices(6)
    scatter = []
    for k in range(30):
        X = rng.normal(size=(40, 6)) @ rng.normal(size=(6, 6)) * 10.0 ** rng.integers(-9, 9)
        X[:, 3] = X[:, 2] if k % 3 == 0 else X[:, 3]
        scatter.append((X.T @ X)[i])
    given = np.array(scatter), rng.integers(5, 60, 30), rule_of(name, 20.0, "centroid", False)
    wanted = first_shapes(HOST, *given, 1, 1)
    assert 0 < np.count_nonzero(wanted[0]) < 30
    for got, array in zip(first_shapes(CUDA, *given, blocks, threads), wanted, strict=True):
        np.testing.assert_array_equal(got, array)


@orders
@pytest.mark.parametrize("own_memory", [True, False])
@pytest.mark.parametrize("rule", ["thesis", "euclid"])
def test_sets_side_by_side(cupy, team, order, rule, own_memory):
    """Each set has its own block, and roots with shapes, or with members that no shape was made of, come together."""
    X = points(120, 4)
    apriori = np.stack([np.arange(120) % 13 - 1, np.minimum(np.arange(120) % 13 - 1, 2)], axis=1)
    for blocks in (1, 2):
        team(blocks, 16, own_memory=own_memory)
        for threshold in (5, 30, 500):
            assert_as_on_the_host(cupy, X, apriori, threshold=threshold, rule=rule, distance="full")
