"""``daskclust events``."""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daskclust.cli._frame import check_outputs, cluster, progress, show

if TYPE_CHECKING:
    import xarray as xr

    from daskclust.events.estimator import EventBuilder
    from daskclust.events.stream import EventStream

    Prepare = Callable[[xr.Dataset], xr.Dataset] | None

_ROUND = 1 << 20  # hits that are clustered at once
_UNDER_WAY = 3  # batches that wait to be written: row groups are larger than batches
_LOST = (
    "n_late", "n_unknown", "n_count_fb", "n_chunks_cut", "n_bytes_skipped", "n_bytes_truncated", "n_special",
    "n_lost_data_intervals",
)  # fmt: skip
"""Counts of a file that tell of what is no hit, or not where it should be."""


def events(
    source: Annotated[
        str,
        typer.Argument(
            metavar="IN",
            help="Hits: .tpx3, .t3pa, Parquet, CSV, HDF5, NumPy, ROOT; with --follow also tcp://host:port.",
        ),
    ],
    dt_max: Annotated[float, typer.Option(help="Largest difference of times between touching hits, in ns.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Table of clusters: .parquet.")] = None,
    hits: Annotated[Path | None, typer.Option(help="Also write the hits, with their labels: .parquet.")] = None,
    where: Annotated[
        str | None, typer.Option(help='Keep clusters for which this holds, e.g. "size > 3 and tot > 200".')
    ] = None,
    variant: Annotated[str, typer.Option(help="local, global or static: the definitions (iii) a, b, c.")] = "local",
    connectivity: Annotated[int, typer.Option(help="Pixels touch at corners too (8) or at sides only (4).")] = 8,
    min_hits: Annotated[int, typer.Option(help="Hits of a cluster at least.")] = 1,
    layout: Annotated[
        str | None,
        typer.Option(help="chips: apart; quad: side by side.  \\[default: the file's, or chips]"),
    ] = None,
    gap: Annotated[int, typer.Option(help="Pixels between the chips of a quad.")] = 0,
    disorder: Annotated[float, typer.Option(help="How much earlier than one before it a hit may come, in us.")] = 600.0,
    calibration: Annotated[
        Path | None, typer.Option(help="Folder with the matrices a.txt, b.txt, c.txt, t.txt: gives energies in keV.")
    ] = None,
    tot_unit: Annotated[str, typer.Option(help="Unit of ToT in the calibration: ns or tick (25 ns).")] = "ns",
    trigger: Annotated[int | None, typer.Option(help="TDC channel (1, 2): gives times of flight (raw words).")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on as the file grows, or read from tcp://.")] = False,
    idle: Annotated[float | None, typer.Option(help="With --follow: seconds without data after which it ends.")] = None,
    workers: Annotated[int, typer.Option(help="Dask workers; 0: window after window, on all cores.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Build clusters of pixel hits from a Timepix detector.

    Hits are clustered and written window by window, with the answer of all at once. Memory is bounded for raw files and
    running readouts, and for Parquet and HDF5 files in the order of time. Other formats are read at once, and files
    that are not in the order of time are sorted in memory.
    """
    from daskclust.events.estimator import EventBuilder

    began = time.perf_counter()
    check_outputs(source, {"-o": output, "--hits": hits}, (".parquet", "(.pq)"))
    reading = {"layout": layout, "gap": gap, "disorder": disorder * 1e3}
    _check_reading(source, reading, follow, idle, trigger, workers)
    builder = EventBuilder(dt_max, variant=variant, connectivity=connectivity, min_hits=min_hits)
    builder._plan()  # refused before anything starts
    prepare = None if calibration is None else _energies(calibration, tot_unit)
    with progress(f"clustering {source}", quiet=as_json) as work:
        if follow:
            with _stop_at_interrupt() as stop:
                stream = _readout(source, builder, reading, idle, stop, trigger, prepare)
                summary = _write(stream, output, hits, where, work)
            summary |= _lost({**stream.reader.counts, "n_late": 0})  # late_hits tells those
        elif workers:
            with cluster(workers):
                data = _open(source, reading, trigger)
                result = (data if prepare is None else prepare(data)).clust.events(**builder.get_params())
                summary = _on_workers(work.compute(result), output, hits, where) | _lost(data.attrs)
        else:
            data = _open(source, reading, trigger)
            summary = _write(_windows(data, builder, prepare), output, hits, where, work) | _lost(data.attrs)
    summary["seconds"] = round(time.perf_counter() - began, 3)
    summary["hits_per_second"] = round(summary["hits"] / max(summary["seconds"], 1e-3))
    for name, path in (("output", output), ("hits_output", hits)):
        if path is not None:
            summary[name] = str(path)
    show(summary, as_json, f"Events: {source}")


def _check_reading(
    source: str, reading: dict[str, Any], follow: bool, idle: float | None, trigger: int | None, workers: int
) -> None:
    if reading["layout"] not in (None, "chips", "quad"):
        raise ValueError(f"--layout must be chips or quad, got {reading['layout']!r}")
    if reading["layout"] == "quad" and source.endswith(".t3pa"):
        raise ValueError(f"--layout quad is not for {source}, whose chips are apart; leave it out")
    for option in ("gap", "disorder"):
        if not reading[option] >= 0:
            raise ValueError(f"--{option} must be 0 or more, got {reading[option]:g}")
    if reading["gap"] and not (source.endswith(".tpx3") or follow):
        raise ValueError(f"--gap is for raw .tpx3 words; {source} has coordinates of its own")
    if source.startswith("tcp://") and not follow:
        raise ValueError(f"{source} is a running readout; add --follow")
    if follow and not source.startswith("tcp://") and not source.endswith(".tpx3"):
        raise ValueError(f"--follow reads raw words, of a .tpx3 file or tcp://host:port, got {source}")
    if follow and workers:
        raise ValueError("--follow clusters in this process; leave --workers out")
    if idle is not None and not follow:
        raise ValueError(f"--idle is for --follow, got --idle {idle:g} without it; leave it out, or add --follow")
    if idle is not None and not idle >= 0:
        raise ValueError(f"--idle must be 0 or more, got {idle:g}")
    if trigger is not None and not (follow or source.endswith(".tpx3")):
        raise ValueError(f"--trigger is for raw .tpx3 words, which have TDC times; got {source}")


def _open(source: str, reading: dict[str, Any], trigger: int | None) -> xr.Dataset:
    """Return the hits of a file, lazy where the format allows it."""
    from daskclust import io

    if source.endswith(".tpx3"):
        data = io.open_tpx3(source, chunks=_ROUND, **{**reading, "layout": reading["layout"] or "chips"})
        if trigger is not None:
            triggers = io.open_tpx3_triggers(source)
            data["tof"] = ("hit", io.time_of_flight(data["toa"].data, triggers, channel=trigger), {"units": "ns"})
        return data
    if source.endswith(".t3pa"):
        return io.open_t3pa(source, chunks=_ROUND)
    return _in_time(io.read_hits(source, field="timepix", layout=reading["layout"], chunks=_ROUND))


@contextmanager
def _stop_at_interrupt() -> Iterator[threading.Event]:
    """Let Ctrl-C set an event, so that what has come is clustered and written; once more, and it interrupts."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # signals are not for this thread
        return

    def end(*_: Any) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, end)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)


def _readout(
    source: str,
    builder: EventBuilder,
    reading: dict[str, Any],
    idle: float | None,
    stop: threading.Event,
    trigger: int | None,
    prepare: Prepare,
) -> EventStream:
    """Return the stream of a running readout, or of a file that grows."""
    from daskclust.events.stream import EventStream
    from daskclust.io import readout

    gap: int = reading["gap"]
    layout: Any = reading["layout"] or "chips"
    items = (readout.receive if source.startswith("tcp://") else readout.follow)(source, idle=idle, stop=stop.is_set)

    def prepared(hits: xr.Dataset) -> xr.Dataset:
        return hits if prepare is None else prepare(hits.assign_attrs(layout=layout, gap=gap))

    return EventStream(
        items,
        builder,
        disorder=reading["disorder"],
        buffer=_ROUND,
        chip=layout != "quad",
        reader=readout.WordReader(layout=layout, gap=gap, trigger=trigger),
        prepare=prepared,
    )


def _windows(data: xr.Dataset, builder: EventBuilder, prepare: Prepare) -> EventStream:
    """Return the stream of a file's hits, a window of the file a round."""
    from daskclust.events.stream import EventStream

    def windows() -> Iterator[xr.Dataset]:
        start = 0
        for length in data.chunks.get("hit", (data.sizes["hit"],)):
            part = data.isel(hit=slice(start, start + length)).compute(scheduler="synchronous")
            yield part if prepare is None else prepare(part)
            start += length

    return EventStream(windows(), builder, disorder=0.0, buffer=1, chip=data.attrs.get("layout") != "quad")


def _energies(calibration: Path, tot_unit: Any) -> Callable[[xr.Dataset], xr.Dataset]:
    """Return what gives hits energies; those that have none (masked pixels, say) add nothing to their cluster's."""
    from daskclust.io import calibrate, read_calibration

    given = read_calibration(calibration)

    def prepare(hits: xr.Dataset) -> xr.Dataset:
        energy = calibrate(hits, given, tot_unit=tot_unit)["energy"]
        return hits.assign(energy=energy.where(energy > 0, 0))

    return prepare


def _in_time(data: xr.Dataset) -> xr.Dataset:
    """Return hits in the order of time: as they are, or, where they are not, sorted in memory."""
    toa = data["toa"].data
    if (toa[1:] >= toa[:-1]).all():
        return data
    return data.compute().sortby("toa").chunk({"hit": _ROUND})


def _write(stream: EventStream, output: Path | None, hits: Path | None, where: str | None, work: Any) -> dict[str, Any]:
    """Write what a stream puts out; return the summary."""
    from daskclust.io import ParquetSink
    from daskclust.properties import select, select_hits

    kept = 0
    with ExitStack() as files:
        sinks = [None if path is None else files.enter_context(ParquetSink(path)) for path in (output, hits)]

        def put(clusters: xr.Dataset, its_hits: xr.Dataset | None) -> int:
            if where is not None:
                clusters = select(clusters, where)
                its_hits = None if its_hits is None else select_hits(its_hits, clusters)
            for sink, rows in zip(sinks, (clusters, its_hits), strict=True):
                if sink is not None and rows is not None:
                    sink.write(rows)
            return clusters.sizes["cluster"]

        batches = ((table, None) for table in stream) if hits is None else stream.batches()
        with ThreadPoolExecutor(1) as writer:  # some batches are written while the next ones are clustered
            under_way: deque[Future[int]] = deque()
            for batch in batches:
                if len(under_way) == _UNDER_WAY:
                    kept += under_way.popleft().result()
                under_way.append(writer.submit(put, *batch))
                work.tell(f"{stream.counters.hits_out:,} hits, {stream.counters.clusters:,} clusters")
            kept += sum(written.result() for written in under_way)
    counters = asdict(stream.counters)
    summary = {"hits": counters["hits_in"], "hits_out": counters["hits_out"], "clusters": counters["clusters"]}
    summary |= {"clusters_kept": kept} if where is not None else {}
    return summary | {name: counters[name] for name in ("noise_hits", "late_hits", "split_clusters") if counters[name]}


def _lost(counts: Mapping[str, Any]) -> dict[str, int]:
    """Return the counts of a file, or of a readout's words, that tell of what is lost."""
    return {name: counts[name] for name in _LOST if isinstance(counts.get(name), int) and counts[name]}


def _on_workers(result: xr.Dataset, output: Path | None, hits: Path | None, where: str | None) -> dict[str, Any]:
    """Write the result of a Dask cluster; return the summary."""
    from daskclust.io import write_hits
    from daskclust.properties import cluster_table, select, select_hits

    count = int(result["label"].max()) + 1 if result.sizes["hit"] else 0
    table = cluster_table(result, n_clusters=count).compute()
    table = table.drop_vars([name for name, values in table.variables.items() if values.ndim == 0])
    summary = {"hits": result.sizes["hit"], "clusters": count, "noise_hits": int((result["label"] < 0).sum())}
    if where is not None:
        table = select(table, where)
        result = select_hits(result, table)
        summary["clusters_kept"] = table.sizes["cluster"]
    if output is not None:
        write_hits(table, output)
    if hits is not None:
        write_hits(result, hits)
    return summary
