"""Where arrays live: numpy on the host, cupy (or bare numba arrays) on a CUDA device.

The only file that tries cupy. A device is chosen by the class of the input and nothing else; there is no quiet fall
back from one to the other.
"""

from __future__ import annotations

import copyreg
import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from daskclust.core.device.kernels import Kernel, TeamKernel, kernel
from daskclust.core.device.timesort import order_of_ticks, order_of_times

_KEPT_BYTES = 1 << 24  # scratch arrays up to this size are kept on the host: fresh pages cost 0.3 ms a MB


@kernel
def fill(i, array, value):
    array[i] = value


@kernel
def copy(i, source, target):
    target[i] = source[i]


@kernel
def gather(i, source, places, target):
    target[i] = source[places[i]]


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

    def count_up(self, n: int) -> Any:
        """Return 0, 1, ... as int64, of the class of array that the user works with."""
        return np.arange(n)

    def scratch(self, name: str, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """Return an array for intermediate results, kept for the thread's next call under the same name."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if size > _KEPT_BYTES:
            return np.empty(shape, dtype)
        kept = _local.__dict__.setdefault("scratch", {})
        if name not in kept or len(kept[name]) < size:
            kept[name] = np.empty(size, np.uint8)
        return kept[name][:size].view(dtype).reshape(shape)

    def forget_scratch(self) -> None:
        """Give back the memory that scratch arrays of this thread keep."""
        _local.__dict__.pop("scratch", None)

    def run(self, kernel: Kernel, n: int, *args: Any, grain: int = 8192) -> None:
        kernel.run(n, *args, grain=grain)

    def running_sum(self, values: Any, sums: Any) -> None:
        """Write the sum of all `values` up to each to int32 `sums`; they may be the same array."""
        self.run(_running_sum, 1, values, sums)

    def argument(self, array: Any) -> Any:
        """Return an array as kernels take it, without a copy; `give` one in the class that the user works with."""
        return array

    to_host = from_host = give = argument  # they are one here

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


class Cuda(_Device):
    """Arrays and kernels on the current CUDA device. Scratch arrays stay for the next call of the thread."""

    name = "cuda"

    def __init__(self, gives_cupy: bool) -> None:
        self._gives_cupy = gives_cupy
        self._kept: dict[str, Any] = {}

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        if self._gives_cupy:  # cupy's memory pool makes this cheap
            return self.argument(cupy_module().empty(shape, dtype))
        from numba import cuda

        return _travelling(cuda.device_array(shape, np.dtype(dtype)))

    def full(self, shape: int, value: Any, dtype: Any) -> Any:
        array = self.empty(shape, dtype)
        self.run(fill, shape, array, np.dtype(dtype).type(value))
        return array

    def count_up(self, n: int) -> Any:
        return cupy_module().arange(n)

    def scratch(self, name: str, shape: int | tuple[int, ...], dtype: Any) -> Any:
        kept = self._kept.get(name)
        wanted = shape if isinstance(shape, tuple) else (shape,)
        if kept is None or kept.shape != wanted or kept.dtype != np.dtype(dtype):
            self._kept[name] = kept = self.empty(shape, dtype)
        return kept

    def run(self, kernel: Kernel, n: int, *args: Any, grain: int = 0) -> None:
        kernel.launch(n, *args, stream=current_stream())

    def run_teams(
        self, kernel: TeamKernel, teams: int, blocks: int, threads: int, *args: Any, shared: int = 0
    ) -> None:
        """Let teams of so many blocks, each with `shared` bytes of its own, run a kernel.

        Those of more than one block must all fit on the device.
        """
        kernel.launch_teams(teams, blocks, threads, *args, stream=current_stream(), shared=shared)

    def running_sum(self, values: Any, sums: Any) -> None:
        from daskclust.core.device.scan import running_sum

        running_sum(self, values, sums, current_stream())

    def to_host(self, array: Any) -> Any:
        if isinstance(array, np.ndarray) and not is_cuda(array):
            return array
        if not hasattr(array, "copy_to_host"):
            return array.get()
        stream = current_stream()
        host = array.copy_to_host(stream=stream)
        if stream:
            stream.synchronize()
        return host

    def from_host(self, array: Any) -> Any:
        from numba import cuda

        array = np.ascontiguousarray(array)
        if not array.size:
            return self.empty(array.shape, array.dtype)
        return _travelling(cuda.to_device(array, stream=current_stream()))

    def argument(self, array: Any) -> Any:
        from numba import cuda

        is_foreign = hasattr(array, "__cuda_array_interface__")  # which arrays of numba's simulator do not have
        return _travelling(cuda.as_cuda_array(array, sync=False)) if is_foreign else array

    def cast(self, array: Any, dtype: Any) -> Any:
        if self._gives_cupy:
            return cupy_module().asarray(array).astype(dtype, copy=False)
        return array if array.dtype == np.dtype(dtype) else self.from_host(self.to_host(array).astype(dtype))

    def take(self, array: Any, rows: Any) -> Any:
        if self._gives_cupy:
            return cupy_module().asarray(array)[cupy_module().asarray(rows)]
        return self.from_host(self.to_host(array)[rows])

    def order_of(self, values: Any) -> Any:
        if self._gives_cupy:
            return self.argument(cupy_module().argsort(cupy_module().asarray(values), kind="stable"))
        return self.from_host(np.argsort(self.to_host(values), kind="stable"))

    def give(self, array: Any) -> Any:
        return cupy_module().asarray(array) if self._gives_cupy else array


HOST = Host()
_local = threading.local()


def multiprocessors() -> int:
    """Return how many blocks the current CUDA device surely runs at once."""
    from numba import cuda

    return int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def current_stream() -> Any:
    """Return the CUDA stream of this thread's launches and copies, 0 for the default one."""
    return _local.__dict__.get("stream", 0)


@contextmanager
def own_stream() -> Iterator[Any]:
    """Let this thread's launches and copies go to a CUDA stream of their own, beside those of other threads."""
    from numba import cuda

    before, _local.stream = current_stream(), cuda.stream()
    try:
        yield _local.stream
        _local.stream.synchronize()
    finally:
        _local.stream = before


def library(thing: Any) -> str:
    """Return the package that an object's class comes from."""
    return type(thing).__module__.split(".")[0]


def is_dask(array: Any) -> bool:
    """Return True for dask arrays."""
    return library(array) == "dask" and hasattr(array, "chunks")


def is_cuda(array: Any) -> bool:
    """Return True for cupy arrays and numba device arrays."""
    return hasattr(array, "__cuda_array_interface__") or type(array).__name__ == "FakeCUDAArray"


def device_of(array: Any) -> Host | Cuda:
    """Return the device that `array` lives on."""
    if not is_cuda(array):
        return HOST
    gives_cupy = library(array) == "cupy"
    kept = _local.__dict__.setdefault("devices", {})
    if gives_cupy not in kept:
        kept[gives_cupy] = Cuda(gives_cupy)
    return kept[gives_cupy]  # type: ignore[no-any-return]


def _travelling(array: Any) -> Any:
    """Return a device array of numba's whose class can be pickled: measures may go to another worker."""
    if type(array) not in copyreg.dispatch_table:
        copyreg.pickle(type(array), _by_value)
    return array


def _by_value(array: Any) -> tuple[Any, ...]:
    """Take a device array apart, over the host, as CuPy does with its own."""
    return _on_this_device, (np.ascontiguousarray(array.copy_to_host()),)


def _on_this_device(values: Any) -> Any:
    return Cuda(gives_cupy=False).from_host(values)


@functools.cache
def cupy_module() -> Any:
    """Return cupy, or say how to install it."""
    try:
        import cupy
    except ImportError as error:
        raise ImportError("this needs cupy: pip install 'daskclust[gpu]' (CUDA 13) or 'daskclust[gpu12]'") from error
    return cupy
