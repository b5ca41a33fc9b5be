"""How ``daskclust events`` gets its hits: from files, growing files and running readouts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

    from daskclust.cli._running import Running
    from daskclust.events.estimator import EventBuilder
    from daskclust.readout.stream import EventStream

    Prepare = Callable[[xr.Dataset], xr.Dataset] | None

ROUND = 1 << 20  # hits that are clustered at once


def check_reading(
    source: str,
    reading: dict[str, Any],
    naming: dict[str, Any],
    follow: bool,
    idle: float | None,
    trigger: int | None,
    running: Running,
) -> None:
    """Refuse options that do not go with each other, or with the kind of file."""
    if reading["layout"] == "quad" and source.endswith(".t3pa"):
        raise ValueError(f"--layout quad is not for {source}, whose chips are apart; leave it out")
    for option in ("gap", "disorder"):
        if not reading[option] >= 0:
            raise ValueError(f"--{option} must be 0 or more, got {reading[option]:g}")
    if reading["gap"] and not (source.endswith(".tpx3") or follow):
        raise ValueError(f"--gap is for raw .tpx3 words, and {source} has coordinates of its own; leave it out")
    if reading["on_reset"] != "continue" and not (source.endswith(".tpx3") or follow):
        raise ValueError(f"--on-reset is for raw .tpx3 words, which have global time, got {source}; leave it out")
    for option, given in naming.items():
        if given is not None and (follow or source.endswith((".tpx3", ".t3pa"))):
            raise ValueError(f"--{option} is for tables, and the format of {source} has its own; leave it out")
    if source.startswith("tcp://") and not follow:
        raise ValueError(f"{source} is a running readout; add --follow")
    if follow and not source.startswith("tcp://") and not source.endswith(".tpx3"):
        raise ValueError(
            f"--follow reads raw words, of a .tpx3 file or tcp://host:port, got {source}; leave --follow out"
        )
    where = {"--workers": running.workers, "--scheduler": running.scheduler, "--cuda": running.cuda}
    for option, given in where.items():
        if follow and given:
            raise ValueError(f"--follow clusters in this process, on its CPU; leave {option} out")
    if idle is not None and not follow:
        raise ValueError(f"--idle is for --follow, got --idle {idle:g} without it; leave it out, or add --follow")
    if idle is not None and not idle >= 0:
        raise ValueError(f"--idle must be 0 or more, got {idle:g}")
    if trigger not in (None, 1, 2):
        raise ValueError(f"--trigger must be 1 or 2, got {trigger}")
    if trigger is not None and not (follow or source.endswith(".tpx3")):
        raise ValueError(f"--trigger is for raw .tpx3 words, which have TDC times, got {source}; leave it out")


def check_where(expression: str, source: str, follow: bool, trigger: int | None, calibration: Path | None) -> None:
    """Refuse, before any work, an expression that no table of clusters of such a source could be asked."""
    is_raw = follow or source.endswith((".tpx3", ".t3pa"))
    names = ["x", "y", "toa", "tot", "chip"]
    names += ["energy"] if calibration is not None or not is_raw else []
    names += ["tof"] if trigger is not None or not is_raw else []
    check_columns(expression, names)


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


def open_hits(source: str, reading: dict[str, Any], naming: dict[str, Any], trigger: int | None) -> xr.Dataset:
    """Return the hits of a file, lazy where the format allows it."""
    from daskclust import io

    if source.endswith(".tpx3"):
        data = io.open_tpx3(source, chunks=ROUND, **{**reading, "layout": reading["layout"] or "chips"})
        if trigger is not None:
            triggers = io.open_tpx3_triggers(source, on_reset=reading["on_reset"])
            data["tof"] = ("hit", io.time_of_flight(data["toa"].data, triggers, channel=trigger), {"units": "ns"})
        return data
    if source.endswith(".t3pa"):
        return io.open_t3pa(source, chunks=ROUND)
    return _in_time(io.read_hits(source, field="timepix", layout=reading["layout"], chunks=ROUND, **naming))


def _in_time(data: xr.Dataset) -> xr.Dataset:
    """Return hits in the order of time: as they are, or, where they are not, sorted in memory."""
    toa = data["toa"].data
    if (toa[1:] >= toa[:-1]).all():
        return data
    return data.compute().sortby("toa").chunk({"hit": ROUND})


def windows(data: xr.Dataset, builder: EventBuilder, prepare: Prepare) -> EventStream:
    """Return the stream of a file's hits, a window of the file a round."""
    from daskclust.readout.stream import EventStream

    def windows() -> Iterator[xr.Dataset]:
        start = 0
        for length in data.chunks.get("hit", (data.sizes["hit"],)):
            part = data.isel(hit=slice(start, start + length)).compute(scheduler="synchronous")
            yield part if prepare is None else prepare(part)
            start += length

    return EventStream(windows(), builder, disorder=0.0, buffer=1, chip=data.attrs.get("layout") != "quad")


@contextmanager
def stop_at_interrupt() -> Iterator[threading.Event]:
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


def running_readout(
    source: str,
    builder: EventBuilder,
    reading: dict[str, Any],
    idle: float | None,
    stop: threading.Event,
    trigger: int | None,
    prepare: Prepare,
) -> EventStream:
    """Return the stream of a running readout, or of a file that grows."""
    from daskclust.io.timepix import readout
    from daskclust.readout.stream import EventStream

    gap: int = reading["gap"]
    layout: Any = reading["layout"] or "chips"
    items = (readout.receive if source.startswith("tcp://") else readout.follow)(source, idle=idle, stop=stop.is_set)

    def prepared(hits: xr.Dataset) -> xr.Dataset:
        return hits if prepare is None else prepare(hits.assign_attrs(layout=layout, gap=gap))

    return EventStream(
        items,
        builder,
        disorder=reading["disorder"],
        buffer=ROUND,
        chip=layout != "quad",
        reader=readout.WordReader(layout=layout, gap=gap, trigger=trigger, on_reset=reading["on_reset"]),
        prepare=prepared,
    )


def energies(calibration: Path, tot_unit: Any) -> Callable[[xr.Dataset], xr.Dataset]:
    """Return what gives hits energies; those that have none (masked pixels, say) add nothing to their cluster's."""
    from daskclust.io import calibrate, read_calibration

    given = read_calibration(calibration)

    def prepare(hits: xr.Dataset) -> xr.Dataset:
        energy = calibrate(hits, given, tot_unit=tot_unit)["energy"]
        return hits.assign(energy=energy.where(energy > 0, 0))

    return prepare
