"""CLUE against brute force, in memory and however divided, and where points are special."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from cases.clue import SHAPES, Case, assert_right, assert_same_results, cases, results
from cases.lanes import by_lane, every_dtype, every_shape, in_long_lane, row_chunks
from cases.steps import some_planes
from hypothesis import given, settings
from hypothesis import strategies as st

from daskclust import CLUE
from daskclust.clue.kernels.density import ExponentialKernel, GaussianKernel
from daskclust.core.space.partition import Partition


# --------------------------------------------------------------------------------------------------------- brute force
@st.composite
def divisions(draw, case):
    """Draw rows of chunks, and a partition of any kind: planes through points and at periods, groups of layers."""
    n, columns = len(case.X), case.columns
    kinds = ["space", "planes", *(["layers"] if columns.keys() & {"layer", "event"} else [])]
    kind = draw(st.sampled_from([*kinds, *(["chunks"] if "layer" in columns and "event" not in columns else [])]))
    if kind == "chunks":  # sorted by layer, each with whole layers
        columns["layer"] = np.sort(columns["layer"])
        ends = [0, *(np.flatnonzero(np.diff(columns["layer"])) + 1)[:: draw(st.integers(1, 3))].tolist(), n]
        return tuple(b - a for a, b in itertools.pairwise(ends)), kind
    if kind == "planes":
        groups = draw(st.integers(1, 3)) if "layers" in kinds else 1
        halo, cuts = case.halo * draw(st.sampled_from([1.0, 1.5])), draw(some_planes(case.X, case.period))
        kind = Partition(groups=groups, cuts=cuts, period=case.period, halo=halo)
    return draw(row_chunks(n)), kind


def assert_right_however_divided(data, case):
    rows, partition = data.draw(divisions(case))
    clue = case.fit()
    assert_right(case, clue)
    assert_same_results(case.chunked(rows, partition), clue)


@every_shape
@settings(max_examples=in_long_lane(1000, otherwise=60))
@given(st.data(), cases(), st.booleans())
def test_memory_and_any_division_equal_brute_force(data, case, is_sparse):
    if is_sparse:  # one point is far away
        case.X[-1] = 3e6
    assert_right_however_divided(data, case)


@every_shape
@given(st.data(), cases(shapes=SHAPES[:4], kernels=("gaussian", "exponential")))
def test_smooth_kernels_equal_brute_force(data, case):
    assert_right_however_divided(data, case)


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


# ------------------------------------------------------------------------------------------------------- special points
@pytest.mark.parametrize(("d", "dtype"), by_lane(SHAPES))
def test_few_and_equal_points(d, dtype):
    two = np.array([[0.0] * d, [1.0] + [0.0] * (d - 1)])  # at exactly dc
    for X, rhoc, labels in (
        (np.full((1, d), -3.5), 1.0, [0]),
        (two, 2.0, [0, 0]),
        (np.full((40, d), 7.25), 40.0, [0] * 40),
    ):
        case = Case(X.astype(dtype), 1.0, rhoc)
        assert_right(case, case.fit())
        assert case.fit().labels_.tolist() == labels
    noise = Case(np.arange(20 * d).reshape(20, d).astype(dtype) * 9, 1.0, 2.0).fit()
    assert (noise.labels_.tolist(), noise.n_clusters_) == ([-1] * 20, 0)


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


@pytest.mark.parametrize("period", [0.5, 1.0, 2.5, 7.0])
@every_dtype
def test_short_periods_and_blocks_around_the_seam(period, dtype):
    """Periods shorter than the reach, as long as it, of few cells; negative coordinates and many turns."""
    X = np.random.default_rng(8).uniform(-9, 9, (90, 2)).astype(dtype)
    case = Case(X, 1.0, 4.0, {}, {"wrap": {0: period}, "delta_o": 1.75})
    wanted = case.fit()
    assert_right(case, wanted)
    for cuts in ([0.5 * period], [0.01 * period, 0.4 * period, 0.99 * period]):
        partition = Partition(cuts=(np.array(cuts),), period=case.period, halo=case.halo)
        assert_same_results(case.chunked((40, 50), partition), wanted)


def test_points_on_the_seam():
    period = 2 * np.pi
    at = [0.0, period, -period, 1e-9, -1e-9, np.nextafter(period, 0), 3 * period, -1e-30]
    case = Case(np.stack([at, np.zeros(8)], axis=1), 0.5, 2.0, {}, {"wrap": {0: period}})
    assert_right(case, case.fit())
    assert case.fit().density_.tolist() == [8.0] * 8


# ---------------------------------------------------------------------------------------------------------- sparse grid
@every_dtype
def test_far_outlier(dtype):
    """A grid with far more cells than points is not allocated."""
    X = np.random.default_rng(4).uniform(0, 6, (300, 2)).astype(dtype)
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


@every_dtype
def test_far_apart_layer_numbers(dtype):
    rng = np.random.default_rng(5)
    layer = rng.choice([-(2**62), -7, 0, 2**31, 2**62], 200)
    case = Case(rng.uniform(0, 6, (200, 2)).astype(dtype), 1.0, 3.0, {"layer": layer})
    assert_right(case, case.fit())
    assert_same_results(case.chunked((50, 150), "layers"), case.fit())
