"""Kernels of the CPU by numba's public names, for a version whose inner parts `compiled.py` does not know.

They give the same bits, but take several times as long to compile, in each process: nothing is kept on disk.
In a copy of a loop `body` is the compiled body.
"""

# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations

from types import FunctionType

from numba import njit

from daskclust.core.device.cpu import LANES


def each(first, last, *args):
    for i in range(first, last):
        body(i, *args)


def lanes(first, last, row, *args):
    i = first
    while i < last:
        m = 1
        while m < LANES and i + m < last and row[i + m] == row[i]:
            m += 1
        body(i, m, row, *args)
        i += m


def team(first, last, *args):
    for i in range(first, last):
        body(i, 0, 1, *args)


def function(source):
    """Return what numba compiles when it is first called."""
    return njit(nogil=True, error_model="numpy")(source)


def compile_kernel(body, args, loop):
    """Return ``loop(first, last, *args)``, compiled for arguments like these."""
    kernel = function(FunctionType(globals()[loop].__code__, {"body": body, "LANES": LANES}, loop))
    kernel(0, 0, *args)
    return kernel
