"""Start a Dask cluster on this machine or on its GPUs, or go to one that is there, with what workers need."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import math
import os
import re
import signal
import sys
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import Any

import dask
from dask.system import CPU_COUNT
from dask.utils import parse_bytes
from distributed import Client, Worker, WorkerPlugin

from daskclust.core.data.checks import check_whole
from daskclust.core.device.arrays import cupy_module
from daskclust.core.device.freed_memory import keep_freed
from daskclust.core.run.ending import end_at_once
from daskclust.machine import check_gpu, gpus, missing_for_cuda, no_gpu
from daskclust.workers._compile import CompileKernels, checked_systems, compile_on, hear_compiling
from daskclust.workers._connect import connect

_NUMBER = re.compile(r"\s*[\d.]+\s*")  # "0.5" is a fraction, as 0.5 is
# Bytes that a worker needs, roughly: it takes 66 MB alone, and 400 MB with the kernels of all systems.
_LEAST_MEMORY = 150_000_000
_OF_CHUNKS, _OF_POOL = 0.5, 0.9  # shares of a GPU's memory: of chunks that wait on it, and of all that CuPy takes
# How long a worker that died may take to start again: Dask gives up after 15 s, which a busy machine needs to import
# all libraries; the cluster loses worker after worker, and the last one's tasks wait for ever. How much of an
# exchange waits in the memory of a worker to be sent: a GiB is all that a small worker has. And from which size on
# memory that is freed goes back to the system at once: with the trimming that Dask asks for from 128 KiB on, and
# the page faults of fresh memory were two fifths of the CPU time of a table; NumPy asks for huge pages from 4 MiB on.
_DEFAULTS = {
    "distributed": {
        "deploy": {"lost-worker-timeout": "10 minutes"},
        "p2p": {"comm": {"buffer": "128 MiB"}},
        "nanny": {"pre-spawn-environ": {"MALLOC_MMAP_THRESHOLD_": 4 << 20}},
    }
}
# Where no dashboard is asked for, Dask serves metrics all the same, and warns where another cluster has the usual port.
_UNSEEN_AT = {"scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"}}
# Nobody sees the profile of workers without a dashboard; it and looks at the event loop every 20 ms took half of the
# CPU time of that loop. Python 3.11 may stand still where a thread looks at others that run (its issue 106883).
_NO_PROFILE = {"distributed.worker.profile.enabled": False}
_UNSEEN = {**_NO_PROFILE, "distributed.admin.tick.interval": "500ms"}
_SEEN = _NO_PROFILE if sys.version_info < (3, 12) else {}
# Workers with more memory keep some that is freed for the next task. With what Dask asks for, page faults of fresh
# memory were a fifth of the CPU time of friends-of-friends.
_ROOMY, _DASK_TRIMS = 2 << 30, "65536"
_KEPT = 256 << 20  # bytes


def start(
    n_workers: int | None = None,
    *,
    cuda: bool | None = False,
    scheduler: Any = None,
    wait: str | float | None = None,
    memory_limit: str | float | None = None,
    processes: bool = True,
    dashboard: str | None = "127.0.0.1:0",
    warm: str | Sequence[str] = (),
    silent: bool = False,
) -> Client:
    """Return a client of a Dask cluster whose workers suit the kernels.

    A worker runs one task at a time and kernels run on one thread within it, so that a worker for each core, or for
    each GPU, uses the machine. Ctrl-C in a terminal is for this process alone: its workers go on until it closes them.

    Parameters
    ----------
    n_workers : int, optional
        Default: one for each core that this process may use, or for each GPU. With `scheduler`: how many workers to
        wait for, by default one.
    cuda : bool or None, default False
        Whether workers have a GPU each: dask-cuda's `LocalCUDACluster`, with CuPy's memory from RMM's pool if that is
        installed, else from CuPy's own, up to nine tenths of the GPU's. Chunks that wait go to the host's memory where
        they take more than half of the GPU's. None: where this machine can. Where arrays are still decides where
        kernels run.
    scheduler : str or cluster, optional
        Address of a scheduler that runs, such as ``"tcp://host:8786"``, or a cluster object, of dask-jobqueue or
        dask-gateway for instance. Nothing is started then.
    wait : str or float, optional
        How long to wait for the workers of a `scheduler`: ``"2h"``, ``"10 minutes"``, or seconds. Default: a minute; a
        day for a cluster of dask-jobqueue, whose jobs may be in a queue. After ten seconds a line is logged.
    memory_limit : str, float or None, optional
        Memory of each worker: ``"4GB"``, a number of bytes, or a fraction of the machine's; 0: no limit. Workers write
        data to disk as they come near it. Default: the machine's memory over the workers.
    processes : bool, default True
        Whether workers are processes of their own, or threads of this one.
    dashboard : str or None, default "127.0.0.1:0"
        Address of the dashboard; port 0 takes any free one, ``client.dashboard_link`` says which. None: there is none,
        and the start takes a third of a second of CPU time less; workers keep no profile of their tasks then, nor with
        Python 3.11.
    warm : str or sequence of str, default ()
        Systems whose kernels the workers compile at once, side by side, and not in their first task: as of
        `compile_kernels`. All load them then.
    silent : bool, default False
        Whether workers log no errors of tasks, which are raised where results are asked for.

    Returns
    -------
    distributed.Client
        To be closed by the caller; closing it stops the workers too, but for those of a `scheduler`.

    Raises
    ------
    ValueError
        For numbers of workers, times, memory and systems that cannot be, for `memory_limit` with a `scheduler`, and for
        `wait` without one.
    NoGPUError
        A RuntimeError: where a driver, a GPU or a package is missing, with how to install it.
    ConnectionError
        Where no scheduler answers within a minute, or fewer workers come in time than were asked for.

    Examples
    --------
    >>> with start(1, processes=False) as client:
    ...     client.submit(sum, [1, 2]).result()
    3
    """
    systems = checked_systems(warm)
    if n_workers is not None:
        check_whole("n_workers", n_workers, 1)
    on_gpus = not missing_for_cuda() if cuda is None else cuda
    if scheduler is not None:
        if memory_limit is not None:
            raise ValueError(
                f"memory_limit is for workers that are started here, got {memory_limit!r}; those of a scheduler have "
                "the limit that they were started with: `dask worker --memory-limit`"
            )
        client = connect(scheduler, n_workers or 1, wait)
    elif wait is not None:
        raise ValueError(f"wait is for workers of a scheduler, got {wait!r}; those that are started here come at once")
    elif on_gpus:
        client = _on_gpus(n_workers, memory_limit, dashboard)
    else:
        client = _on_cores(n_workers, memory_limit, processes, dashboard)
    logging.getLogger("distributed.shuffle").setLevel(logging.ERROR)  # it warns of each exchange that begins or ends
    try:
        asked = client.run(missing_for_cuda, False) if cuda and scheduler is not None else {}
        for address, missing in asked.items():
            if missing:
                raise no_gpu(f"the worker {address} has no GPU", missing)
        hear_compiling(client)
        client.register_plugin(KeepMemory())
        if processes and scheduler is None and not on_gpus:
            client.register_plugin(EndAtOnce())
        if systems:
            compile_on(client, systems, cuda=on_gpus)
            client.register_plugin(CompileKernels(systems, on_gpus))  # all load them, and who comes later
        if silent:
            client.register_plugin(Silent())
    except BaseException:
        client.close()
        raise
    return client


class KeepMemory(WorkerPlugin):
    """Worker plugin: a process with much memory keeps some that is freed, unless its environment says how much."""

    name = "daskclust-keep-memory"

    def setup(self, worker: Worker) -> None:
        """Tell glibc, if there is one."""
        limit = worker.memory_manager.memory_limit or math.inf  # type: ignore[no-untyped-call,unused-ignore]
        is_asked = os.environ.get("MALLOC_TRIM_THRESHOLD_", "") == _DASK_TRIMS  # by a nanny, so it is a process
        if is_asked and limit >= _ROOMY:
            keep_freed(_KEPT, one_arena=worker.state.nthreads == 1)


class EndAtOnce(WorkerPlugin):
    """Worker plugin: the process of a worker ends without taking the interpreter apart."""

    name = "daskclust-end-at-once"

    def setup(self, worker: Worker) -> None:
        """Have it called at exit, after what is registered later: temporary folders of tasks are removed by then."""
        weakref.finalize(end_at_once, end_at_once)  # finalizers are called youngest first, and registered functions too


class Silent(WorkerPlugin):
    """Worker plugin: errors of tasks are not logged, as they are raised where the results are asked for."""

    name = "daskclust-silent"

    def setup(self, worker: Worker) -> None:
        """Log what ends the worker alone."""
        logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)


class LimitPool(WorkerPlugin):
    """Worker plugin: CuPy's own pool leaves memory of the GPU to the driver and to other programs."""

    name = "daskclust-limit-pool"

    def setup(self, worker: Worker) -> None:
        """Set the limit of this worker's process."""
        cupy_module().get_default_memory_pool().set_limit(fraction=_OF_POOL)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let processes that begin here never see Ctrl-C, which a terminal sends to all: this one ends them."""
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # were it started below, it would let them in again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _on_cores(
    n_workers: int | None, memory_limit: str | float | None, processes: bool, dashboard: str | None
) -> Client:
    dask.config.update_defaults(_DEFAULTS)  # what the user has set stays
    count = CPU_COUNT if n_workers is None else n_workers
    limit = _bytes(memory_limit, count if processes else 1) if processes or memory_limit is not None else 0
    Thread(target=importlib.import_module, args=("dask.array",), daemon=True).start()  # while workers start
    with _without_interrupts(), dask.config.set(_SEEN if dashboard else _UNSEEN):
        # a client that makes its own cluster closes it too
        return Client(
            n_workers=count if processes else 1,
            threads_per_worker=1 if processes else count,
            processes=processes,
            dashboard_address=dashboard,
            memory_limit=limit,
            direct_to_workers=True,  # a result does not pass the scheduler, twice as many bytes through sockets
            **({} if dashboard else _UNSEEN_AT),
        )


def _on_gpus(n_workers: int | None, memory_limit: str | float | None, dashboard: str | None) -> Client:
    check_gpu(dask=True)
    count = len(gpus())
    if n_workers is not None and n_workers > count:
        raise ValueError(f"n_workers must be at most {count}, a worker for each GPU, got {n_workers}")
    from dask_cuda import LocalCUDACluster

    class OwningClient(Client):
        """A client that stops the workers as it is closed, as one does that makes its cluster itself.

        Dask knows a client as a scheduler by this word in the name of its class.
        """

        def close(self, *args: Any, **kwargs: Any) -> Any:
            closed = super().close(*args, **kwargs)  # type: ignore[no-untyped-call]
            # Once: a client that is collected closes itself again, maybe within the start of another, which holds the
            # lock that closing a cluster waits for.
            if cluster.status.name != "closed":
                cluster.close()
            return closed

    has_rmm = importlib.util.find_spec("rmm") is not None
    # half of the device's memory at once, and more as it is needed; CuPy takes its arrays from there
    pool = {"rmm_pool_size": 0.5, "rmm_allocator_external_lib_list": ["cupy"]} if has_rmm else {}
    limit = _bytes(memory_limit, n_workers or count)
    dask.config.update_defaults(_DEFAULTS)
    with _without_interrupts():
        cluster = LocalCUDACluster(
            n_workers=n_workers,
            threads_per_worker=1,
            memory_limit=limit,
            device_memory_limit=_OF_CHUNKS,
            dashboard_address=dashboard,
            **({} if dashboard else _UNSEEN_AT),
            **pool,
        )
    try:
        client = OwningClient(cluster)  # type: ignore[no-untyped-call]
        if not has_rmm:
            client.register_plugin(LimitPool())
        return client
    except BaseException:
        cluster.close()
        raise


def _bytes(memory_limit: str | float | None, count: int) -> Any:
    """Return the limit of one of `count` workers as distributed takes it: bytes, or a fraction of the machine's."""
    if memory_limit is None or memory_limit == "auto":
        return 1 / count  # distributed's "auto" is over the cores: too much for many workers, too little for few
    try:
        is_plain = not isinstance(memory_limit, str) or _NUMBER.fullmatch(memory_limit)
        amount = float(memory_limit) if is_plain else parse_bytes(memory_limit)
    except (ValueError, TypeError):
        amount = math.nan
    if not 0 <= amount < math.inf:
        raise ValueError(f'memory_limit must be an amount of memory such as "4GB", got {memory_limit!r}')
    if 1 < amount < _LEAST_MEMORY:  # below, it is a fraction, or none
        raise ValueError(
            f"memory_limit must be {_LEAST_MEMORY // 10**6} MB or more, got {memory_limit!r}: a worker needs that for "
            "itself, and would be restarted for ever"
        )
    return amount
