"""Compile and assemble the kernel that measures how fast a GPU computes, without one."""

import re

import numpy as np
import pytest

from ptx.assembling import ARCHITECTURES, assemble, compiled

pytestmark = pytest.mark.ptx


def test_all_chains_are_there_and_fused(tmp_path):
    """Unlike the kernels of systems, it is to be as fast as the device can be."""
    from bench.roofline import OPERATIONS, multiply_add

    args = (np.zeros(80, np.int32), 256, np.zeros(80, np.float32))
    for architecture, ptx in zip(ARCHITECTURES, compiled(multiply_add, 1, args), strict=True):
        fused = re.findall(r"\bfma\.rn\.f32\b", ptx)
        assert len(fused) >= OPERATIONS // 2
        assert ".f64" not in ptx
        assemble(ptx, architecture, tmp_path)
