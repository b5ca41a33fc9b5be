"""Compile kernels ahead of the first task: by running each system on a few points."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
from distributed import Worker, WorkerPlugin

from daskclust import systems as registry
from daskclust.core.device.arrays import cupy_module

SYSTEMS = tuple(registry.SYSTEMS)


def compile_kernels(systems: str | Sequence[str] = "all", *, cuda: bool = False) -> None:
    """Compile the kernels of systems, in memory and on Dask, for the usual kinds of points.

    Machine code for the CPU is kept in numba's cache, beside the package or, where that cannot be written, in the
    user's folder; ``NUMBA_CACHE_DIR`` names another. With an empty cache a system takes some ten seconds.

    Parameters
    ----------
    systems : str or sequence of str, default "all"
        ``"clue"``, ``"events"``, ``"fof"``, ``"dbscan"``, ``"hca"``, or ``"all"``.
    cuda : bool, default False
        Whether they are compiled for this process's GPU, and not for the CPU.

    Raises
    ------
    ValueError, ImportError
        For unknown systems; where CuPy is missing, with `cuda`.
    """
    import dask

    names = checked_systems(systems)
    give = cupy_module().asarray if cuda else np.asarray
    with dask.config.set(scheduler="synchronous"):
        for name in names:
            for fitted in registry.run_all(registry.SYSTEMS[name], give):
                dask.compute(fitted.labels_)


class CompileKernels(WorkerPlugin):
    """Worker plugin: kernels are compiled, or loaded from numba's cache, as a worker starts."""

    name = "daskclust-compile-kernels"
    idempotent = False

    def __init__(self, systems: Sequence[str], cuda: bool = False) -> None:
        self.systems = tuple(systems)
        self.cuda = cuda

    async def setup(self, worker: Worker) -> None:
        """Compile in a thread of the worker's, which goes on talking to its scheduler."""
        await asyncio.to_thread(compile_kernels, self.systems, cuda=self.cuda)


def checked_systems(systems: str | Sequence[str]) -> tuple[str, ...]:
    """Return names of systems, checked; of ``"all"`` each."""
    names = SYSTEMS if systems == "all" else (systems,) if isinstance(systems, str) else tuple(systems)
    for name in names:
        if name not in SYSTEMS:
            raise ValueError(f"systems are {', '.join(SYSTEMS)}, or all; got {name!r}")
    return names
