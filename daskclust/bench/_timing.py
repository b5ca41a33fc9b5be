"""How long calls and their kernels take, and how much memory."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba

from daskclust.core.arrays import HOST, cupy_module
from daskclust.core.jit import Kernel, TeamKernel


def nothing_to_wait_for() -> None:
    """CPU kernels are done when their call returns."""


def median_ms(call: Callable[[], Any], finish: Callable[[], None], repeats: int) -> float:
    call()
    times = []
    for _ in range(repeats):
        finish()
        begin = time.perf_counter()
        call()
        finish()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


@contextmanager
def kernel_threads(number: int) -> Iterator[None]:
    """Let kernels run in so many threads while this is open."""
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(number)
        yield
    finally:
        numba.set_num_threads(before)


@contextmanager
def kernel_times(finish: Callable[[], None]) -> Iterator[dict[str, float]]:
    """Collect how long each kernel runs while this is open."""
    seconds: dict[str, float] = defaultdict(float)
    kinds = {"run": Kernel, "launch": Kernel, "launch_teams": TeamKernel}
    originals: dict[str, Callable[..., None]] = {name: getattr(kind, name) for name, kind in kinds.items()}

    def timed(original: Callable[..., None]) -> Callable[..., None]:
        def call(self: Kernel, *args: Any, **options: Any) -> None:
            finish()
            begin = time.perf_counter()
            original(self, *args, **options)
            finish()
            seconds[self.function.__name__] += time.perf_counter() - begin

        return call

    try:
        for name, original in originals.items():
            setattr(kinds[name], name, timed(original))
        yield seconds
    finally:
        for name, original in originals.items():
            setattr(kinds[name], name, original)


def kernels_ms(call: Callable[[], Any], finish: Callable[[], None]) -> dict[str, float]:
    """Return the time of each kernel; the device waits after each: on CUDA their sum is no total."""
    with kernel_times(finish) as seconds:
        call()
    return {name: time * 1e3 for name, time in seconds.items()}


def peak_bytes(call: Callable[[], Any]) -> int:
    """Return the memory that a call takes at its peak, results and scratch included; numpy's arrays are counted."""
    HOST.forget_scratch()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def peak_device_bytes(call: Callable[[], Any]) -> int:
    """Return the peak of memory that CuPy's pool takes from the device for a call, without scratch that is kept."""
    pool = cupy_module().get_default_memory_pool()
    call()  # what stays for the next call is not taken anew
    pool.free_all_blocks()
    before = pool.total_bytes()
    call()
    return int(pool.total_bytes() - before)
