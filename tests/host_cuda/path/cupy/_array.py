"""CuPy's arrays on the stand-in driver: NumPy computes, on memory of the device, what CuPy would launch kernels for.

They are as strict as CuPy's: they mix with arrays of the host through `asarray`, `get` and `set` only, and are used on
the device that they live on. A result is a view of the device's memory, or a launch, ``cupy.<function>``, has made it.
"""

import ctypes

import numpy as np
from fake_gpu.driver import LIBRARY
from numpy.lib.mixins import NDArrayOperatorsMixin

from cupy._memory import Foreign, MemoryPointer, alloc, checked, current_device, current_stream, use_device

WAITING = {  # functions whose result has a size that the host reads
    "argwhere", "array_equal", "bincount", "flatnonzero", "nonzero", "unique",
}  # fmt: skip


class ndarray(NDArrayOperatorsMixin):  # noqa: N801 (CuPy's name)
    def __init__(self, shape, dtype=float, memptr=None, strides=None, order="C"):
        shape, dtype = shape if isinstance(shape, tuple | list) else (int(shape),), np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self._at = memptr or alloc(size)
        self._host = _on(self._at, tuple(shape), dtype, strides, order)

    @classmethod
    def _view(cls, host, mem):
        """Return an array of what NumPy sees of the device's memory."""
        array = cls.__new__(cls)
        place = host.__array_interface__["data"][0] if host.size else mem.ptr
        array._host, array._at = host, MemoryPointer(mem, place - mem.ptr)
        return array

    shape = property(lambda self: self._host.shape)
    strides = property(lambda self: self._host.strides)
    dtype = property(lambda self: self._host.dtype)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    itemsize = property(lambda self: self._host.itemsize)
    nbytes = property(lambda self: self._host.nbytes)
    flags = property(lambda self: self._host.flags)
    data = property(lambda self: self._at)
    T = property(lambda self: self.transpose())
    base = property(lambda self: None)

    @property
    def device(self):
        from cupy.cuda import Device

        return Device(self._at.device_id)

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "descr": self.dtype.descr,
            "data": (self._at.ptr if self.size else 0, False),
            "strides": None if self.flags.c_contiguous else self.strides,
            "version": 3,
            "stream": current_stream() or 1,
        }

    def __len__(self):
        return len(self._host)

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    # ------------------------------------------------------------------------------------------------ to the host
    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def get(self, stream=None, order="C", out=None, blocking=True):
        if not self.flags.c_contiguous and order == "C":
            return self.copy().get(stream, order, out, blocking)
        before = current_device()
        use_device(self._at.device_id)
        host = np.empty_like(self._host) if out is None else out
        its_stream = getattr(stream, "ptr", None) or current_stream()
        checked(LIBRARY.api_cuMemcpyDtoHAsync(host.ctypes.data, self._at.ptr, self.nbytes, its_stream))
        if blocking:
            LIBRARY.api_cuStreamSynchronize(its_stream)
        use_device(before)
        return host

    def set(self, arr, stream=None):
        values = np.ascontiguousarray(arr, self.dtype)
        if isinstance(arr, ndarray) or values.shape != self.shape or not self.flags.c_contiguous:
            raise ValueError("set takes an array of the host of the same shape")
        its_stream = getattr(stream, "ptr", None) or current_stream()
        checked(LIBRARY.api_cuMemcpyHtoDAsync(self._at.ptr, values.ctypes.data, self.nbytes, its_stream))

    def item(self, *key):
        return (self[key] if key else self).get().item()

    def tolist(self):
        return self.get().tolist()

    def __int__(self):
        return int(self.get())

    def __float__(self):
        return float(self.get())

    def __bool__(self):
        return bool(self.get())

    def __index__(self):
        return self.get().__index__()

    def __repr__(self):
        return repr(self._host)

    def __reduce__(self):
        from cupy import asarray

        return asarray, (self.get(),)

    __hash__ = None

    # ------------------------------------------------------------------------------------------------ on the device
    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        if method not in ("__call__", "reduce"):
            raise TypeError(f"CuPy has no {ufunc.__name__}.{method}, or not in every version")
        refuse_host_arrays(ufunc.__name__, (*inputs, *(out or ()), kwargs.get("where", True)))
        into = {} if out is None else {"out": plain(out)}
        result = getattr(ufunc, method)(*plain(inputs), **plain(kwargs), **into)
        note(ufunc.__name__)
        return given(result) if out is None else out[0]

    def __array_function__(self, function, types, args, kwargs):
        return call(function, args, kwargs)

    def __getitem__(self, key):
        refuse_host_arrays("getitem", key if isinstance(key, tuple) else (key,))
        parts = key if isinstance(key, tuple) else (key,)
        is_view = not any(isinstance(part, ndarray | list) for part in parts)
        if is_view:  # it may be another device's
            return ndarray._view(self._host[(*parts, *(() if Ellipsis in parts else (Ellipsis,)))], self._at.mem)
        if any(getattr(part, "dtype", None) == np.dtype(bool) for part in parts):
            wait_for_a_number()
        note("take")
        return given(plain(self)[plain(key)])

    def __setitem__(self, key, value):
        refuse_host_arrays("setitem", (*(key if isinstance(key, tuple) else (key,)), value))
        plain(self)[plain(key)] = plain(value)
        note("setitem")

    def view(self, dtype=None):
        return ndarray._view(plain(self).view(dtype or self.dtype), self._at.mem)

    def astype(self, dtype, order="K", casting=None, subok=None, copy=True):
        if not copy and self.dtype == np.dtype(dtype):
            return self
        note("astype")
        return given(plain(self).astype(dtype, order=order, copy=True))

    def copy(self, order="C"):
        note("copy")
        return given(plain(self).copy(order))

    def fill(self, value):
        plain(self).fill(plain(value))
        note("fill")

    def sort(self, axis=-1):
        plain(self).sort(axis=axis, kind="stable")
        note("sort")


def _of_numpy(name):
    def method(self, *args, **kwargs):
        return call(getattr(np.ndarray, name), (self, *args), kwargs)

    method.__name__ = name
    return method


for _name in (
    "all", "any", "argmax", "argmin", "argsort", "clip", "cumsum", "dot", "flatten", "max", "mean", "min", "nonzero",
    "prod", "ravel", "repeat", "reshape", "round", "searchsorted", "squeeze", "std", "sum",
    "swapaxes", "take", "transpose",
):  # fmt: skip
    setattr(ndarray, _name, _of_numpy(_name))
ndarray.__module__ = "cupy"


# -------------------------------------------------------------------------------------------------- what is between
def _on(at, shape, dtype, strides, order):
    """Return NumPy's view of the device's memory, which stays for as long as the view."""
    if not int(np.prod(shape, dtype=np.int64)):
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * (at.mem.size - at.offset)).from_address(at.ptr)
    memory.owner = at.mem
    return np.ndarray(shape, dtype, memory, strides=strides, order=order)


def _is_of_host(value):
    return isinstance(value, np.ndarray) and value.ndim > 0


def refuse_host_arrays(name, values):
    """Demand that arrays are of the device, and so are those in lists."""
    for value in values:
        if _is_of_host(value):
            raise TypeError(f"{name}: an array of the host beside one of the device: Unsupported type {type(value)}")
        if isinstance(value, tuple | list):
            refuse_host_arrays(name, value)


def plain(value):
    """Return what NumPy takes; refuse arrays of another device, and memory that is not an array's any more."""
    if isinstance(value, ndarray):
        wrong = value.size and value._at.device_id != current_device()
        if wrong:
            raise ValueError(
                f"an array of device {value._at.device_id} is used while device {current_device()} is current"
            )
        return value._host
    if isinstance(value, tuple | list):
        return type(value)(map(plain, value))
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return value


def given(value):
    """Return what NumPy made as an array of the device; numbers are arrays without dimensions."""
    if isinstance(value, tuple | list):
        return type(value)(map(given, value)) if type(value) in (tuple, list) else tuple(map(given, value))
    if not isinstance(value, np.ndarray | np.generic):
        return value
    host = np.asarray(value)
    order = "F" if host.flags.f_contiguous and not host.flags.c_contiguous else "C"
    array = ndarray(host.shape, host.dtype, order=order)
    array._host[...] = host
    return array


def note(name):
    """Count a launch of CuPy's."""
    current_device()
    LIBRARY.lane_note(f"cupy.{name}".encode(), 1, 1, current_stream())


def wait_for_a_number():
    """Count what CuPy does to learn how large a result is: it copies a number to the host, and waits."""
    LIBRARY.lane_read_a_number()


def call(function, args, kwargs):
    """Return what a function of NumPy's gives: a view of an argument's memory, or a new array and a launch."""
    name = function.__name__
    if name in ("shape", "ndim", "size"):
        return function(getattr(args[0], "_host", args[0]))
    refuse_host_arrays(name, (*args, *kwargs.values()))
    if name == "repeat" and np.ndim(args[1]) > 0:
        raise TypeError("CuPy repeats by one number only")
    result = function(*plain(args), **plain(kwargs))
    sources = [value for value in (*args, *kwargs.values()) if isinstance(value, ndarray)]
    if isinstance(result, np.ndarray):
        for source in sources:
            if result is source._host:
                if kwargs.get("out") is source:
                    note(name)
                return source
            if np.may_share_memory(result, source._host) and result.size:
                return ndarray._view(result, source._at.mem)
    if isinstance(result, np.ndarray | np.generic | tuple | list | bool):
        note(name)
        if name in WAITING:
            wait_for_a_number()
        return given(result)
    return result


def foreign(value):
    """Return an array on the memory of anything with a CUDA array interface."""
    about = value.__cuda_array_interface__
    shape, dtype = tuple(about["shape"]), np.dtype(about["typestr"])
    size, strides = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize, about.get("strides")
    if strides and size:
        size = dtype.itemsize + sum(step * (n - 1) for step, n in zip(strides, shape, strict=True))
    memory = Foreign(int(about["data"][0] or 0), size, value)
    return ndarray(shape, dtype, MemoryPointer(memory), strides=strides)
