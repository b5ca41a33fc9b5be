"""Compile kernels ahead of the first task: by running each system on a few points."""

from __future__ import annotations

import asyncio
import os
import platform
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from distributed import Client, Worker, WorkerPlugin, as_completed
from distributed.comm import get_address_host

from daskclust import systems as registry
from daskclust.core.device.arrays import cupy_module
from daskclust.core.device.machine_code import compiling

SYSTEMS = tuple(registry.SYSTEMS)
TOPIC = "daskclust-compiling"
_one_at_a_time = threading.Lock()  # in a process: numba compiles so, and dask's settings are the process's


def compile_kernels(systems: str | Sequence[str] = "all", *, cuda: bool = False) -> None:
    """Compile the kernels of systems, in memory and on Dask, for the usual kinds of points.

    Machine code for the CPU is kept in numba's cache, beside the package or, where that cannot be written, in the
    user's folder; ``NUMBA_CACHE_DIR`` names another. With an empty cache a system takes some ten seconds; what came
    with the package takes none. The command ``daskclust warm`` does the same on all cores.

    Parameters
    ----------
    systems : str or sequence of str, default "all"
        ``"clue"``, ``"showers"``, ``"events"``, ``"fof"``, ``"dbscan"``, ``"hdbscan"``, ``"hca"``, or ``"all"``.
    cuda : bool, default False
        Whether they are compiled for this process's GPU, and not for the CPU.

    Raises
    ------
    ValueError, ImportError
        For unknown systems; where CuPy is missing, with `cuda`.
    """
    for use in registry.uses(checked_systems(systems)):
        _compile_for(use, cuda=cuda)


def _compile_for(use: tuple[str, registry.Run, str], *, cuda: bool) -> int:
    """Run a system on a few points; return how many kernels that compiled here."""
    import dask

    name, run, dtype = use
    give = cupy_module().asarray if cuda else np.asarray
    with _one_at_a_time, dask.config.set(scheduler="synchronous"):
        before = compiling.count()
        for fitted in registry.run_one(registry.SYSTEMS[name], run, dtype, give):
            dask.compute(fitted.labels_)
        return compiling.count() - before


def compile_on(
    client: Client, systems: Sequence[str], *, cuda: bool, report: Callable[[int, int], None] = lambda *_: None
) -> int:
    """Compile kernels on the workers of a cluster, side by side and once on each machine; return how many they were.

    `report` is called with the number of uses of systems that are done, and that of all.
    """
    uses, hosts = registry.uses(systems), defaultdict(list)
    for address in client.nthreads():
        hosts[get_address_host(address)].append(address)
    futures: list[Any] = []
    for addresses in hosts.values():  # each has a cache of its own, or nothing left to compile
        futures += client.map(_compile_for, uses, cuda=cuda, workers=addresses, pure=False, key="daskclust-compile")
    done = 0
    for number, (_, compiled) in enumerate(as_completed(futures, with_results=True), start=1):
        done += compiled
        report(number, len(futures))
    return done


class CompileKernels(WorkerPlugin):
    """Worker plugin: kernels are compiled, or loaded from numba's cache, as a worker starts."""

    name = "daskclust-compile-kernels"

    def __init__(self, systems: Sequence[str], cuda: bool = False) -> None:
        self.systems = tuple(systems)
        self.cuda = cuda

    async def setup(self, worker: Worker) -> None:
        """Compile in a thread of the worker's, which goes on talking to its scheduler."""
        await asyncio.to_thread(compile_kernels, self.systems, cuda=self.cuda)


class TellCompiling(WorkerPlugin):
    """Worker plugin: clients hear that a worker compiles kernels, as if this process did."""

    name = "daskclust-tell-compiling"
    idempotent = True

    def __init__(self) -> None:
        self._client = _process()

    def setup(self, worker: Worker) -> None:
        """Tell from now on, but not a client in the same process."""
        if _process() != self._client:
            compiling.listeners.append(lambda told: worker.log_event(TOPIC, told._asdict()))


def hear_compiling(client: Client) -> None:
    """Let who listens in this process hear of kernels that workers compile."""

    def hear(event: tuple[float, dict[str, Any]]) -> None:
        told = dict(event[1])
        compiling.heard(told.pop("worker"), compiling.Compiling(**told))

    client.register_plugin(TellCompiling())
    client.subscribe_topic(TOPIC, hear)


def _process() -> tuple[str, int]:
    return platform.node(), os.getpid()


def checked_systems(systems: str | Sequence[str]) -> tuple[str, ...]:
    """Return names of systems, checked; of ``"all"`` each."""
    names = SYSTEMS if systems == "all" else (systems,) if isinstance(systems, str) else tuple(systems)
    for name in names:
        if name not in SYSTEMS:
            raise ValueError(f"systems are {', '.join(SYSTEMS)}, or all; got {name!r}")
    return names
