"""Hits of a file in the order of time, window by window."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

    from daskclust.cli._job import Job
    from daskclust.events.estimator import EventBuilder
    from daskclust.readout.stream import EventStream

    Prepare = Callable[[xr.Dataset], xr.Dataset]

ROUND = 1 << 20  # hits that are clustered at once


def with_rows(data: xr.Dataset, first_row: int) -> xr.Dataset:
    """Return hits with the numbers of their rows in all files."""
    from daskclust.readout.columns import ROW

    if data.chunks:
        import dask.array as da

        rows = da.arange(first_row, first_row + data.sizes["hit"], chunks=data.chunks["hit"])
        return data.assign({ROW: ("hit", rows)})
    import numpy as np

    from daskclust.io.devices import on_demand

    def numbers(start: int, stop: int) -> Any:
        return np.arange(first_row + start, first_row + stop)

    return data.assign({ROW: on_demand("hit", numbers, data.sizes["hit"], np.int64, {}, None)})


def in_time(data: xr.Dataset, clock: str, *, for_dask: bool) -> xr.Dataset:
    """Return hits in the order of time, or of frames: as they are, or, where they are not, sorted in memory."""
    import numpy as np

    if clock not in data:
        return data  # which is refused
    if for_dask:
        toa = data[clock].data
        ends = toa.map_blocks(_ends, chunks=((2,) * toa.numblocks[0],), token="daskclust-io-order").compute()
    else:
        from daskclust.core.device.threads import in_threads, thread_count

        windows, found = _windows(data), {}

        def look(number: int) -> None:
            toa = data[clock].isel(hit=windows[number]).compute(scheduler="synchronous")
            found[number] = _ends(toa.values)

        in_threads(look, len(windows), thread_count())
        ends = np.concatenate([found[number] for number in range(len(windows))])
    if (ends[1:] >= ends[:-1]).all():
        return data
    in_order = data.compute().sortby(clock)
    return in_order.chunk({"hit": ROUND}) if for_dask else in_order


def _windows(data: xr.Dataset) -> list[slice]:
    """Return which hits of a file are read at once."""
    from daskclust.core.space.partition import block_sizes

    told = data["x"].encoding.get("preferred_chunks", {}).get("hit")
    ends = list(itertools.accumulate(data.chunks.get("hit") or told or block_sizes(data.sizes["hit"], ROUND)))
    return [slice(start, stop) for start, stop in zip([0, *ends], ends, strict=False)]


def _ends(toa: Any) -> Any:
    """Return the first and the last time of a chunk, none of one without hits; NaN where hits are in no order."""
    return toa[[0, -1]] * (1.0 if (toa[1:] >= toa[:-1]).all() else float("nan")) if len(toa) else toa


def windows(data: xr.Dataset, builder: EventBuilder, prepare: Prepare, job: Job) -> EventStream:
    """Return the stream of a file's hits, a window of the file a round."""
    from daskclust.readout.stream import EventStream

    job.work.begin(f"clustering {job.name}", data.sizes["hit"], "hits")
    is_quad = data.attrs.get("layout") == "quad"
    prepared = (prepare(hits) for hits in in_windows(data, job))
    return EventStream(prepared, builder, disorder=0.0, buffer=1, chip=not is_quad, cuda=job.run.cuda)


def in_windows(data: xr.Dataset, job: Job) -> Iterator[xr.Dataset]:
    """Yield the hits of a file window by window, in memory."""
    for window in _windows(data):
        with job.stage("reading"):
            hits = data.isel(hit=window).compute(scheduler="synchronous")
        yield hits
