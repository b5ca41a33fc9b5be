"""``daskclust events``."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from daskclust.cli._frame import naming, progress, show, write_all
from daskclust.cli._options import (
    CLUSTERING,
    OUTPUT,
    READING,
    Columns,
    Json,
    Quiet,
    Units,
    check_outputs,
    columns_of,
    one_of,
    units_of,
)
from daskclust.cli._pixels import (
    check_columns,
    check_reading,
    check_where,
    energies,
    open_hits,
    running_readout,
    stop_at_interrupt,
    windows,
)
from daskclust.cli._running import Cuda, MemoryLimit, Running, Scheduler, Workers

if TYPE_CHECKING:
    import xarray as xr

    from daskclust.cli._work import Work
    from daskclust.readout.stream import EventStream

_UNDER_WAY = 3  # batches that wait to be written: row groups are larger than batches
_LOST = (
    "n_late",
    "n_clock_jumps",
    "n_unknown",
    "n_count_fb",
    "n_chunks_cut",
    "n_bytes_skipped",
    "n_bytes_truncated",
    "n_special",
    "n_lost_data_intervals",
)
"""Counts of a file that tell of what is no hit, or not where it should be."""
_READOUT = "Raw words and readouts"

MANUALS = {
    "events": """
Reads
  IN                            .tpx3, .t3pa, Parquet, HDF5, CSV, NumPy, ROOT; with --follow also
                                tcp://host:port
  x, y                          column and row of the pixel, whole numbers from 0; also col, row
  toa                           time of arrival, ns, in any order; also t, timestamp; --units toa=us converts
  tot                           optional, time over threshold, ns (not ticks: --units tot=25 ns)
  chip                          optional, whole number: chips do not touch, unless --layout quad
  energy                        optional, keV; --calibration makes it from tot

Writes
  -o                            a row for each cluster, in the order of time:
  cluster, size                 number from 0, and number of hits
  tot, tot_max                  sum and largest, ns; energy (keV) where hits have it
  x, y, x_plain, y_plain        centre, by tot (energy) and by hits alone, pixel
  length, width, angle          of the ellipse, pixel and rad
  toa, toa_last, tof            first and last time; time since the trigger with --trigger; ns
  x_min .. y_max, chip          bounding box, pixel; chip where hits have it
  seed, x_seed, y_seed          row in --hits of the hit with most tot, and its pixel
  --hits                        the hits by cluster: x, y (pixel), toa, tot (ns), chip, and label: the cluster,
                                noise -1. With --workers, --scheduler or --cuda in the order of time, with all
                                columns

Keys of --json
  hits, hits_out                hits that came, and that went into the tables
  clusters, clusters_kept       their number; those for which --where holds
  noise_hits                    hits of clusters below --min-hits, where there are any
  late_hits, split_clusters     of a readout, with more disorder than --disorder, where there are any
  n_late, n_unknown, ...        words of a file that are no hits, or bytes that are lost, where there are any
  seconds, hits_per_second      time in all, s; hits by it
  output, hits_output           files that were written

Examples
  # a table of clusters of a raw file
  $ daskclust events run.tpx3 --dt-max 200 -o clusters.parquet
  # large clusters and their hits
  $ daskclust events run.tpx3 --dt-max 200 --where "size > 3" -o c.parquet --hits h.parquet
  # energies in keV, times of flight
  $ daskclust events run.tpx3 --dt-max 200 --calibration matrices --trigger 1 -o c.parquet
  # a readout while it runs, until a minute without data
  $ daskclust events tcp://localhost:8451 --follow --idle 60 --dt-max 200 -o c.parquet
  # your own file, times in us
  $ daskclust events my.csv --columns x=col,y=row,toa=time --units toa=us --dt-max 200 -o c.parquet
""",
}


def events(
    source: Annotated[str, typer.Argument(metavar="IN", help="Hits of a pixel detector: see Reads.")],
    dt_max: Annotated[
        float,
        typer.Option(help="Largest difference of times of touching hits, ns.", rich_help_panel=CLUSTERING),
    ],
    variant: Annotated[
        Literal["local", "global", "static"],
        one_of(
            "local, global or static: dt-max is to the touching hit, the cluster's last hit, or its first.", CLUSTERING
        ),
    ] = "local",
    connectivity: Annotated[
        int,
        typer.Option(help="Pixels touch at corners too (8) or at sides only (4).", rich_help_panel=CLUSTERING),
    ] = 8,
    min_hits: Annotated[
        int, typer.Option(help="Hits of a cluster at least; fewer are noise.", rich_help_panel=CLUSTERING)
    ] = 1,
    where: Annotated[
        str | None,
        typer.Option(
            help=r'Keep clusters for which this holds, e.g. "size > 3 and tot > 200".  \[default: all]',
            rich_help_panel=CLUSTERING,
        ),
    ] = None,
    columns: Columns = None,
    units: Units = None,
    layout: Annotated[
        Literal["chips", "quad"] | None,
        typer.Option(help=r"Chips apart, or side by side.  \[default: the file's, or chips]", rich_help_panel=READING),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the matrices a.txt, b.txt, c.txt, t.txt: gives energies in keV.", rich_help_panel=READING
        ),
    ] = None,
    tot_unit: Annotated[
        Literal["ns", "tick"],
        typer.Option(help="Unit of tot in the calibration; a tick is 25 ns.", rich_help_panel=READING),
    ] = "ns",
    gap: Annotated[int, typer.Option(help="Pixels between the chips of a quad.", rich_help_panel=_READOUT)] = 0,
    disorder: Annotated[
        float,
        typer.Option(help="How much earlier than one before it a hit may come, us.", rich_help_panel=_READOUT),
    ] = 600.0,
    on_reset: Annotated[
        Literal["continue", "restart"],
        one_of("Where global time jumps: times continue, or restart at those that it tells.", _READOUT),
    ] = "continue",
    trigger: Annotated[
        int | None,
        typer.Option(help="TDC channel, 1 or 2: gives times of flight, ns.", rich_help_panel=_READOUT),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Go on as the file grows, or read from tcp://; Ctrl-C ends it, with tables complete.",
            rich_help_panel=_READOUT,
        ),
    ] = False,
    idle: Annotated[
        float | None,
        typer.Option(
            help=r"End --follow after so many seconds without data.  \[default: never]", rich_help_panel=_READOUT
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Table of clusters: .parquet.", rich_help_panel=OUTPUT),
    ] = None,
    hits: Annotated[Path | None, typer.Option(help="Hits with their labels: .parquet.", rich_help_panel=OUTPUT)] = None,
    workers: Workers = 0,
    cuda: Cuda = False,
    scheduler: Scheduler = None,
    memory_limit: MemoryLimit = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Build clusters of pixel hits from a Timepix detector.

    Hits of touching pixels, close in time, are one cluster. Window by window, with the answer of all at once. Memory is
    bounded for raw files and readouts, and for Parquet and HDF5 in the order of time; other formats are read at once.
    """
    from daskclust.accessor import ClustAccessor
    from daskclust.events.estimator import EventBuilder

    began = time.perf_counter()
    running = Running(workers, cuda, scheduler, memory_limit)
    check_outputs(source, {"-o": output, "--hits": hits}, (".parquet", "(.pq)"))
    reading = {"layout": layout, "gap": gap, "disorder": disorder * 1e3, "on_reset": on_reset}
    naming_of = {"columns": columns_of(columns), "units": units_of(units)}
    check_reading(source, reading, naming_of, follow, idle, trigger, running)
    builder = EventBuilder(dt_max, variant=variant, connectivity=connectivity, min_hits=min_hits)
    builder._plan()  # refused before anything starts
    if where is not None:
        check_where(where, source, follow, trigger, calibration)
    prepare = None if calibration is None else energies(calibration, tot_unit)
    name = source if source.startswith("tcp://") else Path(source).name
    with progress(f"reading {name}", quiet=quiet) as work, running.cluster(work):
        if follow:
            with stop_at_interrupt() as stop:
                stream = running_readout(source, builder, reading, idle, stop, trigger, prepare)
                work.begin(f"following {name}", unit="hits")
                summary = _write(stream, name, output, hits, where, work)
            summary |= _lost({**stream.reader.counts, "n_late": 0})  # late_hits tells those
        else:
            work.read(Path(source))
            data = open_hits(source, reading, naming_of, trigger)
            if where is not None:
                check_columns(where, [*data.variables, *(["energy"] if prepare else [])])
            n = data.sizes["hit"]
            if running.is_on_dask or cuda:
                work.begin(f"clustering {name}")
                given = data if prepare is None else prepare(data)
                found = ClustAccessor(running.give(given)).events(**builder.get_params())
                result = running.results(found, given, f"clustering {name}", (n, "hits"), work)
                summary = _write_at_once(result, output, hits, where, work)
            else:
                work.begin(f"clustering {name}", n, "hits")
                summary = _write(windows(data, builder, prepare), name, output, hits, where, work)
            summary |= _lost(data.attrs)
    summary["seconds"] = round(time.perf_counter() - began, 3)
    summary["hits_per_second"] = round(summary["hits"] / max(summary["seconds"], 1e-3))
    summary |= {key: str(file) for key, file in (("output", output), ("hits_output", hits)) if file is not None}
    show(summary, as_json, f"Events: {source}", quiet=quiet)


def _write(
    stream: EventStream, name: str, output: Path | None, hits: Path | None, where: str | None, work: Work
) -> dict[str, Any]:
    """Write what a stream puts out; return the summary."""
    from daskclust.io import ParquetSink
    from daskclust.properties import select, select_hits

    kept = 0
    with ExitStack() as files:
        sinks: list[ParquetSink | None] = []
        for path in (output, hits):
            files.enter_context(naming(path))
            sinks.append(None if path is None else files.enter_context(ParquetSink(path)))

        def put(clusters: xr.Dataset, its_hits: xr.Dataset | None) -> int:
            if where is not None:
                clusters = select(clusters, where)
                its_hits = None if its_hits is None else select_hits(its_hits, clusters)
            for path, sink, rows in zip((output, hits), sinks, (clusters, its_hits), strict=True):
                if sink is not None and rows is not None:
                    with naming(path):
                        sink.write(rows)
            return clusters.sizes["cluster"]

        batches = ((table, None) for table in stream) if hits is None else stream.batches()
        with ThreadPoolExecutor(1) as writer:  # some batches are written while the next ones are clustered
            under_way: deque[Future[int]] = deque()
            for batch in batches:
                if len(under_way) == _UNDER_WAY:
                    kept += under_way.popleft().result()
                under_way.append(writer.submit(put, *batch))
                work.at(stream.counters.hits_out, f"clustering {name}: {stream.counters.clusters:,} clusters")
            kept += sum(written.result() for written in under_way)
    counters = asdict(stream.counters)
    summary = {"hits": counters["hits_in"], "hits_out": counters["hits_out"], "clusters": counters["clusters"]}
    summary |= {"clusters_kept": kept} if where is not None else {}
    return summary | {name: counters[name] for name in ("noise_hits", "late_hits", "split_clusters") if counters[name]}


def _lost(counts: Mapping[str, Any]) -> dict[str, int]:
    """Return the counts of a file, or of a readout's words, that tell of what is lost."""
    return {name: counts[name] for name in _LOST if isinstance(counts.get(name), int) and counts[name]}


def _write_at_once(
    result: xr.Dataset, output: Path | None, hits: Path | None, where: str | None, work: Work
) -> dict[str, Any]:
    """Write a result that is there as a whole, on workers or in memory; return the summary."""
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
    write_all([(output, lambda path: write_hits(table, path)), (hits, lambda path: write_hits(result, path))], work)
    return summary
