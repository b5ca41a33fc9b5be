"""Compile and assemble every CUDA kernel that DBSCAN and friends-of-friends launch, without a GPU.

The CUDA path's results, as the recorder finds them on the CPU, are compared with brute force too.
"""

import numpy as np
import pytest
from cases.dbscan import Case, assert_answer
from cases.steps import assert_steps

from daskclust.dbscan.kernels.blocks import Blocks
from ptx.assembling import check
from ptx.recorder import names, stand_in

pytestmark = pytest.mark.ptx

# A row's number is 64 bits, and divided once for a cell, not for each distance.
MAY_DIVIDE = ("count_heads", "write_heads", "count_of_point", "weigh_point", "link_part", "label_border_point")


@pytest.fixture
def recorder(monkeypatch):
    from daskclust.core.space import extent
    from daskclust.dbscan import plan

    return stand_in(monkeypatch, plan, extent)


def case_of(d, dtype, weighted=False, period=(), min_samples=4, n=200):
    rng = np.random.default_rng(d)
    X = rng.uniform(0, {1: 60.0, 2: 8.0, 3: 4.0}[d], (n, d)).astype(dtype)
    return Case(X, 0.7, min_samples, rng.integers(-1, 9, n) / 4 if weighted else None, period)


def run_in_blocks(case):
    """Run the plan on two blocks with halos, as workers do, and compare what they give with brute force."""
    chunks = case.partition([float(np.median(case.X[:, 0]))]).split(case.columns(), 0)
    assert_steps(case.plan(), chunks, case.answer()._asdict())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_every_kernel_assembles(recorder, tmp_path, d, dtype):
    """With counts and with weights, of all points and in blocks, open and periodic."""
    for period in ((), (4.0,) * d):
        case = case_of(d, dtype, False, period)
        assert_answer(case.fit(), case.answer())
        run_in_blocks(case)
    case = case_of(d, dtype, weighted=True)
    assert_answer(case.fit(), case.answer())
    run_in_blocks(case)
    compiled = check(recorder.launched, tmp_path, MAY_DIVIDE)
    assert compiled == names(recorder.launched)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_friends_launch_what_links_need(recorder, d):
    case = case_of(d, np.float32, min_samples=2)
    assert_answer(case.fit(), case.answer())
    run_in_blocks(case)
    assert names(recorder.launched).isdisjoint({"count_of_point", "weigh_point", "label_border_point"})


@pytest.mark.parametrize("d", [1, 2])
def test_wide_spaces_assemble(recorder, tmp_path, d):
    """Columns in 64 bits, and rows by rank."""
    case = case_of(d, np.float64, period=(1e12,) * d)
    case.X[::3] += 5e11
    assert_answer(case.fit(), case.answer())
    assert ("write_rows" in names(recorder.launched)) == (d == 2)
    assert any(has_long_columns(launch.args) for launch in recorder.launched)
    assert check(recorder.launched, tmp_path, MAY_DIVIDE)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [4, 10])
def test_pairs_assemble(recorder, tmp_path, d, dtype):
    """More than three dimensions."""
    X = np.random.default_rng(d).uniform(0, 2.0, (200, d)).astype(dtype)
    for case in (Case(X, 1.0, 4, None, (3.0,) * d), Case(X, 1.0, 4, X[:, 0].astype(np.float64))):
        assert_answer(case.fit(), case.answer())
    assert check(recorder.launched, tmp_path) >= {"count_all", "weigh_all", "link_all"}


def has_long_columns(args):
    return any(isinstance(each, Blocks) and each.column.dtype == np.int64 for each in args)
