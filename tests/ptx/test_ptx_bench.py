"""Compile and assemble the kernel that measures how fast a GPU computes, without one."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from ptx.recorder import ARCHITECTURES, assemble

pytestmark = pytest.mark.ptx


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_all_chains_are_there_and_fused(tmp_path, monkeypatch, architecture):
    """Unlike the kernels of systems, it is to be as fast as the device can be."""
    import numba.cuda.dispatcher
    from numba import cuda
    from numba.cuda import types
    from numba.cuda.typing.typeof import typeof

    from daskclust.bench.kernels import OPERATIONS, multiply_add

    fake = SimpleNamespace(compute_capability=architecture)
    monkeypatch.setattr(numba.cuda.dispatcher, "get_current_device", lambda: fake)
    args = (np.zeros(80, np.int32), 256, np.zeros(80, np.float32))
    function = multiply_add.grid.py_func
    ptx, _ = cuda.compile_ptx(function, (types.int64, typeof(args)), cc=architecture, device=False)
    fused = re.findall(r"\bfma\.rn\.f32\b", ptx)
    assert len(fused) >= OPERATIONS // 2
    assert ".f64" not in ptx
    assemble(ptx, architecture, tmp_path)
