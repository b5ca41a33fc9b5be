"""The compiler of CUDA kernels, numba-cuda: asked for here, and refused with the remedy where it cannot work."""

from __future__ import annotations

import functools
from importlib import metadata
from typing import Any

INSTALL = 'pip install "daskclust[gpu]" (CUDA 13) or "daskclust[gpu12]" (CUDA 12)'


def misfit(numba_cuda: str, numpy: str) -> str:
    """Say why a version of numba-cuda compiles nothing beside one of NumPy, and what to do; "" where it does.

    It uses what NumPy 2.5 has taken out, is in maintenance mode, and will not be mended.
    """
    if not numba_cuda or tuple(map(int, numpy.split(".")[:2])) < (2, 5):
        return ""
    return f'numba-cuda {numba_cuda} compiles no kernels beside NumPy {numpy}: pip install "numpy<2.5"'


def misfit_here() -> str:
    """Say so of what is installed; "" without numba-cuda."""
    return misfit(_version(), metadata.version("numpy"))


def _version() -> str:
    try:
        return metadata.version("numba-cuda")
    except metadata.PackageNotFoundError:
        return ""


@functools.cache
def compiler() -> Any:
    """Return the module with numba-cuda's decorators, or say what to install."""
    if found := misfit_here() if _version() else f"numba-cuda missing: {INSTALL}":
        raise ImportError("no CUDA kernel can be compiled: {}; {}".format(*found.split(": ", 1)))
    from numba import cuda

    return cuda
