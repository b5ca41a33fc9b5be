"""``daskclust events``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from daskclust.cli._estimate import estimate
from daskclust.cli._job import Job, Running
from daskclust.cli._options import Naming, ParametersOf, clustering, in_unit_of, words_of
from daskclust.cli._pixels import ROUND, Ending, Pixels, check_columns, windows
from daskclust.io.replacing import naming

if TYPE_CHECKING:
    import xarray as xr

    from daskclust.events.estimator import EventBuilder
    from daskclust.readout.stream import EventStream

_UNDER_WAY = 3  # batches that wait to be written: row groups are larger than batches
_LOST = (
    "n_late", "n_clock_jumps", "n_unknown", "n_count_fb", "n_chunks_cut", "n_bytes_skipped", "n_bytes_truncated",
    "n_special", "n_lost_data_intervals", "n_toa_turns",
)  # fmt: skip
"""Counts of a file that tell of what is no hit, or not where it should be."""
_TOLD = "noise_hits", "late_hits", "split_clusters", "reconnections"

EXAMPLES = """
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
    given: Annotated[
        dict[str, Any], ParametersOf("events:EventBuilder", "dt_max", "variant", "connectivity", "min_hits")
    ],
    where: Annotated[str | None, clustering('Keep clusters for which this holds: "size > 3".', default="all")] = None,
    pixels: Pixels,
    run: Running,
) -> None:
    """Build clusters of pixel hits from a Timepix detector.

    Hits of touching pixels, close in time, are one cluster. Window by window, with the answer of all at once. Memory is
    bounded for raw files and readouts, and for Parquet and HDF5 in the order of time; other formats are read at once.
    """
    job = Job("Events", "hits", pixels.source, run)
    from daskclust.events.estimator import EventBuilder
    from daskclust.events.plan import EventPlan

    given = in_unit_of("ns", given)
    builder = EventBuilder(**given)
    builder._plan()  # refused before anything starts
    pixels.check(run, where)
    prepare = pixels.preparation()
    if run.dry_run:
        in_windows = not run.is_on_dask
        estimate(job, pixels.open_as_is, lambda *_: EventPlan.cost, None, ROUND, in_windows=in_windows)
        return
    ending = Ending(keep=pixels.follow)
    if pixels.is_raw and run.only is not None:
        job.check_columns(("x", "y", "toa", "tot", "chip", "energy", "tof"), "events")
    with job.started():
        if pixels.follow:
            with ending.heeding():
                stream = pixels.readout(builder, ending.stop, prepare, run)
                job.work.begin(f"following {job.name}", unit="hits")
                _write_stream(stream, where, job, ending)
            counts = {**stream.reader.counts, "n_late": 0}  # late_hits tells those
        else:
            job.work.read(Path(pixels.source), is_lazy=run.is_on_dask)
            with job.stage("reading"):
                data = pixels.open(for_dask=run.is_on_dask)
            job.open_own(data, "events")
            if where is not None:
                check_columns(where, [*data.variables, *["energy"] * (pixels.calibration is not None)])
            if run.is_on_dask:
                result = job.cluster(prepare(data), "events", builder.get_params())
                _write_result(result, where, job)
            else:
                job.work.begin(f"clustering {job.name}", data.sizes["hit"], "hits")
                _write_stream(windows(data, builder, prepare, job), where, job, ending)
            counts = data.attrs
        job.summary |= {name: counts[name] for name in _LOST if isinstance(counts.get(name), int) and counts[name]}
        if not pixels.follow:
            job.none("clusters", lambda: _why(pixels, builder, job))
    if job.summary.get("clusters_kept") == 0 < job.summary["clusters"]:
        job.summary["reason"] = f"0 clusters kept: where {where!r} holds for none of {job.summary['clusters']:,}"
    job.add_rates()
    if pixels.follow:
        ending.show(job)
    else:
        job.show()
    job.next("events", given, reading=words_of(pixels, Naming))


def _why(pixels: Pixels, builder: EventBuilder, job: Job) -> str:
    """Return how many hits the largest cluster has."""
    from daskclust.events.estimator import EventBuilder

    every = EventBuilder(**{**builder.get_params(), "min_hits": 1})
    stream = windows(pixels.open(for_dask=False), every, lambda hits: hits, job)
    largest = max(int(table["size"].max(initial=0)) for table in stream)
    return f"min-hits {builder.min_hits} exceeds the largest cluster, {largest}"


def _write_stream(stream: EventStream, where: str | None, job: Job, ending: Ending) -> None:
    """Write what a stream puts out, batch after batch, while the next ones are clustered."""
    from daskclust.core.device.threads import in_threads
    from daskclust.properties import select, select_hits

    kept, is_broken = 0, False
    sinks: dict[str, Any] = {}

    def put(clusters: xr.Dataset, its_hits: xr.Dataset | None) -> None:
        nonlocal kept, is_broken
        if is_broken:  # nothing may follow where a batch is missing
            return
        is_broken = True
        if where is not None:
            clusters = select(clusters, where)
            its_hits = None if its_hits is None else select_hits(its_hits, clusters)
        its_hits = None if its_hits is None else job.with_own(its_hits)
        rows = [(name, {"table": clusters, "output": its_hits}[name]) for name in sinks]

        def write(number: int) -> None:
            name, its_rows = rows[number]
            try:
                with naming(job.outputs[name]):
                    sinks[name].write(its_rows)
            except OSError as error:
                ending.fail(error)  # of a readout, the other output goes on to the end

        with job.stage("writing"):
            in_threads(write, len(rows), len(rows))
        kept, is_broken = kept + clusters.sizes["cluster"], False

    try:
        with ExitStack() as files:
            for name, path in job.outputs.items():
                sinks[name] = files.enter_context(ending.sink(name, path))
            batches: Iterable[Any] = stream.batches() if "output" in sinks else ((table, None) for table in stream)
            with ThreadPoolExecutor(1) as writer:
                under_way: deque[Future[None]] = deque()
                for batch in ending.clustered(batches, stream):
                    if len(under_way) == _UNDER_WAY:
                        under_way.popleft().result()
                    under_way.append(writer.submit(put, *batch))
                    job.work.at(
                        stream.counters.hits_out, f"clustering {job.name}: {stream.counters.clusters:,} clusters"
                    )
                for written in under_way:
                    written.result()
            ending.finish()
    except (Exception, KeyboardInterrupt) as error:
        ending.fail(error)  # of a readout it is raised when the summary is shown
    job.stages |= stream.seconds
    done = stream.counters
    job.summary = {"hits": done.hits_in, "hits_out": done.hits_out, "clusters": done.clusters}
    job.summary |= {"clusters_kept": kept} if where is not None else {}
    job.summary |= {name: getattr(done, name) for name in _TOLD if getattr(done, name)}


def _write_result(result: xr.Dataset, where: str | None, job: Job) -> None:
    """Write a result that is on workers, where its table is made, too."""
    from daskclust.properties import cluster_table, select, select_hits
    from daskclust.properties import where as chosen_by

    count = int(result["label"].max()) + 1 if result.sizes["hit"] else 0
    job.summary = {"hits": result.sizes["hit"], "clusters": count, "noise_hits": int((result["label"] < 0).sum())}
    if "table" in job.outputs or where is not None:
        table = job.made(lambda: cluster_table(result, n_clusters=count)).drop_vars(["noise_size", "noise_weight"])
        if where is not None:
            result = select_hits(result, chosen_by(table, where))
            table = select(table, where)
            job.summary["clusters_kept"] = table.sizes["cluster"]
        job.save("table", table)
    if "output" in job.outputs:
        job.save("output", job.with_own(result))
