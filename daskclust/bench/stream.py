"""Time online event building: a readout that sends at a fixed rate through TCP, and what comes out."""

from __future__ import annotations

import multiprocessing
import socket
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.bench._report import table
from daskclust.core.device.kernels import kernel

_STEPS = 40  # pieces in which one template is sent
_DISORDER = 20e3  # ns


def bench_stream(
    rate: float = 10e6, seconds: float = 60.0, *, buffer: int = 1 << 20, kind: Any = "gamma", rng: int = 0
) -> dict[str, Any]:
    """Send raw hits through a socket for a while and compare what a stream puts out with the answer offline.

    Parameters
    ----------
    rate : float, default 10e6
        Hits a second, both in the detector's own time and in the sender's.
    seconds : float, default 60.0
        How long.
    buffer : int, default 1_048_576
        As of `daskclust.EventStream`.
    kind : str, default "gamma"
        Hits, see `daskclust.datasets.timepix`; 0.4 s of them are sent again and again at later times.
    rng : int, default 0
        Seed.

    Returns
    -------
    dict
        ``machine`` facts, ``parameters``; ``hits_in``, ``hits_out``, ``clusters``, ``late_hits``, ``largest_backlog``;
        ``seconds`` from the first bytes that come to the last table, ``mhits_per_second``; and ``equal``: whether
        every row is that of the offline table. As bytes are sent at the speed of the detector's clock, they cannot be
        less than `seconds`, about: more is what the stream was behind in the end.

    Raises
    ------
    RuntimeError
        If the process that sends fails.
    """
    from daskclust import EventBuilder, EventStream
    from daskclust.datasets import readout_order, timepix
    from daskclust.io import open_tpx3, receive, write_tpx3
    from daskclust.machine import describe
    from daskclust.properties import cluster_table

    hits = int(rate * 0.4)
    builder = EventBuilder(200.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "template.tpx3")
        made = timepix(hits, kind=kind, rate=rate, rng=rng)
        write_tpx3(made.isel(hit=readout_order(made, disorder=_DISORDER, rng=rng)), path, global_time=False)
        offline = open_tpx3(path)
        words = np.fromfile(path, np.uint64)
    table = cluster_table(offline, builder.fit(offline).labels_)
    period = int(np.ceil((float(offline["toa"].max()) + 1e6) / 25))  # a gap of more than the disorder
    repeats = max(1, round(seconds * 1e9 / (period * 25)))
    with socket.create_server(("127.0.0.1", 0)) as server:  # a free port; the stream listens there next
        port = server.getsockname()[1]
    clock = _Clock()
    items = clock.started_by(receive(f"tcp://listen@127.0.0.1:{port}", timeout=60))
    stream = EventStream(items, builder, disorder=_DISORDER, buffer=buffer)
    rows, equal = 0, True
    with _sender(port, words, period, repeats):
        for found in stream:
            equal = equal and _same_rows(found, table, rows, period)
            rows += found.sizes["cluster"]
        took = time.perf_counter() - clock.began
    counters = stream.counters
    return {
        "system": "stream",
        "parameters": {
            "rate": rate,
            "seconds": seconds,
            "kind": kind,
            "dt_max": 200.0,
            "disorder": _DISORDER,
            "buffer": buffer,
        },
        "machine": describe(),
        "hits_in": counters.hits_in,
        "hits_out": counters.hits_out,
        "hits_sent": hits * repeats,
        "clusters": counters.clusters,
        "late_hits": counters.late_hits,
        "largest_backlog": counters.largest_backlog,
        "seconds": took,
        "mhits_per_second": counters.hits_in / took / 1e6,
        "equal": bool(equal and rows == repeats * table.sizes["cluster"]),
    }


def markdown(report: dict[str, Any]) -> str:
    """Return a report's figures as a Markdown table."""
    rows = [(name.replace("_", " "), _told(report[name])) for name in list(report)[3:]]
    return table(("", "in all"), rows)


def _told(value: Any) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else str(value) if isinstance(value, bool) else f"{value:,}"


def _same_rows(found: Any, table: Any, first: int, period: int) -> bool:
    """Return whether rows from number `first` on are those of the repeated table."""
    repeat, row = np.divmod(first + np.arange(found.sizes["cluster"]), table.sizes["cluster"])
    same = [np.array_equal(found["toa"].values, table["toa"].values[row] + repeat * period * 25.0)]
    same += [
        np.array_equal(found[name].values, table[name].values[row]) for name in ("size", "tot", "x", "y", "length")
    ]
    return all(same)


class _Clock:
    """When the first of some bytes came."""

    began = 0.0

    def started_by(self, items: Iterable[bytes]) -> Iterator[bytes]:
        """Yield items as they come."""
        for item in items:
            self.began = self.began or time.perf_counter()
            yield item


@contextmanager
def _sender(port: int, words: NDArray[np.uint64], period: int, repeats: int) -> Iterator[None]:
    """Let a process of its own send, and wait for its end; after an error here it is ended."""
    process = multiprocessing.get_context("spawn").Process(target=_send, args=(port, words, period, repeats))
    process.start()
    try:
        yield
        process.join()
    finally:
        process.terminate()
        process.join()
    if process.exitcode:
        raise RuntimeError(f"the process that sends ended with code {process.exitcode}; its error is above")


def _send(port: int, words: NDArray[np.uint64], period: int, repeats: int) -> None:
    """Send the words again and again, each time later by `period` (25 ns), at the speed of the detector's own clock."""
    out, bounds = np.empty_like(words), np.linspace(0, len(words), _STEPS + 1).astype(int)
    _shift.run(1, words, 0, out, grain=1 << 30)  # compiled before the clock starts
    with _connection(port) as connection:
        began = time.perf_counter()
        for repeat in range(repeats):
            for step in range(_STEPS):
                part = slice(bounds[step], bounds[step + 1])
                _shift.run(bounds[step + 1] - bounds[step], words[part], repeat * period, out[part], grain=1 << 30)
                wait = began + (repeat + step / _STEPS) * period * 25e-9 - time.perf_counter()
                if wait > 0:
                    time.sleep(wait)
                connection.sendall(out[part].tobytes())


def _connection(port: int) -> socket.socket:
    """Connect, once somebody listens."""
    for _ in range(600):
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise ConnectionRefusedError(f"nobody listens at port {port} of this machine, for a minute")


@kernel
def _shift(i, words, late, out):  # type: ignore[no-untyped-def]
    """Make a pixel word's time later by `late` periods of 25 ns."""
    word = words[i]
    if word >> np.uint64(60) == np.uint64(0xB):
        clock = ((word & np.uint64(0xFFFF)) << np.uint64(14)) | ((word >> np.uint64(30)) & np.uint64(0x3FFF))
        clock = (clock + np.uint64(late)) & np.uint64((1 << 30) - 1)
        word &= ~(np.uint64(0xFFFF) | (np.uint64(0x3FFF) << np.uint64(30)))
        word |= (clock >> np.uint64(14)) | ((clock & np.uint64(0x3FFF)) << np.uint64(30))
    out[i] = word
