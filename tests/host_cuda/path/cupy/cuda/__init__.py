"""Devices, streams and memory, as CuPy names them: what daskclust and its tests use of them."""

import ctypes

import numpy as np
from fake_gpu.driver import LIBRARY

from cupy._memory import CUDARuntimeError, MemoryPool, checked, current_device, current_stream, local, use_device

__all__ = ["CUDARuntimeError", "MemoryPool"]


class Device:
    """A device; current within ``with``."""

    attributes = {"MultiProcessorCount": 8}  # noqa: RUF012 (CuPy's name)

    def __init__(self, device=None):
        self.id = current_device() if device is None else int(device)
        self._before = []

    def __enter__(self):
        self._before.append(current_device())
        use_device(self.id)
        return self

    def __exit__(self, *error):
        use_device(self._before.pop())

    def synchronize(self):
        with self:
            LIBRARY.api_cuCtxSynchronize()

    def __int__(self):
        return self.id

    def __eq__(self, other):
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self):
        return hash(self.id)


class Stream:
    """A stream of the current device, or one that there is; ``with`` makes it this thread's current one."""

    def __init__(self, null=False, non_blocking=False, ptr=None):
        stream = ctypes.c_void_p(ptr)
        if not null and ptr is None:
            checked(LIBRARY.api_cuStreamCreate(ctypes.byref(stream), int(non_blocking)))
        self.ptr, self.device_id, self._before = stream.value or 0, current_device(), []

    def __enter__(self):
        self._before.append(current_stream())
        if self.device_id != current_device():
            raise CUDARuntimeError(f"a stream of device {self.device_id} while device {current_device()} is current")
        self._set(self.ptr)
        return self

    def __exit__(self, *error):
        self._set(self._before.pop())

    @staticmethod
    def _set(ptr):
        local.__dict__.setdefault("streams", {})[current_device()] = ptr

    def synchronize(self):
        LIBRARY.api_cuStreamSynchronize(self.ptr)

    def __eq__(self, other):
        return isinstance(other, Stream) and self.ptr == other.ptr

    def __hash__(self):
        return hash(self.ptr)


def get_current_stream(device_id=-1):
    return Stream(ptr=current_stream())


def alloc_pinned_memory(size):
    """Return a buffer of the host."""
    return memoryview(np.empty(max(size, 1), np.uint8))


class runtime:  # noqa: N801 (CuPy's name)
    """Functions of CUDA's runtime."""

    CUDARuntimeError = CUDARuntimeError
    getDeviceCount = staticmethod(lambda: LIBRARY.lane_device_count())  # noqa: N815, PLW0108
    getDevice = staticmethod(current_device)  # noqa: N815
    setDevice = staticmethod(use_device)  # noqa: N815
