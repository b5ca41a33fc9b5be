"""``daskclust events``."""

from __future__ import annotations

import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from daskclust.cli._errors import Terminated, handling
from daskclust.cli._estimate import estimate
from daskclust.cli._job import Job
from daskclust.cli._options import ParametersOf, clustering, in_unit_of
from daskclust.cli._running import Running
from daskclust.cli.pixels.in_time import ROUND, windows
from daskclust.cli.pixels.noisy import NoisyPixels
from daskclust.cli.pixels.options import Pixels, check_columns
from daskclust.io.replacing import naming

if TYPE_CHECKING:
    import xarray as xr

    from daskclust.cli.pixels.in_time import Prepare
    from daskclust.events.estimator import EventBuilder
    from daskclust.io import PartsSink
    from daskclust.readout.stream import EventStream

Item = TypeVar("Item")
About = Callable[[], Mapping[str, Any]]

_UNDER_WAY = 3  # batches that wait to be written: row groups are larger than batches
_LOST = (
    "n_late", "n_clock_jumps", "n_unknown", "n_count_fb", "n_chunks_cut", "n_bytes_skipped", "n_bytes_truncated",
    "n_special", "n_lost_data_intervals", "n_toa_turns",
    "n_lost_pixels", "n_missing_pixels", "n_aborted", "n_unknown_words", "n_truncated_bytes",
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
  # a Katherine that sends to this machine; hits of frames need no --dt-max
  daskclust events udp://0.0.0.0:1556 --follow --format katherine --dt-max 200 --table c.parquet
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

    Hits of touching pixels, close in time, are one cluster; with a column frame and without --dt-max, those of one
    frame. Window by window, with the answer of all at once. Memory is
    bounded for raw files and readouts, and for Parquet and HDF5 in the order of time; other formats are read at once.
    """
    job = Job("Events", "hits", pixels.sources, run, must_exist=not pixels.follow)
    from daskclust.events.estimator import EventBuilder
    from daskclust.events.plan import EventPlan

    given = in_unit_of("ns", given)
    builder = EventBuilder(**given)
    builder._plan()  # refused before anything starts
    files = pixels.each()
    for file in (pixels, *files):
        file.check(run, where, builder.dt_max)
    noisy = NoisyPixels(pixels)
    prepare = noisy.around(pixels.preparation(), lazy=run.is_on_dask)
    if run.dry_run:
        estimate(job, pixels.open_as_is, lambda *_: EventPlan.cost, None, ROUND, in_windows=not run.is_on_dask)
        return
    ending = Ending(keep=pixels.follow)
    by_frame = builder.dt_max is None
    if pixels.is_raw and run.only is not None:
        job.check_columns(("x", "y", "toa", "tot", "chip", "frame", "energy", "tof"), "events")
    with job.started():
        from daskclust.io.several import FILES, joined_attrs

        if pixels.follow:
            with ending.heeding():
                stream = pixels.readout(builder, ending.stop, prepare, run)
                job.work.begin(f"following {job.name}", unit="hits")
                _write_streams([stream], where, job, ending, lambda: noisy.attrs)
            told = [{**stream.reader.counts, "n_late": 0}]  # late_hits tells those
        else:
            told, columns, text = [], set[Any](), dict[str, Any]()
            for file in files if noisy.finds else ():
                noisy.count_all(file.open(for_dask=run.is_on_dask, by_frame=by_frame), job)

            def opened() -> Iterator[xr.Dataset]:
                first_row = 0
                for file in files:
                    job.work.read(Path(file.source), is_lazy=run.is_on_dask)
                    with job.stage("reading"):
                        rows_from = first_row if "output" in job.outputs else None
                        data = file.open(for_dask=run.is_on_dask, first_row=rows_from, by_frame=by_frame)
                    if not first_row:
                        job.open_own(data, "events", is_converted=bool(pixels.columns or pixels.units))
                    first_row += data.sizes["hit"]
                    if where is not None:
                        check_columns(where, [*data.variables, *["energy"] * (file.calibration is not None)])
                    if "output" in job.outputs and not told and not run.is_on_dask:  # on workers hits have it
                        none = data.isel(hit=slice(0)).compute(scheduler="synchronous")
                        text["events"] = none.clust.events(**builder.get_params()).attrs["events"]
                    told.append(data.attrs)
                    columns.update(data.variables)
                    yield data

            if run.is_on_dask:
                found = [job.cluster(prepare(data), "events", builder.get_params()) for data in opened()]
                hits, ends = _numbered_on(dict(zip(pixels.sources, found, strict=True)))
                _write_result(hits, ends, where, job, has_noise=builder.min_hits > 1)
            else:
                streams = (windows(data, builder, prepare, job) for data in opened())
                text |= {FILES: pixels.sources} if len(files) > 1 else {}
                _write_streams(
                    streams, where, job, ending, lambda: joined_attrs(told) | text | noisy.attrs, several=len(files) > 1
                )
        counts = {name: sum(int(each[name]) for each in told if isinstance(each.get(name), int)) for name in _LOST}
        job.summary |= {name: count for name, count in counts.items() if count}
        noisy.report(job)
        if not pixels.follow:
            job.none("clusters", lambda: _why(pixels, builder, prepare, job))
    if job.summary.get("clusters_kept") == 0 < job.summary["clusters"]:
        job.summary["reason"] = f"0 clusters kept: where {where!r} holds for none of {job.summary['clusters']:,}"
    job.add_rates()
    if pixels.follow:
        ending.show(job)
    else:
        job.show()
    if pixels.follow or "toa" in columns:  # the explorer shows times
        has_all = where is None and pixels.mask_pixels is None  # of which the explorer knows nothing
        job.next("events", given, reading=pixels.words, has_all=has_all)


def _why(pixels: Pixels, builder: EventBuilder, prepare: Prepare, job: Job) -> str:
    """Return how many hits the largest cluster has, or that all hits were left out."""
    if job.summary.get("noisy_hits") == job.summary["hits"]:
        option = "max-pixel-hits" if pixels.mask_pixels is None else "mask-pixels"
        return f"{option} leaves out all {job.summary['hits']:,} hits"
    from daskclust.events.estimator import EventBuilder

    every = EventBuilder(**{**builder.get_params(), "min_hits": 1})
    opened = (file.open(for_dask=False, by_frame=every.dt_max is None) for file in pixels.each())
    streams = (windows(data, every, prepare, job) for data in opened)
    largest = max(int(table["size"].max(initial=0)) for stream in streams for table in stream)
    return f"min-hits {builder.min_hits} exceeds the largest cluster, {largest}"


def _write_streams(
    streams: Iterable[EventStream], where: str | None, job: Job, ending: Ending, about: About, *, several: bool = False
) -> None:
    """Write what streams put out, batch after batch, while the next ones are clustered.

    Of `several` files clusters are numbered on, and ``source`` tells the file. Hits get the attributes that `about`
    tells at the end.
    """
    import numpy as np

    from daskclust.core.device.threads import in_threads
    from daskclust.properties import select, select_hits

    kept, hits_seen, hits_kept, is_broken = 0, 0, 0, False
    sinks: dict[str, Any] = {}
    done: Counter[str] = Counter()  # of the streams before

    def put(clusters: xr.Dataset, its_hits: xr.Dataset | None) -> None:
        nonlocal kept, hits_seen, hits_kept, is_broken
        if is_broken:  # nothing may follow where a batch is missing
            return
        is_broken = True
        clusters = clusters.drop_attrs(deep=False)  # the noise of a batch is not that of the file
        if where is not None:
            clusters = select(clusters, where)
            if its_hits is not None:
                places = np.arange(hits_seen, hits_seen + its_hits.sizes["hit"])
                hits_seen += len(places)
                its_hits = select_hits(its_hits.assign_coords(place=("hit", places)), clusters)
                rows_of_seeds = hits_kept + np.searchsorted(its_hits["place"], clusters["seed"])
                clusters["seed"] = clusters["seed"].copy(data=rows_of_seeds)
                hits_kept, its_hits = hits_kept + its_hits.sizes["hit"], its_hits.drop_vars("place")
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
            with ThreadPoolExecutor(1) as writer:
                under_way: deque[Future[None]] = deque()
                for number, stream in enumerate(streams):
                    batches: Any = stream.batches() if "output" in sinks else ((table, None) for table in stream)
                    try:
                        for batch in ending.clustered(batches, stream):
                            if len(under_way) == _UNDER_WAY:
                                under_way.popleft().result()
                            under_way.append(writer.submit(put, *(_of_file(batch, number, done) if several else batch)))
                            clusters = done["clusters"] + stream.counters.clusters
                            job.work.at(stream.counters.hits_out, f"clustering {job.name}: {clusters:,} clusters")
                    finally:
                        done.update(asdict(stream.counters))
                        for stage, seconds in stream.seconds.items():
                            job.stages[stage] = job.stages.get(stage, 0.0) + seconds
                for written in under_way:
                    written.result()
            if "output" in sinks:
                sinks["output"].attrs |= about()
            ending.finish()
    except (Exception, KeyboardInterrupt) as error:
        ending.fail(error)  # of a readout it is raised when the summary is shown
    job.summary = {"hits": done["hits_in"], "hits_out": done["hits_out"], "clusters": done["clusters"]}
    job.summary |= {"clusters_kept": kept} if where is not None else {}
    job.summary |= {name: done[name] for name in _TOLD if done[name]}


def _of_file(batch: tuple[xr.Dataset, xr.Dataset | None], number: int, done: Mapping[str, int]) -> Any:
    """Return clusters and hits of one of several files, numbered on from those of the files before."""
    import xarray as xr

    def tell(data: xr.Dataset, name: str) -> xr.Dataset:
        return data.assign(source=xr.full_like(data[name], number, dtype="int32").drop_attrs())

    clusters, hits = batch
    clusters = clusters.assign_coords(cluster=clusters["cluster"] + done["clusters"])
    clusters = tell(clusters.assign(seed=clusters["seed"] + done["hits_out"]), "cluster")
    if hits is None:
        return clusters, None
    label = hits["label"]
    return clusters, tell(hits.assign(label=label.where(label < 0, label + done["clusters"])), "label")


def _numbered_on(found: dict[str, xr.Dataset]) -> tuple[xr.Dataset, list[int]]:
    """Return the hits of files as one data set, with clusters numbered on, and where each file but the last ends."""
    from daskclust.core.merge.labels import count_clusters
    from daskclust.io.several import joined

    ends = list[int]()
    for file, hits in found.items():
        label, before = hits["label"], sum(ends[-1:])
        if before:
            found[file] = hits.assign(label=label.where(label < 0, label + before))
        if len(ends) + 1 < len(found):
            ends.append(before + count_clusters(label.data)[0])
    return (joined(found) if len(found) > 1 else found[file]), ends


def _write_result(result: xr.Dataset, ends: list[int], where: str | None, job: Job, *, has_noise: bool) -> None:
    """Write a result that is on workers, where its table is made, too; `ends` of clusters of each file but the last."""
    import numpy as np

    from daskclust.core.merge.labels import count_clusters
    from daskclust.properties import cluster_table, select, select_hits
    from daskclust.properties import where as chosen_by

    table = None
    if "table" in job.outputs or where is not None:
        with job.stage("table"):
            table = cluster_table(result).drop_vars(["noise_size", "noise_weight"])
    count, noise = count_clusters(result["label"].data) if table is None or has_noise else (table.sizes["cluster"], 0)
    job.summary = {"hits": result.sizes["hit"], "clusters": count, "noise_hits": noise}
    if table is not None:
        table = table if where is None else job.made(table)  # else workers make it as it is written
        if ends:
            table["source"] = ("cluster", np.searchsorted(ends, table["cluster"], side="right").astype(np.int32))
        if where is not None:
            result = select_hits(result, chosen_by(table, where))
            if {"table", "output"} <= job.outputs.keys():
                rows = cluster_table(result, n_clusters=count)["seed"]  # in the hits that are kept
                table = select(table.assign(row=("cluster", rows.data)), where)
                table = table.assign(seed=table["row"]).drop_vars("row")
            else:
                table = select(table, where)
            job.summary["clusters_kept"] = table.sizes["cluster"]
        job.save("table", table)
    if "output" in job.outputs:
        job.save("output", job.with_own(result))


# -------------------------------------------------------------------------------------------------- what ends a stream
class Ending:
    """What ends a stream: of a readout, a signal or an error, after which what has come is clustered and written.

    A second Ctrl-C ends clustering: what is complete is written. A third ends the process. Of a file, an error is
    raised, and no output kept.
    """

    def __init__(self, *, keep: bool) -> None:
        self._keeps = keep
        self.stop = threading.Event()
        self.error: BaseException | None = None
        self.sinks: dict[str, PartsSink] = {}
        self._signals: list[int] = []
        self._is_clustering = False

    def heeding(self) -> AbstractContextManager[None]:
        """Heed signals, Ctrl-C among them."""
        return handling(self._heed, signal.SIGINT)

    def _heed(self, number: int, _: Any) -> None:
        self.stop.set()
        self._signals.append(number)
        if self._is_cut:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if self._is_clustering:
                raise KeyboardInterrupt

    @property
    def _is_cut(self) -> bool:
        return self._signals.count(signal.SIGINT) > 1

    def sink(self, name: str, path: Path) -> PartsSink:
        """Return what makes an output."""
        from daskclust.io import PartsSink

        sink = PartsSink(path, keep=self._keeps)
        if self._keeps:
            self.sinks[name] = sink
        return sink

    def clustered(self, batches: Iterable[Item], stream: EventStream) -> Iterator[Item]:
        """Yield what is clustered; a second Ctrl-C raises here, and nowhere else. Files are told how far they go."""
        rounds, batch = iter(batches), None
        while True:
            self._is_clustering = True
            try:
                if self._is_cut:
                    raise KeyboardInterrupt
                batch = next(rounds, None)
            finally:
                self._is_clustering = False
                for sink in self.sinks.values():
                    sink.attrs |= {"hits_received": stream.counters.hits_in, "complete_to": stream.complete_to}
            if batch is None:
                return
            yield batch

    def finish(self) -> None:
        """Let files tell what ended the readout, if it was no error: that of an output is raised now."""
        if self.error is not None:
            raise self.error
        for sink in self.sinks.values():
            sink.attrs["ended_by"] = self._how

    def fail(self, error: BaseException) -> None:
        """End because of an error, the first one; of a file raise it."""
        if not self._keeps:
            raise error
        self.error = self.error or error
        self.stop.set()

    @property
    def _how(self) -> str:
        return signal.Signals(self._signals[0]).name if self._signals else "the readout"

    def show(self, job: Job) -> None:
        """Show the summary, and raise what ended the readout where that was not wished."""
        error, has_come = self.error, job.summary["hits"] > 0
        job.summary["ended_by"] = self._how if error is None else str(error) or "SIGINT"
        by_signal = self._signals if error is not None else [each for each in self._signals if each != signal.SIGINT]
        if by_signal and (error is None or not has_come):
            error = Terminated(by_signal[0])
        if error is not None and not has_come:
            raise error
        for name, sink in self.sinks.items():
            job.summary |= {f"{name}_rows": sink.n_rows} | ({name: str(sink.kept)} if sink.kept else {})
        with suppress(*([] if error is None else [OSError])):  # of a terminal that is gone
            if error is None or not job.run.as_json:
                job.show(with_outputs=False)
        if error is not None:
            rows = [f"{sink.n_rows:,} rows in {sink.kept or sink.path}" for sink in self.sinks.values()]
            hint = f"kept of {job.summary['hits']:,} hits: {', '.join(rows) or 'the summary'}"
            vars(error)["kept"] = {"hint": hint, "summary": job.summary}
            raise error
