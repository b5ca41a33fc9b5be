"""CLUE against brute force, in memory and however divided, with every kernel of the density."""

import itertools
import tracemalloc
from unittest import mock

import numpy as np
import pytest
from cases.clue import SHAPES, Case, assert_right, assert_same_results, cases
from cases.lanes import every_dtype, every_shape, in_long_lane, quick_first, row_chunks
from cases.steps import some_planes
from hypothesis import given, settings
from hypothesis import strategies as st

from daskclust import CLUE
from daskclust.clue.kernels import equal_points
from daskclust.clue.kernels.density import ExponentialKernel, GaussianKernel
from daskclust.core.space.partition import Partition


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


@every_shape
@pytest.mark.parametrize("kernel", quick_first(["flat", "gaussian", "exponential"], 2))
@settings(max_examples=in_long_lane(1000, otherwise=50))
@given(st.data())
def test_memory_and_any_division_equal_brute_force(kernel, data):
    """Two equal points are as many as are taken together, or a great many are."""
    case = data.draw(cases(shapes=SHAPES if kernel == "flat" else SHAPES[:4], kernels=(kernel,)))
    rows, partition = data.draw(divisions(case))
    with mock.patch.object(equal_points, "MANY", data.draw(st.sampled_from([2, equal_points.MANY]))):
        clue = case.fit()
        assert_right(case, clue)
        assert_same_results(case.chunked(rows, partition), clue)


def test_parameters_of_kernels():
    X = np.random.default_rng(0).uniform(0, 5, (80, 2))
    same = {"dc": 1.5, "rhoc": 2.0}
    for given_kernel, name in ((GaussianKernel(1.5 / np.sqrt(2)), "gaussian"), (ExponentialKernel(1.5), "exponential")):
        assert_same_results(CLUE(**same, kernel=given_kernel).fit(X), CLUE(**same, kernel=name).fit(X))
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
def test_a_grid_with_far_more_cells_than_points_is_not_allocated(dtype):
    X = np.random.default_rng(4).uniform(0, 6, (300, 2)).astype(dtype)
    X[17] = 1e7
    case = Case(X, 1.0, 4.0)
    case.fit()
    tracemalloc.start()
    case.fit()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4e6
