"""Compile and assemble every CUDA kernel that event building launches, without a GPU."""

import numpy as np
import pytest
from cases.events import VARIANTS, Case, assert_labels, dense

from daskclust.core.space.partition import Partition
from ptx.assembling import check
from ptx.recorder import stand_in

pytestmark = pytest.mark.ptx


@pytest.fixture
def recorder(monkeypatch):
    from daskclust.events import plan

    return stand_in(monkeypatch, plan)


@pytest.mark.parametrize("columns", ["uint16", "uint16 and chip", "int32", "int64"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_kernel_assembles(recorder, tmp_path, variant, columns):
    hits = dense(300, 1)
    dtype = columns.split()[0]
    hits = {**hits, "x": hits["x"].astype(dtype), "y": hits["y"].astype(dtype)}
    if "chip" not in columns:
        del hits["chip"]
    shuffled = Case(hits, 40.0, {"variant": variant, "min_hits": 2})
    shuffled = shuffled.reordered(np.random.default_rng(0).permutation(300))
    assert_labels(shuffled.fit(), shuffled.answer())
    assert check(recorder.launched, tmp_path) >= {"join_window" if variant == "local" else "join_quiet_window"}


@pytest.mark.parametrize("variant", VARIANTS)
def test_chunks(recorder, tmp_path, variant):
    case = Case(dense(300, 1), 40.0, {"variant": variant, "min_hits": 2})
    case = case.reordered(np.random.default_rng(0).permutation(300))
    partition = Partition(cuts=(np.array([500.3, 1500.3]),), period=(0.0,))
    assert_labels(case.chunked((300,), partition), case.answer())
    assert check(recorder.launched, tmp_path) >= {"find_first" if variant == "local" else "check_hit"}
