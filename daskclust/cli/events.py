"""``daskclust events``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from daskclust.cli._estimate import KEYS, estimate
from daskclust.cli._job import Job, Running
from daskclust.cli._options import Output, Table, clustering
from daskclust.cli._pixels import ROUND, Ending, Pixels, check_columns, windows
from daskclust.core.data.files import naming

if TYPE_CHECKING:
    import xarray as xr

    from daskclust.events.estimator import EventBuilder
    from daskclust.readout.stream import EventStream

    Outputs = tuple[Path | None, Path | None]  # table, hits

_UNDER_WAY = 3  # batches that wait to be written: row groups are larger than batches
_LOST = (
    "n_late", "n_clock_jumps", "n_unknown", "n_count_fb", "n_chunks_cut", "n_bytes_skipped", "n_bytes_truncated",
    "n_special", "n_lost_data_intervals", "n_toa_turns",
)  # fmt: skip
"""Counts of a file that tell of what is no hit, or not where it should be."""
_TOLD = "noise_hits", "late_hits", "split_clusters", "reconnections"

MANUAL = f"""
Reads
  FILE               .tpx3, .t3pa, Parquet, HDF5, CSV, NumPy, ROOT; with --follow also tcp://host:port
  x, y               column and row of the pixel, whole numbers from 0; also col, row
  toa                time of arrival, ns, in any order; also t, timestamp; --units toa=us converts
  tot                optional, time over threshold, ns (not ticks: --units tot=25 ns)
  chip               optional, whole number: chips do not touch, unless --layout quad
  energy             optional, keV; --calibration makes it from tot

Writes
  -o                 the hits by cluster: x, y (pixel), toa, tot (ns), chip, and label: the cluster, noise -1. With
                     --workers or --scheduler in the order of time, with all columns
  --table            a row for each cluster, in the order of time:
  cluster, size      number from 0, and number of hits
  tot, tot_max       sum and largest, ns; energy (keV) where hits have it
  x, y, x_plain, y_plain  centre, by tot (energy) and by hits alone, pixel
  length, width, angle    of the ellipse, pixel and rad
  toa, toa_last, tof      first and last time; time since the trigger with --trigger; ns
  x_min .. y_max, chip    bounding box, pixel; chip where hits have it
  seed, x_seed, y_seed    row in -o of the hit with most tot, and its pixel

Keys of --json
  hits, hits_out     hits that came, and that went into the tables
  clusters, clusters_kept     their number; those for which --where holds
  noise_hits         hits of clusters below --min-hits, where there are any
  late_hits, split_clusters   of a readout, with more disorder than --disorder, where there are any
  ended_by, reconnections     of a readout, what ended it; connections that were lost, where there are any
  output_rows, table_rows     of a readout, rows on disk
  n_late, n_unknown, ...      words of a file that are no hits, or bytes that are lost, where there are any
  seconds, seconds_compiling    time without compiling kernels, and that of compiling, s
  hits_per_second             hits by seconds
  output, table               files that were written
  reason                      why there are no clusters, where there are none
  seconds_starting, seconds_reading, seconds_clustering, seconds_table, seconds_writing    with --verbose, s; without
                              workers, stages go on side by side{KEYS}

Examples
  # large clusters of a raw file, and their hits
  daskclust events run.tpx3 --dt-max 200 --where "size > 3" --table c.parquet -o h.parquet
  # energies in keV, times of flight
  daskclust events run.tpx3 --dt-max 200 --calibration matrices --trigger 1 --table c.parquet
  # a readout while it runs, until a minute without data
  daskclust events tcp://localhost:8451 --follow --idle 60 --dt-max 200 --table c.parquet
  # until Ctrl-C; what was received is kept, whatever ends it
  daskclust events tcp://localhost:8451 --follow --reconnect --dt-max 200 -o h.parquet
"""


def events(
    *,
    dt_max: Annotated[float, clustering("Largest difference of times of touching hits, ns.")],
    variant: Annotated[
        Literal["local", "global", "static"],
        clustering(
            "local, global or static: dt-max is to the touching hit, the last one, or the first one.", metavar="NAME"
        ),
    ] = "local",
    connectivity: Annotated[int, clustering("Pixels touch at corners too (8) or at sides only (4).")] = 8,
    min_hits: Annotated[int, clustering("Hits of a cluster at least; fewer are noise.")] = 1,
    where: Annotated[str | None, clustering('Keep clusters for which this holds: "size > 3".', default="all")] = None,
    pixels: Pixels,
    output: Output = None,
    table: Table = None,
    run: Running,
) -> None:
    """Build clusters of pixel hits from a Timepix detector.

    Hits of touching pixels, close in time, are one cluster. Window by window, with the answer of all at once. Memory is
    bounded for raw files and readouts, and for Parquet and HDF5 in the order of time; other formats are read at once.
    """
    from daskclust.events.estimator import EventBuilder
    from daskclust.events.plan import EventPlan

    job = Job("Events", "hits", pixels.source, run, {"-o": output, "--table": table})
    pixels.check(run)
    builder = EventBuilder(dt_max, variant=variant, connectivity=connectivity, min_hits=min_hits)
    builder._plan()  # refused before anything starts
    if where is not None:
        pixels.check_where(where)
    prepare, outputs = pixels.preparation(), (table, output)
    if run.dry_run:
        is_whole = run.is_on_dask
        estimate(job, pixels.open_as_is, lambda *_: EventPlan.cost, None, ROUND, in_windows=not is_whole)
        return
    ending = Ending(keep=pixels.follow)
    with job.started():
        if pixels.follow:
            with ending.heeding():
                stream = pixels.readout(builder, ending.stop, prepare, run)
                job.work.begin(f"following {job.name}", unit="hits")
                _write_stream(stream, outputs, where, job, ending)
            counts = {**stream.reader.counts, "n_late": 0}  # late_hits tells those
        else:
            job.work.read(Path(pixels.source), is_lazy=run.is_on_dask)
            with job.stage("reading"):
                data = pixels.open(for_dask=run.is_on_dask)
            if where is not None:
                check_columns(where, [*data.variables, *["energy"] * (pixels.calibration is not None)])
            if run.is_on_dask:
                result = job.cluster(prepare(data), "events", builder.get_params())
                _write_result(result, outputs, where, job)
            else:
                job.work.begin(f"clustering {job.name}", data.sizes["hit"], "hits")
                _write_stream(windows(data, builder, prepare, job), outputs, where, job, ending)
            counts = data.attrs
        job.summary |= {name: counts[name] for name in _LOST if isinstance(counts.get(name), int) and counts[name]}
        if not pixels.follow:
            job.none("clusters", lambda: _why(pixels, builder, job))
    if job.summary.get("clusters_kept") == 0 < job.summary["clusters"]:
        job.summary["reason"] = f"0 clusters kept: where {where!r} holds for none of {job.summary['clusters']:,}"
    job.summary["hits_per_second"] = round(job.summary["hits"] / max(job.summary["seconds"], 1e-3))
    if pixels.follow:
        ending.show(job)
    else:
        job.show(output=output, table=table)
    job.next(output, "events", reading=pixels.words)


def _why(pixels: Pixels, builder: EventBuilder, job: Job) -> str:
    """Return how many hits the largest cluster has."""
    from daskclust.events.estimator import EventBuilder

    every = EventBuilder(**{**builder.get_params(), "min_hits": 1})
    stream = windows(pixels.open(for_dask=False), every, lambda hits: hits, job)
    largest = max(int(table["size"].max(initial=0)) for table in stream)
    return f"min-hits {builder.min_hits} exceeds the largest cluster, {largest}"


def _write_stream(stream: EventStream, outputs: Outputs, where: str | None, job: Job, ending: Ending) -> None:
    from daskclust.core.device.threads import in_threads
    from daskclust.properties import select, select_hits

    kept, is_broken, sinks = 0, False, list[Any]()

    def put(clusters: xr.Dataset, its_hits: xr.Dataset | None) -> None:
        nonlocal kept, is_broken
        if is_broken:  # nothing may follow where a batch is missing
            return
        is_broken = True
        if where is not None:
            clusters = select(clusters, where)
            its_hits = None if its_hits is None else select_hits(its_hits, clusters)
        given = list(zip(outputs, sinks, (clusters, its_hits), strict=True))

        def write(number: int) -> None:
            path, sink, rows = given[number]
            if sink is not None and rows is not None:
                try:
                    with naming(path):
                        sink.write(rows)
                except OSError as error:
                    ending.fail(error)  # of a readout, the other output goes on to the end

        with job.stage("writing"):
            in_threads(write, len(given), len(given))
        kept, is_broken = kept + clusters.sizes["cluster"], False

    with ending.telling_later(), ExitStack() as files:
        for name, path in zip(("table", "output"), outputs, strict=True):
            sinks.append(None if path is None else files.enter_context(ending.sink(name, path)))
        batches: Iterable[Any] = ((table, None) for table in stream) if outputs[1] is None else stream.batches()
        with ThreadPoolExecutor(1) as writer:  # some batches are written while the next ones are clustered
            under_way: deque[Future[None]] = deque()
            for batch in ending.clustered(batches, stream):
                if len(under_way) == _UNDER_WAY:
                    under_way.popleft().result()
                under_way.append(writer.submit(put, *batch))
                job.work.at(stream.counters.hits_out, f"clustering {job.name}: {stream.counters.clusters:,} clusters")
            for written in under_way:
                written.result()
        ending.finish()
    job.stages |= stream.seconds
    counters = asdict(stream.counters)
    job.summary = {"hits": counters["hits_in"], "hits_out": counters["hits_out"], "clusters": counters["clusters"]}
    job.summary |= {"clusters_kept": kept} if where is not None else {}
    job.summary |= {name: counters[name] for name in _TOLD if counters[name]}


def _write_result(result: xr.Dataset, outputs: Outputs, where: str | None, job: Job) -> None:
    """Write a result that is on workers, where its table is made, too."""
    from daskclust.properties import cluster_table, select, select_hits
    from daskclust.properties import where as chosen_by

    count = int(result["label"].max()) + 1 if result.sizes["hit"] else 0
    job.summary = {"hits": result.sizes["hit"], "clusters": count, "noise_hits": int((result["label"] < 0).sum())}
    table = None
    if outputs[0] is not None or where is not None:
        table = job.table(lambda: cluster_table(result, n_clusters=count))
        table = table.drop_vars(["noise_size", "noise_weight"])
    if table is not None and where is not None:
        result = select_hits(result, chosen_by(table, where))
        table = select(table, where)
        job.summary["clusters_kept"] = table.sizes["cluster"]
    for path, rows in zip(outputs, (table, result), strict=True):
        if rows is not None:
            job.save(rows, path)
