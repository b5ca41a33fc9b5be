"""Memory of the stand-in driver, and a pool of it like CuPy's: an array that goes leaves its memory to the next ones.

CuPy cuts large blocks; here a block serves arrays of its own size only, in steps of 512 bytes.
"""

from __future__ import annotations

import ctypes
import threading
from collections import defaultdict
from typing import Any

from fake_gpu.driver import LIBRARY, faults

_STEP = 512
lock = threading.RLock()
local = threading.local()  # each thread's device and stream


class CUDARuntimeError(RuntimeError):
    """An error of the driver."""


def checked(result: int) -> None:
    """Raise where the driver says no."""
    if result:
        raise CUDARuntimeError(f"error {result} of the stand-in driver: {'; '.join(faults())}")


def current_device() -> int:
    """Return the device of this thread, which becomes the first one where there is none yet."""
    device = ctypes.c_int(-1)
    if LIBRARY.api_cuCtxGetDevice(ctypes.byref(device)):
        use_device(0)
        return 0
    return device.value


def use_device(number: int) -> None:
    """Make a device this thread's current one."""
    if not 0 <= number < LIBRARY.lane_device_count():
        raise CUDARuntimeError(f"cudaErrorInvalidDevice: invalid device ordinal {number}")
    context = ctypes.c_void_p()
    checked(LIBRARY.api_cuDevicePrimaryCtxRetain(ctypes.byref(context), number))
    checked(LIBRARY.api_cuCtxSetCurrent(context))


def current_stream() -> int:
    """Return the address of this thread's stream on the current device, 0 for the default one."""
    return getattr(local, "streams", {}).get(current_device(), 0)


class Memory:
    """Bytes of a device; the pool's again when nobody holds them."""

    def __init__(self, size: int, pool: MemoryPool) -> None:
        self.size, self.pool = size, pool
        self.device_id, self.stream = current_device(), current_stream()
        self.ptr = pool.take(self)

    def __del__(self) -> None:
        self.pool.give(self)


class Foreign:
    """Bytes that somebody else has allocated, who is kept alive."""

    def __init__(self, ptr: int, size: int, owner: Any) -> None:
        self.ptr, self.size, self.owner = ptr, size, owner
        self.device_id = LIBRARY.lane_device_of(ptr) if ptr else current_device()


class MemoryPointer:
    """A place in memory."""

    def __init__(self, mem: Any, offset: int = 0) -> None:
        self.mem, self.offset = mem, offset

    ptr = property(lambda self: self.mem.ptr + self.offset)
    device_id = property(lambda self: self.mem.device_id)

    def copy_from_device(self, src: MemoryPointer, size: int) -> None:
        checked(LIBRARY.api_cuMemcpyDtoD(ctypes.c_uint64(self.ptr), ctypes.c_uint64(src.ptr), size))


def allocate(size: int) -> int:
    """Return the address of new memory of the driver's."""
    place = ctypes.c_uint64()
    checked(LIBRARY.api_cuMemAlloc(ctypes.byref(place), size))
    return place.value


class MemoryPool:
    """Blocks of each device and stream that are free, by their size."""

    def __init__(self) -> None:
        self._free: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        self._used: dict[int, int] = defaultdict(int)  # bytes of each device

    def take(self, memory: Memory) -> int:
        with lock:
            free = self._free[self._kind(memory)]
            capacity = self._kind(memory)[2]
            place = free.pop() if free else allocate(capacity)
            self._used[memory.device_id] += capacity
            LIBRARY.lane_pool_take(place, memory.size)
            return place

    def give(self, memory: Memory) -> None:
        with lock:
            kind = self._kind(memory)
            LIBRARY.lane_pool_give(memory.ptr)
            self._used[memory.device_id] -= kind[2]
            self._free[kind].append(memory.ptr)

    @staticmethod
    def _kind(memory: Memory) -> tuple[int, int, int]:
        return memory.device_id, memory.stream, -(-memory.size // _STEP) * _STEP

    def malloc(self, size: int) -> MemoryPointer:
        return MemoryPointer(Memory(size, self))

    def used_bytes(self) -> int:
        return self._used[current_device()]

    def free_bytes(self) -> int:
        device = current_device()
        return sum(size * len(places) for (its, _, size), places in self._free.items() if its == device)

    def total_bytes(self) -> int:
        return self.used_bytes() + self.free_bytes()

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Do nothing: the host's memory is enough."""

    def free_all_blocks(self, stream: Any = None) -> None:
        """Give the driver back what no array uses, of the current device."""
        with lock:
            device = current_device()
            for kind in [kind for kind in self._free if kind[0] == device]:
                for place in self._free.pop(kind):
                    LIBRARY.api_cuMemFree(place)


default_pool = MemoryPool()


def alloc(size: int) -> MemoryPointer:
    """Return memory for an array; none for one of no bytes."""
    return default_pool.malloc(size) if size else MemoryPointer(Foreign(0, 0, None))
