"""Event building on a GPU for hits in host memory: windows in lanes, so that copies and kernels overlap.

Each lane is a thread with a CUDA stream and pinned buffers of its own; while one lane's hits are clustered, another's
are copied (Celko et al. 2025, section 5.1). Windows end at quiet gaps, so that no cluster is in two of them.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.core.data.checks import check_whole
from daskclust.core.device.arrays import cupy_module, is_cuda, is_dask
from daskclust.core.run.engine import run_in_memory
from daskclust.events.estimator import EventBuilder, checked_columns

_buffers = threading.local()


def cluster_on_gpu(
    hits: Any, builder: EventBuilder, *, window: int = 1 << 22, lanes: int = 2
) -> tuple[NDArray[np.int64], int]:
    """Cluster hits in host memory on the current CUDA device, window after window.

    Parameters
    ----------
    hits : xarray.Dataset, DataFrame, mapping of arrays, or array of shape (n, 3) or (n, 4)
        As of `EventBuilder.fit`, in host memory and in the order of time.
    builder : EventBuilder
        What a cluster is.
    window : int, default 4_194_304
        Hits that are on the device at once in each lane, about: a window ends at a quiet gap of more than ``dt_max``.
    lanes : int, default 2
        Windows that are under way at once.

    Returns
    -------
    labels, n_clusters : numpy.ndarray of int64, shape (n,), and int
        As `EventBuilder` gives them.

    Raises
    ------
    TypeError, ValueError
        For hits that are not in host memory or not in the order of time, and as `EventBuilder.fit`.
    """
    plan = builder._plan()
    window, lanes = check_whole("window", window, 1, clamp=True), check_whole("lanes", lanes, 1)
    columns = checked_columns(hits, ...)
    toa = columns["toa"]
    if is_dask(toa) or is_cuda(toa):
        raise TypeError(f"hits must be in host memory, got {type(toa)!r}; EventBuilder.fit takes them as they are")
    _check_times(toa)
    begin = quiet_windows(toa, plan.dt_max, window)
    labels, counts = np.empty(len(toa), np.int64), np.zeros(len(begin) - 1, np.int64)

    def work(k: int) -> None:
        part = {name: values[begin[k] : begin[k + 1]] for name, values in columns.items()}
        with cupy_module().cuda.Stream(non_blocking=True):
            counts[k] = _in_lane(plan, part, labels[begin[k] : begin[k + 1]])

    list(_threads(_current_device(), lanes).map(work, range(len(counts))))
    for k, before in enumerate(np.cumsum(counts) - counts):
        mine = labels[begin[k] : begin[k + 1]]
        np.add(mine, before, out=mine, where=mine >= 0)
    return labels, int(counts.sum())


def _check_times(toa: NDArray[np.float64]) -> None:
    """Refuse times that are not in order, or not finite: in order, only the first and the last may be infinite."""
    breaks = np.flatnonzero(~(toa[1:] >= toa[:-1]))[:1]
    for k in (0, *breaks, *breaks + 1, len(toa) - 1) if len(toa) else ():
        if not np.isfinite(toa[k]):
            raise ValueError(f"toa must be finite, got toa[{k}] = {toa[k]}; remove such hits first")
    if len(breaks):
        k = int(breaks[0]) + 1
        raise ValueError(
            f"hits must be in the order of time; toa[{k}] is before the hit before it, {toa[k]} after {toa[k - 1]}: "
            "sort them first"
        )


def quiet_windows(toa: NDArray[np.float64], dt_max: float, window: int) -> NDArray[np.int64]:
    """Return where windows of about `window` hits begin, each after a gap of more than `dt_max`, and n."""
    begin = [0]
    while begin[-1] + window < len(toa):
        low, found = begin[-1] + window, -1
        while found < 0 and low < len(toa):
            gaps = np.flatnonzero(np.diff(toa[low - 1 : low + window]) > dt_max)
            found = low + int(gaps[0]) if len(gaps) else -1
            low += window
        if found < 0:
            break
        begin.append(found)
    return np.array([*begin, len(toa)] if len(toa) else [0], np.int64)


@functools.lru_cache(maxsize=1)
def _threads(device: int, lanes: int) -> ThreadPoolExecutor:
    """Return the threads of the lanes; those of the last call are kept, and with them their pinned buffers."""
    return ThreadPoolExecutor(lanes, "daskclust-lane", initializer=_use_device, initargs=(device,))


def _current_device() -> int:
    return int(cupy_module().cuda.runtime.getDevice())


def _use_device(number: int) -> None:
    """Let this thread work on a device: which one is current is known to each thread by itself."""
    cupy_module().cuda.runtime.setDevice(number)


def _in_lane(plan: Any, part: Mapping[str, NDArray[Any]], labels: NDArray[np.int64]) -> int:
    """Copy hits to the device by way of pinned memory, cluster them, copy labels back; return how many clusters."""
    cupy = cupy_module()
    on_device = {name: cupy.empty(values.shape, values.dtype) for name, values in part.items()}
    for name, values in part.items():
        on_device[name].set(_pinned(name, values))
    results = run_in_memory(plan, on_device)
    back = _pinned("labels", labels, copy=False)
    results["labels"].get(out=back)
    labels[:] = back
    return int(results["n_clusters"])


def _pinned(name: str, values: NDArray[Any], *, copy: bool = True) -> NDArray[Any]:
    """Return this thread's pinned buffer of that name, of the size and type of `values` and with them if `copy`."""
    kept = _buffers.__dict__.get(name)
    if kept is None or kept.nbytes < values.nbytes:
        kept = _buffers.__dict__[name] = _pinned_bytes(max(values.nbytes, 1))
    buffer: NDArray[Any] = kept[: values.nbytes].view(values.dtype)
    if copy:
        buffer[:] = values
    return buffer


def _pinned_bytes(size: int) -> NDArray[np.uint8]:
    """Return memory of the host that a device copies from and to by itself."""
    return np.frombuffer(cupy_module().cuda.alloc_pinned_memory(size), np.uint8, size)
