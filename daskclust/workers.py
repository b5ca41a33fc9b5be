"""Start a Dask cluster on this machine for clustering."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client


def start(n_workers: int | None = None, *, processes: bool = True, dashboard: str = "127.0.0.1:0") -> Client:
    """Return a client of a local cluster with one thread a worker.

    Kernels release the GIL and a task keeps one core busy, so a worker for each core uses the machine without more
    threads than cores. Ctrl-C in a terminal is for this process alone: workers go on.

    Parameters
    ----------
    n_workers : int, optional
        Number of workers. Default: one for each core.
    processes : bool, default True
        Whether workers are processes of their own, or threads of this one.
    dashboard : str, default "127.0.0.1:0"
        Address of the dashboard; port 0 takes any free one, ``client.dashboard_link`` says which.

    Returns
    -------
    distributed.Client
        To be closed by the caller; closing it stops the workers too.

    Raises
    ------
    ValueError
        For fewer workers than one.

    Examples
    --------
    >>> with start(1, processes=False) as client:
    ...     client.submit(sum, [1, 2]).result()
    3
    """
    from distributed import Client

    count = len(os.sched_getaffinity(0)) if n_workers is None else n_workers
    if count < 1:
        raise ValueError(f"n_workers must be at least 1, got {n_workers!r}")
    with _without_interrupts():
        # a client that makes its own cluster closes it too
        return Client(
            n_workers=count if processes else 1,
            threads_per_worker=1 if processes else count,
            processes=processes,
            dashboard_address=dashboard,
            memory_limit="auto" if processes else 0,
        )


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


def persist(collection: Any, report: Callable[[int, int, str], None]) -> Any:
    """Compute a lazy collection on the workers, where its parts stay, and tell how far it is meanwhile.

    Parameters
    ----------
    collection : dask collection or xarray.Dataset
        What is to be computed by the current client.
    report : function
        Called with the number of tasks done, that of all, and the step that the last one belongs to, whenever the
        scheduler learns of one: in a thread of the scheduler where that is in this process, so it must be quick. Of a
        scheduler elsewhere, parts of the result are counted.

    Returns
    -------
    dask collection or xarray.Dataset
        The same, its parts computed.

    Raises
    ------
    Exception
        What a task raised.
    """
    from distributed import as_completed, default_client, futures_of

    scheduler = getattr(default_client().cluster, "scheduler", None)
    steps = _steps(report)
    if scheduler is not None:
        scheduler.add_plugin(steps, name=steps.name)
    try:
        done = collection.persist()
        futures = futures_of(done)
        for number, future in enumerate(as_completed(futures), start=1):
            if scheduler is None:
                report(number, len(futures), "parts")
            if future.status == "error":
                future.result()
    finally:
        if scheduler is not None:
            scheduler.remove_plugin(steps.name)
    return done


def _steps(report: Callable[[int, int, str], None]) -> Any:
    """Return a plugin of the scheduler that reports the tasks of what is submitted from now on."""
    from distributed import SchedulerPlugin
    from distributed.utils import key_split

    class Steps(SchedulerPlugin):  # type: ignore[misc,unused-ignore]
        name = f"daskclust-steps-{id(report)}"
        total = 0

        def __init__(self) -> None:
            self._done: set[Any] = set()

        def update_graph(self, scheduler: Any, *, tasks: Any = (), **_: Any) -> None:
            self.total += len(tasks)

        def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:
            if finish == "memory" and self.total:
                self._done.add(key)
                done = min(len(self._done), self.total)
                report(done, self.total, key_split(key).rpartition("-")[2])

    return Steps()
