"""The compiler of CUDA kernels: chosen here, and refused with the remedy where it cannot work."""

from __future__ import annotations

import importlib.util
import os
from importlib import metadata
from typing import Any

INSTALL = 'pip install "daskclust[gpu]" (CUDA 13) or "daskclust[gpu12]" (CUDA 12)'

REMEDIES = {"numba-cuda": INSTALL, "numba-cuda-mlir": 'pip install "numba-cuda-mlir[cu13]"'}

SWITCH = "DASKCLUST_CUDA_COMPILER"
"""Environment variable: the compiler, ``numba-cuda`` or ``numba-cuda-mlir``, its successor."""

_OURS = "daskclust.core.device.machine_code"
MODULES = {
    "numba-cuda": ("numba.cuda", "numba.cuda.types", f"{_OURS}.cuda_numba"),
    "numba-cuda-mlir": ("numba_cuda_mlir.cuda", "numba_cuda_mlir.numba_cuda.types", f"{_OURS}.cuda_mlir"),
}
DEFAULT, NAMES = "numba-cuda", ("cuda", "types", "own", "launching")


def misfit(numba_cuda: str, numpy: str) -> str:
    """Say why a version of numba-cuda compiles nothing beside one of NumPy, and what to do; "" where it does.

    It uses what NumPy 2.5 has taken out, is in maintenance mode, and will not be mended.
    """
    if tuple(map(int, numpy.split(".")[:2])) < (2, 5):
        return ""
    return f'numba-cuda {numba_cuda} compiles no kernels beside NumPy {numpy}: pip install "numpy<2.5"'


def misfit_here() -> str:
    """Say so of what is installed and chosen; "" without numba-cuda."""
    if os.environ.get(SWITCH, DEFAULT) != DEFAULT:
        return ""
    try:
        return misfit(metadata.version("numba-cuda"), metadata.version("numpy"))
    except metadata.PackageNotFoundError:
        return ""


def __getattr__(name: str) -> Any:
    """Return the module `cuda` of the compiler, its `types`, our `own` code for it, or `launching`."""
    if name not in NAMES:
        raise AttributeError(name)
    chosen = os.environ.get(SWITCH) or DEFAULT
    if chosen not in MODULES:
        raise ValueError(f"{SWITCH} must be one of {sorted(MODULES)}, got {chosen!r}")
    if importlib.util.find_spec(chosen.replace("-", "_")) is None:
        raise ImportError(f"{chosen}, which compiles CUDA kernels, is missing: {REMEDIES[chosen]}")
    if found := misfit_here():
        raise ImportError("no CUDA kernel can be compiled: {}; {}".format(*found.split(": ", 1)))
    modules = dict(zip(NAMES, (*MODULES[chosen], f"{_OURS}.launching"), strict=True))
    globals()[name] = importlib.import_module(modules[name])
    return globals()[name]
