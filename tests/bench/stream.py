"""Time online event building: a readout that sends at a fixed rate through TCP, and what comes out."""

import itertools
import multiprocessing
import socket
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bench.cases.events import DISORDER, DT_MAX
from daskclust import EventBuilder, EventStream
from daskclust.core.device.machine_code.compiling import Clock
from daskclust.datasets import readout_order, timepix
from daskclust.io import open_tpx3, receive, write_tpx3
from daskclust.machine import describe
from daskclust.properties import cluster_table

_TEMPLATE = 0.4  # s of hits that are sent again and again
_STEPS = 40  # pieces in which the template is sent
_COUNTED = ("hits_in", "hits_out", "clusters", "late_hits", "largest_backlog")
_COLUMNS = ("size", "tot", "x", "y", "length")
_LOW, _HIGH = np.uint64(0x3FFF), np.uint64(0xFFFF)  # bits 30 to 43 and 0 to 15 of a word: its time in 25 ns


def bench_stream(rate=10e6, seconds=60.0, *, buffer=1 << 20):
    """Send raw hits, `rate` a second, through a socket and compare what a stream puts out with the answer offline.

    ``seconds`` of the report are those from the first bytes that come to the last table: what is more than `seconds`
    is what the stream was behind in the end; ``equal`` says whether every row is that of the offline table.
    """
    hits, builder = int(rate * _TEMPLATE), EventBuilder(DT_MAX)
    words, offline = template(hits, rate)
    table = cluster_table(offline, builder.fit(offline).labels_)
    period = period_of(offline)
    repeats = max(1, round(seconds * 1e9 / (period * 25)))
    rows, equal = 0, True
    with _sender(words, period, repeats) as port:
        blocks = receive(f"tcp://127.0.0.1:{port}")
        first = next(blocks, b"")
        clock = Clock()
        stream = EventStream(itertools.chain([first], blocks), builder, disorder=DISORDER, buffer=buffer)
        for found in stream:
            equal = equal and same_rows(found, table, rows, period)
            rows += found.sizes["cluster"]
        took = clock.seconds
    parameters = {"rate": rate, "seconds": seconds, "kind": "gamma", "dt_max": DT_MAX, "disorder": DISORDER}
    return {
        "system": "stream",
        "parameters": {**parameters, "buffer": buffer},
        "machine": describe(),
        **{name: getattr(stream.counters, name) for name in _COUNTED},
        "hits_sent": hits * repeats,
        "seconds": took,
        "seconds_compiling": clock.compiling,
        "mhits_per_second": stream.counters.hits_in / took / 1e6,
        "equal": bool(equal and rows == repeats * table.sizes["cluster"]),
    }


def template(hits, rate, kind="gamma"):
    """Return the words of a raw file, and its hits in the order of time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "template.tpx3")
        made = timepix(hits, kind=kind, rate=rate, rng=0)
        write_tpx3(made.isel(hit=readout_order(made, disorder=DISORDER, rng=0)), path, global_time=False)
        return np.fromfile(path, np.uint64), open_tpx3(path)


def period_of(hits):
    """Return after how many ticks of 25 ns hits may come again: after a gap of more than the disorder."""
    return int(np.ceil((float(hits["toa"].max()) + 1e6) / 25))


def same_rows(found, table, first, period):
    """Return whether rows from number `first` on are those of the repeated table."""
    repeat, row = np.divmod(first + np.arange(found.sizes["cluster"]), table.sizes["cluster"])
    same = [np.array_equal(found["toa"].values, table["toa"].values[row] + repeat * period * 25.0)]
    return all(same + [np.array_equal(found[name].values, table[name].values[row]) for name in _COLUMNS])


@contextmanager
def _sender(words, period, repeats):
    """Let a process of its own listen at a free port and send; it is ended with this."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        process = multiprocessing.get_context("spawn").Process(target=_send, args=(server, words, period, repeats))
        process.start()
    try:
        yield port
    finally:
        process.terminate()
        process.join()


def _send(server, words, period, repeats):
    """Send the words again and again, each time later by `period` (25 ns), at the speed of the detector's own clock."""
    bounds = np.linspace(0, len(words), _STEPS + 1).astype(int)
    with server, server.accept()[0] as connection:
        began = time.perf_counter()
        for repeat in range(repeats):
            for step in range(_STEPS):
                part = later(words[bounds[step] : bounds[step + 1]], repeat * period)
                wait = began + (repeat + step / _STEPS) * period * 25e-9 - time.perf_counter()
                if wait > 0:
                    time.sleep(wait)
                connection.sendall(part.data)


def later(words, late):
    """Return words with the times of pixels later by `late` periods of 25 ns."""
    clock = ((words & _HIGH) << np.uint64(14) | words >> np.uint64(30) & _LOW) + np.uint64(late)
    others = words & ~(_HIGH | _LOW << np.uint64(30))
    pixels = words >> np.uint64(60) == np.uint64(0xB)
    return np.where(pixels, others | clock >> np.uint64(14) & _HIGH | (clock & _LOW) << np.uint64(30), words)
