"""CLUE's CUDA path in the simulator, thread by thread: the CPU's answer to the last bit.

Run them in a process of their own, ``NUMBA_ENABLE_CUDASIM=1 python -m pytest -m cudasim tests/cudasim``. Points are few
and grids small: a launched thread costs about 0.3 ms.
"""

from __future__ import annotations

import numpy as np
import pytest
from cases.clue import Case, assert_right, assert_same_results, cases, results
from cases.steps import assert_steps
from clue.test_reference import assert_equals_reference, inputs, load
from hypothesis import given, settings
from numba import cuda

from daskclust.core.device.arrays import is_cuda
from daskclust.core.space.partition import Partition

pytestmark = pytest.mark.cudasim


def fit_on_device(case, columns_too=True):
    """Fit to simulated device arrays; columns beside X may stay on the host."""
    move = cuda.to_device if columns_too else np.asarray
    columns = {name: move(values) for name, values in case.columns.items()}
    clue = case.estimator().fit(cuda.to_device(case.X), **columns)
    assert all(is_cuda(array) for array in (clue.labels_, clue.density_, clue.delta_, clue.nearest_higher_))
    assert is_cuda(clue.is_seed_)
    assert isinstance(clue.n_clusters_, int)
    return clue


def points(n=60, d=2, dtype=np.float32, size=4.0, seed=0):
    return np.random.default_rng(seed).uniform(0, size, (n, d)).astype(dtype)


# ------------------------------------------------------------------------------------------------------ reference files
@pytest.mark.parametrize(
    "name",
    [
        "aniso_1000_20_20_50_50",
        "circles_1000_20_20_90_12",
        "moons_1000_20_20_150_15",
        "sissa_1000_20_20_80_25",
        "toyDetector_1000_3_5_5_8",
        "toyDetector_1000_5_10_5_8",
    ],
)
def test_reference_files(reference_files, name):
    table, parameters = load(reference_files, name)
    X, columns = inputs(table, np.float32)
    clue = fit_on_device(Case(X, parameters.pop("dc"), parameters.pop("rhoc"), columns, parameters))
    assert_equals_reference(clue, table)


# ---------------------------------------------------------------------------------------------------- CPU, bit for bit
WEIGHT = np.random.default_rng(1).exponential(1.0, 60).astype(np.float32)
LAYER = np.random.default_rng(2).integers(-2, 3, 60)
EVENT = np.random.default_rng(3).integers(0, 2, 60)
FAR = points()
FAR[[5, 40]] = [[1e7, -2.0], [1.0, 3e6]]
FARTHER = points(d=3)
FARTHER[[5, 40]] = [[1e8, -1e8, 1e8], [-1e8, 1e8, 1e8]]


def _fades(distance):
    return 1.0 - 0.5 * distance


CASES = {
    "flat": Case(points()),
    "weights": Case(points(), columns={"sample_weight": WEIGHT}),
    "half": Case(points(), columns={"sample_weight": WEIGHT}, others={"neighbor_weight": 0.5}),
    "gaussian": Case(points(), columns={"sample_weight": WEIGHT}, others={"kernel": "gaussian"}),
    "gaussian float64": Case(points(dtype=np.float64), others={"kernel": "gaussian"}),
    "exponential": Case(points(), columns={"sample_weight": WEIGHT}, others={"kernel": "exponential"}),
    "function": Case(points(), others={"kernel": _fades}),
    "layers": Case(points(), columns={"layer": LAYER}),
    "layers with gaps": Case(points(), columns={"layer": LAYER * 5}),
    "layers far apart": Case(points(), columns={"layer": LAYER * 10**8}),
    "events and layers": Case(points(size=2.0), columns={"layer": LAYER, "event": EVENT}),
    "wide search": Case(points(size=8.0), others={"delta_o": 3.0, "delta_c": 1.5}),
    "wider search": Case(points(size=8.0), 0.1, columns={"layer": LAYER}, others={"delta_c": 4.0}),
    "chain": Case(np.c_[np.arange(60.0), np.zeros(60)], others={"delta_c": 2.0}),
    "period": Case(points(), others={"wrap": {0: 3.5}, "kernel": "gaussian"}),
    "short periods": Case(points(), others={"wrap": {0: 0.75, 1: 1.5}, "delta_o": 2.5}),
    "rhoc of points": Case(points(), rhoc=(WEIGHT * 3)),
    "sparse grid": Case(FAR, columns={"layer": LAYER}),
    "slabs": Case(FARTHER, 0.5),
    "one axis": Case(points(d=1, dtype=np.float64)),
    "three axes": Case(points(d=3)),
    "four axes": Case(points(30, 4, np.float64, 3.0)),
    "six axes": Case(points(30, 6, np.float64, 2.0)),
    "one point": Case(points(1), rhoc=1.0),
    "equal points": Case(np.full((20, 2), 2.5, np.float32)),
    "noise": Case(points(size=30.0), rhoc=1e6),
    "lattice": Case(np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), -1).reshape(-1, 2), rhoc=4.0),
}


@pytest.mark.parametrize("name", CASES)
def test_equal_to_the_cpu(name):
    case = CASES[name]
    got = fit_on_device(case, columns_too="far apart" not in name)
    assert_same_results(got, case.fit())
    assert_right(case, got)


@settings(max_examples=8)
@given(cases(shapes=[(2, np.float32), (3, np.float32)], kernels=("flat", "gaussian"), most=25))
def test_drawn_cases_equal_to_the_cpu(case):
    assert_same_results(fit_on_device(case), case.fit())


def test_workspace_of_other_sizes():
    """Scratch arrays stay from fit to fit: what they held does not show, and results are not overwritten."""
    first = Case(points(50), 1.0, 3.0, {"layer": LAYER[:50]}, {"kernel": "gaussian"})
    clue = fit_on_device(first)
    before = {name: values.copy() for name, values in results(clue).items()}
    for n, size, dtype in ((50, 2.0, np.float32), (20, 4.0, np.float64), (55, 6.0, np.float32)):
        case = Case(points(n, size=size, dtype=dtype, seed=n))
        assert_same_results(fit_on_device(case), case.fit())
    assert_same_results(clue, before)
    assert_same_results(fit_on_device(first), before)


@pytest.mark.parametrize("thresholds", [{"rhoc": 4.0}, {"delta_c": 0.5}, {"delta_o": 1.25, "rhoc": 2.5}])
def test_rethreshold(thresholds):
    case = Case(points(), 1.0, 2.0, {"sample_weight": WEIGHT}, {"delta_o": 2.0})
    clue, on_cpu = fit_on_device(case), case.fit()
    again = clue.rethreshold(**thresholds)
    assert is_cuda(again.labels_)
    assert_same_results(again, on_cpu.rethreshold(**thresholds))
    assert_same_results(clue, on_cpu)


def test_rethreshold_with_a_rhoc_for_each_point():
    case = Case(points(), rhoc=WEIGHT * 3)
    clue, on_cpu = fit_on_device(case), case.fit()
    assert_same_results(clue.rethreshold(delta_c=0.5), on_cpu.rethreshold(delta_c=0.5))
    assert_same_results(clue.rethreshold(rhoc=WEIGHT * 2), on_cpu.rethreshold(rhoc=WEIGHT * 2))


# --------------------------------------------------------------------------------------------------- a worker's chunks
@pytest.mark.parametrize(
    "partition",
    [
        Partition(groups=3),
        Partition(cuts=(np.array([1.0, 2.5]),), period=(0.0, 0.0), halo=2.5),
        Partition(groups=2, cuts=(np.array([2.0]), np.array([1.5])), period=(0.0, 0.0), halo=2.5),
    ],
    ids=["layers", "blocks", "both"],
)
def test_chunks_as_a_worker_treats_them(cupy, partition):
    case = Case(points(), 1.0, 2.0, {"layer": LAYER, "sample_weight": WEIGHT}, {"kernel": "gaussian"})
    columns = {"X": case.X, "layer": case.columns["layer"].astype(np.int32), "weight": WEIGHT}
    columns = {name: cupy.asarray(values) for name, values in columns.items()}
    chunks = partition.split(columns, 0, group=columns["layer"])
    assert_steps(case.estimator()._plan((0, 1)), chunks, results(case.fit()))
