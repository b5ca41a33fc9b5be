"""The work of CLUE on CUDA, in the simulator: near linear, counted as elements of arrays that threads read."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from cases.clue import Case, assert_right, assert_same_results
from numba import cuda

from daskclust.clue.kernels import equal_points
from daskclust.core.device.arrays import HOST, device_of
from daskclust.core.space import sorting
from daskclust.core.space.grid import PAD, make_grid

pytestmark = pytest.mark.cudasim


@pytest.fixture
def reads(monkeypatch):
    """Count elements that are read from device arrays."""
    array_class = importlib.import_module("numba.cuda.simulator.cudadrv.devicearray").FakeWithinKernelCUDAArray
    count, read = [0], array_class.__getitem__

    def counting(self, index):
        count[0] += 1
        return read(self, index)

    monkeypatch.setattr(array_class, "__getitem__", counting)
    return count


def growth(reads, work):
    """Return how many times more is read for four times as many points."""
    counts = []
    for n in (40, 160):
        reads[0] = 0
        work(n)
        counts.append(reads[0])
    return counts[1] / counts[0]


@pytest.fixture
def few_are_many(monkeypatch):
    """Let the sizes from which on other ways are taken be ones that the simulator can reach."""
    monkeypatch.setattr(sorting, "_CROWD", 8)
    monkeypatch.setattr(equal_points, "MANY", 8)


def sort(X, move):
    """Return the order of points sorted into cells of width 1."""
    X = move(X)
    device = device_of(X)
    grid = make_grid(np.zeros(2), np.full(2, 3.0), 1.0, (0.0, 0.0), device.empty(0, np.int64))
    order = device.empty(len(X) + PAD, np.int32)
    sorting.sort_into_cells(device, X, device.empty(0, np.int32), 1, grid, order)
    return device.to_host(order)[: len(X)]


def test_sorting_points_of_one_cell(reads, few_are_many):
    assert growth(reads, lambda n: sort(np.full((n, 2), 0.5), cuda.to_device)) < 6


def test_sorting_into_crowded_cells_keeps_the_order(few_are_many):
    X = np.random.default_rng(0).uniform(0, 3, (150, 2))
    np.testing.assert_array_equal(sort(X, cuda.to_device), sort(X, np.asarray))
    assert device_of(X) is HOST


def test_equal_points(reads, few_are_many):
    def work(n):
        case = Case(np.full((n, 2), 2.5), 1.0, 5.0)
        assert_right(case, case.estimator().fit(cuda.to_device(case.X)))

    assert growth(reads, work) < 6


@pytest.mark.parametrize(
    "others", [{}, {"kernel": "gaussian", "delta_c": 20.0}, {"neighbor_weight": 0.5, "wrap": {0: 3.5}}], ids=str
)
def test_places_equal_the_cpu(few_are_many, others):
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 4, (12, 2))[rng.integers(0, 12, 80)].astype(np.float32)
    X[rng.random(80) < 0.3] += 0.25
    columns = {"sample_weight": rng.exponential(1.0, 80).astype(np.float32), "layer": rng.integers(0, 2, 80)}
    case = Case(X, 1.0, 5.0, columns, others)
    clue = case.estimator().fit(cuda.to_device(X), **{name: cuda.to_device(a) for name, a in columns.items()})
    assert_same_results(clue, case.fit())
