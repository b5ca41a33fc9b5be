"""A stand-in for CuPy on the stand-in for NVIDIA's driver; it lets numba-cuda compile for the host, too.

What is here differs from NumPy, or makes arrays of the device; the rest is NumPy's, see `__getattr__`.
"""

import sys
import types

import numpy as np
from fake_gpu import objects

from cupy import cuda
from cupy._array import call, foreign, ndarray, refuse_host_arrays
from cupy._memory import LIBRARY, checked, current_stream, default_pool

__version__ = "14.2.0"


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
    if host.size:
        checked(LIBRARY.api_cuMemcpyHtoDAsync(array.data.ptr, host.ctypes.data, host.nbytes, current_stream()))
    return array


def array(a, dtype=None, copy=True, order="K"):
    """Return a new array of the device."""
    made = asarray(a, dtype)
    return made.copy() if made is a and copy else made


def asnumpy(a, stream=None, order="C", out=None, blocking=True):
    """Return an array of the host."""
    return a.get(stream, order, out, blocking) if isinstance(a, ndarray) else np.asarray(a)


def asfortranarray(a):
    return a if a.flags.f_contiguous else a.copy("F")


def empty(shape, dtype=float, order="C"):
    return ndarray(shape, dtype, order=order)


def zeros(shape, dtype=float):
    """Return zeros: CuPy sets the memory, which is no launch."""
    made = ndarray(shape, dtype)
    made._host.fill(0)
    return made


def get_array_module(*values):
    return sys.modules[__name__] if any(isinstance(value, ndarray) for value in values) else np


def get_default_memory_pool():
    return default_pool


def __getattr__(name):
    """Return what NumPy has of that name: what CuPy lacks, a test on a real GPU finds."""
    found = getattr(np, name)
    if isinstance(found, types.ModuleType):
        raise AttributeError(name)
    if not callable(found) or isinstance(found, type):
        return found
    if isinstance(found, np.ufunc):

        def its(*args, out=None, **kwargs):
            refuse_host_arrays(name, args)
            return found(*map(asarray, args), **({} if out is None else {"out": out}), **kwargs)
    else:

        def its(*args, **kwargs):
            return call(found, args, kwargs)

    its.__name__ = name
    return its


objects.install()
