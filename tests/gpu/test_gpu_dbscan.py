"""DBSCAN and friends-of-friends on a GPU with cupy: the CPU's answer."""

import dask.array as da
import numpy as np
import pytest
from cases.dbscan import SHAPES, assert_answer
from cases.dbscan import Case as DbscanCase
from cases.dbscan import cases as dbscan_cases
from cases.lanes import size
from gpu.test_gpu import points
from hypothesis import given, settings
from hypothesis import strategies as st

from daskclust import DBSCAN, FriendsOfFriends
from daskclust.dbscan import block_search

pytestmark = pytest.mark.gpu


def fit_dbscan(case, all_too=True):
    """Fit cupy arrays, other columns too if so; the results must be cupy arrays."""
    import cupy

    beside = {name: cupy.asarray(values) if all_too else values for name, values in case.beside().items()}
    fitted = case.estimator().fit(cupy.asarray(case.X), **beside)
    for name in ("labels_", "is_core_", "core_sample_indices_", "components_"):
        assert type(getattr(fitted, name)) is cupy.ndarray, name
    assert type(fitted.n_clusters_) is int
    return fitted


@pytest.mark.parametrize(("d", "dtype"), [*SHAPES, (5, np.float32), (6, np.float64), (10, np.float32)])
@settings(max_examples=15)
@given(data=st.data())
def test_drawn_dbscan(d, dtype, data):
    case = data.draw(dbscan_cases(shapes=[(d, dtype)]))
    assert_answer(fit_dbscan(case, data.draw(st.booleans())), case.answer())


@pytest.mark.parametrize("length", [0.02, 0.005, 0.001])
@pytest.mark.parametrize("boxsize", [None, 1.0])
def test_groups_of_a_snapshot(shared_data, cupy, length, boxsize):
    X = np.fromfile(shared_data / "halos" / "cosmo32768.dat", np.uint16).reshape(-1, 3) / 65536
    friends = FriendsOfFriends(length, boxsize=boxsize)
    wanted = FriendsOfFriends(length, boxsize=boxsize).fit(X)
    for dtype in (np.float32, np.float64):
        assert_answer(friends.fit(cupy.asarray(X.astype(dtype))), wanted)


@pytest.mark.parametrize(("d", "eps"), [(1, 1.0), (2, 1.2), (3, 1.2)])
@pytest.mark.parametrize("min_samples", [2, 6])
def test_dbscan_of_many_points(d, eps, min_samples):
    """The same answer, the CPU's, every time: which thread comes first does not matter."""
    rng, n = np.random.default_rng(d), size(1_000_000, on_host=20_000)
    X = np.concatenate([rng.random((n * 4 // 5, d)), 0.5 + 0.02 * rng.normal(size=(n // 5, d))]).astype(np.float64)
    case = DbscanCase(X[rng.permutation(len(X))], eps * n ** (-1 / d), min_samples)
    wanted = case.fit()
    assert wanted.n_clusters_ > n // 1000
    for _ in range(3):
        assert_answer(fit_dbscan(case), wanted)


@pytest.mark.parametrize(
    "case",
    [
        DbscanCase(np.concatenate([points(300, 2, float, 9.0), points(300, 2, float, 9.0) + 1e6]), 0.8, 3),
        DbscanCase(np.concatenate([points(300, 3, float, 9.0), points(300, 3, float, 9.0) + 1e12]), 1.5, 3),
        DbscanCase(points(600, 2, float, 9.0), 0.35, 3, None, (1e10, 1e10)),
        DbscanCase(np.concatenate([points(99, 1, float, 9.0) + far for far in (0, 5e11)]), 0.1, 3, None, (1e12,)),
        DbscanCase(points(600, 3, float, 2.5), 0.35, 3, None, (1e5,) * 3),
    ],
    ids=["sparse rows", "gaps cut out", "ranked rows", "long periodic axis", "long keys"],
)
def test_dbscan_of_special_sets(case):
    assert_answer(fit_dbscan(case), case.answer())


@pytest.mark.parametrize("period", [(), (12.0, 0.0)], ids=["open", "periodic"])
@pytest.mark.parametrize("weighted", [False, True], ids=["counts", "weights"])
@pytest.mark.parametrize("partition", ["auto", "planes"])
def test_dbscan_of_blocks_of_cupy(cupy, partition, weighted, period):
    weight = np.random.default_rng(0).integers(1, 8, 2000) / 4 if weighted else None
    case = DbscanCase(points(2000, 2, np.float32, 24.0), 0.4, 5, weight, period)
    X = da.from_array(case.X, chunks=((900, 0, 1100), 2)).map_blocks(cupy.asarray, meta=cupy.empty((0, 2), np.float32))
    weights = {"sample_weight": weight} if weighted else {}
    planes = case.partition([3.0, 8.0], [0.0])
    fitted = case.estimator().fit(X, **weights, partition=planes if partition == "planes" else partition)
    assert type(fitted.labels_.compute()) is cupy.ndarray
    assert type(fitted.is_core_.compute()) is cupy.ndarray
    wanted = case.answer()
    assert wanted.labels.max() > 5
    assert_answer(fitted, wanted)


def test_eleven_axes_are_refused(cupy):
    with pytest.raises(ValueError, match=r"X has 11 coordinates; on a CUDA device up to 10.*cupy\.asnumpy\(X\)"):
        DBSCAN(1.0).fit(cupy.zeros((30, 11)))


@pytest.mark.parametrize("points_a_pair", [16, 10**9], ids=["listed", "at once"])
def test_points_that_crowd(cupy, monkeypatch, points_a_pair):
    """Pairs of cells that take long: of many points that touch, and of many that are just too far apart.

    They are done at once where the list has no place for them.
    """
    monkeypatch.setattr(block_search, "_POINTS_A_PAIR", points_a_pair)
    rng = np.random.default_rng(5)
    near = [0.3 * rng.random((2000, 3)) + [at, 0, 0] for at in (0.0, 1.35, 1.7, 4.0)]
    X = np.concatenate([*near, rng.uniform(-5, 5, (500, 3))]).astype(np.float32)
    # of two full cells only the last points are within eps
    bridge = np.concatenate([[[0.0, 0.0, 0.0]], 0.01 * rng.random((3000, 3)), [[0.995, 0.0, 0.0]]])
    bridge[1501:-1, 0] += 1.05
    for case in (
        DbscanCase(X, 1.0, 2),
        DbscanCase(X, 1.0, 8),
        DbscanCase(X, 1.0, 2, None, (5.5, 0.0, 10.0)),
        DbscanCase(bridge, 1.0, 2),
        DbscanCase(bridge, 1.0, 8),
    ):
        assert_answer(fit_dbscan(case), case.fit())
    assert case.fit().n_clusters_ == 1
