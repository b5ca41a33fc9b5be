"""Who computes, and how much each task is given: work of about half a second, within the memory of its worker.

Much smaller tasks cost more than they do, on the scheduler and where their parts are put together; much larger ones
leave workers idle and fill their memory.
"""

from __future__ import annotations

import logging
import math
import os
from typing import Any, NamedTuple

from daskclust.core.data.checks import check_whole
from daskclust.core.data.lazy import workers_client
from daskclust.core.run.plan import Cost

# Bytes that a worker takes itself: 310 MB were measured after a small fit, 390 MB with `workers.start(warm=)`.
_OWN = 400e6
_PAUSED = 0.8  # of a worker's memory, at which Dask gives it no more tasks
_LEAST = 0.1  # of it, for points, where there is less
# Assumed of workers where nothing tells about them.
_COUNT, _MEMORY = 16, 4e9

_log = logging.getLogger(__name__)


class Workers(NamedTuple):
    """Who does the tasks."""

    threads: int  # of all workers
    memory: float  # bytes that a worker has for the points of each of its threads


class _Worker(NamedTuple):
    """One worker, or a guess at it."""

    threads: int = 1
    memory: float | None = None  # bytes; None where it is not known

    @property
    def share(self) -> float:
        """Bytes for the points of each thread: at least a tenth, however little there is."""
        memory = _MEMORY if self.memory is None else self.memory
        return max(_PAUSED * memory - _OWN, _LEAST * memory) / self.threads


def find_workers() -> Workers:
    """Return the workers of the cluster that would compute now, or this process and its cores.

    Of a cluster these are as many as are there, as were asked for, or as it adapts to at most. Dask's configuration
    comes first: ``daskclust.workers``, their number, and ``daskclust.worker-memory``, of each.
    """
    client = workers_client()
    if client is not None:
        there = client.scheduler_info(n_workers=-1)["workers"].values()
        return _workers_of(
            [_Worker(each["nthreads"], each["memory_limit"] or math.inf) for each in there], client.cluster
        )
    threads = len(os.sched_getaffinity(0))
    return Workers(threads, _Worker(threads, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")).share)


def _workers_of(there: list[_Worker], cluster: Any) -> Workers:
    """Return the workers that a cluster will have, of which some are there; say what is assumed."""
    import dask
    from dask.utils import format_bytes, parse_bytes

    specs = getattr(cluster, "worker_spec", {})  # of workers that were asked for
    adapted = getattr(getattr(cluster, "_adaptive", None), "maximum", 0)
    count = max(len(there), sum(len(spec.get("group", [0])) for spec in specs.values()), adapted)
    wanted = dask.config.get("daskclust.workers", None)
    if wanted is not None:
        count = check_whole("daskclust.workers of dask's configuration", wanted, 1)
    known = there or [_planned(spec) for spec in (*specs.values(), getattr(cluster, "new_spec", None)) if spec]
    known = known or [_Worker()]
    memory = dask.config.get("daskclust.worker-memory", None)
    if memory is not None:
        known = [each._replace(memory=parse_bytes(memory)) for each in known]
    least = min(known, key=lambda each: each.share)
    is_known = 0 < count < math.inf
    count = int(count) if is_known else max(_COUNT, len(there))
    if not is_known or least.memory is None:
        _log.warning(
            "%d workers with %s each are assumed, because the cluster has no workers yet, or no memory limit for them; "
            "wait for them with client.wait_for_workers(100), or set what the cluster will have: "
            'dask.config.set({"daskclust.workers": 100, "daskclust.worker-memory": "8GB"})',
            count,
            "unlimited memory" if least.share == math.inf else format_bytes(int(least.memory or _MEMORY)),
        )
    if least.memory is not None and (_PAUSED - _LEAST) * least.memory < _OWN:
        _log.warning(
            "workers have %s of memory each, and need about %s for themselves; Dask gives no more tasks to a worker "
            "whose memory is %d %% full, so the work may never end: give workers 1 GB or more",
            *(format_bytes(int(least.memory)), format_bytes(int(_OWN)), 100 * _PAUSED),
        )
    to_come = max(0, count - len(there)) * known[0].threads
    return Workers(sum(each.threads for each in there[:count]) + to_come, least.share)


def _planned(spec: dict[str, Any]) -> _Worker:
    """Return a worker as a cluster will start it: a process of a job, where it submits these."""
    from dask.utils import parse_bytes

    options, processes = spec.get("options", {}), len(spec.get("group", [0]))
    threads = next((options[name] for name in ("nthreads", "cores") if options.get(name)), processes)
    limit = options.get("memory_limit", options.get("memory", "auto"))
    whole = None if limit == "auto" else parse_bytes(limit or 0) or math.inf  # 0 or None: no limit
    return _Worker(max(1, threads // processes), whole and whole / processes)


# ---------------------------------------------------------------------------------------------------------------- tasks
SECONDS = 0.5  # of a task
# Seconds of a task for each thread: the one scheduler takes half a millisecond or more for a step, and there are about
# twenty for a chunk, beside those of pairs of chunks (measured: docs/explanation/scaling.md).
_SCHEDULING = 0.01
SHORTEST = 0.1  # seconds of a task, where there would be few of them otherwise
# Tasks for each thread, where they are not too short: with four, what a task costs beside its work was half of a fit.
_EACH = 2
_SHARE = 3  # of a worker's memory for points that a task may take: one part in so many
MOST = 10_000  # tasks of a step, if memory allows: one scheduler takes seconds for them, whoever computes


def dividing_size(row: int) -> float:
    """Return the bytes of memory a point at the peak while points of so many bytes each are divided among chunks."""
    return 20 + 2.0 * row  # measured: 35, 43, 112 and 206 of 8, 12, 48 and 96 bytes


def points_per_task(n: int, cost: Cost, workers: Workers, seconds: float = SECONDS) -> int:
    """Return how many of `n` points, 1 or more, to give to a task that should take so many seconds.

    Tasks are shorter where there would not be several for each thread, and longer where threads are so many that the
    scheduler would not keep up.
    """
    threads, memory = workers
    wanted = max(seconds, _SCHEDULING * threads) / cost.seconds
    wanted = max(min(wanted, n / (_EACH * threads)), min(SHORTEST, seconds) / cost.seconds, n / MOST)
    rows = max(1, math.floor(min(wanted, memory / (_SHARE * cost.size))))
    rounds = math.ceil(n / rows) / threads
    if 1 < rounds < 2 * _EACH:  # few tasks: as many for each thread, or some would wait for the last one
        rows = math.ceil(n / (math.ceil(rounds) * threads))
    return rows
