"""``daskclust clue``."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from daskclust.cli._estimate import KEYS, estimate
from daskclust.cli._job import Job, Running
from daskclust.cli._options import Chunks, Naming, Output, Table, clustering, names, number_of, reading, running

if TYPE_CHECKING:
    import xarray as xr

logger = logging.getLogger(__name__)

_WITHOUT = {
    "energy": "no energy column: every hit weighs 1",
    "layer": "no layer column: all hits are on one layer",
}

MANUAL = f"""
Reads
  FILE            CSV or text, Parquet, HDF5, ROOT (file.root:tree), .npy, .npz
  x, y            position, cm, to which --units x=mm,y=mm converts, as all lengths; also pos_x, and all of these
                  names with one prefix, as rechit_x, rechit_layer
  layer           optional, whole number: hits of two layers are never neighbours
  energy          optional, GeV, the weight; also e, edep, weight. Without one each hit weighs 1

Writes
  -o              the hits in their order, all columns of FILE, and:
  label           number of the cluster, from 0; noise -1
  density, delta  energy within dc of the hit, GeV; distance to the nearest hit of higher density, cm; inf: none
  nearest_higher  row of that hit, from 0; none -1
  is_seed         whether the hit is the seed of a cluster
  --table         a row for each cluster: size, energy (GeV), x, y, z with _rms, _min, _max, and rms (cm), layer, seed
                  (its row in -o) with x_seed, y_seed, z_seed (cm), cluster (the label)

Keys of --json
  hits, clusters, noise     numbers of hits, clusters, hits in none
  seconds, seconds_compiling    time without compiling kernels, and that of compiling, s
  seconds_starting, seconds_reading, seconds_clustering, seconds_table, seconds_writing    with --verbose, s
  hits_per_second           with --verbose: hits by seconds
  output, table             files that were written
  reason                    why there are no clusters, where there are none{KEYS}

Examples
  # hits of a file, with their clusters
  daskclust clue hits.csv --dc 1.3 --rhoc 5 -o clusters.parquet
  # your own names of columns, millimetres that become cm, a table of clusters
  daskclust clue my.csv --columns px=x,py=y,E=energy --units x=mm,y=mm --dc 2 --rhoc 1 --table t.csv
  # in eta and phi, which wraps around
  daskclust clue hits.csv --dc 0.1 --rhoc 5 --coordinates eta,phi --wrap phi=6.283185307
"""


def clue(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="Hits of a calorimeter: .csv, .parquet, .h5, .root, .npz ...")
    ],
    *,
    dc: Annotated[float, clustering("Radius of the local density, in the coordinates' unit.")],
    rhoc: Annotated[str, clustering("Least density of a seed, in energy's unit; or a column.")],
    delta_c: Annotated[float | None, clustering("Least distance of a seed from higher density.", default="dc")] = None,
    delta_o: Annotated[
        float | None, clustering("Least distance of an outlier from higher density.", default="delta-c")
    ] = None,
    kernel: Annotated[
        Literal["flat", "gaussian", "exponential"],
        clustering("Weight of neighbours: flat, gaussian, exponential.", metavar="NAME"),
    ] = "flat",
    neighbor_weight: Annotated[float, clustering("Of neighbours, flat kernel: 0.5 in CMSSW.")] = 1.0,
    wrap: Annotated[
        list[str] | None,
        clustering("Period of an axis, phi=6.283; repeatable.", metavar="TEXT", default="open"),
    ] = None,
    coordinates: Annotated[str | None, reading("Columns of the axes, e.g. eta,phi; 1 to 4.", default="x,y")] = None,
    file: Naming,
    output: Output = None,
    table: Table = None,
    partition: Annotated[
        Literal["auto", "layers", "space", "chunks"],
        running("How --workers divide the hits: auto, layers, space or chunks (as they come).", metavar="NAME"),
    ] = "auto",
    chunks: Chunks = None,
    run: Running,
) -> None:
    """Cluster calorimeter hits with CLUE.

    Seeds are hits of high density, far from any of higher density; other hits follow the nearest one of higher density.
    """
    from daskclust.clue.plan import CluePlan
    from daskclust.core.data.checks import axis_periods
    from daskclust.io import read_hits
    from daskclust.properties import cluster_table

    job = Job("CLUE", "hits", path, run, {"-o": output, "--table": table})
    density, axes = number_of(rhoc), names(coordinates)
    parameters: dict[str, Any] = {
        "dc": dc,
        "rhoc": rhoc if density is None else float(density),
        "delta_c": delta_c,
        "delta_o": delta_o,
        "kernel": kernel,
        "neighbor_weight": neighbor_weight,
        "coordinates": axes,
        "wrap": dict(map(_period, wrap or [])) or None,
        "partition": partition,
    }
    axis_periods(parameters["wrap"], axes or ("x", "y"))  # refused before anything is read
    naming = file.naming(rhoc=parameters["rhoc"], coordinates=axes)
    if run.dry_run:
        estimate(job, partial(read_hits, **naming), lambda *_: CluePlan.cost, chunks)
        return
    with job.started():
        hits = job.read(read_hits, chunks, **naming)
        result = job.cluster(hits, "clue", parameters)
        words = [said for name, said in _WITHOUT.items() if name not in hits]
        if words and result["label"].size and not run.quiet:
            logger.warning("%s", "; ".join(words))
        job.summary = {
            "hits": int(result["label"].size),
            "clusters": int(result["is_seed"].sum()),
            "noise": int((result["label"] < 0).sum()),
        }
        job.none("clusters", lambda: _why(result, rhoc, density))
        if 2 * job.summary["clusters"] > job.summary["hits"] > 1:
            unit = result[(axes or ("x",))[0]].attrs.get("units", "the unit of the file")
            job.summary["reason"] = f"few hits are within dc {dc:g} {unit} of another: are --units and --dc right?"
        job.save(result, output)
        if table is not None:
            weight, count = "energy" if "energy" in result else None, job.summary["clusters"]
            clusters = job.table(lambda: cluster_table(result, weight=weight, n_clusters=count))
            job.save(clusters, table)
    job.show(output=output, table=table)
    of_axes = ["--coordinates", coordinates] if coordinates else []
    job.next(output, "clue", *of_axes, reading=file.words)


def _why(result: xr.Dataset, rhoc: str, number: float | None) -> str:
    """Return why no hit is a seed: one of the highest density, if it had that of a seed, would be."""
    largest = result["density"].max()
    if number is None:
        return f"no density reaches that of its hit in the column {rhoc}; the largest density is {float(largest):.6g}"
    return f"rhoc {number:g} exceeds the largest density, {float(largest):.6g}"


def _period(text: str) -> tuple[str, float]:
    axis, _, period = text.partition("=")
    try:
        return axis.strip(), float(period)
    except ValueError:
        raise ValueError(f"--wrap must be AXIS=PERIOD, e.g. phi=6.283185307, got {text!r}") from None
