"""How ``daskclust events`` gets its hits, from files, growing files and running readouts."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from daskclust.cli._console import READOUTS
from daskclust.cli._options import ColumnOptions, file_argument, option, reading, words_of
from daskclust.cli.pixels import in_time
from daskclust.io.files import READABLE, check_file

if TYPE_CHECKING:
    import xarray as xr

    from daskclust.cli._running import Running
    from daskclust.cli.pixels.in_time import Prepare
    from daskclust.events.estimator import EventBuilder
    from daskclust.readout.stream import EventStream

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
    calibration: Annotated[Path | None, reading("Folder with a.txt ... t.txt, or an .npz: for energies.")] = None
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
        return self.format or endings.get(Path(self.source).suffix.lower(), "tpx3" if self.follow else "table")

    @property
    def words(self) -> list[str] | None:
        """The options with which the explorer reads the same hits, None where it cannot."""
        if self.on_reset != "continue" or self.kind != replace(self, format=None, follow=False).kind:
            return None
        names = ("layout", "gap", "max_pixel_hits")
        given = [(f"--{name.replace('_', '-')}", str(getattr(self, name))) for name in names if getattr(self, name)]
        return [*words_of(self, ColumnOptions), *itertools.chain(*given)]

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
        source, is_readout, is_table = self.source, self.is_readout, self.kind == "table"
        self.naming("timepix")  # raises where --columns or --units are no pairs NAME=VALUE

        def refuse(is_wrong: Any, message: str) -> None:
            if is_wrong:
                raise ValueError(message)

        is_katherine, has_frames = self.kind == "katherine", self.kind in ("katherine", "pixet", "table")
        refuse(
            self.layout == "quad" and self.kind in ("t3pa", "katherine"),
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
        of_words = ("gap", self.gap), ("on-reset", self.on_reset != "continue"), ("trigger", self.trigger)
        for name, value in of_words:
            refuse(value and self.kind != "tpx3", f"--{name} is for raw .tpx3 words, got {source}; leave it out")
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
                not is_readout and (not self.is_raw or not (self.format or source.lower().endswith(".tpx3"))),
                f"--follow reads raw words, of a .tpx3 file or tcp://host:port, got {source}; leave --follow out, or "
                "add --format",
            )
            for name in ("workers", "scheduler"):
                refuse(getattr(run, name), f"--follow clusters in this process; leave --{name} out")
        if where is not None:  # no table of clusters of such a source could be asked
            energy = ["energy"] * (self.kind in ("table", "pixet") or self.calibration is not None)
            tof = ["tof"] * (is_table or bool(self.trigger))
            frame = ["frame"] * (dt_max is None)
            check_columns(where, ["x", "y", "toa", "tot", "chip", *frame, *energy, *tof])

    def open_as_is(self, path: Path, chunks: Any) -> xr.Dataset:
        """Return the hits of a table, in the order of the file."""
        from daskclust import io

        return io.read_hits(path, field="timepix", chunks=chunks, layout=self.layout, **self.naming("timepix", [path]))

    def open(self, *, for_dask: bool, first_row: int | None = None, by_frame: bool = False) -> xr.Dataset:
        """Return the hits of a file, lazy where the format allows it; `for_dask` as dask arrays.

        They are in the order of time, or of frames. Rows of a table are numbered from `first_row` on where it is given.
        """
        from daskclust import io
        from daskclust.io.rows import About, OnDemand

        source, chunks = self.source, in_time.ROUND if for_dask else None
        if self.kind == "t3pa":
            return io.open_t3pa(source, chunks=chunks)
        if self.kind == "pixet":
            return io.open_pixet(source, chunks=chunks)
        if self.kind == "katherine":
            frame: Literal["all"] | None = "all" if by_frame else None
            return io.open_katherine(source, fast_clock=not self.slow_clock, chunks=chunks, frame=frame)
        if not self.is_raw:
            table = self.open_as_is(Path(source), (About if for_dask else OnDemand)(in_time.ROUND))
            table = table if first_row is None else in_time.with_rows(table, first_row)
            return in_time.in_time(table, "frame" if by_frame else "toa", for_dask=for_dask)
        options: dict[str, Any] = {"layout": self.layout or "chips", "gap": self.gap, "on_reset": self.on_reset}
        options["disorder"] = 1e3 * self.disorder
        if not for_dask and self.trigger is None:
            from daskclust.io.timepix.tpx3.xarray import Tpx3Entrypoint

            return Tpx3Entrypoint().open_dataset(source, hits_per_chunk=in_time.ROUND, **options)
        data = io.open_tpx3(source, chunks=in_time.ROUND, **options)
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
            buffer=in_time.ROUND,
            chip=layout != "quad",
            reader=reader,
            prepare=prepare,
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
