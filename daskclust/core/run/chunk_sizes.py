"""How much a task is given: work of about half a second, within the memory of its worker.

Much smaller tasks cost more than they do, on the scheduler and where their parts are put together; much larger ones
leave workers idle and fill their memory.
"""

from __future__ import annotations

import math
from typing import NamedTuple

SECONDS = 0.5  # of a task
# Seconds of a task for each thread: the one scheduler takes half a millisecond or more for a step, and there are about
# twenty for a chunk, beside those of pairs of chunks (measured: docs/explanation/scaling.md).
_SCHEDULING = 0.01
_LEAST = 0.1  # seconds of a task, where there would be few of them otherwise
_EACH = 4  # tasks for each thread, where they are not too short
_SHARE = 4  # of a worker's memory that a task may take: one part in so many


class Cost(NamedTuple):
    """What a point costs a task, measured on one thread of a CPU.

    For blocks of 5e5 points of `docs/explanation/scaling/runs.py`; a hit's time for 2e6 of `chunks.py` there.
    """

    seconds: float
    size: float  # bytes of memory at the peak, its columns included


class Workers(NamedTuple):
    """Who does the tasks."""

    threads: int  # of all workers
    memory: float  # bytes that a worker has for each of its threads


def points_per_task(n: int, cost: Cost, workers: Workers, seconds: float = SECONDS) -> int:
    """Return how many of `n` points, 1 or more, to give to a task that should take so many seconds.

    Tasks are shorter where there would not be several for each thread, and longer where threads are so many that the
    scheduler would not keep up.
    """
    threads, memory = workers
    wanted = max(seconds, _SCHEDULING * threads) / cost.seconds
    wanted = max(min(wanted, n / (_EACH * threads)), min(_LEAST, seconds) / cost.seconds)
    rows = max(1, math.floor(min(wanted, memory / (_SHARE * cost.size))))
    rounds = math.ceil(n / rows) / threads
    if 1 < rounds < _EACH:  # few tasks: as many for each thread, or some would wait for the last one
        rows = math.ceil(n / (math.ceil(rounds) * threads))
    return rows
