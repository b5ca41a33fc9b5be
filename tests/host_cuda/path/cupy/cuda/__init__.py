"""Devices, streams and memory, as CuPy names them."""

from __future__ import annotations

import ctypes

import numpy as np
from fake_gpu.driver import LIBRARY

from cupy._memory import (
    CUDARuntimeError,
    MemoryPointer,
    MemoryPool,
    alloc,
    checked,
    current_device,
    current_stream,
    get_allocator,
    local,
    set_allocator,
    use_device,
)

__all__ = ["CUDARuntimeError", "MemoryPointer", "MemoryPool", "alloc", "get_allocator", "set_allocator"]


def is_available():
    return True


class Device:
    """A device; current within ``with``."""

    def __init__(self, device=None):
        self.id = current_device() if device is None else int(device)
        self._before = []

    def __enter__(self):
        self._before.append(current_device())
        use_device(self.id)
        return self

    def __exit__(self, *error):
        use_device(self._before.pop())

    def use(self):
        use_device(self.id)

    def synchronize(self):
        with self:
            LIBRARY.api_cuCtxSynchronize()

    def __int__(self):
        return self.id

    def __eq__(self, other):
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self):
        return hash(self.id)

    def __repr__(self):
        return f"<CUDA Device {self.id}>"

    @property
    def attributes(self):
        return {"MultiProcessorCount": 8}

    compute_capability = "90"
    mem_info = property(lambda self: (80 << 30, 80 << 30))


class _Stream:
    def __init__(self, ptr, device_id):
        self.ptr, self.device_id, self._before = ptr, device_id, []

    def __enter__(self):
        self._before.append(current_stream())
        self.use()
        return self

    def __exit__(self, *error):
        self._set(self._before.pop())

    def use(self):
        if self.device_id not in (-1, current_device()):
            raise CUDARuntimeError(f"a stream of device {self.device_id} while device {current_device()} is current")
        self._set(self.ptr)
        return self

    @staticmethod
    def _set(ptr):
        local.__dict__.setdefault("streams", {})[current_device()] = ptr

    def synchronize(self):
        LIBRARY.api_cuStreamSynchronize(self.ptr)

    def wait_event(self, event):
        pass

    def record(self, event=None):
        return event or Event()

    def __eq__(self, other):
        return isinstance(other, _Stream) and self.ptr == other.ptr

    def __hash__(self):
        return hash(self.ptr)

    def __cuda_stream__(self):
        return 0, self.ptr


class Stream(_Stream):
    """A stream of the current device; ``with`` makes it this thread's current one."""

    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
        stream = ctypes.c_void_p()
        if not null:
            checked(LIBRARY.api_cuStreamCreate(ctypes.byref(stream), int(non_blocking)))
        super().__init__(stream.value or 0, current_device())
        self.null, self.non_blocking = null, non_blocking


class ExternalStream(_Stream):
    """A stream that somebody else has made."""

    def __init__(self, ptr, device_id=-1):
        super().__init__(ptr, device_id)


Stream.null = _Stream(0, -1)


def get_current_stream(device_id=-1):
    return ExternalStream(current_stream())


class Event:
    """A point in a stream: everything happens at once here."""

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        pass

    def record(self, stream=None):
        pass

    def synchronize(self):
        LIBRARY.api_cuStreamSynchronize(None)


def get_elapsed_time(start_event, end_event):
    """Return a number: times do not show here."""
    return 1.0


def alloc_pinned_memory(size):
    """Return a buffer of the host."""
    return memoryview(np.empty(max(size, 1), np.uint8))


class PinnedMemoryPool:
    def free_all_blocks(self):
        pass


class runtime:  # noqa: N801 (CuPy's name)
    """Functions of CUDA's runtime."""

    CUDARuntimeError = CUDARuntimeError

    @staticmethod
    def getDeviceCount():  # noqa: N802
        return LIBRARY.lane_device_count()

    @staticmethod
    def getDevice():  # noqa: N802
        return current_device()

    @staticmethod
    def setDevice(number):  # noqa: N802
        use_device(number)

    @staticmethod
    def deviceSynchronize():  # noqa: N802
        LIBRARY.api_cuCtxSynchronize()

    @staticmethod
    def runtimeGetVersion():  # noqa: N802
        return 13000

    @staticmethod
    def driverGetVersion():  # noqa: N802
        return 13000

    @staticmethod
    def memGetInfo():  # noqa: N802
        return 80 << 30, 80 << 30

    @staticmethod
    def getDeviceProperties(number):  # noqa: N802
        return {"name": f"stand-in {number}".encode(), "multiProcessorCount": 8, "totalGlobalMem": 80 << 30}
