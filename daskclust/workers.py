"""Start a Dask cluster on this machine for clustering."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client


def start(n_workers: int | None = None, *, processes: bool = True, dashboard: str = "127.0.0.1:0") -> Client:
    """Return a client of a local cluster with one thread a worker.

    Kernels release the GIL and a task keeps one core busy, so a worker for each core uses the machine without more
    threads than cores.

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
    # a client that makes its own cluster closes it too
    return Client(
        n_workers=count if processes else 1,
        threads_per_worker=1 if processes else count,
        processes=processes,
        dashboard_address=dashboard,
        memory_limit="auto" if processes else 0,
    )


def persist(collection: Any, report: Callable[[int, int], None]) -> Any:
    """Compute a lazy collection on the workers, where its parts stay, and tell how far it is meanwhile.

    Parameters
    ----------
    collection : dask collection or xarray.Dataset
        What is to be computed by the current client.
    report : function
        Called some times a second with the number of parts done and of all.

    Returns
    -------
    dask collection or xarray.Dataset
        The same, its parts computed.

    Raises
    ------
    Exception
        What a task raised.
    """
    from distributed import futures_of

    done = collection.persist()
    futures = futures_of(done)
    while pending := sum(not future.done() for future in futures):
        report(len(futures) - pending, len(futures))
        time.sleep(0.1)
    report(len(futures), len(futures))
    for future in futures:
        if future.status == "error":
            future.result()
    return done
