"""Event building on a GPU for hits in host memory: windows in lanes, so that copies and kernels overlap.

Each lane is a thread with a CUDA stream and pinned memory of its own; while one lane's hits are clustered, another's
are copied (Celko et al. 2025, section 5.1). Windows end at quiet gaps, so that no cluster is in two of them. Their
numbers go on from those of the windows before: a lane waits for these after its own hits are joined and counted.

docs/explanation/events.md estimates what bounds it: copies of the host to and from pinned memory, so four lanes.
"""

from __future__ import annotations

import functools
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.core.data.checks import check_count, check_whole
from daskclust.core.data.columns import named_for_kernels
from daskclust.core.device.arrays import CUDA, cupy_module, is_cuda, is_dask, use_device
from daskclust.events import on_cuda
from daskclust.events.estimator import EventBuilder, checked_columns
from daskclust.events.kernels.pixels import Hits
from daskclust.events.kernels.window import COUNT, DESCENTS
from daskclust.events.matrix import refuse
from daskclust.events.plan import EventPlan

_NEAR = 1 << 12  # hits after the place of a cut where a quiet gap is looked for first
_FAR = 1 << 20  # and at once, at most
_lane = threading.local()

Columns = dict[str, NDArray[Any]]


def cluster_on_gpu(
    hits: Any, builder: EventBuilder, *, window: int = 1 << 22, lanes: int = 4
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
    lanes : int, default 4
        Windows that are under way at once.

    Returns
    -------
    labels, n_clusters : numpy.ndarray of int64, shape (n,), and int
        As `EventBuilder` gives them.

    Raises
    ------
    TypeError, ValueError
        For hits that are not in host memory or not in the order of time, and as `EventBuilder.fit`.

    Notes
    -----
    A lane takes about 30 bytes a hit of a window on the device, from CuPy's memory pool, and 21 of pinned host memory,
    which it keeps.
    """
    plan = builder._plan()
    window, lanes = check_whole("window", window, 1, clamp=True), check_whole("lanes", lanes, 1)
    columns = checked_columns(hits, plan)
    toa = columns["toa"]
    if is_dask(toa) or is_cuda(toa):
        raise TypeError(f"hits must be in host memory, got {type(toa)!r}; EventBuilder.fit takes them as they are")
    return cluster_in_lanes(plan, named_for_kernels(columns), window, lanes)


def cluster_in_lanes(plan: EventPlan, columns: Columns, window: int, lanes: int) -> tuple[NDArray[np.int64], int]:
    """Return labels and number of clusters of columns in host memory, as kernels take them, in the order of time."""
    toa = columns["toa"]
    begin = quiet_windows(toa, plan.dt_max, window)
    room = int(np.diff(begin).max(initial=0))
    check_count(room)
    labels = np.empty(len(toa), np.int64)
    before: list[Future[int]] = [Future() for _ in begin]  # number of clusters before each window, and of all
    before[0].set_result(0)

    def work(k: int) -> None:
        here = slice(begin[k], begin[k + 1])
        try:
            part = {name: values[here] for name, values in columns.items()}
            with _lane.stream:
                joined, facts = _join(plan, part, room)
                if on_cuda.is_refused(facts) or facts[DESCENTS]:
                    _refuse(columns, plan.clock)
                # windows are taken in their order, so that the first that is under way waits for no other
                first = before[k].result()
                before[k + 1].set_result(first + int(facts[COUNT]))
                _write_labels(joined.parent, first, labels[here], room)
        except BaseException as error:
            if not before[k + 1].done():
                before[k + 1].set_exception(error)
            raise

    if len(toa):
        list(_threads(int(cupy_module().cuda.runtime.getDevice()), lanes).map(work, range(len(begin) - 1)))
    return labels, before[-1].result()


def quiet_windows(toa: NDArray[np.float64], dt_max: float, window: int) -> NDArray[np.int64]:
    """Return where windows of about `window` hits begin, each after a gap of more than `dt_max`, and n."""
    begin = [0]
    while begin[-1] + window < len(toa):
        low, found, width = begin[-1] + window, -1, _NEAR
        while found < 0 and low < len(toa):
            with np.errstate(invalid="ignore"):  # of infinite times
                gaps = np.flatnonzero(np.diff(toa[low - 1 : low + width]) > dt_max)
            found = low + int(gaps[0]) if len(gaps) else -1
            low, width = low + width, min(2 * width, _FAR)
        if found < 0:
            break
        begin.append(found)
    return np.array([*begin, len(toa)] if len(toa) else [0], np.int64)


def _refuse(columns: Columns, clock: str) -> None:
    """Say which hit is not finite, out of order, or too far out."""
    toa = columns["toa"]
    refuse(Hits(columns["x"], columns["y"], columns.get("chip", np.empty(0, np.uint8)), toa), range(len(toa)))
    k = int(np.argmax(toa[1:] < toa[:-1])) + 1
    raise ValueError(
        f"hits must be in the order of time, got {clock}[{k}] = {toa[k]} after {toa[k - 1]}; sort them first"
    )


# ---------------------------------------------------------------------------------------------------------------- lanes
@functools.lru_cache(maxsize=8)
def _threads(device: int, lanes: int) -> ThreadPoolExecutor:
    """Return the threads of the lanes of a device; they are kept, and with them their streams and pinned memory."""
    return ThreadPoolExecutor(lanes, "daskclust-lane", initializer=_begin_lane, initargs=(device,))


def _begin_lane(device: int) -> None:
    """Let this thread work on a device: which one is current is known to each thread by itself."""
    use_device(device)
    _lane.stream, _lane.pinned = cupy_module().cuda.Stream(non_blocking=True), {}


def _join(plan: EventPlan, part: Columns, room: int) -> tuple[on_cuda.Joined, NDArray[np.int64]]:
    """Copy hits to the device by way of pinned memory and join them; return also what the host must know of them."""
    there = {name: _to_device(name, values, room) for name, values in part.items()}
    hits = Hits(there["x"], there["y"], there.get("chip", CUDA.empty(0, np.uint8)), there["toa"])
    joined = plan.join_on_cuda(CUDA, plan.min_hits, hits, room)
    return joined, CUDA.to_host(joined.facts)


def _to_device(name: str, values: NDArray[Any], room: int) -> Any:
    """Start to copy values to an array of the device."""
    staged = _pinned(name, room, values.dtype)[: len(values)]
    staged[:] = values
    there = CUDA.empty(room, values.dtype)[: len(values)]
    there.set(staged, stream=_lane.stream)
    return there


def _write_labels(parent: Any, before: int, labels: NDArray[np.int64], room: int) -> None:
    """Write the labels of joined hits to host memory."""
    there = CUDA.empty(room, np.int64)[: len(labels)]
    on_cuda.write_labels(CUDA, parent, before, there)
    staged = _pinned("labels", room, np.dtype(np.int64))[: len(labels)]
    there.get(stream=_lane.stream, out=staged)
    _lane.stream.synchronize()
    labels[:] = staged


def _pinned(name: str, room: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    kept = _lane.pinned.get(name)
    if kept is None or kept.nbytes < room * dtype.itemsize:
        size = room * dtype.itemsize
        memory = cupy_module().cuda.alloc_pinned_memory(size)
        kept = _lane.pinned[name] = np.frombuffer(memory, np.uint8, size)
    array: NDArray[Any] = kept[: room * dtype.itemsize].view(dtype)
    return array
