"""Kernels on CUDA: compiled by numba for each kind of arguments, and launched with little work in Python.

A launch by numba itself finds the types of all arguments each time and passes each array as five numbers and two for
each axis: a millisecond of Python for a kernel with 86 numbers. Here types are told by short names, a kernel that is
known by them is launched by cuda.core, and an array is its address and shape; machine code makes its array of these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import cupy
from cuda.core import Kernel, LaunchConfig, Stream
from cuda.core import launch as start

from daskclust.core.device.cuda_compiler import own
from daskclust.core.device.machine_code.arguments import layout_of
from daskclust.core.device.machine_code.cuda_arguments import signature

Kinds = tuple[Any, ...]
"""Types of arguments: of an array its dtype's number, axes and layout; tuples in parentheses, with their class."""


def prepare(dispatcher_for: Callable[[Any], Any], n: Any, args: tuple[Any, ...]) -> Kernel:
    """Compile a kernel for arguments like these, or load it from the compiler's cache, for the current device.

    `dispatcher_for` gives the compiler's dispatcher of a function ``(n, flat)``, which calls the function that it is
    given to make the arguments of flattened ones.
    """
    wanted, types = signature(n, args)
    return own.loaded(dispatcher_for(own.rebuilding(wanted)).compile(types))


def launch(kernel: Kernel, grid: tuple[int, int, int], n: Any, values: list[Any]) -> None:
    """Launch a kernel on CuPy's current stream: so many blocks of so many threads with so many bytes they share."""
    stream = _stream(cupy.cuda.get_current_stream().ptr)
    start(stream, _configuration(*grid), kernel, n if isinstance(n, int) else n.data.ptr, *values)


_stream = functools.lru_cache(maxsize=64)(Stream.from_handle)


@functools.lru_cache(maxsize=1024)
def _configuration(blocks: int, threads: int, shared: int) -> LaunchConfig:
    return LaunchConfig(grid=blocks, block=threads, shmem_size=shared)


def current_device() -> int:
    """Return the number of this thread's CUDA device."""
    return int(cupy.cuda.runtime.getDevice())


def flatten(args: tuple[Any, ...]) -> tuple[Kinds, list[Any]]:
    """Return the types of arguments and their values, those of arrays as addresses and lengths."""
    kinds: list[Any] = []
    values: list[Any] = []
    _flatten(args, kinds, values)
    return tuple(kinds), values


def _flatten(args: tuple[Any, ...], kinds: list[Any], values: list[Any]) -> None:
    for value in args:
        kind = type(value)
        if kind is cupy.ndarray:
            layout = layout_of(value)
            kinds.append((value.dtype.num, value.ndim, layout))
            values.append(value.data.ptr)
            values.extend(value.shape)
            if layout == "A":
                values.extend(step // value.itemsize for step in value.strides)
        elif isinstance(value, tuple):
            kinds.append(kind)
            _flatten(value, kinds, values)
            kinds.append(")")
        else:
            kinds.append(kind)
            values.append(value)
