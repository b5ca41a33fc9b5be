"""DBSCAN's CUDA path in the simulator, thread by thread: the answer of brute force.

Run them in a process of their own, ``NUMBA_ENABLE_CUDASIM=1 python -m pytest -m cudasim tests/cudasim``. Points are
few: a launched thread costs about 0.3 ms.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases.dbscan import Case, assert_answer, cases
from cases.steps import assert_steps
from hypothesis import given, settings
from numba import cuda

from daskclust import DBSCAN, FriendsOfFriends
from daskclust.core.device.arrays import is_cuda

pytestmark = [
    pytest.mark.cudasim,
    # bit 63 of masks of cells: the simulator counts with numpy's scalars, which warn where CUDA's integers wrap around
    pytest.mark.filterwarnings("ignore:.*overflow encountered in scalar subtract:RuntimeWarning"),
]


def fit_on_device(case, weight_too=True):
    """Fit to simulated device arrays; weights may stay on the host."""
    weights = {}
    if case.weight is not None:
        weights = {"sample_weight": cuda.to_device(case.weight) if weight_too else case.weight}
    fitted = case.estimator().fit(cuda.to_device(case.X), **weights)
    assert is_cuda(fitted.labels_)
    assert is_cuda(fitted.is_core_)
    assert isinstance(fitted.n_clusters_, int)
    return fitted


def points(n=150, d=2, dtype=np.float32, size=8.0, seed=0):
    return np.random.default_rng(seed).uniform(0, size, (n, d)).astype(dtype)


WEIGHT = np.random.default_rng(1).integers(-2, 9, 150) / 4
SIZES = {1: 80.0, 2: 8.0, 3: 5.0}
LATTICE = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0)), -1).reshape(-1, 2)
CASES = {
    f"{d} axes, {min_samples} samples, {np.dtype(dtype).name}{', weights' if weighted else ''}": Case(
        points(150, d, dtype, SIZES[d]), 0.8, min_samples, WEIGHT if weighted else None
    )
    for d in SIZES
    for min_samples in (2, 4)
    for dtype, weighted in ((np.float32, False), (np.float64, True))
}
CASES |= {
    "positive weights": Case(points(), 0.8, 3, np.abs(WEIGHT)),
    "friends": Case(points(), 0.6, min_members=3),
    "friends, singletons": Case(points(), 0.6, min_members=1),
    "one sample": Case(points(), 0.6, 1),
    "periodic": Case(points(), 0.8, 4, None, (8.0, 8.0)),
    "one periodic axis": Case(points(d=3, size=3.0), 0.6, 5, WEIGHT, (0.0, 3.0, 0.0)),
    "shortest periods": Case(points(60, 2, np.float64) - 4, 1.0, 9, None, (2.0, 2.0)),
    "rows numbered by rank": Case(
        np.concatenate([points(30, 3, np.float64, 1e9), points(50, 3, np.float64, 2.0, 1) - 1.0]),
        0.8,
        4,
        None,
        (1e9,) * 3,
    ),
    "one short period": Case(points(80, 3) - 4, 1.0, 4, None, (2.0, 0.0, 5.0)),
    "lattice": Case(LATTICE, 1.0, 4),
    "lattice of tenths": Case(LATTICE / 10, 0.3, 12),
    "dense cells": Case(points(60, 2, size=1.5), 1.0, 6),
    "sparse rows": Case(np.concatenate([points(70), points(70) + 1e6]), 0.8, 3),
    "gaps cut out": Case(np.concatenate([points(60, 3, float), points(60, 3, float) + 1e12]), 1.5, 3),
    "one long axis": Case(np.concatenate([points(40, 1, float), points(40, 1, float) + 1e12]), 0.3, 3),
    "ranked rows": Case(np.concatenate([points(60, 2, float), 1e11 - points(60, 2, float)]), 1.0, 3, None, (1e11,) * 2),
    "noise": Case(points(size=500.0), 0.5, 3),
    "equal points": Case(np.full((40, 2), 2.5, np.float32), 0.5, 40),
    "one point": Case(points(1), 0.5, 1),
    "one lonely point": Case(points(1), 0.5, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_equal_to_brute_force(name):
    case = CASES[name]
    answer = case.answer()
    if len(case.X) > 100 and name != "noise":
        assert answer.labels.max() > 0  # else the test shows little
    assert_answer(fit_on_device(case), answer)


@settings(max_examples=8)
@given(cases(shapes=[(1, np.float64), (2, np.float32), (3, np.float32)], most=40))
def test_drawn_cases(case):
    assert_answer(fit_on_device(case), case.answer())


def test_weights_from_the_host():
    case = Case(points(60), 0.9, 3, WEIGHT[:60])
    assert_answer(fit_on_device(case, weight_too=False), case.answer())


# --------------------------------------------------------------------------------------------------- a worker's chunks
@pytest.mark.parametrize(
    ("case", "cuts"),
    [
        (Case(points(100), 0.7, 4), [[2.0, 5.0], [4.0]]),
        (Case(points(100), 0.6, 2), [[2.0, 5.0], [4.0]]),
        (Case(points(80, size=4.0), 0.5, 4, WEIGHT[:80], (4.0, 0.0)), [[1.0, 3.0]]),
        (Case(points(100, 3, size=3.0), 0.6, 5, None, (3.0, 3.0, 0.0)), [[1.5], [1.5]]),
    ],
    ids=["blocks", "links alone", "weights, periodic", "three axes, periodic"],
)
def test_chunks_as_a_worker_treats_them(cupy, case, cuts):
    plan, wanted = case.plan(), case.answer()
    columns = {name: cupy.asarray(values) for name, values in case.columns().items()}
    chunks = replace(case.partition(*cuts), halo=plan.halo).split(columns, 0)
    assert_steps(plan, chunks, {"labels": wanted.labels, "is_core": wanted.is_core})
    assert wanted.labels.max() > 0


# ------------------------------------------------------------------------------------------------------------ bad input
@pytest.mark.parametrize("d", [4, 7])
def test_too_many_axes(d):
    for estimator in (DBSCAN(1.0), FriendsOfFriends(1.0)):
        with pytest.raises(ValueError, match=rf"X has {d} coordinates; on a CUDA device up to 3.*cupy\.asnumpy\(X\)"):
            estimator.fit(cuda.to_device(points(30, d)))
