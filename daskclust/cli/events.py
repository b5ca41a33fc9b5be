"""``daskclust events``."""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daskclust.cli._frame import check_writable, cluster, progress, show

if TYPE_CHECKING:
    import xarray as xr

    from daskclust.events.stream import EventStream

_ROUND = 1 << 20  # hits that are clustered at once
_UNDER_WAY = 3  # batches that wait to be written: row groups are larger than batches


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
        typer.Option(help="chips: apart; quad: side by side.  [default: the file's, or chips]"),
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

    Memory is bounded: hits are read, clustered and written window by window, with the answer of all at once.
    """
    began = time.perf_counter()
    check_writable(output, hits)
    reading = {"layout": layout, "gap": gap, "disorder": disorder * 1e3}
    _check_outputs(source, output, hits)
    _check_reading(source, reading, follow, trigger, workers)
    parameters: dict[str, Any] = {
        "dt_max": dt_max,
        "variant": variant,
        "connectivity": connectivity,
        "min_hits": min_hits,
    }
    with progress(f"clustering {source}", quiet=as_json) as work:
        if workers:
            from daskclust.events.estimator import EventBuilder
            from daskclust.io import read_calibration

            EventBuilder(**parameters)._plan()  # refused before a cluster starts
            with cluster(workers):
                data = _open(source, reading, trigger)
                if calibration is not None:
                    data = _with_energy(data, read_calibration(calibration), tot_unit)
                summary = _on_workers(work.compute(data.clust.events(**parameters)), output, hits, where)
        else:
            stream = _stream(source, parameters, reading, follow, idle, trigger, calibration, tot_unit)
            summary = _write(stream, output, hits, where, work)
    summary["seconds"] = round(time.perf_counter() - began, 3)
    summary["hits_per_second"] = round(summary["hits"] / max(summary["seconds"], 1e-3))
    for name, path in (("output", output), ("hits_output", hits)):
        if path is not None:
            summary[name] = str(path)
    show(summary, as_json, f"Events: {source}")


def _check_outputs(source: str, output: Path | None, hits: Path | None) -> None:
    given = [(option, path) for option, path in (("-o", output), ("--hits", hits)) if path is not None]
    for option, path in given:
        if path.suffix not in (".parquet", ".pq"):
            raise ValueError(f"{option} must be a .parquet file, got {path}")
        if path.resolve() == Path(source).resolve():
            raise ValueError(f"{option} {path} is the input; write to another file")
    if len({path.resolve() for _, path in given}) < len(given):
        raise ValueError(f"-o and --hits are both {output}; write clusters and hits to two files")


def _check_reading(source: str, reading: dict[str, Any], follow: bool, trigger: int | None, workers: int) -> None:
    if reading["layout"] not in (None, "chips", "quad"):
        raise ValueError(f"--layout must be chips or quad, got {reading['layout']!r}")
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


def _stream(
    source: str,
    parameters: dict[str, Any],
    reading: dict[str, Any],
    follow: bool,
    idle: float | None,
    trigger: int | None,
    calibration: Path | None,
    tot_unit: str,
) -> EventStream:
    """Return the stream of a file, or of a running readout."""
    from daskclust.events.estimator import EventBuilder
    from daskclust.events.stream import EventStream
    from daskclust.io import read_calibration
    from daskclust.io.readout import WordReader, receive
    from daskclust.io.readout import follow as follow_file

    builder = EventBuilder(**parameters)
    stop = threading.Event()
    if follow:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, lambda *_: stop.set())  # what is there is clustered and written
        layout, gap, order = reading["layout"] or "chips", reading["gap"], reading["disorder"]
        reader = WordReader(layout=layout, gap=gap, trigger=trigger)  # type: ignore[arg-type]
        items: Any = (receive if source.startswith("tcp://") else follow_file)(source, idle=idle, stop=stop.is_set)
    else:
        data = _open(source, reading, trigger)
        layout, gap, order = data.attrs.get("layout", "chips"), int(data.attrs.get("gap", 0)), 0.0
        reader, items = None, _windows(data)
    prepare = None
    if calibration is not None:
        given = read_calibration(calibration)

        def prepare(hits: xr.Dataset) -> xr.Dataset:
            return _with_energy(hits.assign_attrs(layout=layout, gap=gap), given, tot_unit)

    buffer = _ROUND if follow else 1  # a window is a round
    return EventStream(
        items, builder, disorder=order, buffer=buffer, chip=layout != "quad", reader=reader, prepare=prepare
    )


def _with_energy(hits: xr.Dataset, calibration: Any, tot_unit: Any) -> xr.Dataset:
    """Return hits with energies; those that have none (masked pixels, say) add nothing to their cluster's."""
    from daskclust.io import calibrate

    energy = calibrate(hits, calibration, tot_unit=tot_unit)["energy"]
    return hits.assign(energy=energy.where(energy > 0, 0))


def _in_time(data: xr.Dataset) -> xr.Dataset:
    """Return hits in the order of time: as they are, or, where they are not, sorted in memory."""
    toa = data["toa"].data
    if (toa[1:] >= toa[:-1]).all():
        return data
    return data.compute().sortby("toa").chunk({"hit": _ROUND})


def _windows(data: xr.Dataset) -> Iterator[xr.Dataset]:
    """Yield the chunks of a Dataset, computed one after the other."""
    start = 0
    for length in data.chunks.get("hit", (data.sizes["hit"],)):
        yield data.isel(hit=slice(start, start + length)).compute(scheduler="synchronous")
        start += length


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
    found = counters | dict(stream.reader.counts)
    told = ("noise_hits", "late_hits", "split_clusters", "n_unknown", "n_chunks_cut", "n_bytes_skipped")
    summary |= {name: found[name] for name in told if found.get(name)}
    return summary


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
