"""Threads that kernels run on: how many, one alone on a dask worker, and tasks handed out among them."""

from __future__ import annotations

import functools
import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

# Threads of OpenMP (numba's own, say) spin for milliseconds after each of their loops, on the cores that ours need.
# Unless the user has said otherwise they are to sleep; it counts for what starts them after this.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

_local = threading.local()


def thread_count() -> int:
    """Return how many threads kernels use here: `numba.set_num_threads`' number, 1 inside `one_thread`."""
    if getattr(_local, "single", False):
        return 1
    if "numba" in sys.modules:
        from numba import get_num_threads

        return int(get_num_threads())
    return int(os.environ.get("NUMBA_NUM_THREADS", "0")) or len(os.sched_getaffinity(0))


@contextmanager
def one_thread() -> Iterator[None]:
    """Run kernels of this thread on one core: a dask worker already runs a task on each."""
    before = getattr(_local, "single", False)
    _local.single = True
    try:
        yield
    finally:
        _local.single = before


def in_threads(task: Callable[[int], None], count: int, threads: int) -> None:
    """Call ``task(0)`` to ``task(count - 1)`` on up to `threads` threads, each taking the next number when free.

    Compiled kernels release the GIL, so Python threads are enough. Unlike numba's own threading layers they may be
    used from several threads at once (dask's threaded scheduler) and after a fork.
    """
    numbers = itertools.count()

    def work() -> None:
        while (number := next(numbers)) < count:
            task(number)

    others = [_pool().submit(work) for _ in range(min(threads, count) - 1)]
    try:
        work()
    finally:
        for other in others:
            if not other.cancel():  # one that has not begun has nothing left to do
                other.result()


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="daskclust")


os.register_at_fork(after_in_child=_pool.cache_clear)
