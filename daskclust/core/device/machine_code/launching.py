"""Kernels on CUDA: compiled by numba for each kind of arguments, and launched with little work in Python.

A launch by numba itself finds the types of all arguments each time and passes each array as five numbers and two for
each axis: 0.3 ms of Python for a kernel with 86 numbers. Here types are told by short names, a kernel that is known by
them is handed to the driver with its arguments packed, and an array is its address and shape; machine code makes
numba's array of these.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import cupy
import numpy as np
from cuda.bindings import driver

from daskclust.core.device.machine_code.arguments import layout_of
from daskclust.core.device.machine_code.cuda_arguments import packing, rebuilding, signature

Kinds = tuple[Any, ...]
"""Types of arguments: of an array its dtype's number, axes and layout; tuples in parentheses, with their class."""


class _Packed(threading.local):
    """A thread's packed arguments, eight bytes each, and the addresses of all."""

    def __init__(self) -> None:
        self.words = np.zeros(_MOST, np.int64)
        self._places = self.words.ctypes.data + 8 * np.arange(_MOST)
        self.places = int(self._places.ctypes.data)


_MOST = 512  # the driver takes 4096 bytes
_packed = _Packed()


class Prepared(NamedTuple):
    """A kernel for arguments of some types on a device."""

    function: Any  # the driver's
    pack: Callable[..., None]  # into a buffer, from a place on: `n` and the flattened arguments


def prepare(dispatcher_for: Callable[[Any], Any], n: Any, args: tuple[Any, ...]) -> Prepared:
    """Let numba compile a kernel for arguments like these, or load it from its cache, for the current device.

    `dispatcher_for` gives numba's dispatcher of a function ``(n, flat)``, which calls the function that it is given to
    make the arguments of flattened ones.
    """
    wanted, types = signature(n, args)
    compiled = dispatcher_for(rebuilding(wanted)).compile(types)
    handle = compiled._codelibrary.get_cufunc().handle
    return Prepared(driver.CUfunction(int(handle)), struct.Struct("q" + packing(types[1])).pack_into)


def launch(prepared: Prepared, grid: tuple[int, int, int], n: Any, values: list[Any]) -> None:
    """Launch a kernel on CuPy's current stream: so many blocks of so many threads with so many bytes they share."""
    blocks, threads, shared = grid
    prepared.pack(_packed.words, 0, n if isinstance(n, int) else n.data.ptr, *values)
    stream = cupy.cuda.get_current_stream().ptr
    (error,) = driver.cuLaunchKernel(prepared.function, blocks, 1, 1, threads, 1, 1, shared, stream, _packed.places, 0)
    if error:
        raise RuntimeError(f"CUDA refused to launch a kernel of {blocks} blocks of {threads} threads: {error.name}")


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
                values.extend(value.strides)
        elif isinstance(value, tuple):
            kinds.append(kind)
            _flatten(value, kinds, values)
            kinds.append(")")
        else:
            kinds.append(kind)
            values.append(value)
