"""A stand-in for CuPy on the stand-in for NVIDIA's driver; it lets numba-cuda compile for the host, too."""

from __future__ import annotations

import sys

import numpy as np
from fake_gpu import objects

from cupy import cuda
from cupy._array import call, foreign, given, ndarray, note, plain, refuse_host_arrays
from cupy._memory import default_pool

__version__ = "14.2.0"
dtype, float32, float64, int8, int16, int32, int64 = (
    np.dtype,
    np.float32,
    np.float64,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
)
uint8, uint16, uint32, uint64, bool_ = np.uint8, np.uint16, np.uint32, np.uint64, np.bool_
inf, nan, newaxis = np.inf, np.nan, np.newaxis


def asarray(a, dtype=None, order=None):
    """Return an array of the device: the same, on the memory that numba has, or a copy."""
    if isinstance(a, ndarray) and a.size and a.device.id != cuda.runtime.getDevice():
        a = a.get()
    if isinstance(a, ndarray):
        return a if dtype is None else a.astype(dtype, copy=False)
    if hasattr(a, "__cuda_array_interface__"):
        array = foreign(a)
        return array if dtype is None else array.astype(dtype, copy=False)
    if isinstance(a, list | tuple) and any(isinstance(part, ndarray) for part in a):
        return call(np.stack, (list(a),), {})
    host = np.asarray(a, dtype)
    host = np.array(host, order="F" if host.flags.f_contiguous and not host.flags.c_contiguous else "C")
    array = ndarray(host.shape, host.dtype, order="C" if host.flags.c_contiguous else "F")
    _send(array, host)
    return array


def _send(array, host):
    from cupy._memory import LIBRARY, checked, current_stream

    if host.size:
        checked(LIBRARY.api_cuMemcpyHtoDAsync(array.data.ptr, host.ctypes.data, host.nbytes, current_stream()))


def array(a, dtype=None, copy=True, order="K"):
    """Return a new array of the device."""
    made = asarray(a, dtype)
    return made.copy() if made is a and copy else made


def asnumpy(a, stream=None, order="C", out=None, blocking=True):
    """Return an array of the host."""
    return a.get(stream, order, out, blocking) if isinstance(a, ndarray) else np.asarray(a)


def ascontiguousarray(a, dtype=None):
    a = asarray(a, dtype)
    return a if a.flags.c_contiguous else a.copy()


def asfortranarray(a, dtype=None):
    a = asarray(a, dtype)
    return a if a.flags.f_contiguous else a.copy("F")


def empty(shape, dtype=float, order="C"):
    return ndarray(shape, dtype, order=order)


def empty_like(a, dtype=None):
    return ndarray(a.shape, dtype or a.dtype)


def full(shape, fill_value, dtype=None):
    made = ndarray(shape, np.asarray(plain(fill_value)).dtype if dtype is None else dtype)
    made.fill(fill_value)
    return made


def zeros(shape, dtype=float):
    """Return zeros: CuPy sets the memory, which is no launch."""
    made = ndarray(shape, dtype)
    made._host.fill(0)
    return made


def ones(shape, dtype=float):
    return full(shape, 1, dtype)


def zeros_like(a, dtype=None):
    return zeros(a.shape, dtype or a.dtype)


def arange(*args, dtype=None):
    note("arange")
    return given(np.arange(*args, dtype=dtype))


def linspace(*args, **kwargs):
    note("linspace")
    return given(np.linspace(*args, **kwargs))


def argsort(a, axis=-1, kind=None):
    """CuPy sorts stably, whatever is asked for."""
    return call(np.argsort, (a,), {"axis": axis, "kind": "stable"})


def sort(a, axis=-1, kind=None):
    return call(np.sort, (a,), {"axis": axis, "kind": "stable"})


def get_array_module(*values):
    return sys.modules[__name__] if any(isinstance(value, ndarray) for value in values) else np


def get_default_memory_pool():
    return default_pool


def get_default_pinned_memory_pool():
    return cuda.PinnedMemoryPool()


def __getattr__(name):
    """Return NumPy's function of that name: what CuPy lacks, a test on a real GPU finds."""
    function = getattr(np, name)
    if isinstance(function, np.ufunc):

        def its(*args, out=None, **kwargs):
            refuse_host_arrays(name, args)
            return function(*map(asarray, args), **({} if out is None else {"out": out}), **kwargs)
    elif callable(function) and not isinstance(function, type):

        def its(*args, **kwargs):
            return call(function, args, kwargs)
    else:
        raise AttributeError(name)
    its.__name__ = name
    return its


objects.install()
