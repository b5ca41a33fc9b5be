"""How long calls and their kernels take, and how much memory."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numba

from daskclust.core.device.arrays import HOST, cupy_module
from daskclust.core.device.kernels import Kernel, TeamKernel


def nothing_to_wait_for() -> None:
    """CPU kernels are done when their call returns."""


def seconds_of(*calls: Callable[[], Any]) -> float:
    """Return how long calls take, one after the other."""
    begin = time.perf_counter()
    for call in calls:
        call()
    return time.perf_counter() - begin


def median_ms(call: Callable[[], Any], finish: Callable[[], None], repeats: int) -> float:
    call()
    times = []
    for _ in range(repeats):
        finish()
        times.append(seconds_of(call, finish))
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


# ------------------------------------------------------------------------------------------------------------- devices
@dataclass(frozen=True)
class Place:
    """Where the arrays of a benchmark are.

    Parameters
    ----------
    take : function
        Brings an array of the host there.
    give : function
        Brings an array back to the host.
    finish : function
        Waits until all is done there.
    peak : function
        Returns the memory that a call takes there at its peak, bytes.
    """

    take: Callable[[Any], Any]
    give: Callable[[Any], Any]
    finish: Callable[[], None]
    peak: Callable[[Callable[[], Any]], int]


def place_of(device: str) -> Place:
    """Return the place that ``"cpu"`` or ``"cuda"`` names."""
    if device == "cpu":
        return Place(take=_as_it_is, give=_as_it_is, finish=nothing_to_wait_for, peak=peak_bytes)
    cupy = cupy_module()
    wait = cupy.cuda.get_current_stream().synchronize
    return Place(take=cupy.asarray, give=cupy.asnumpy, finish=wait, peak=peak_device_bytes)


def _as_it_is(array: Any) -> Any:
    return array


def time_fit(
    fit: Callable[..., Any], host: Sequence[Any], device: str, repeats: int, forget: Callable[[], None]
) -> dict[str, Any]:
    """Time a fit of arrays on a device.

    Parameters
    ----------
    fit : function
        Takes the arrays and returns the result that a user would copy back from a device.
    host : sequence of arrays
        On the host; the first one has a row for each point.
    device : {"cpu", "cuda"}
        Where they are while the fit is timed.
    repeats : int
        Runs after a warm-up; medians are returned.
    forget : function
        Drops what the last fit left behind, or it would count as input where the peak is taken.

    Returns
    -------
    dict
        ``total_ms``, ``kernels_ms``, ``peak_bytes_per_point``, and on CUDA ``host_to_host_ms``, with both copies.
    """
    place, run = place_of(device), {}
    if device == "cuda":
        around = median_ms(lambda: place.give(fit(*map(place.take, host))), place.finish, repeats)
        run["host_to_host_ms"] = around
    arrays = [place.take(array) for array in host]
    run["total_ms"] = median_ms(lambda: fit(*arrays), place.finish, repeats)
    times = kernels_ms(lambda: fit(*arrays), place.finish)
    forget()
    peak = place.peak(lambda: fit(*arrays)) / max(len(host[0]), 1)
    return {**run, "kernels_ms": times, "peak_bytes_per_point": peak}
