"""Where arrays live: numpy on the host, cupy on a CUDA device.

The only file that tries cupy. A device is chosen by the class of the input and nothing else; there is no quiet fall
back from one to the other.
"""

from __future__ import annotations

import functools
import math
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from daskclust.core.device.kernels import Kernel, TeamKernel, kernel
from daskclust.core.device.timesort import order_of_ticks, order_of_times

_LINE = 64  # bytes of the cache
_LEAST_KEPT, _KEPT_BYTES = 1 << 16, 1 << 26  # memory that a thread keeps on the host: fresh pages cost 0.3 ms a MB


@kernel
def fill(i, array, value):
    array[i] = value


@kernel
def copy(i, source, target):
    target[i] = source[i]


@kernel
def gather(i, source, places, target):
    target[i] = source[np.uint64(places[i])]


@kernel
def gather_rows(i, source, places, target):
    for k in range(source.shape[1]):
        target[i, k] = source[places[i], k]


@kernel
def put(i, source, ids, first, target):
    target[ids[i] - first] = source[i]


@kernel
def _running_sum(_once, values, sums):
    total = 0
    for i in range(len(values)):
        total += values[i]
        sums[i] = total


class _Device:
    def take_at(self: Any, array: Any, places: Any) -> Any:
        """Return the elements or rows of `array` (n,) or (n, d) at `places`, an array of this device."""
        taken = self.empty((len(places), *array.shape[1:]), array.dtype)
        self.run(gather if array.ndim == 1 else gather_rows, len(places), array, places, taken)
        return taken


class Host(_Device):
    """numpy arrays, kernels on CPU threads."""

    name = "cpu"

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        return np.empty(shape, dtype)

    def full(self, shape: int, value: Any, dtype: Any) -> Any:
        return np.full(shape, value, dtype)

    def zeros(self, shape: int, dtype: Any) -> Any:
        return np.zeros(shape, dtype)

    def count_up(self, n: int) -> Any:
        """Return 0, 1, ... as int64, of the class of array that the user works with."""
        return np.arange(n)

    def scratch(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """Return an array for intermediate results, of memory that this thread keeps for the next that asks.

        It goes back when nobody holds the array or a part of it any more, so results may not be among these.
        """
        size = _bytes_of(shape, dtype)
        if not _LEAST_KEPT <= size <= _KEPT_BYTES:
            return np.empty(shape, dtype)
        kept = _local.kept
        best = min(((len(each), k) for k, each in enumerate(kept) if size <= len(each) <= 2 * size), default=None)
        while best is None and kept and sum(map(len, kept)) + size > _KEPT_BYTES:
            kept.pop(0)  # has been kept longest
        memory = np.empty(size, np.uint8) if best is None else kept.pop(best[1])
        array = np.frombuffer(memory.data, np.uint8)  # all parts of it hold this one
        weakref.finalize(array, _keep, memory).atexit = False
        return array[:size].view(dtype).reshape(shape)

    def forget_scratch(self) -> None:
        """Give back the memory that this thread keeps."""
        _local.kept.clear()

    def run(self, kernel: Kernel, n: int, *args: Any, grain: int = 8192) -> None:
        kernel.run(n, *args, grain=grain)

    def running_sum(self, values: Any, sums: Any) -> None:
        """Write the sum of all `values` up to each to int32 `sums`; they may be the same array."""
        self.run(_running_sum, 1, values, sums)

    def to_host(self, array: Any) -> Any:
        """Return an array of the host, a copy where it was on a device."""
        return array

    from_host = to_host

    def cast(self, array: Any, dtype: Any) -> Any:
        """Return an array of this device with another dtype."""
        return array.astype(dtype, copy=False)

    def take(self, array: Any, rows: Any) -> Any:
        """Return the rows that `rows` names, an array of the host or of this device, by number or by True."""
        return array[rows]

    def order_of(self, values: Any) -> Any:
        """Return the places of `values` (n,) in ascending order, those that are equal as they come."""
        if values.dtype == np.float64 and np.isfinite(values).all():
            return order_of_times(values)
        if values.dtype == np.int64:
            return order_of_ticks(values)
        return np.argsort(values, kind="stable")


def _bytes_of(shape: int | tuple[int, ...], dtype: Any) -> int:
    """Return the size of an array; np.prod would take longer than all the rest for small ones."""
    return (math.prod(shape) if isinstance(shape, tuple) else int(shape)) * np.dtype(dtype).itemsize


def _keep(memory: Any) -> None:
    """Keep memory for this thread's next call. It may be called anywhere, as garbage is collected, so only appends."""
    if sum(map(len, _local.kept)) + len(memory) <= _KEPT_BYTES:
        _local.kept.append(memory)


class Reused:
    """Memory for intermediate arrays on the host that has served before, in this call or an earlier one."""

    def __init__(self) -> None:
        self._left: list[Any] = []

    def add(self, served: Any) -> None:
        """Take an array that nobody needs any more."""
        self._left.append(served.reshape(-1).view(np.uint8))

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """Return an array of what is left, a fresh one where that is too little."""
        size = _bytes_of(shape, dtype)
        for k, left in enumerate(self._left):
            if size <= len(left):
                self._left[k] = left[-(-size // _LINE) * _LINE :]
                return left[:size].view(dtype).reshape(shape)
        return HOST.scratch(shape, dtype)

    def zeros(self, shape: int, dtype: Any) -> Any:
        """Return such an array of zeros."""
        array = self.empty(shape, dtype)
        array.fill(0)
        return array


class Cuda(_Device):
    """CuPy's arrays, in its memory pool, and kernels on its current device and stream."""

    name = "cuda"

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        return cupy_module().empty(shape, dtype)

    def full(self, shape: int, value: Any, dtype: Any) -> Any:
        return cupy_module().full(shape, value, dtype)

    def zeros(self, shape: int, dtype: Any) -> Any:
        """Return an array of zeros, written without a kernel."""
        return cupy_module().zeros(shape, dtype)

    def count_up(self, n: int) -> Any:
        return cupy_module().arange(n)

    def scratch(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        return cupy_module().empty(shape, dtype)  # of the pool, to which it goes back

    def run(self, kernel: Kernel, n: int, *args: Any, grain: int = 0, limit: Any = None) -> None:
        kernel.launch(n, *args, limit=limit)

    def run_teams(self, kernel: TeamKernel, teams: int, blocks: int, threads: int, *args: Any, shared: int = 0) -> None:
        """Let teams of so many blocks run a kernel; those of more than one block must all fit on the device."""
        kernel.launch_teams(teams, blocks, threads, *args, shared=shared)

    def running_sum(self, values: Any, sums: Any) -> None:
        cupy_module().cumsum(values, dtype=np.int32, out=sums)

    def to_host(self, array: Any) -> Any:
        return to_host(array)

    def from_host(self, array: Any) -> Any:
        return cupy_module().asarray(np.ascontiguousarray(array))

    def cast(self, array: Any, dtype: Any) -> Any:
        return array.astype(dtype, copy=False)

    def take(self, array: Any, rows: Any) -> Any:
        return array[cupy_module().asarray(rows)]

    def order_of(self, values: Any) -> Any:
        return cupy_module().argsort(values, kind="stable")

    def sort(self, numbers: Any, low: int, high: int) -> None:
        numbers.sort()


class _OfThread(threading.local):
    """What each thread has for itself."""

    def __init__(self) -> None:
        self.kept: list[Any] = []  # memory for its next call
        self.left: Any = None  # the number of the CUDA device that it goes back to


HOST = Host()
CUDA = Cuda()
_local = _OfThread()


def multiprocessors() -> int:
    """Return how many blocks the current CUDA device surely runs at once."""
    return int(cupy_module().cuda.Device().attributes["MultiProcessorCount"])


def library(thing: Any) -> str:
    """Return the package that an object's class comes from."""
    return type(thing).__module__.split(".")[0]


def is_dask(array: Any) -> bool:
    """Return True for dask arrays."""
    return library(array) == "dask" and hasattr(array, "chunks")


def is_cuda(array: Any) -> bool:
    """Return True for arrays on a CUDA device: CuPy's, and those of others until `as_cupy`."""
    return library(array) == "cupy" or hasattr(array, "__cuda_array_interface__")


def to_host(array: Any) -> Any:
    """Return an array of the host or of any device on the host."""
    return array.get() if is_cuda(array) else array


def as_cupy(array: Any) -> Any:
    """Return an array of any library on a CUDA device as CuPy's, without a copy."""
    return array if library(array) == "cupy" else cupy_module().asarray(array)


def device_of(array: Any) -> Host | Cuda:
    """Return the device that `array` lives on; of several CUDA devices, its own becomes this thread's current one."""
    if not is_cuda(array):
        return HOST
    use_device(array.device.id)
    return CUDA


def use_device(number: int) -> None:
    """Let this thread work on a CUDA device."""
    runtime = cupy_module().cuda.runtime
    current = runtime.getDevice()
    if current != number:
        if _local.left is None:
            _local.left = current
        runtime.setDevice(number)


@contextmanager
def keeping_device() -> Iterator[None]:
    """Let this thread go back, in the end, to the CUDA device that is its current one now, if it leaves it."""
    outer, _local.left = _local.left, None
    try:
        yield
    finally:
        left, _local.left = _local.left, outer
        if left is not None:
            cupy_module().cuda.runtime.setDevice(left)


def to_current_device(array: Any) -> Any:
    """Return an array of a CUDA device on this thread's current one, a copy where it lies on another."""
    return cupy_module().asarray(array)


def on_device_of(X: Any, values: Any, dtype: Any = None) -> Any:
    """Return an array of the host or a device on the device of X, in its class, as `dtype` if given."""
    device = device_of(X)
    if is_cuda(values) != is_cuda(X):
        values = device.from_host(to_host(values))
    elif is_cuda(values):
        values = to_current_device(values)
    return values if dtype is None else device.cast(values, dtype)


@functools.cache
def cupy_module() -> Any:
    """Return cupy, or say how to install it."""
    try:
        import cupy
    except ImportError as error:
        raise ImportError("this needs cupy: pip install 'daskclust[gpu]' (CUDA 13) or 'daskclust[gpu12]'") from error
    return cupy
