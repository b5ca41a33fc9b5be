"""How long calls and their kernels take, and how much memory."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest import mock

import numba

from daskclust.core.device.arrays import HOST, cupy_module
from daskclust.core.device.kernels import Kernel, TeamKernel


def seconds_of(*calls: Callable[[], Any]) -> float:
    """Return how long calls take, one after the other."""
    begin = time.perf_counter()
    for call in calls:
        call()
    return time.perf_counter() - begin


def all_seconds(call: Callable[[], Any], finish: Callable[[], None], repeats: int) -> list[float]:
    """Return how long a call takes, again and again, after a warm-up; `finish` waits for the device."""
    call()
    finish()
    return [seconds_of(call, finish) for _ in range(repeats)]


def median_ms(call: Callable[[], Any], finish: Callable[[], None] = lambda: None, repeats: int = 1) -> float:
    """Return the median time of a call after a warm-up."""
    return statistics.median(all_seconds(call, finish, repeats)) * 1e3


@contextmanager
def kernel_threads(number: int) -> Iterator[None]:
    """Run kernels in so many threads while this is open."""
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(number)
        yield
    finally:
        numba.set_num_threads(before)


def kernels_ms(call: Callable[[], Any], finish: Callable[[], None], repeats: int) -> dict[str, float]:
    """Return the median time of each kernel; the device waits after each, so on CUDA their sum is not the total."""
    runs: list[dict[str, float]] = []

    def timed(original: Callable[..., None]) -> Callable[..., None]:
        def launch(self: Kernel, *args: Any, **options: Any) -> None:
            finish()
            runs[-1][self.function.__name__] += seconds_of(lambda: original(self, *args, **options), finish)

        return launch

    with ExitStack() as patches:
        for kind, name in ((Kernel, "run"), (Kernel, "launch"), (TeamKernel, "launch_teams")):
            patches.enter_context(mock.patch.object(kind, name, timed(getattr(kind, name))))
        for _ in range(repeats):
            runs.append(defaultdict(float))
            call()
    return {name: statistics.median(run[name] for run in runs) * 1e3 for name in runs[0]}


def peak_bytes(call: Callable[[], Any]) -> int:
    """Return the peak of NumPy's memory during a call, results and scratch included."""
    HOST.forget_scratch()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def peak_device_bytes(call: Callable[[], Any]) -> int:
    """Return what CuPy's pool takes from the device for a call, without scratch kept from the call before."""
    pool = cupy_module().get_default_memory_pool()
    call()
    pool.free_all_blocks()
    before = pool.total_bytes()
    call()
    return int(pool.total_bytes() - before)


class Device(NamedTuple):
    """Copies to a device and back, waiting for it, and the peak of its memory during a call."""

    take: Callable[[Any], Any]
    give: Callable[[Any], Any]
    finish: Callable[[], None]
    peak: Callable[[Callable[[], Any]], int]


def device_of(device: str) -> Device:
    """Return ``"cpu"``, whose kernels are done when their call returns, or ``"cuda"``."""
    if device == "cpu":
        return Device(lambda array: array, lambda array: array, lambda: None, peak_bytes)
    cupy = cupy_module()
    return Device(cupy.asarray, cupy.asnumpy, cupy.cuda.get_current_stream().synchronize, peak_device_bytes)
