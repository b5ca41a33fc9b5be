"""A stand-in for CuPy beside the CUDA simulator: NumPy's arrays under a name of their own, as strict as CuPy's.

They mix with arrays of the host only through `asarray` and `get`, which count what they carry. So a test sees whether
code would run on a device, and whether its arrays stay there.
"""

from __future__ import annotations

import numpy as np

__version__ = "0"
to_device = []  # bytes of each array that went there
to_host = []


class ndarray(np.ndarray):  # noqa: N801 (CuPy's name)
    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.ctypes.data, False), "version": 3}

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        given = [*inputs, *(out or ()), kwargs.get("where", True)]
        for value in given:
            if isinstance(value, np.ndarray) and not isinstance(value, ndarray) and value.ndim:
                raise TypeError(f"{ufunc.__name__} of an array of the host and one of the device")
        if method not in ("__call__", "reduce"):
            raise TypeError(f"CuPy has no {ufunc.__name__}.{method}, or not in every version")
        into = {} if out is None else {"out": _plain(out)}
        result = getattr(ufunc, method)(*_plain(inputs), **_plain(kwargs), **into)
        return _given(result) if out is None else out[0]

    def __array_function__(self, function, types, args, kwargs):
        if np.ndarray in types:
            raise TypeError(f"{function.__name__} of arrays of the host and of the device")
        if function is np.repeat and np.ndim(args[1]) > 0:
            raise TypeError("CuPy repeats by one number only")
        return _given(function(*_plain(args), **_plain(kwargs)))

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed; use get()")

    def __getitem__(self, key):
        _check(key)
        return _given(_plain(self)[_plain(key)])

    def __setitem__(self, key, value):
        _check(key)
        _check(value)
        _plain(self)[_plain(key)] = _plain(value)

    def get(self):
        to_host.append(self.nbytes)
        return _plain(self).copy()


ndarray.__module__ = "cupy"


def _check(value):
    for part in value if isinstance(value, tuple) else (value,):
        if type(part) is np.ndarray and part.ndim:
            raise TypeError("an array of the host for one of the device")


def _plain(value):
    if isinstance(value, ndarray):
        return value.view(np.ndarray)
    if isinstance(value, tuple | list):
        return type(value)(_plain(part) for part in value)
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return value


def _given(value):
    """Return what NumPy gives as CuPy does: numbers are arrays without dimensions."""
    if isinstance(value, tuple):
        return tuple(map(_given, value))
    if isinstance(value, list):
        return [_given(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value).view(ndarray)
    return value


def asarray(value, dtype=None):
    if isinstance(value, ndarray):
        return value if dtype is None else value.astype(dtype, copy=False)
    if hasattr(value, "copy_to_host"):  # of the simulator: it is on the device
        return np.asarray(value._ary if hasattr(value, "_ary") else value.copy_to_host(), dtype).view(ndarray)
    array = np.array(value, dtype)
    if array.ndim:
        to_device.append(array.nbytes)
    return array.view(ndarray)


array = ascontiguousarray = asarray


def asnumpy(value):
    return value.get() if isinstance(value, ndarray) else np.asarray(value)


def empty(shape, dtype=float):
    return np.empty(shape, dtype).view(ndarray)


def __getattr__(name):
    function = getattr(np, name)
    if not callable(function) or isinstance(function, type):
        return function

    def call(*args, **kwargs):
        for value in args:
            _check(value)
        return _given(function(*_plain(args), **_plain(kwargs)))

    return call


def _register():
    """Let dask.distributed carry these arrays between workers."""
    from distributed.protocol.serialize import dask_deserialize, dask_serialize

    @dask_serialize.register(ndarray)
    def serialize(x):
        return dask_serialize.dispatch(np.ndarray)(np.ascontiguousarray(_plain(x)))

    @dask_deserialize.register(ndarray)
    def deserialize(header, frames):
        return dask_deserialize.dispatch(np.ndarray)(header, frames).view(ndarray)


_register()


def _as_cuda_array(value, sync=True):
    """Return an array of the simulator's on the same memory."""
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    return FakeCUDAArray(_plain(value))


def _install():
    from numba import cuda

    cuda.as_cuda_array = _as_cuda_array


_install()
