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

OF_ALL = {"_survey_in_strides", "write_keys", "count_heads", "write_heads", "find_row_firsts", "write_cells"}
OF_ALL |= {"write_positions", "write_boxes", "start", "link_part", "link_listed", "start_counts", "first_points"}
OF_ALL |= {"mark_first", "label_point"}
OF_CORES = {"gather_core_of_cell", "number_cells", "label_border_point"}
OF_COUNTS = OF_CORES | {"count_of_point"}
OF_WEIGHTS = OF_CORES | {"weigh_point"}
OF_CHUNKS = {"forget_far", "label_core", "mark_shared", "lower_to_set"}
OF_PAIRS = {"start_points", "count_all", "weigh_all", "keep_core", "link_all", "label_border_all"}

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
    assert names(recorder.launched) == OF_ALL | OF_COUNTS | OF_CHUNKS
    case = case_of(d, dtype, weighted=True)
    assert_answer(case.fit(), case.answer())
    run_in_blocks(case)
    assert names(recorder.launched) == OF_ALL | OF_COUNTS | OF_WEIGHTS | OF_CHUNKS
    compiled = check(recorder.launched, tmp_path, MAY_DIVIDE)
    assert compiled == names(recorder.launched)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_friends_launch_what_links_need(recorder, d):
    case = case_of(d, np.float32, min_samples=2)
    assert_answer(case.fit(), case.answer())
    assert names(recorder.launched) == OF_ALL
    run_in_blocks(case)
    assert names(recorder.launched) == OF_ALL | {"label_core", "mark_shared"}


@pytest.mark.parametrize("d", [1, 2])
def test_wide_spaces_assemble(recorder, tmp_path, d):
    """Columns in 64 bits, and rows by rank."""
    case = case_of(d, np.float64, period=(1e12,) * d)
    case.X[::3] += 5e11
    assert_answer(case.fit(), case.answer())
    assert names(recorder.launched) == OF_ALL | OF_COUNTS | ({"write_rows"} if d == 2 else set())
    columns = [launch for launch in recorder.launched if has_long_columns(launch.args)]
    assert names(columns) >= {"link_part", "count_of_point", "write_heads"}
    assert check(recorder.launched, tmp_path, MAY_DIVIDE)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [4, 10])
def test_pairs_assemble(recorder, tmp_path, d, dtype):
    """More than three dimensions."""
    X = np.random.default_rng(d).uniform(0, 2.0, (200, d)).astype(dtype)
    for case in (Case(X, 1.0, 4, None, (3.0,) * d), Case(X, 1.0, 4, X[:, 0].astype(np.float64))):
        assert_answer(case.fit(), case.answer())
    found = check(recorder.launched, tmp_path)
    assert found > OF_PAIRS


def has_long_columns(args):
    return any(isinstance(each, Blocks) and each.column.dtype == np.int64 for each in args)
