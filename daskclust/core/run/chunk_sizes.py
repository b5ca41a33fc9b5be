"""How much a task is given: work of about half a second, within the memory of its worker.

Much smaller tasks cost more than they do, on the scheduler and where their parts are put together; much larger ones
leave workers idle and fill their memory.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from daskclust.core.run.workers import Workers

SECONDS = 0.5  # of a task
# Seconds of a task for each thread: the one scheduler takes half a millisecond or more for a step, and there are about
# twenty for a chunk, beside those of pairs of chunks (measured: docs/explanation/scaling.md).
_SCHEDULING = 0.01
_LEAST = 0.1  # seconds of a task, where there would be few of them otherwise
_EACH = 4  # tasks for each thread, where they are not too short
_SHARE = 3  # of a worker's memory for points that a task may take: one part in so many
MOST = 10_000  # tasks of a step, if memory allows: one scheduler takes seconds for them, whoever computes


class Cost(NamedTuple):
    """What a point costs a task, measured on one thread of a CPU.

    For blocks of 5e5 points of `docs/explanation/scaling/runs.py`; a hit's time for 2e6 of `chunks.py` there.
    """

    seconds: float
    size: float  # bytes of memory at the peak, its columns included


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
    wanted = max(min(wanted, n / (_EACH * threads)), min(_LEAST, seconds) / cost.seconds, n / MOST)
    rows = max(1, math.floor(min(wanted, memory / (_SHARE * cost.size))))
    rounds = math.ceil(n / rows) / threads
    if 1 < rounds < _EACH:  # few tasks: as many for each thread, or some would wait for the last one
        rows = math.ceil(n / (math.ceil(rounds) * threads))
    return rows
