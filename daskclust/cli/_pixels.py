"""How ``daskclust events`` gets its hits, from files, growing files and running readouts."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from daskclust.cli._console import READOUTS
from daskclust.cli._options import ColumnOptions, file_argument, option, reading
from daskclust.io.files import READABLE, check_file

if TYPE_CHECKING:
    import xarray as xr

    from daskclust.cli._job import Job, Running
    from daskclust.events.estimator import EventBuilder
    from daskclust.readout.stream import EventStream

    Prepare = Callable[[xr.Dataset], xr.Dataset]

ROUND = 1 << 20  # hits that are clustered at once
_MUCH = 0.05  # of the hits on noisy pixels are worth a note
_NAMED = 8  # pixels in a note

logger = logging.getLogger(__name__)


_readout = partial(option, READOUTS)


@dataclass(frozen=True, kw_only=True)
class Pixels(ColumnOptions):
    """Hits of a file, or of a readout that is followed, and options of how they are read."""

    sources: Annotated[
        list[str],
        file_argument(
            "Pixel hits: .tpx3, .t3pa, .parquet, .csv ...; or tcp://", ".tpx3", ".t3pa", ".clog", ".pmf", *READABLE
        ),
    ]
    format: Annotated[
        Literal["tpx3", "t3pa", "katherine", "pixet"] | None,
        reading("Format of raw data.", default="by the ending; of tcp://, tpx3"),
    ] = None
    layout: Annotated[
        Literal["chips", "quad", "timepix4"] | None,
        reading("Chips apart, or side by side; or of Timepix4.", default="the file's, or chips"),
    ] = None
    calibration: Annotated[Path | None, reading("Folder with a.txt, b.txt, c.txt, t.txt: for energies.")] = None
    tot_unit: Annotated[Literal["ns", "tick"], reading("Unit of tot in the calibration.")] = "ns"
    max_pixel_hits: Annotated[
        int | None, reading("Leave out pixels with more hits: noisy ones.", default="none", min=1)
    ] = None
    mask_pixels: Annotated[
        str | None, reading("Leave out the pixels of a table (x, y, chip); auto: noisy ones.", default="none")
    ] = None
    gap: Annotated[int, _readout("Pixels between the chips of a quad.", min=0)] = 0
    disorder: Annotated[float, _readout("How much earlier than one before it a hit may come, us.", min=0)] = 600.0
    on_reset: Annotated[Literal["continue", "restart"], _readout("What times do where global time jumps.")] = "continue"
    trigger: Annotated[int | None, _readout("TDC channel, 1 or 2: gives times of flight, ns.", min=1, max=2)] = None
    slow_clock: Annotated[bool, _readout("Katherine: the fast clock (fToA) is off.", "--slow-clock")] = False
    follow: Annotated[
        bool, _readout("Go on as the file grows, or read tcp:// or udp://; Ctrl-C ends it.", "--follow")
    ] = False
    idle: Annotated[float | None, _readout("End after so many seconds without data.", default="never", min=0)] = None
    reconnect: Annotated[bool, _readout("Connect to tcp:// again where the connection is lost.", "--reconnect")] = False

    @property
    def source(self) -> str:
        """The file or readout, the first of several."""
        return self.sources[0]

    def each(self) -> list[Pixels]:
        """Return the options for each file alone."""
        return [replace(self, sources=[source]) for source in self.sources]

    @property
    def kind(self) -> str:
        """The format of raw data, or "table"."""
        endings = {".tpx3": "tpx3", ".t3pa": "t3pa", ".clog": "pixet", ".pmf": "pixet"}
        return self.format or endings.get(Path(self.source).suffix, "tpx3" if self.follow else "table")

    @property
    def is_raw(self) -> bool:
        """Whether the source has raw words, without coordinates of its own."""
        return self.kind in ("tpx3", "katherine")

    @property
    def is_readout(self) -> bool:
        """Whether the source is no file."""
        return self.source.startswith(("tcp://", "udp://"))

    def check(self, run: Running, where: str | None, dt_max: float | None) -> None:
        """Refuse, before any work, options that do not go with each other, or with the kind of file."""
        source, is_readout, is_t3pa = self.source, self.is_readout, self.kind == "t3pa"
        is_table = self.kind == "table"
        self.naming()  # raises where --columns or --units are no pairs NAME=VALUE

        def refuse(is_wrong: Any, message: str) -> None:
            if is_wrong:
                raise ValueError(message)

        is_katherine, has_frames = self.kind == "katherine", self.kind in ("katherine", "pixet", "table")
        refuse(
            self.layout == "quad" and (is_t3pa or is_katherine),
            f"--layout quad is not for {source}, whose chips are apart; leave it out",
        )
        refuse(self.slow_clock and not is_katherine, "--slow-clock is for --format katherine; leave it out")
        refuse(
            dt_max is None and not has_frames,
            f"{source} has no frames: --dt-max must be given, the largest difference of times in ns, such as 200",
        )
        refuse(
            self.layout == "timepix4" and not is_table, f"--layout timepix4 is for tables, got {source}; leave it out"
        )
        of_words: dict[str, Any] = {
            "--gap": self.gap,
            "--on-reset": self.on_reset != "continue",
            "--trigger": self.trigger,
        }
        for name, value in of_words.items():
            refuse(value and self.kind != "tpx3", f"{name} is for raw .tpx3 words, got {source}; leave it out")
        for name in ("columns", "units"):
            refuse(getattr(self, name) and not is_table, f"--{name} is for tables, got {source}; leave it out")
        refuse(
            self.follow and len(self.sources) > 1, f"--follow reads one readout, got {len(self.sources)}; choose one"
        )
        refuse(is_readout and not self.follow, f"{source} is a running readout; add --follow")
        is_tcp = source.startswith("tcp://")
        refuse(self.reconnect and not is_tcp, f"--reconnect is for tcp://host:port, got {source}; leave it out")
        refuse(
            is_readout and not is_tcp and not is_katherine,
            f"{source} has datagrams, which are read of a Katherine; add --format katherine",
        )
        refuse(
            self.mask_pixels and self.max_pixel_hits,
            f"--max-pixel-hits {self.max_pixel_hits} finds pixels, and --mask-pixels does; leave one of them out",
        )
        if self.mask_pixels not in (None, "auto"):
            check_file(str(self.mask_pixels))
        if not self.follow:
            refuse(self.idle is not None, f"--idle {self.idle} is for --follow; leave it out, or add --follow")
        else:
            refuse(
                self.max_pixel_hits is not None,
                f"--max-pixel-hits {self.max_pixel_hits} needs a file with all its hits, got --follow; leave it out",
            )
            refuse(
                self.mask_pixels == "auto",
                "--mask-pixels auto needs a file with all its hits, got --follow; give the pixels of an earlier run",
            )
            refuse(run.dry_run, "--dry-run needs a file with all its hits, got --follow; leave one of them out")
            refuse(
                not is_readout and (not self.is_raw or not (self.format or source.endswith(".tpx3"))),
                f"--follow reads raw words, of a .tpx3 file or tcp://host:port, got {source}; leave --follow out, or "
                "add --format",
            )
            for name in ("workers", "scheduler"):
                refuse(getattr(run, name), f"--follow clusters in this process; leave --{name} out")
        if where is not None:  # no table of clusters of such a source could be asked
            energy = ["energy"] * (is_table or self.calibration is not None)
            tof = ["tof"] * (is_table or bool(self.trigger))
            frame = ["frame"] * (dt_max is None)
            check_columns(where, ["x", "y", "toa", "tot", "chip", *frame, *energy, *tof])

    def open_as_is(self, path: Path, chunks: Any) -> xr.Dataset:
        """Return the hits of a table, in the order of the file."""
        from daskclust import io

        return io.read_hits(path, field="timepix", chunks=chunks, layout=self.layout, **self.naming([path]))

    def open(
        self, *, for_dask: bool, first_row: int | None = None, by_frame: Literal["all"] | None = None
    ) -> xr.Dataset:
        """Return the hits of a file, lazy where the format allows it; `for_dask` as dask arrays.

        They are in the order of time, or of frames. Rows of a table are numbered from `first_row` on where it is given.
        """
        from daskclust import io
        from daskclust.io.rows import About, OnDemand

        source, chunks = self.source, ROUND if for_dask else None
        if self.kind == "t3pa":
            return io.open_t3pa(source, chunks=chunks)
        if self.kind == "pixet":
            return io.open_pixet(source, chunks=chunks)
        if self.kind == "katherine":
            return io.open_katherine(source, fast_clock=not self.slow_clock, chunks=chunks, frame=by_frame)
        if not self.is_raw:
            table = self.open_as_is(Path(source), (About if for_dask else OnDemand)(ROUND))
            clock = "toa" if by_frame is None else "frame"
            return _in_time(table if first_row is None else _with_rows(table, first_row), clock, for_dask=for_dask)
        options: dict[str, Any] = {"layout": self.layout or "chips", "gap": self.gap, "on_reset": self.on_reset}
        options["disorder"] = 1e3 * self.disorder
        if not for_dask and self.trigger is None:
            from daskclust.io.timepix.tpx3.xarray import Tpx3Entrypoint

            return Tpx3Entrypoint().open_dataset(source, hits_per_chunk=ROUND, **options)
        data = io.open_tpx3(source, chunks=ROUND, **options)
        if self.trigger is not None:
            triggers = io.open_tpx3_triggers(source, on_reset=self.on_reset)
            data["tof"] = ("hit", io.time_of_flight(data["toa"].data, triggers, channel=self.trigger), {"units": "ns"})
        return data

    def preparation(self) -> Prepare:
        """Return what gives hits energies; those that have none (masked pixels, say) add nothing to their cluster's."""
        if self.calibration is None:
            return lambda hits: hits
        from daskclust.io import calibrate, read_calibration

        calibration, unit = read_calibration(self.calibration), self.tot_unit

        def prepare(hits: xr.Dataset) -> xr.Dataset:
            energy = calibrate(hits, calibration, tot_unit=unit)["energy"]
            return hits.assign(energy=energy.where(energy > 0, 0))

        return prepare

    def readout(self, builder: EventBuilder, stop: threading.Event, prepare: Prepare, run: Running) -> EventStream:
        """Return the stream of a running readout, or of a file that grows."""
        from daskclust.io import KatherineReader, WordReader
        from daskclust.io.timepix import sources
        from daskclust.readout.stream import EventStream

        source = self.source
        layout: Literal["chips", "quad"] = "quad" if self.layout == "quad" else "chips"
        reader: WordReader | KatherineReader
        if self.kind == "katherine":
            reader = KatherineReader(fast_clock=not self.slow_clock, frames=builder.dt_max is None)
        else:
            reader = WordReader(layout=layout, gap=self.gap, trigger=self.trigger, on_reset=self.on_reset)
        if self.is_readout:
            items = sources.receive(source, reconnect=self.reconnect, idle=self.idle, stop=stop.is_set)
        else:
            items = sources.follow(source, idle=self.idle, stop=stop.is_set)
        return EventStream(
            items,
            builder,
            disorder=1e3 * self.disorder,
            buffer=ROUND,
            chip=layout != "quad",
            reader=reader,
            prepare=lambda hits: prepare(hits.assign_attrs(layout=layout, gap=self.gap)),
            cuda=run.cuda,
        )


def check_columns(expression: str, names: Iterable[Any]) -> None:
    """Refuse an expression that the table of clusters of hits with such variables cannot be asked."""
    import numpy as np
    import xarray as xr

    from daskclust.io import TIMEPIX
    from daskclust.properties import cluster_table, where

    known = [(str(name), TIMEPIX.find(str(name))) for name in names]
    columns = {name: ("hit", np.empty(0, variable.dtype)) for name, variable in known if variable is not None}
    hits = xr.Dataset(columns, attrs={"field": "timepix"})
    where(cluster_table(hits, np.empty(0, np.int64), n_clusters=0), expression)


def _with_rows(data: xr.Dataset, first_row: int) -> xr.Dataset:
    """Return hits with the numbers of their rows in all files."""
    from daskclust.readout.columns import ROW

    if data.chunks:
        import dask.array as da

        rows = da.arange(first_row, first_row + data.sizes["hit"], chunks=data.chunks["hit"])
        return data.assign({ROW: ("hit", rows)})
    import numpy as np

    from daskclust.io.rows import on_demand

    def numbers(start: int, stop: int) -> Any:
        return np.arange(first_row + start, first_row + stop)

    return data.assign({ROW: on_demand("hit", numbers, data.sizes["hit"], np.int64, {}, None)})


def _in_time(data: xr.Dataset, clock: str, *, for_dask: bool) -> xr.Dataset:
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
    parts = (prepare(hits) for hits in _parts(data, job))
    return EventStream(parts, builder, disorder=0.0, buffer=1, chip=not is_quad, cuda=job.run.cuda)


def _parts(data: xr.Dataset, job: Job) -> Iterator[xr.Dataset]:
    """Yield the hits of a file window by window, in memory."""
    for window in _windows(data):
        with job.stage("reading"):
            hits = data.isel(hit=window).compute(scheduler="synchronous")
        yield hits


class NoisyPixels:
    """Hits of noisy pixels: they are left out where an option says so, and else counted for a note."""

    def __init__(self, pixels: Pixels) -> None:
        self._most, mask = pixels.max_pixel_hits, pixels.mask_pixels
        self.finds = self._most is not None or mask == "auto"
        self._counts: list[Any] = []
        self._mask, self._left_out = None, list[int]()
        if mask not in (None, "auto"):
            from daskclust import io
            from daskclust.properties._noisy import count_pixels

            self._mask = count_pixels(io.read_hits(str(mask), field="calorimeter")) > 0

    def count_all(self, data: xr.Dataset, job: Job) -> None:
        """Count the hits of a file, where some are to be left out."""
        job.work.begin(f"counting hits of pixels of {job.name}")
        places = data[[name for name in ("x", "y", "toa", "chip") if name in data.variables]]
        for hits in [places] if job.run.is_on_dask else _parts(places, job):
            self._count(hits)

    def _count(self, hits: xr.Dataset) -> None:
        from daskclust.properties._noisy import added, count_pixels

        self._counts = [added([*self._counts, count_pixels(hits)])]

    def around(self, prepare: Prepare, *, lazy: bool = False) -> Prepare:
        """Return a preparation of hits that leaves out those of noisy pixels, or counts them."""
        from daskclust.properties._noisy import without_noisy, without_pixels

        def prepare_some(hits: xr.Dataset) -> xr.Dataset:
            if self._mask is not None:
                quiet = without_pixels(hits, self._mask)
                self._left_out.append(quiet.attrs["noisy_hits"])
                return prepare(quiet)
            if self.finds:
                return prepare(without_noisy(hits, self._counts[0], self._most))
            if not lazy:
                self._count(hits)
            return prepare(hits)

        return prepare_some

    def report(self, job: Job) -> None:
        """Put what was left out into the summary; else note pixels that have a good part of the hits."""
        from daskclust.properties._noisy import pixels_above

        def tell(count: int, hits: int) -> None:
            job.summary = {**job.summary, "hits": job.summary["hits"] + hits, "noisy_pixels": count, "noisy_hits": hits}

        if self._mask is not None:
            tell(int(self._mask.sum()), sum(self._left_out))
        if not self._counts:
            return
        noisy = pixels_above(self._counts[0], self._most)
        count, hits = noisy.sizes["pixel"], noisy.attrs["noisy_hits"]
        if self.finds:
            tell(count, hits)
            return
        share = hits / max(1, int(self._counts[0].sum()))
        if share < _MUCH:
            return
        columns = [noisy[name].values[:_NAMED].tolist() for name in ("chip", "x", "y")]
        is_one_chip = self._counts[0].shape[0] == 1
        names = [
            f"({x}, {y})" if is_one_chip else f"({x}, {y}) of chip {chip}" for chip, x, y in zip(*columns, strict=True)
        ]
        logger.warning(
            "%s have %.0f%% of the hits: %s%s; --max-pixel-hits %d leaves them out",
            f"{count} pixels" if count > 1 else "one pixel",
            100 * share,
            ", ".join(names),
            f" and {count - _NAMED} more" if count > _NAMED else "",
            noisy.attrs["max_pixel_hits"],
        )
