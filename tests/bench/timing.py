"""How long calls and their kernels take, and how much memory."""

import statistics
import time
import tracemalloc
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from unittest import mock

import numba

from daskclust.core.device.arrays import HOST, cupy_module
from daskclust.core.device.kernels import Kernel, TeamKernel


def seconds_of(*calls):
    """Return how long calls take, one after the other."""
    begin = time.perf_counter()
    for call in calls:
        call()
    return time.perf_counter() - begin


def all_seconds(call, finish, repeats):
    """Return how long a call takes, again and again, after a warm-up; `finish` waits for the device."""
    call()
    finish()
    return [seconds_of(call, finish) for _ in range(repeats)]


def median_ms(call, finish=lambda: None, repeats=1):
    """Return the median time of a call after a warm-up."""
    return statistics.median(all_seconds(call, finish, repeats)) * 1e3


@contextmanager
def kernel_threads(number):
    """Run kernels in so many threads while this is open."""
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(number)
        yield
    finally:
        numba.set_num_threads(before)


def kernels_ms(call, finish, repeats):
    """Return the median time of each kernel; the device waits after each, so on CUDA their sum is not the total."""
    runs = []

    def timed(original):
        def launch(self, *args, **options):
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


def peak_bytes(call):
    """Return the peak of NumPy's memory during a call, results and scratch included."""
    HOST.forget_scratch()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def peak_device_bytes(call):
    """Return what CuPy's pool takes from the device for a call, without scratch kept from the call before."""
    pool = cupy_module().get_default_memory_pool()
    call()
    pool.free_all_blocks()
    before = pool.total_bytes()
    call()
    return int(pool.total_bytes() - before)


def device_of(device):
    """Return copies to ``"cpu"`` or ``"cuda"`` and back, what waits for it, and what measures its peak of memory."""
    if device == "cpu":
        return SimpleNamespace(take=lambda a: a, give=lambda a: a, finish=lambda: None, peak=peak_bytes)
    cupy = cupy_module()
    finish = cupy.cuda.get_current_stream().synchronize
    return SimpleNamespace(take=cupy.asarray, give=cupy.asnumpy, finish=finish, peak=peak_device_bytes)
