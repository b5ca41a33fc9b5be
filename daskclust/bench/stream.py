"""Time online event building: a readout that sends at a fixed rate through TCP, and what comes out."""

from __future__ import annotations

import multiprocessing
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.core.jit import kernel

_STEPS = 40  # pieces in which one template is sent


def bench_stream(rate: float = 10e6, seconds: float = 60.0, *, kind: Any = "gamma", rng: int = 0) -> dict[str, Any]:
    """Send raw hits through a socket for a while and compare what a stream puts out with the answer offline.

    Parameters
    ----------
    rate : float, default 10e6
        Hits a second, both in the detector's own time and in the sender's.
    seconds : float, default 60.0
        How long.
    kind : str, default "gamma"
        Hits, see `daskclust.datasets.timepix`; 0.4 s of them are sent again and again at later times.
    rng : int, default 0
        Seed.

    Returns
    -------
    dict
        ``machine`` facts, ``parameters``; ``hits_in``, ``hits_out``, ``clusters``, ``late_hits``, ``largest_backlog``;
        ``seconds`` from the first table to the last, ``mhits_per_second``; and ``equal``: whether
        every row is that of the offline table.
    """
    from daskclust import EventBuilder
    from daskclust.datasets import readout_order, timepix
    from daskclust.events.stream import EventStream
    from daskclust.io import open_tpx3, receive, write_tpx3
    from daskclust.machine import describe
    from daskclust.properties import cluster_table

    hits = int(rate * 0.4)
    builder = EventBuilder(200.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "template.tpx3")
        made = timepix(hits, kind=kind, rate=rate, rng=rng)
        write_tpx3(made.isel(hit=readout_order(made, disorder=20e3, rng=rng)), path, global_time=False)
        offline = open_tpx3(path)
        words = np.fromfile(path, np.uint64)
    table = cluster_table(offline, builder.fit(offline).labels_)
    period = int(np.ceil((float(offline["toa"].max()) + 1e6) / 25))  # a gap of more than the disorder
    repeats = max(1, round(seconds * 1e9 / (period * 25)))
    with socket.create_server(("127.0.0.1", 0)) as server:  # a free port; the stream listens there next
        port = server.getsockname()[1]
    process = multiprocessing.get_context("spawn").Process(target=_send, args=(port, words, period, repeats))
    process.start()
    stream = EventStream(receive(f"tcp://listen@127.0.0.1:{port}", timeout=60), builder, disorder=20e3)
    rows, equal, began = 0, True, 0.0
    for found in stream:
        began = began or time.perf_counter()
        equal = equal and _same_rows(found, table, rows, period)
        rows += found.sizes["cluster"]
    took = time.perf_counter() - began
    process.join()
    counters = stream.counters
    return {
        "system": "stream",
        "parameters": {"rate": rate, "seconds": seconds, "kind": kind, "dt_max": 200.0},
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


def _same_rows(found: Any, table: Any, first: int, period: int) -> bool:
    """Return whether rows from number `first` on are those of the repeated table."""
    repeat, row = np.divmod(first + np.arange(found.sizes["cluster"]), table.sizes["cluster"])
    same = [np.array_equal(found["toa"].values, table["toa"].values[row] + repeat * period * 25.0)]
    same += [
        np.array_equal(found[name].values, table[name].values[row]) for name in ("size", "tot", "x", "y", "length")
    ]
    return all(same)


def _send(port: int, words: NDArray[np.uint64], period: int, repeats: int) -> None:
    """Send the words again and again, each time later by `period` (25 ns), at the speed of the detector's own clock."""
    out, bounds = np.empty_like(words), np.linspace(0, len(words), _STEPS + 1).astype(int)
    for _ in range(600):
        try:
            connection = socket.create_connection(("127.0.0.1", port))
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    began = time.perf_counter()
    with connection:
        for repeat in range(repeats):
            for step in range(_STEPS):
                part = slice(bounds[step], bounds[step + 1])
                _shift.run(bounds[step + 1] - bounds[step], words[part], repeat * period, out[part], grain=1 << 30)
                wait = began + (repeat + step / _STEPS) * period * 25e-9 - time.perf_counter()
                if wait > 0:
                    time.sleep(wait)
                connection.sendall(out[part].tobytes())


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
