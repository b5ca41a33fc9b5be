"""CLUE and what all systems share on a GPU with cupy: the CPU's answer, in cupy arrays: ``python -m pytest -m gpu``."""

import gc
from unittest import mock

import dask
import dask.array as da
import numba
import numpy as np
import pytest
from cases.clue import RESULTS, Case, assert_right, assert_same_results, cases, results
from cases.lanes import size
from clue.test_reference import NAMES, assert_equals_reference, inputs, load
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from daskclust import CLUE
from daskclust.clue.kernels import equal_points
from daskclust.clue.kernels.density import ExponentialKernel, GaussianKernel
from daskclust.core.device.arrays import Cuda, device_of
from daskclust.core.device.unionfind import flatten, start, unite_edges
from daskclust.core.space.extent import survey
from daskclust.core.space.grid import make_grid
from daskclust.core.space.sorting import sort_into_cells

pytestmark = pytest.mark.gpu


def fit_on_device(case, columns_too=True):
    """Fit cupy arrays; the results must be cupy arrays."""
    import cupy

    columns = {name: cupy.asarray(v) if columns_too else v for name, v in case.columns.items()}
    estimator = case.estimator()
    if np.ndim(case.rhoc):
        estimator.set_params(rhoc=cupy.asarray(case.rhoc) if columns_too else case.rhoc)
    clue = estimator.fit(cupy.asarray(case.X), **columns)
    for name in RESULTS:
        assert type(getattr(clue, f"{name}_")) is cupy.ndarray, name
    assert type(clue.n_clusters_) is int
    return clue


def points(n, d, dtype, extent, seed=0):
    return np.random.default_rng(seed).uniform(-extent / 2, extent / 2, (n, d)).astype(dtype)


def weights(n, dtype, seed=1):
    return np.random.default_rng(seed).exponential(1.0, n).astype(dtype)


def assert_same_on_device(case, columns_too=True):
    wanted = results(case.fit())
    assert wanted["is_seed"].any()  # else the test shows nothing
    assert_same_results(fit_on_device(case, columns_too), wanted)


# ------------------------------------------------------------------------------------------------------ reference files
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_reference_files(reference_files, cupy, name, dtype):
    table, parameters = load(reference_files, name)
    X, columns = inputs(table, dtype)
    clue = CLUE(**parameters).fit(cupy.asarray(X), **{key: cupy.asarray(values) for key, values in columns.items()})
    assert_equals_reference(clue, table)


# ----------------------------------------------------------------------------------------------------- equal to the CPU
MANY = size(1_000_000, on_host=20_000)


@pytest.mark.parametrize("kernel", ["flat", "gaussian"])
def test_half_in_a_clump(kernel):
    rng = np.random.default_rng(6)
    X = np.concatenate([rng.uniform(0, 300, (MANY // 2, 2)), rng.normal(150, 20, (MANY // 2, 2))]).astype(np.float32)
    others = {"kernel": kernel, "delta_o": 1.0}
    assert_same_on_device(Case(X, 0.5, 10.0, {"sample_weight": weights(MANY, np.float32)}, others))


def test_many_events():
    event = np.sort(np.random.default_rng(3).integers(0, MANY // 200, MANY // 20))
    assert_same_on_device(Case(points(MANY // 20, 2, np.float32, 4.0), 1.0, 2.0, {"event": event}))


@pytest.mark.parametrize(("d", "far", "dtype"), [(3, 3e6, np.float32), (4, 1e12, np.float64)])
def test_far_outliers(d, far, dtype):
    """Cells go by key instead of by table; with 4 axes those that hold points are numbered."""
    X = points(2000, d, dtype, 8.0)
    X[[17, 40]] = [[far] * d, [-far] * d]
    assert_same_on_device(Case(X, 1.0, 3.0, {"layer": np.arange(2000) % 2}))


@pytest.mark.parametrize(
    ("d", "dtype", "kernels"),
    [
        (2, np.float32, ("flat", "gaussian", "exponential")),
        (3, np.float64, ("flat", "gaussian")),
        *((d, dtype, ("flat",)) for d, dtype in ((1, np.float64), (2, np.float64), (4, np.float32), (6, np.float64))),
    ],
)
@settings(max_examples=20)
@given(data=st.data())
def test_drawn_cases(d, dtype, kernels, data):
    """Equal points are taken together early or late, columns are on the device or not."""
    case = data.draw(cases(shapes=[(d, dtype)], kernels=kernels))
    with mock.patch.object(equal_points, "MANY", data.draw(st.sampled_from([8, equal_points.MANY]))):
        clue = fit_on_device(case, columns_too=data.draw(st.booleans()))
        assert_same_results(clue, results(case.fit()))
        assert_right(case, clue)


def ramp(distance):
    return 1.0 - 0.5 * distance


@pytest.mark.parametrize(
    "kernel",
    [GaussianKernel(0.3), ExponentialKernel(2.0), ramp, numba.njit(ramp)],
    ids=["gaussian of 0.3", "exponential of 2", "function", "compiled function"],
)
def test_kernels(kernel):
    others = {"kernel": kernel, "neighbor_weight": 0.5}
    for dtype in (np.float32, np.float64):
        columns = {"sample_weight": weights(3000, dtype)}
        assert_same_on_device(Case(points(3000, 2, dtype, 30.0), 1.0, 1.5, columns, others))


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 127, 128, 129, 511, 512, 513])
def test_few_points(n):
    assert_same_on_device(Case(points(n, 2, np.float32, 5.0), 1.0, 1.0))
    assert_same_on_device(Case(np.full((n, 2), 1.5, np.float32), 1.0, float(n)))


def test_the_same_answer_every_time():
    """Slots of cells are taken in whatever order threads come."""
    n = size(100_000, on_host=4000)
    case = Case(points(n, 2, np.float32, (n / 10) ** 0.5), 1.0, 10.0, {"sample_weight": weights(n, np.float32)})
    wanted = results(fit_on_device(case))
    for _ in range(size(10, on_host=2)):
        assert_same_results(fit_on_device(case), wanted)


def test_a_stream_of_its_own(cupy):
    """One that waits for no other, right after another kernel has written the points there."""
    with cupy.cuda.Stream(non_blocking=True):
        for seed in range(size(10, on_host=2)):
            X = points(size(200_000, on_host=2000), 2, np.float32, 100.0, seed)
            labels = CLUE(dc=1.0, rhoc=5.0).fit(cupy.asarray(X) * np.float32(1)).labels_
            np.testing.assert_array_equal(labels.get(), CLUE(dc=1.0, rhoc=5.0).fit(X).labels_)


def test_views_of_arrays(cupy):
    """Columns of a larger array, every second row, Fortran's order."""
    X, weight = points(4000, 4, np.float32, 30.0), weights(4000, np.float32)
    wanted = results(CLUE(dc=1.0, rhoc=3.0).fit(X[::2, 1:3], sample_weight=weight[::2]))
    on_device, its_weight = cupy.asarray(X), cupy.asarray(weight)
    for view in (on_device[::2, 1:3], cupy.asfortranarray(on_device[::2, 1:3])):
        assert_same_results(CLUE(dc=1.0, rhoc=3.0).fit(view, sample_weight=its_weight[::2]), wanted)


# -------------------------------------------------------------------------------------------------------------- memory
def test_scratch_arrays_are_used_again(cupy):
    n = size(200_000, on_host=5000)
    case = Case(points(n, 2, np.float32, (n / 5) ** 0.5), 1.0, 3.0, {"layer": np.arange(n) % 5})
    X, layer = cupy.asarray(case.X), cupy.asarray(case.columns["layer"])
    pool = cupy.get_default_memory_pool()
    gc.collect()
    pool.free_all_blocks()  # what tests before left
    sizes = []
    for _ in range(4):
        clue = case.estimator().fit(X, layer=layer)
        del clue  # its results go back to the pool
        sizes.append((pool.total_bytes(), pool.used_bytes()))
    assert sizes[1] == sizes[2] == sizes[3]
    assert sizes[1][0] == sizes[0][0]


# ------------------------------------------------------------------------------------------------------- after the fit
@pytest.mark.parametrize("changed", [{"rhoc": 5.0}, {"delta_c": 0.4}, {"rhoc": 1.0, "delta_c": 1.5, "delta_o": 0.7}])
def test_rethreshold(cupy, changed):
    case = Case(points(4000, 2, np.float32, 40.0), 1.0, 3.0, {"layer": np.arange(4000) % 2}, {"delta_o": 2.0})
    clue = fit_on_device(case).rethreshold(**changed)
    assert type(clue.labels_) is cupy.ndarray
    assert_same_results(clue, results(case.fit().rethreshold(**changed)))


def test_distances_of_sections(cupy):
    X, section = np.round(points(600, 2, np.float32, 12.0), 1), np.arange(600) % 3
    X[:100] = X[0]  # of these some are taken together
    columns = {"section": section, "sample_weight": weights(600, np.float32)}
    case = Case(X, {0: 0.5, 1: 1.0, 2: 2.0}, 3.0, columns, {"delta_c": {0: 2.0, 1: 0.5, 2: 3.0}, "delta_o": 2.5})
    assert_same_on_device(case)
    lazy = da.from_array(X, chunks=(200, 2)).map_blocks(cupy.asarray, meta=cupy.empty((0, 2), np.float32))
    assert_same_results(case.estimator().fit(lazy, **columns), results(case.fit()))


def test_two_ends(cupy):
    X, z = points(300, 2, np.float32, 9.0), np.where(np.arange(300) % 2, -1.0, 1.0)
    columns = {"x": X[:, 0], "y": X[:, 1], "z": z, "layer": np.arange(300) % 3}
    found = CLUE(1.0, 2.0).fit({name: cupy.asarray(values) for name, values in columns.items()})
    assert_same_results(found, CLUE(1.0, 2.0).fit(columns))


def test_rethreshold_with_a_threshold_of_each_point(cupy):
    rhoc, other = (np.random.default_rng(seed).integers(0, 8, 2000).astype(np.float32) for seed in (6, 7))
    case = Case(points(2000, 2, np.float32, 30.0), 1.0, rhoc)
    clue, on_cpu = fit_on_device(case), case.fit()
    assert_same_results(clue.rethreshold(delta_c=0.5), results(on_cpu.rethreshold(delta_c=0.5)))
    assert_same_results(clue.rethreshold(rhoc=cupy.asarray(other)), results(on_cpu.rethreshold(rhoc=other)))


# ---------------------------------------------------------------------------------------------------------------- dask
@pytest.mark.parametrize("others", [{}, {"kernel": "gaussian"}, {"wrap": {0: 12.0}}], ids=str)
@pytest.mark.parametrize("partition", ["layers", "chunks", "space"])
def test_blocks_of_cupy(cupy, partition, others):
    n = 3000
    case = Case(points(n, 2, np.float32, 25.0), 1.0, 3.0, {"layer": np.repeat([0, 1, 2], n // 3)}, others)
    X = da.from_array(case.X, chunks=(n // 3, 2)).map_blocks(cupy.asarray, meta=cupy.empty((0, 2), np.float32))
    layer = da.from_array(case.columns["layer"], chunks=n // 3)
    for its_layer in (layer, layer.map_blocks(cupy.asarray, meta=cupy.empty(0, np.int64))):
        clue = case.estimator().fit(X, layer=its_layer, partition=partition)
        arrays = dict(zip(RESULTS, dask.compute(*(getattr(clue, f"{name}_") for name in RESULTS)), strict=True))
        wanted = results(case.fit())
        for name, array in arrays.items():
            assert type(array) is cupy.ndarray, name
            np.testing.assert_array_equal(array.get(), wanted[name], err_msg=name, strict=True)
        assert int(clue.n_clusters_.compute()) == wanted["is_seed"].sum()


# ------------------------------------------------------------------------------------------------------ shared kernels
@pytest.mark.parametrize("dtype", [np.int32, np.bool_])
@pytest.mark.parametrize("n", [1, 512, 513, size(1_000_000, on_host=20_000)])
def test_running_sum(cupy, n, dtype):
    """NumPy's sums, in a new array and, of int32, in place."""
    values = np.random.default_rng(n).integers(-5 * (dtype is np.int32), 2, n).astype(dtype)
    source = cupy.asarray(values)
    device = device_of(source)
    sums = device.empty(n, np.int32)
    for into in (sums, source) if dtype is np.int32 else (sums,):
        device.running_sum(source, into)
        np.testing.assert_array_equal(into.get(), np.cumsum(values))


@pytest.mark.parametrize(("n", "m"), [(100, 60), (10_000, 10_000), (1000, size(2_000_000, on_host=50_000))])
def test_union_find(cupy, n, m):
    """SciPy's components, named by their smallest members."""
    edges = np.random.default_rng(m).integers(0, n, (2, m)).astype(np.int32)
    a, b = map(cupy.asarray, edges)
    device = device_of(a)
    parent = device.empty(n, np.int32)
    device.run(start, n, parent)
    device.run(unite_edges, m, a, b, parent)
    device.run(flatten, n, parent)
    _, group = connected_components(coo_array((np.ones(m, bool), edges), shape=(n, n)))
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(parent.get(), first[group])


@pytest.mark.parametrize("d", [1, 3, 14])
@pytest.mark.parametrize("n", [1, 2, 1000, 300_000])
def test_survey(cupy, n, d):
    """Fewer points than threads and more; each axis has its own, which are not neighbours."""
    X = np.random.default_rng(8).normal(size=(n, d)).astype(np.float32)
    for points in (cupy.asarray(X), cupy.asarray(np.asfortranarray(X))):
        device = device_of(points)
        low, high, bad = survey(device, points)
        np.testing.assert_array_equal(low, X.min(axis=0))
        np.testing.assert_array_equal(high, X.max(axis=0))
        assert bad == n
        points[n - 1, 0] = np.nan
        points[n * 2 // 3, d - 1] = np.inf
        assert survey(device, points)[2] == n * 2 // 3


@pytest.mark.parametrize("extent", [0.5, 3.0, 3e5], ids=["one cell", "crowded cells", "more cells than a table has"])
def test_sorting_into_cells_keeps_the_order(cupy, monkeypatch, extent):
    """However many points share a cell, and without a look from the host."""
    X = np.random.default_rng(0).uniform(0, extent, (100_000, 2))

    def sort(X):
        device = device_of(X)
        grid = make_grid(np.zeros(2), np.full(2, extent), 1.0, (0.0, 0.0), device.empty(0, np.int64))
        return sort_into_cells(device, X, device.empty(0, np.int32), 1, grid)

    wanted, points = sort(X), cupy.asarray(X)
    with monkeypatch.context() as patch:
        patch.delattr(Cuda, "to_host")
        found = sort(points)
    for name in ("order", "row", "first", "positions"):
        np.testing.assert_array_equal(getattr(found, name).get(), getattr(wanted, name), err_msg=name)
