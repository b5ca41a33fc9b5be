"""Event building on the protocol of its paper (section 5): hits repeated with an offset in time, streamed from disk."""

import sys
import tempfile
from pathlib import Path

from bench.cases.events import DISORDER, DT_MAX
from bench.stream import later, period_of, same_rows, template
from bench.timing import seconds_of
from daskclust import EventBuilder, EventStream
from daskclust.datasets._pixel_shapes import KINDS
from daskclust.machine import describe
from daskclust.properties import cluster_table

_RATE = 10e6  # hits a second in the detector's time
_BLOCK = 1 << 24  # bytes that are read at a time


def bench_repeated(kinds=tuple(KINDS), sizes=(4_000_000,), times=25, *, buffer=1 << 20):
    """Write hits as a raw file, `times` after each other, and cluster the file in rounds, for each kind and size.

    ``seconds`` are those of reading, decoding, sorting, clustering and of all tables; whether every row is that of the
    offline table of the first repeat (``equal``) is compared while the clock stands still.
    """
    runs = []
    for kind in kinds:
        for hits in sizes:
            sys.stderr.write(f"streaming {times} times {hits:,} hits: {kind}\n")
            runs.append({"kind": kind, **_run(kind, hits, times, buffer)})
    parameters = {"rate": _RATE, "dt_max": DT_MAX, "disorder": DISORDER, "times": times, "buffer": buffer}
    return {"system": "repeated", "parameters": parameters, "machine": describe(), "runs": runs}


def _run(kind, hits, times, buffer):
    builder = EventBuilder(DT_MAX)
    words, offline = template(hits, _RATE, kind)
    table = cluster_table(offline, builder.fit(offline).labels_)
    period = period_of(offline)
    for _ in EventStream([words.tobytes()], builder, disorder=DISORDER, buffer=buffer):
        pass  # what is compiled or loaded once
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "hits.tpx3")
        with path.open("wb") as file:
            for k in range(times):
                later(words, k * period).tofile(file)
        stream = EventStream(_blocks(path), builder, disorder=DISORDER, buffer=buffer)
        tables, rows, equal, seconds = iter(stream), 0, True, 0.0
        while True:
            found = []
            seconds += seconds_of(lambda found=found: found.append(next(tables, None)))
            if found[0] is None:
                break
            equal = equal and same_rows(found[0], table, rows, period)
            rows += found[0].sizes["cluster"]
    counters = stream.counters
    return {
        "points": counters.hits_in,
        "clusters": rows,
        "mean_size": counters.hits_out / max(rows, 1),
        "late_hits": counters.late_hits,
        "largest_backlog": counters.largest_backlog,
        "seconds": seconds,
        "mhits_per_second": {"from disk": counters.hits_in / seconds / 1e6},
        "equal": bool(equal and rows == times * table.sizes["cluster"] and counters.hits_in == times * hits),
    }


def _blocks(path):
    """Yield the bytes of a file in blocks."""
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block
