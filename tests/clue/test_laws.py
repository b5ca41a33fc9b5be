"""The laws of design.md section 6 for CLUE: nothing but the points and their order decides the answer."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from cases.clue import SHAPES, Case, assert_right, assert_same_results, cases, results
from cases.lanes import COMMON, a_shape, by_lane, every_dtype, every_shape, row_chunks
from cases.steps import some_planes
from hypothesis import given
from hypothesis import strategies as st

from daskclust import CLUE
from daskclust.clue.kernels.density import ExponentialKernel, GaussianKernel
from daskclust.core.merge.labels import same_partition
from daskclust.core.space.partition import Partition


# --------------------------------------------------------------------------------------------------------- brute force
@every_shape
@given(cases())
def test_flat_kernel_equals_brute_force(case):
    assert_right(case, case.fit())


@every_shape
@given(cases(shapes=SHAPES[:4], kernels=("gaussian", "exponential")))
def test_smooth_kernels_equal_brute_force(case):
    assert_right(case, case.fit())


def test_parameters_of_kernels():
    X = np.random.default_rng(0).uniform(0, 5, (80, 2))
    same = {"dc": 1.5, "rhoc": 2.0}
    assert_same_results(
        CLUE(**same, kernel=GaussianKernel(1.5 / np.sqrt(2))).fit(X), CLUE(**same, kernel="gaussian").fit(X)
    )
    assert_same_results(CLUE(**same, kernel=ExponentialKernel(1.5)).fit(X), CLUE(**same, kernel="exponential").fit(X))
    near = CLUE(**same, kernel=GaussianKernel(0.1)).fit(X)
    assert near.density_.sum() < CLUE(**same, kernel="gaussian").fit(X).density_.sum()


@every_dtype
def test_function_of_the_user(dtype):
    numba = pytest.importorskip("numba")

    def steps(distance):
        return 1.0 if distance < 0.5 else 0.25

    X = np.random.default_rng(1).uniform(0, 6, (150, 2)).astype(dtype)
    for kernel in (steps, numba.njit(steps)):
        case = Case(X, 1.0, 2.0, {}, {"kernel": kernel})
        clue = case.fit()
        case.others["kernel"] = steps
        assert_right(case, clue)
        case.others["kernel"] = kernel
        assert_same_results(case.chunked((50, 100), "space"), clue)


@every_dtype
def test_more_points_than_lanes_in_every_cell(dtype):
    """Runs of points that fill SIMD vectors, that are cut by a row's end, and that are split over tasks."""
    rng = np.random.default_rng(2)
    X = rng.uniform(0, 3, (700, 2)).astype(dtype)
    assert_right(Case(X, 1.0, 30.0), CLUE(dc=1.0, rhoc=30.0).fit(X))


# -------------------------------------------------------------------------------------------------------------- chunks
@every_shape
@given(st.data(), cases())
def test_layers_divided_in_any_way(data, case):
    n = len(case.X)
    if "layer" not in case.columns and "event" not in case.columns:
        case.columns["layer"] = np.random.default_rng(n).integers(0, 4, n)
    assert_same_results(case.chunked(data.draw(row_chunks(n)), "layers"), case.fit())


@every_shape
@given(st.data(), cases())
def test_space_divided_in_any_way(data, case):
    assert_same_results(case.chunked(data.draw(row_chunks(len(case.X))), "space"), case.fit())


@every_shape
@given(st.data(), cases())
def test_any_division(data, case):
    """Planes at any coordinates, also through points and at periods, and groups of layers beside them."""
    groups = data.draw(st.integers(1, 3)) if case.columns.keys() & {"layer", "event"} else 1
    farther, planes = data.draw(st.sampled_from([1.0, 1.5])), data.draw(some_planes(case.X, case.period))
    partition = Partition(groups=groups, cuts=planes, period=case.period, halo=case.halo * farther)
    assert_same_results(case.chunked(data.draw(row_chunks(len(case.X))), partition), case.fit())


@every_shape
@given(st.data(), cases())
def test_chunks_as_they_are(data, case):
    """Sorted by layer, each chunk with whole layers."""
    n = len(case.X)
    layer = np.sort(np.random.default_rng(n).integers(0, 5, n))
    case.columns = {**case.columns, "layer": layer}
    case.columns.pop("event", None)
    ends = [0, *np.searchsorted(layer, sorted(data.draw(st.sets(st.integers(0, 5))))), n]
    rows = tuple(int(b - a) for a, b in itertools.pairwise(ends))
    assert_same_results(case.chunked(rows, "chunks"), case.fit())


@every_shape
@given(cases(shapes=SHAPES[:4], kernels=("gaussian",)))
def test_sums_that_round_do_not_depend_on_blocks(case):
    wanted = case.fit()
    n = len(case.X)
    for blocks in (2, 3):
        rows = tuple(np.diff(np.linspace(0, n, blocks + 1).astype(int)).tolist())
        assert_same_results(case.chunked(rows, "space"), wanted)


# ------------------------------------------------------------------------------------------------------------- threads
@pytest.mark.slow
@pytest.mark.parametrize("others", [{}, {"kernel": "gaussian"}, {"wrap": {0: 40.0}}])
def test_threads_do_not_matter(others, threads):
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 100, (70_000, 2)).astype(np.float32)  # more than one task for every kernel
    weight = rng.exponential(1.0, len(X)).astype(np.float32)
    clue = CLUE(dc=1.0, rhoc=20.0, **others)
    answers = []
    for count in (1, 2, 2):
        threads(count)
        answers.append(results(clue.fit(X, sample_weight=weight)))
    for answer in answers[1:]:
        assert_same_results(clue, answer)
        for name, values in answer.items():
            np.testing.assert_array_equal(values, answers[0][name], strict=True)


# --------------------------------------------------------------------------------------------------- order and position
@every_shape
@given(st.integers(0, 2**32), st.integers(2, 60), a_shape([*COMMON, (2, np.float32), (3, np.float32)]))
def test_permutation_renames(seed, n, shape):
    """Where no two densities and no two distances are equal, order changes nothing but names."""
    d, dtype = shape
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 4, (n, d)).astype(dtype)
    weight = (2.0 ** -np.arange(n % 8)).sum() + rng.permutation(n).astype(dtype)  # sums of distinct whole numbers ...
    weight = (rng.permutation(2**10)[:n] * 2**10 + 2 ** rng.integers(0, 10, n)).astype(dtype) / 2**20  # ... exact
    before = CLUE(dc=1.0, rhoc=1.0).fit(X, sample_weight=weight)
    if len(np.unique(before.density_)) < n:
        return
    order = rng.permutation(n)
    after = CLUE(dc=1.0, rhoc=1.0).fit(X[order], sample_weight=weight[order])
    np.testing.assert_array_equal(after.density_, before.density_[order])
    np.testing.assert_array_equal(after.delta_, before.delta_[order])
    np.testing.assert_array_equal(after.is_seed_, before.is_seed_[order])
    place = np.append(np.argsort(order), -1)
    np.testing.assert_array_equal(after.nearest_higher_, place[before.nearest_higher_[order]])
    assert same_partition(after.labels_, before.labels_[order])


@every_shape
@given(cases(), st.integers(-50, 50), st.sampled_from([0.5, 3.0, 64.0]))
def test_shift_changes_nothing(case, steps, unit):
    """Coordinates and shifts are multiples of 1/8, so that they add up exactly."""
    case.X = np.round(case.X * 8) / case.X.dtype.type(8)
    case.others.pop("wrap", None)
    weight = case.columns.get("sample_weight")
    if weight is not None:  # other cells, another order of the sum: exact for multiples of 1/8
        case.columns["sample_weight"] = np.round(weight * 8) / weight.dtype.type(8)
    wanted = case.fit()
    case.X = case.X + case.X.dtype.type(steps * unit)
    assert_same_results(case.fit(), wanted)


@every_shape
@given(cases(), st.integers(-3, 3))
def test_whole_periods_change_nothing(case, turns):
    case.X = np.round(case.X * 8) / case.X.dtype.type(8)
    case.others["wrap"] = {0: 6.25}
    if case.columns.get("sample_weight") is not None:
        case.columns["sample_weight"] = np.round(case.columns["sample_weight"])
    wanted = case.fit()
    case.X = case.X.copy()
    case.X[:, 0] += case.X.dtype.type(turns * 6.25)
    assert_same_results(case.fit(), wanted)


# ------------------------------------------------------------------------------------------------------- special points
@pytest.mark.parametrize(("d", "dtype"), by_lane(SHAPES))
def test_few_and_equal_points(d, dtype):
    one = Case(np.full((1, d), -3.5, dtype), 1.0, 1.0)
    assert_right(one, one.fit())
    assert one.fit().labels_.tolist() == [0]
    alone = Case(np.full((1, d), -3.5, dtype), 1.0, 2.0)
    assert alone.fit().labels_.tolist() == [-1]
    two = Case(np.array([[0.0] * d, [1.0] + [0.0] * (d - 1)], dtype), 1.0, 2.0)  # at exactly dc
    assert_right(two, two.fit())
    assert two.fit().labels_.tolist() == [0, 0]
    assert two.fit().nearest_higher_.tolist() == [1, -1]
    equal = Case(np.full((40, d), 7.25, dtype), 1.0, 40.0)
    assert_right(equal, equal.fit())
    assert equal.fit().labels_.tolist() == [0] * 40
    noise = Case(np.arange(20 * d).reshape(20, d).astype(dtype) * 9, 1.0, 2.0)
    assert noise.fit().labels_.tolist() == [-1] * 20
    assert noise.fit().n_clusters_ == 0


@every_dtype
def test_lattice_at_exactly_dc(dtype):
    X = np.stack(np.meshgrid(np.arange(6), np.arange(6)), axis=-1).reshape(-1, 2).astype(dtype)
    for dc in (1.0, 2.0, np.sqrt(2), 5.0):
        case = Case(X, float(dc), 4.0)
        assert_right(case, case.fit())
        assert_same_results(case.chunked((10, 10, 16), "space"), case.fit())
    assert CLUE(dc=1.0, rhoc=1.0).fit(X).density_.max() == 5


@every_dtype
def test_distance_that_rounding_decides(dtype):
    """0.1 + 0.2 and 0.3: the distance is compared as it is rounded in the precision of X."""
    X = np.array([[0.1, 0.0], [0.4, 0.0], [0.7, 0.0], [1.0, 0.0], [1.3, 0.0]], dtype)
    case = Case(X, 0.3, 2.0)
    assert_right(case, case.fit())
    for cut in (0.25, 0.4, 0.55, 0.7):
        partition = Partition(cuts=(np.array([cut]),), period=(0.0, 0.0), halo=case.halo)
        assert_same_results(case.chunked((5,), partition), case.fit())


@pytest.mark.parametrize("period", [0.5, 0.99, 1.0, 2.0, 2.5, 3.0, 4.0, 7.0])
@every_dtype
def test_short_periods_and_blocks_around_the_seam(period, dtype):
    """Periods shorter than the reach, as long as it, of few cells; negative coordinates and many turns."""
    X = np.random.default_rng(8).uniform(-9, 9, (90, 2)).astype(dtype)
    case = Case(X, 1.0, 4.0, {}, {"wrap": {0: period}, "delta_o": 1.75})
    wanted = case.fit()
    assert_right(case, wanted)
    for cuts in ([0.5 * period], [0.01 * period, 0.99 * period], [0.2 * period, 0.4 * period, 0.8 * period]):
        partition = Partition(cuts=(np.array(cuts),), period=case.period, halo=case.halo)
        assert_same_results(case.chunked((40, 50), partition), wanted)
    assert_same_results(case.chunked((30, 30, 30), "space"), wanted)


def test_points_on_the_seam():
    period = 2 * np.pi
    X = np.array([[0.0], [period], [-period], [1e-9], [-1e-9], [np.nextafter(period, 0)], [3 * period], [-1e-30]])
    for dtype in (np.float64,):
        case = Case(X.astype(dtype), 0.5, 2.0, {}, {"wrap": {0: period}})
        assert_right(case, case.fit())
        assert case.fit().n_clusters_ == 1
        assert case.fit().density_.tolist() == [8.0] * 8


# ---------------------------------------------------------------------------------------------------------- sparse grid
@every_dtype
@pytest.mark.parametrize("d", [2, 3])
def test_far_outlier(d, dtype):
    """A grid with far more cells than points is not allocated."""
    X = np.random.default_rng(4).uniform(0, 6, (300, d)).astype(dtype)
    X[17] = 1e7
    case = Case(X, 1.0, 4.0)
    case.fit()
    tracemalloc.start()
    clue = case.fit()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4e6
    assert_right(case, clue)
    assert_same_results(case.chunked((100, 200), "space"), clue)


@every_shape
@given(cases())
def test_sparse_grid_equals_brute_force(case):
    case.X = np.concatenate([case.X, np.full((1, case.X.shape[1]), 3e6, case.X.dtype)])
    case.columns = {name: np.append(values, values[:1]) for name, values in case.columns.items()}
    if np.ndim(case.rhoc):
        case.rhoc = np.append(case.rhoc, case.rhoc[:1])
    assert_right(case, case.fit())


@every_dtype
def test_far_apart_layer_numbers(dtype):
    rng = np.random.default_rng(5)
    layer = rng.choice([-(2**62), -7, 0, 2**31, 2**62], 200)
    case = Case(rng.uniform(0, 6, (200, 2)).astype(dtype), 1.0, 3.0, {"layer": layer})
    assert_right(case, case.fit())
    assert_same_results(case.chunked((50, 150), "layers"), case.fit())


# ---------------------------------------------------------------------------------------------------------------- noise
@every_shape
@given(cases())
def test_noise_is_outliers_and_all_that_follow_them(case):
    clue = case.fit()
    higher, labels = clue.nearest_higher_, clue.labels_
    follows = higher >= 0
    follower = follows & ~clue.is_seed_ & (labels >= 0)
    np.testing.assert_array_equal(labels[follower], labels[higher[follower]])
    assert sorted(labels[clue.is_seed_]) == list(range(clue.n_clusters_))
    assert (np.diff(labels[clue.is_seed_]) == 1).all()
    assert not np.isnan(clue.delta_).any()
    np.testing.assert_array_equal(np.isinf(clue.delta_), ~follows)
