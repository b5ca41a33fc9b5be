"""``--dry-run``: what a command would have to do, from the head of the file."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daskclust.cli._console import show
from daskclust.io.files import TEXT, check_file

if TYPE_CHECKING:
    import xarray as xr

    from daskclust.cli._job import Job
    from daskclust.core.run.plan import Cost

_HEAD = 1 << 16  # bytes of a text that tell the length of its lines
_WORD = 8  # bytes of a .tpx3 file for a hit
_NOT_TOLD = (".npz", ".root")  # how many points they have shows when they are read


def estimate(
    job: Job,
    reader: Callable[..., xr.Dataset],
    cost: Callable[[int, xr.Dataset | None], Cost],
    chunks: int | None,
    about: int = 1 << 20,
    *,
    in_windows: bool = False,
) -> None:
    """Show how many points there are, in how many chunks, how much memory they take, and about how long.

    A reader takes a path and `chunks`, and is lazy; `cost` gives what a point costs.
    """
    found = [_points(Path(str(source)), reader, chunks, about) for source in job.sources]
    (points, _, are), counts = found[0], [n for _, n, _ in found if n is not None]
    n = sum(counts) if len(counts) == len(found) else None
    facts: dict[str, Any] = {job.unit: n, "number_is": are}
    if n is not None:
        facts |= _of_points(job, n, points, cost(n, points), chunks or about, in_windows)
    show(facts, job.run.as_json, f"Dry run, nothing was done: {job.title}", quiet=job.run.quiet)


def _points(
    path: Path, reader: Callable[..., xr.Dataset], chunks: int | None, about: int
) -> tuple[xr.Dataset | None, int | None, str]:
    """Return the points where they can be opened lazily, their number, and where that is from."""
    from daskclust.io.rows import About

    suffix = path.suffix.lower()
    size = check_file(str(path)).st_size if suffix in (*TEXT, ".t3pa", ".tpx3", *_NOT_TOLD) else 0
    if suffix == ".tpx3":
        return None, size // _WORD, "at most as many, from the size of the file"
    if suffix in _NOT_TOLD:
        return None, None, f"not told by the head of a {suffix} file"
    if suffix in (*TEXT, ".t3pa"):
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
        lines = round(size * head.count(b"\n") / len(head)) - 1  # one has the names
        return None, max(0, lines), "about as many, from the size of the file and its first lines"
    points = reader(path, chunks=chunks or About(about))
    return points, next(size for name, size in points.sizes.items() if name != "channel"), "as the file tells"


def _of_points(job: Job, n: int, points: xr.Dataset | None, cost: Cost, about: int, in_windows: bool) -> dict[str, Any]:
    """Return chunks, memory and time for so many points."""
    run, unit = job.run, job.unit.removesuffix("s")
    threads = run.workers or (1 if run.scheduler else len(os.sched_getaffinity(0)))
    sizes = next(iter(points.chunks.values()), ()) if points is not None else ()
    rows = n if not (run.is_on_dask or in_windows) else max(sizes) if sizes else min(n, about)
    facts = {
        "chunks": math.ceil(n / rows) if rows else 0,
        "points_per_chunk": rows,
        "bytes_per_point": round(cost.size),
        "memory_bytes": round(rows * cost.size),
    }
    if run.cuda:
        return facts | {"basis": "the time on a GPU is not estimated"}
    where = f"on {threads} thread{'s' * (threads > 1)}" + ", to be divided by the scheduler's" * bool(run.scheduler)
    basis = (
        f"the time is an estimate {where}, from {cost.seconds * 1e9:,.0f} ns a {unit} measured on one thread of a "
        "server's CPU; it is more where points have many neighbours, and without reading, writing and compiling"
    )
    return facts | {"seconds_estimated": float(f"{n * cost.seconds / threads:.3g}"), "basis": basis}
