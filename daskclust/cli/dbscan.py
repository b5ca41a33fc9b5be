"""``daskclust dbscan``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from daskclust.cli._frame import progress, show, write_all
from daskclust.cli._options import (
    CLUSTERING,
    OUTPUT,
    READING,
    Columns,
    Json,
    Quiet,
    Units,
    check_outputs,
    names,
    needs_of,
)
from daskclust.cli._points import WRITABLE, Box, FillMissing, Type, box_of, count, open_points, write_points
from daskclust.cli._running import Chunks, Cuda, MemoryLimit, Running, Scheduler, Workers

MANUALS = {
    "dbscan": """
Reads
  IN                            snapshots (HDF5 of Gadget, AREPO, EAGLE, SWIFT), Parquet, CSV, HDF5, NumPy,
                                zarr, ArborX, ROOT
  x, y, z                       position, in any unit: that of the first is that of EPS and --boxsize, and others
                                are converted to it. As many as the file has; --coordinates takes others
  any other                     is kept, and written again

Writes
  -o                            the points in their order, all columns of IN, and:
  label                         number of the cluster, from 0; noise -1: the labels of scikit-learn
  is_core                       whether the point has --min-samples neighbours, itself included

Keys of --json
  points, clusters              their numbers
  core_points, noise            numbers of core points, and of points in no cluster
  seconds                       time in all, s
  output                        the file that was written

Examples
  # points of a file, with their clusters
  $ daskclust dbscan points.csv 0.3 -o labels.parquet
  # a periodic box, ten neighbours
  $ daskclust dbscan snapshot.hdf5 0.2 --min-samples 10 --boxsize 100
  # your own names of columns, in two dimensions
  $ daskclust dbscan my.csv 5 --columns x=lon,y=lat --coordinates x,y
  # on four Dask workers, for a script
  $ daskclust dbscan points.parquet 0.3 --workers 4 --json
""",
}


def dbscan(
    path: Annotated[Path, typer.Argument(metavar="IN", help="Points: see Reads.")],
    eps: Annotated[
        float, typer.Argument(metavar="EPS", help="Largest distance of neighbours, in the unit of the coordinates.")
    ],
    min_samples: Annotated[
        int,
        typer.Option(
            help="Neighbours that make a core point, itself included; with --weight, the sum of their weights.",
            rich_help_panel=CLUSTERING,
        ),
    ] = 5,
    boxsize: Box = None,
    weight: Annotated[
        str | None,
        typer.Option(help="Column of weights.  \\[default: none, each point counts 1]", rich_help_panel=CLUSTERING),
    ] = None,
    coordinates: Annotated[
        str | None,
        typer.Option(
            help="Columns of the axes, e.g. x,y.  \\[default: x,y,z as far as there are]", rich_help_panel=READING
        ),
    ] = None,
    columns: Columns = None,
    units: Units = None,
    particle_type: Type = "dm",
    fill_missing: FillMissing = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Points with labels: .parquet, .csv, .h5, .npz or .zarr.", rich_help_panel=OUTPUT
        ),
    ] = None,
    workers: Workers = 0,
    cuda: Cuda = False,
    scheduler: Scheduler = None,
    memory_limit: MemoryLimit = None,
    chunks: Chunks = 1_000_000,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Cluster points with DBSCAN.

    Core points within EPS of each other are one cluster; points within EPS of a core point belong to it.
    """
    from daskclust.accessor import ClustAccessor
    from daskclust.core.data.checks import check_positive, check_whole

    began = time.perf_counter()
    running = Running(workers, cuda, scheduler, memory_limit)
    check_outputs(path, {"-o": output}, WRITABLE)
    check_positive("EPS", eps)
    check_whole("--min-samples", min_samples, 1)
    parameters: dict[str, Any] = {
        "min_samples": min_samples,
        "boxsize": box_of(boxsize),
        "coordinates": names(coordinates),
        "weight": weight,
    }
    with progress(f"clustering {path.name}", quiet=quiet) as work, running.cluster(work):
        work.read(path)
        points = open_points(
            path,
            particle_type,
            columns,
            units,
            running.chunks(chunks),
            fill_missing,
            needs_of(coordinates=parameters["coordinates"], weight=weight),
        )
        n = points.sizes["particle"]
        work.begin(f"clustering {n:,} points")
        found = ClustAccessor(running.give(points)).dbscan(eps, **parameters)
        wanted = found if output else found[["label", "is_core"]]
        result = running.results(wanted, points, f"clustering {path.name}", (n, "points"), work)
        label = result["label"]
        summary: dict[str, Any] = {
            "points": int(label.size),
            "clusters": count(label),
            "core_points": int(result["is_core"].sum()),
            "noise": int((label < 0).sum()),
        }
        write_all([(output, lambda target: write_points(result, target))], work)
    summary["seconds"] = round(time.perf_counter() - began, 3)
    if output is not None:
        summary["output"] = str(output)
    show(summary, as_json, f"DBSCAN: {path}", quiet=quiet)
