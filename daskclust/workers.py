"""Start a Dask cluster on this machine for clustering."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Client


def start(n_workers: int | None = None, *, processes: bool = True, dashboard: str | None = None) -> Client:
    """Return a client of a local cluster with one thread a worker.

    Kernels release the GIL and a task keeps one core busy, so a worker for each core uses the machine without more
    threads than cores.

    Parameters
    ----------
    n_workers : int, optional
        Number of workers. Default: one for each core.
    processes : bool, default True
        Whether workers are processes of their own, or threads of this one.
    dashboard : str, optional
        Address of the dashboard, e.g. ``":8787"``. Default: none.

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
