"""Cluster files on workers with less memory than the files need, and watch that memory.

    python docs/explanation/scaling/large.py large-cpu.json

makes the record of docs/benchmarks anew: friends-of-friends of a zarr store, CLUE of a Parquet file, events of a raw
Timepix3 file. ``--help`` lists the options.
"""

import argparse
import json
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import xarray as xr
from distributed import wait
from points import RATE, arrays_of

from daskclust import io
from daskclust.core.space.partition import block_sizes
from daskclust.datasets import readout_order, timepix
from daskclust.machine import describe
from daskclust.workers import start

FILES = {"fof": "zarr", "clue": "Parquet", "events": "raw .tpx3"}
_KERNELS = {"fof": "dbscan"}
_ROWS = 1_000_000  # of a chunk of a file
_PART = 20_000_000  # hits that are made at once
_PAUSE = 0.2  # s between looks at workers


def main(arguments=None):
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--cases", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--points", type=int, default=10**8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory-limit", default="1GiB", help="of each worker")
    parser.add_argument("--folder", type=Path, help="for the files, some 12 bytes a point; default: the system's")
    asked = parser.parse_args(arguments)
    runs = []
    for case in asked.cases:
        with TemporaryDirectory(dir=asked.folder) as folder:
            path = _file_of(case, asked.points, Path(folder))
            stored = sum(file.stat().st_size for file in [path, *path.rglob("*")] if file.is_file())
            facts = {"system": case, "points": asked.points, "file": FILES[case], "bytes": stored}
            runs.append(facts | _watched(case, path, asked.workers, asked.memory_limit))
    parameters = {"workers": asked.workers, "memory_limit": asked.memory_limit}
    report = {"system": "large", "device": "cpu", "parameters": parameters, "machine": describe(), "runs": runs}
    asked.output.write_text(json.dumps(report, indent=1) + "\n")


def _file_of(case, points, folder):
    """Make a file with points, and return its path."""
    if case == "events":
        return _raw_file(points, folder)
    X = arrays_of("clue-space" if case == "clue" else case, points, _ROWS, "slabs")["X"]
    dim, names = ("hit", "xy") if case == "clue" else ("particle", "xyz")
    ds = xr.Dataset({name: (dim, X[:, k]) for k, name in enumerate(names)})
    if case == "clue":
        io.write_hits(ds.assign(energy=(dim, X[:, 0] * 0 + 1)), folder / "hits.parquet")
        return folder / "hits.parquet"
    io.write_particles(ds.assign_attrs(boxsize=points ** (1 / 3)), folder / "box.zarr")
    return folder / "box.zarr"


def _raw_file(points, folder):
    """Write hits as a readout does, the same ones again and again where they are many."""
    hits = timepix(min(points, _PART), kind="pion45", rate=RATE, rng=3)
    hits = hits.isel(hit=readout_order(hits, rng=4))
    again = np.ceil((float(hits["toa"].max()) + 1e5) / 25.0) * 25.0  # ns, whole clocks of the chip
    with open(folder / "run.tpx3", "wb") as out:
        for k, count in enumerate(block_sizes(points, _PART)):
            part = hits.isel(hit=slice(count))
            io.write_tpx3(part.assign(toa=part["toa"] + k * again), folder / "part.tpx3")
            out.write((folder / "part.tpx3").read_bytes())
    (folder / "part.tpx3").unlink()
    return folder / "run.tpx3"


def _clustered(case, path):
    """Return the lazy labels of a file."""
    if case == "events":
        return io.open_tpx3(path, chunks=_ROWS).clust.events(200.0)["label"]
    if case == "clue":
        hits = io.read_hits(path, field="calorimeter", chunks=_ROWS)
        return hits.clust.clue(3.0, 8.0, delta_c=5.0, delta_o=5.0)["label"]
    return io.open_particles(path, chunks=_ROWS).clust.fof(0.2, min_members=20)["label"]


def _watched(case, path, workers, memory_limit):
    """Cluster a file; return ``seconds`` from opening it to labels on the workers, ``clusters``, and memory.

    ``process_bytes`` are the most bytes of a worker's process in each quarter of the time, ``spilled_bytes`` the most
    that were on disk at a time for lack of memory, of all workers.
    """
    with start(workers, memory_limit=memory_limit, warm=_KERNELS.get(case, case)) as client:
        looks, done = [], threading.Event()

        def look():
            while not done.wait(_PAUSE):
                states = [worker.memory for worker in list(client.cluster.scheduler.workers.values())]
                now = time.perf_counter() - begin
                looks.append((now, max(m.process for m in states), sum(m.spilled for m in states)))

        begin = time.perf_counter()
        watch = threading.Thread(target=look)
        watch.start()
        try:
            labels = _clustered(case, path).persist()
            wait(labels)
            seconds = time.perf_counter() - begin
        finally:
            done.set()
            watch.join()
        clusters = int(labels.max()) + 1
    quarters = [[most for now, most, _ in looks if k <= 4 * now / seconds < k + 1] for k in range(4)]
    return {
        "seconds": seconds,
        "clusters": clusters,
        "process_bytes": [max(quarter, default=0) for quarter in quarters],
        "spilled_bytes": max((spilled for _, _, spilled in looks), default=0),
    }


if __name__ == "__main__":
    main()
