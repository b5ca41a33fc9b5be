"""Go to a Dask cluster that is there already, wait for its workers, and end them."""

from __future__ import annotations

import logging
import math
import time
from functools import partial
from typing import Any

from dask.utils import parse_timedelta
from distributed import Client, Nanny

_PATIENCE = 60  # seconds for a scheduler to answer
_WAIT, _WAIT_IN_QUEUE = "1 minute", "1 day"  # for workers, and for those that are jobs of a batch system
_SILENCE = 10  # seconds after which a line tells that workers are waited for
_log = logging.getLogger(__name__)


def connect(scheduler: Any, count: int, wait: str | float | None) -> Client:
    """Return a client of a scheduler that has `count` workers."""
    is_batch = hasattr(scheduler, "job_script")  # dask-jobqueue's
    if wait is None:
        wait = _WAIT_IN_QUEUE if is_batch else _WAIT
    limit = _seconds(wait)
    try:
        client = Client(scheduler, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"no scheduler answers at {scheduler!r}: {error}; `dask scheduler` starts one and prints its address"
        ) from error
    try:
        there = _wait(client, count, limit, wait)
    except BaseException:
        client.close()
        raise
    if there >= count:
        return client
    told = f"has {_of_all(client, there, count)} after {_in_words(wait)}"
    client.close()
    who = repr(scheduler)
    if isinstance(scheduler, str):
        who, remedy = f"the scheduler at {who}", f"`dask worker {scheduler} --nthreads 1` starts one"
    elif is_batch:
        remedy = "look at its queue and at the logs of its jobs; `cluster.scale(jobs=...)` asks for more"
    else:
        remedy = "look at its logs; `cluster.scale` asks for more"
    raise ConnectionError(f"{who} {told}; {remedy}, or wait longer, such as wait='2h'")


def _seconds(wait: str | float) -> float:
    try:
        seconds = float(parse_timedelta(wait)) if isinstance(wait, str) else float(wait)
    except (ValueError, TypeError, KeyError, IndexError):
        seconds = math.nan
    if not seconds >= 0:
        raise ValueError(f"wait must be a time such as '2h', or a number of seconds, got {wait!r}")
    return seconds


def stop(client: Client) -> None:
    """End the workers of a scheduler that was started elsewhere, and wait until they have left it.

    For a script that is a batch job of its own, as its last line. Where the scheduler ends first, each worker logs an
    error. Results on the workers are lost.

    Parameters
    ----------
    client : distributed.Client
        A client of the scheduler, of `start` for instance.
    """
    workers = client.scheduler_info(n_workers=-1)["workers"]
    for has_nanny in (True, False):  # a worker that ends before its nanny leaves it an error to log
        addresses = [address for address, worker in workers.items() if bool(worker["nanny"]) == has_nanny]
        if addresses:
            client.run(_end, workers=addresses, nanny=has_nanny)
    end = time.monotonic() + _PATIENCE
    while client.nthreads() and time.monotonic() < end:
        time.sleep(0.1)


def _end(dask_worker: Any) -> None:
    """Let a worker or a nanny close, after it has answered."""
    seconds = {"timeout": 30} if isinstance(dask_worker, Nanny) else {}  # for the process to end: it may take 5 s
    dask_worker.loop.add_callback(partial(dask_worker.close, **seconds))


def _wait(client: Client, count: int, limit: float, wait: str | float) -> int:
    """Return how many workers are there, as soon as they are `count`, or when the time is over."""
    began, is_told = time.monotonic(), False
    # not client.wait_for_workers: that of a cluster's object may see five workers at most, and says nothing meanwhile
    while (there := len(client.nthreads())) < count and (past := time.monotonic() - began) < limit:
        if past > _SILENCE and not is_told:
            _log.warning("%s are there; waiting for %s at most", _of_all(client, there, count), _in_words(wait))
            is_told = True
        time.sleep(0.2)
    return there


def _of_all(client: Client, there: int, count: int) -> str:
    """Return how many workers there are, and how many a cluster's object has asked for: maybe none."""
    requested = getattr(client.cluster, "requested", None)
    asked = "" if requested is None else f" ({len(requested)} asked for by `cluster.scale`)"
    return f"{there} of {count} workers{asked}"


def _in_words(wait: str | float) -> str:
    return wait if isinstance(wait, str) else f"{wait:g} s"
