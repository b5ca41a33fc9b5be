"""What dividing data costs: in chunks against all at once, and files that are larger than the memory of workers."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from daskclust.bench._report import check_kinds, table
from daskclust.bench._scaling_data import RATE, SYSTEMS, arrays_of, results_of
from daskclust.bench._timing import seconds_of
from daskclust.core.space.partition import block_sizes

FILES = {"fof": "zarr", "clue": "Parquet", "events": "raw .tpx3"}
"""Kinds of files that `bench_large` reads, by system."""

_CHUNKS = 10  # of points in memory
_ROWS = 1_000_000  # of a chunk of a file
_PART = 20_000_000  # hits that are made at once
_PAUSE = 0.2  # s between looks at workers


# -------------------------------------------------------------------------------------------------- against all at once
def bench_chunks(
    sizes: Sequence[int] = (10**7,), *, systems: Sequence[str] = SYSTEMS, repeats: int = 3
) -> dict[str, Any]:
    """Time systems in ten chunks on all cores of this process, in turn with all points at once.

    Parameters
    ----------
    sizes : sequence of int, default (10_000_000,)
        Numbers of points; of ``"hca"`` a tenth.
    systems : sequence of {"clue-space", "clue-layers", "events", "fof", "dbscan", "hca"}
        As of `bench_scaling`.
    repeats : int, default 3
        Pairs of runs after a warm-up, in which the answers are compared.

    Returns
    -------
    dict
        ``runs``: for each system and size ``memory_ms``, ``chunked_ms``, from arrays in memory to results in memory, in
        chunks if the points are; ``ratio``, the median over pairs; ``tasks``, ``longest_s``, and ``in_range``, the
        share of all tasks' time in those that took 0.1 to 2 s.

    Raises
    ------
    ValueError
        For unknown systems.
    RuntimeError
        Where the answers differ.
    """
    from daskclust.machine import describe

    check_kinds(systems, SYSTEMS)
    runs = [_against_memory(system, size, repeats) for system in systems for size in sizes]
    return {"system": "chunks", "device": "cpu", "parameters": {"chunks": _CHUNKS}, "machine": describe(), "runs": runs}


def _against_memory(system: str, points: int, repeats: int) -> dict[str, Any]:
    import dask
    import dask.array as da

    points = points // 10 if system == "hca" else points
    made = arrays_of(system, points, -(-points // _CHUNKS))
    arrays = dict(zip(made, dask.compute(*made.values()), strict=True))
    points = len(next(iter(arrays.values())))
    rows = -(-points // _CHUNKS)

    def lazy() -> Any:
        chunks = {name: (rows, *array.shape[1:]) for name, array in arrays.items()}
        given = {name: da.from_array(array, chunks=chunks[name], name=False) for name, array in arrays.items()}
        return results_of(system, given, points)[0].persist(scheduler="threads")

    def at_once() -> Any:
        return results_of(system, arrays, points)[0]

    if not np.array_equal(at_once(), lazy().compute()):
        raise RuntimeError(f"{system}: chunks of {points:,} points gave another answer; please report this")
    pairs = []
    for _ in range(repeats):
        with _tasks() as seconds:
            pairs.append((seconds_of(at_once), seconds_of(lazy)))
    in_range = sum(took for took in seconds if 0.1 <= took <= 2)
    return {
        "system": system,
        "points": points,
        "memory_ms": 1e3 * statistics.median(whole for whole, _ in pairs),
        "chunked_ms": 1e3 * statistics.median(chunked for _, chunked in pairs),
        "ratio": statistics.median(chunked / whole for whole, chunked in pairs),
        "tasks": len(seconds),
        "longest_s": max(seconds),
        "in_range": in_range / sum(seconds),
    }


@contextmanager
def _tasks() -> Iterator[list[float]]:
    """Give the list of the times of all tasks that dask's threads do meanwhile."""
    from dask.callbacks import Callback

    begun: dict[Any, float] = {}
    taken: list[float] = []

    def begin(key: Any, *_: Any) -> None:
        begun[key] = time.perf_counter()

    def end(key: Any, *_: Any) -> None:
        taken.append(time.perf_counter() - begun.pop(key))

    with Callback(pretask=begin, posttask=end):  # type: ignore[no-untyped-call,unused-ignore]
        yield taken


# ---------------------------------------------------------------------------------------- larger than workers' memory
def bench_large(
    sizes: Sequence[int] = (10**8,),
    *,
    systems: Sequence[str] = tuple(FILES),
    workers: int = 2,
    memory_limit: str | float = "1GiB",
    folder: Path | None = None,
) -> dict[str, Any]:
    """Cluster files on workers with less memory than the files need, and watch that memory.

    Parameters
    ----------
    sizes : sequence of int, default (100_000_000,)
        Numbers of points.
    systems : sequence of {"fof", "clue", "events"}
        Friends-of-friends of a zarr store, CLUE of a Parquet file, events of a raw Timepix3 file.
    workers : int, default 2
        Processes.
    memory_limit : str or float, default "1GiB"
        Of each.
    folder : Path, optional
        Where the files are made, for the time of the run; some 12 bytes a point. Default: the system's for such files.

    Returns
    -------
    dict
        ``runs``: for each system and size the ``file`` and its ``bytes``, ``seconds`` from opening it to labels on the
        workers, ``clusters``; most bytes of a worker's process, ``process_bytes``, in each quarter of the time, and
        most that were on disk at a time for lack of memory, ``spilled_bytes``, of all workers.

    Raises
    ------
    ValueError
        For unknown systems.
    """
    from daskclust.machine import describe

    check_kinds(systems, tuple(FILES))
    runs = []
    for system in systems:
        for size in sizes:
            with TemporaryDirectory(dir=folder) as place:
                path = _file_of(system, size, Path(place))
                stored = sum(file.stat().st_size for file in [path, *path.rglob("*")] if file.is_file())
                facts = {"system": system, "points": size, "file": FILES[system], "bytes": stored}
                runs.append(facts | _watched(system, path, workers, memory_limit))
    parameters = {"workers": workers, "memory_limit": memory_limit}
    return {"system": "large", "device": "cpu", "parameters": parameters, "machine": describe(), "runs": runs}


def _file_of(system: str, points: int, folder: Path) -> Path:
    """Make a file with the points of a system, and return its path."""
    import xarray as xr

    from daskclust import io

    if system == "events":
        return _raw_file(points, folder)
    X = arrays_of("clue-space" if system == "clue" else system, points, _ROWS, "space")["X"]
    dim, names = ("hit", "xy") if system == "clue" else ("particle", "xyz")
    ds = xr.Dataset({name: (dim, X[:, k]) for k, name in enumerate(names)})
    if system == "clue":
        io.write_hits(ds.assign(energy=(dim, X[:, 0] * 0 + 1)), folder / "hits.parquet")
        return folder / "hits.parquet"
    io.write_particles(ds.assign_attrs(boxsize=points ** (1 / 3)), folder / "box.zarr")
    return folder / "box.zarr"


def _raw_file(points: int, folder: Path) -> Path:
    """Write hits as a readout does, the same ones again and again where they are many."""
    from daskclust import io
    from daskclust.datasets import readout_order, timepix

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


def _clustered(system: str, path: Path) -> Any:
    """Return the lazy labels of a file."""
    from daskclust import io

    if system == "events":
        return io.open_tpx3(path, chunks=_ROWS).clust.events(200.0)["label"]
    if system == "clue":
        hits = io.read_hits(path, field="calorimeter", chunks=_ROWS)
        return hits.clust.clue(3.0, 8.0, delta_c=5.0, delta_o=5.0)["label"]
    return io.open_particles(path, chunks=_ROWS).clust.fof(0.2, min_members=20)["label"]


def _watched(system: str, path: Path, count: int, memory_limit: str | float) -> dict[str, Any]:
    """Cluster a file on workers, and return how long it took and what memory they had."""
    from distributed import wait

    from daskclust.workers import start

    kernels = {"fof": "dbscan"}.get(system, system)
    with start(count, memory_limit=memory_limit, warm=kernels) as client:
        looks: list[tuple[float, int, int]] = []
        done = threading.Event()

        def look() -> None:
            while not done.wait(_PAUSE):
                states = [worker.memory for worker in list(client.cluster.scheduler.workers.values())]
                now = time.perf_counter() - begin
                looks.append((now, max(m.process for m in states), sum(m.spilled for m in states)))

        begin = time.perf_counter()
        watch = threading.Thread(target=look)
        watch.start()
        try:
            labels = _clustered(system, path).persist()
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


# --------------------------------------------------------------------------------------------------------- the reports
def markdown(report: dict[str, Any]) -> str:
    """Return a report of either as a Markdown table."""
    if report["system"] == "chunks":
        head = ["system", "points", "at once (ms)", "chunked (ms)", "chunked / at once", "tasks", "longest (s)"]
        head.append("time in tasks of 0.1 to 2 s")
        return table(
            head,
            [
                (
                    run["system"], f"{run['points']:,}", f"{run['memory_ms']:.0f}", f"{run['chunked_ms']:.0f}",
                    f"{run['ratio']:.2f}", run["tasks"], f"{run['longest_s']:.2f}", f"{run['in_range']:.0%}",
                )
                for run in report["runs"]
            ],
        )  # fmt: skip
    head = ["system", "file", "points", "file (GB)", "seconds", "clusters", "most memory of a worker, by quarter (MB)"]
    head.append("most on disk (MB)")
    return table(
        head,
        [
            (
                run["system"], run["file"], f"{run['points']:,}", f"{run['bytes'] / 1e9:.2f}", f"{run['seconds']:.1f}",
                f"{run['clusters']:,}", ", ".join(f"{each / 1e6:.0f}" for each in run["process_bytes"]),
                f"{run['spilled_bytes'] / 1e6:.0f}",
            )
            for run in report["runs"]
        ],
        words=2,
    )  # fmt: skip
