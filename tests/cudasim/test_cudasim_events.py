"""Event building's CUDA path in the simulator, thread by thread: the CPU's answer."""

from __future__ import annotations

import numpy as np
import pytest
from cases.events import TICK, VARIANTS, Case, assert_labels, cases, dense
from cases.steps import assert_steps, given_chunks
from hypothesis import given, settings
from numba import cuda

from daskclust.core.device.arrays import is_cuda
from daskclust.core.space.partition import Partition

pytestmark = pytest.mark.cudasim


def on_device(hits):
    return {name: cuda.to_device(values) for name, values in hits.items()}


def fit_on_device(case):
    """Fit to simulated device arrays; the labels must be one."""
    hits = {name: values for name, values in case.hits.items() if name != "chip" or not case.quad}
    builder = case.estimator().fit(on_device(hits))
    assert is_cuda(builder.labels_)
    assert isinstance(builder.n_clusters_, int)
    return builder


@settings(max_examples=15)
@given(cases(most=40))
def test_drawn_cases(case):
    assert_labels(fit_on_device(case), case.answer())


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("min_hits", [1, 3])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_more_hits_than_threads(variant, min_hits, is_sorted):
    case = Case(dense(150, 2, ticks=400), 8 * TICK, {"variant": variant, "min_hits": min_hits})
    if not is_sorted:
        case = case.reordered(np.random.default_rng(1).permutation(150))
    assert_labels(fit_on_device(case), case.answer())


@pytest.mark.parametrize("variant", VARIANTS)
def test_few_and_equal_hits(variant):
    for n, min_hits in ((1, 1), (1, 2), (20, 1), (20, 21)):
        hits = {"x": np.full(n, -7), "y": np.full(n, 3), "toa": np.full(n, 5.0)}
        case = Case(hits, 100.0, {"variant": variant, "min_hits": min_hits})
        assert_labels(fit_on_device(case), case.answer())


def test_coordinates_far_apart_need_no_table():
    rng = np.random.default_rng(3)
    hits = {name: rng.choice([-(10**9), 0, 1, 10**12], 60) for name in ("x", "y")} | {"toa": np.arange(60) * TICK}
    case = Case(hits, 30.0)
    assert_labels(fit_on_device(case), case.answer())


def test_whole_floats_and_other_times():
    hits = dense(40)
    case = Case({**hits, "x": hits["x"].astype(float), "toa": hits["toa"].astype(np.float32)}, 50.0)
    wanted = Case({**case.hits, "toa": case.hits["toa"].astype(float)}, 50.0).answer()
    assert_labels(fit_on_device(case), wanted)


def test_results_are_not_overwritten_by_the_next_fit():
    first, second = (Case(dense(40, seed), 50.0) for seed in (4, 5))
    builder = fit_on_device(first)
    fit_on_device(second)
    assert_labels(builder, first.answer())


# --------------------------------------------------------------------------------------------------- a worker's chunks
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("cuts", [[], [300.3], [100.3, 110.3, 300.3, 5000.0, 6000.0]])
def test_windows_as_a_worker_treats_them(cupy, variant, cuts):
    case = Case(dense(90, 6, ticks=400), 12 * TICK, {"variant": variant, "min_hits": 2})
    case = case.reordered(np.random.default_rng(2).permutation(90))
    columns = {name: cupy.asarray(case.hits[name]) for name in ("toa", "x", "y", "chip")}
    chunks = Partition(cuts=(np.array(cuts),), period=(0.0,)).split(columns, 0, "toa")
    assert_steps(case.estimator()._plan(), chunks, {"labels": case.answer()})


@pytest.mark.parametrize("variant", VARIANTS)
def test_given_chunks(cupy, variant):
    case = Case(dense(60, 7, ticks=300), 12 * TICK, {"variant": variant})
    columns = {name: cupy.asarray(case.hits[name]) for name in ("toa", "x", "y", "chip")}
    chunks = given_chunks(columns, (20, 1, 24, 15), cupy.arange)
    assert_steps(case.estimator()._plan(), chunks, {"labels": case.answer()})
