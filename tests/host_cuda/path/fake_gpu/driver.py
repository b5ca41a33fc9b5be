"""The stand-in driver as Python sees it: counters, faults, order of threads, and memory for the pool of arrays."""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

LIBRARY = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
LOADER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
COUNTERS = (
    "launches", "to_device", "to_host", "on_device", "bytes_to_device", "bytes_to_host", "sets", "allocations", "frees",
    "waits",
)  # fmt: skip
ORDERS = ("forward", "reverse", "shuffled")

_Size, _Address = ctypes.c_size_t, ctypes.c_uint64


class _Launched(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 200),
        ("device", ctypes.c_int),
        ("blocks", ctypes.c_uint),
        ("threads", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
    )


for _name, _result, *_arguments in (
    ("lane_faults", ctypes.c_char_p),
    ("lane_check", None),
    ("lane_reset", None),
    ("lane_counter", _Size, ctypes.c_int),
    ("lane_launched", _Size, ctypes.POINTER(ctypes.POINTER(_Launched))),
    ("lane_note", None, ctypes.c_char_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p),
    ("lane_set_order", None, ctypes.c_int, ctypes.c_uint64),
    ("lane_wrong", ctypes.c_char_p, _Address, _Size),
    ("lane_device_of", ctypes.c_int, _Address),
    ("lane_read_a_number", None),
    ("lane_pool_take", None, _Address, _Size),
    ("lane_pool_give", None, _Address),
    ("lane_set_loader", None, LOADER),
    ("lane_make_kernel", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_char_p, *[ctypes.c_int] * 2),
    ("api_cuCtxGetDevice", ctypes.c_int, ctypes.POINTER(ctypes.c_int)),
    ("api_cuDevicePrimaryCtxRetain", ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int),
    ("api_cuCtxSetCurrent", ctypes.c_int, ctypes.c_void_p),
    ("api_cuMemAlloc", ctypes.c_int, ctypes.POINTER(_Address), _Size),
    ("api_cuMemFree", ctypes.c_int, _Address),
    ("api_cuMemcpyHtoD", ctypes.c_int, _Address, ctypes.c_void_p, _Size),
    ("api_cuMemcpyHtoDAsync", ctypes.c_int, _Address, ctypes.c_void_p, _Size, ctypes.c_void_p),
    ("api_cuMemcpyDtoH", ctypes.c_int, ctypes.c_void_p, _Address, _Size),
    ("api_cuMemcpyDtoHAsync", ctypes.c_int, ctypes.c_void_p, _Address, _Size, ctypes.c_void_p),
    ("api_cuStreamSynchronize", ctypes.c_int, ctypes.c_void_p),
    ("api_cuCtxSynchronize", ctypes.c_int),
    ("lane_device_count", ctypes.c_int),
):  # fmt: skip
    getattr(LIBRARY, _name).argtypes, getattr(LIBRARY, _name).restype = _arguments, _result


class Launched(NamedTuple):
    """A launch: of a kernel of numba-cuda, or of what CuPy would launch, ``cupy.<function>``."""

    name: str
    device: int
    blocks: int
    threads: int
    stream: int
    """Its address; 0 for the default stream."""


class Counts(NamedTuple):
    """What the driver did since `reset`."""

    launches: int
    to_device: int
    """Copies of the host's memory."""
    to_host: int
    on_device: int
    bytes_to_device: int
    bytes_to_host: int
    sets: int
    allocations: int
    """Of the driver; what the pool of CuPy had is none."""
    frees: int
    waits: int
    """Of the host, for a stream, an event, a device, or a copy that waits."""
    launched: list[Launched]

    @property
    def kernels(self) -> Counter[str]:
        """How often each kernel was launched."""
        return Counter(launch.name for launch in self.launched)


def counts() -> Counts:
    """Return what the driver did since `reset`."""
    first = ctypes.POINTER(_Launched)()
    n = LIBRARY.lane_launched(ctypes.byref(first))
    launched = [
        Launched(short(its.name.decode()), its.device, its.blocks, its.threads, its.stream or 0) for its in first[:n]
    ]
    return Counts(*(LIBRARY.lane_counter(k) for k in range(len(COUNTERS))), launched)


def reset() -> None:
    """Let `counts` begin anew."""
    LIBRARY.lane_reset()


def short(name: str) -> str:
    """Return the name of a kernel's body from the name that numba gives to its machine code."""
    if not name.startswith("_ZN"):
        return name
    parts, rest = [], name[3:]
    while found := re.match(r"\d+", rest):
        length, start = int(found[0]), found.end()
        parts.append(rest[start : start + length])
        rest = rest[start + length :]
    return re.sub(r"_grid_[0-9a-f]{12}$", "", parts[-1]) if parts else name


def faults() -> list[str]:
    """Check all red zones; return what was wrong since the last call."""
    LIBRARY.lane_check()
    return LIBRARY.lane_faults().decode().splitlines()


def set_order(name: str, seed: int = 1) -> None:
    """Let threads and blocks run in the order of `ORDERS` that is named."""
    LIBRARY.lane_set_order(ORDERS.index(name), seed)


@contextmanager
def in_order(name: str, seed: int = 1) -> Iterator[None]:
    """Let threads and blocks run in an order; forward afterwards."""
    set_order(name, seed)
    try:
        yield
    finally:
        set_order("forward")
