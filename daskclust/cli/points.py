"""``daskclust dbscan`` and ``daskclust fof``: points of many kinds of files, and periodic boxes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daskclust.cli._estimate import KEYS, estimate
from daskclust.cli._job import Job, Running
from daskclust.cli._options import Box, Chunks, Naming, Output, Table, box_of, clustering, names, reading
from daskclust.core.data.files import HDF5, PARQUET

if TYPE_CHECKING:
    import xarray as xr

_PARTICLES = (*PARQUET, ".npy", ".zarr", ".arborx", ".bin")
_OF_KINDS = "Points: a snapshot (.hdf5), .parquet, .csv, .npy, .zarr, .arborx, .root ..."

DBSCAN = f"""
Reads
  FILE           snapshots (HDF5 of Gadget, AREPO, EAGLE, SWIFT), Parquet, CSV, HDF5, NumPy, zarr, ArborX, ROOT
  x, y, z        position, in any unit: that of the first is that of --eps and --boxsize, and others are converted to it

Writes
  -o             the points in their order, all columns of FILE, and:
  label          number of the cluster, from 0; noise -1: the labels of scikit-learn
  is_core        whether the point has --min-samples neighbours, itself included
  --table        a row for each cluster: cluster (the label), size, weights, x, y, z with _rms, _min, _max, and rms; in
                 a periodic box centres as of fof: x, y, z, r_rms, r_max, b_to_a, c_to_a

Keys of --json
  points, clusters, core_points, noise    their numbers; noise are points in no cluster
  seconds, seconds_compiling    time without compiling kernels, and that of compiling, s
  seconds_starting, seconds_reading, seconds_clustering, seconds_table, seconds_writing    with --verbose, s
  points_per_second                       with --verbose: points by seconds
  output, table                           files that were written
  reason                                  why there are no clusters, where there are none{KEYS}

Examples
  # a periodic box, ten neighbours
  daskclust dbscan snapshot.hdf5 --eps 0.2 --min-samples 10 --boxsize 100 -o labels.parquet
  # your own names of columns, in two dimensions
  daskclust dbscan places.csv --eps 5 --columns lon=x,lat=y --coordinates x,y
"""

FOF = f"""
Reads
  FILE           snapshots (HDF5 of Gadget, AREPO, EAGLE, SWIFT), Parquet, CSV, HDF5, NumPy, zarr, ArborX, ROOT
  x, y, z        position, in any unit, Mpc/h usually: that of x is that of --linking-length and --boxsize
  vx, vy, vz     optional, velocity, km/s usually
  mass           optional, in any unit; without it each particle has mass 1

Writes
  -o             the particles in their order, all columns of FILE, and label: the halo, from 0; none -1
  --table        the catalogue, a row for each halo, in the units of FILE:
  cluster, size, mass     label; number and mass of its members
  x, y, z, vx, vy, vz     centre of mass, mean velocity
  sigma_v, r_rms, r_max   dispersion of velocities; radii about the centre
  jx, jy, jz              angular momentum for each unit of mass, length times velocity
  b_to_a, c_to_a          ratios of the axes

Keys of --json
  particles, halos, particles_in_halos    their numbers
  linking_length    in the unit of the positions
  largest           members of the largest halo, with --table
  seconds, seconds_compiling    time without compiling kernels, and that of compiling, s
  seconds_starting, seconds_reading, seconds_clustering, seconds_table, seconds_writing    with --verbose, s
  particles_per_second       with --verbose: particles by seconds
  output, table              files that were written
  reason                     why there are no halos, where there are none{KEYS}

Examples
  # a catalogue of halos
  daskclust fof snapshot.hdf5 --b 0.2 --min-members 20 --table halos.parquet
  # particles with their halos, stars alone
  daskclust fof snapshot.hdf5 --linking-length 0.05 --particle-type stars -o stars.parquet
"""


# -------------------------------------------------------------------------------------------------------------- reading
@dataclass(frozen=True, kw_only=True)
class Reading(Naming):
    """Options of how points are read."""

    particle_type: Annotated[str, reading("Of a snapshot: gas, dm, stars, bh, or a number.")] = "dm"
    fill_missing: Annotated[bool, reading("Fill chunks that a zarr store lacks.", "--fill-missing")] = False

    def reader(self, **needs: Any) -> Callable[..., xr.Dataset]:
        """Return what opens a file; options for particles are of no use for tables."""
        kind = int(self.particle_type) if self.particle_type.isdecimal() else self.particle_type
        of_particles: dict[str, Any] = {"particle_type": kind, "fill_missing": self.fill_missing}
        naming = self.naming(**needs)

        def open_points(path: Path, chunks: int | None) -> xr.Dataset:
            from daskclust import io
            from daskclust.io.particles.snapshot import is_snapshot

            suffix = path.suffix.lower()
            if suffix in _PARTICLES or path.is_dir() or (suffix in HDF5 and is_snapshot(path)):
                return io.open_particles(path, chunks=chunks, **of_particles, **naming)
            return io.read_hits(path, field="particles", chunks=chunks, **naming)

        return open_points


# --------------------------------------------------------------------------------------------------------------- dbscan
def dbscan(
    path: Annotated[Path, typer.Argument(metavar="FILE", help=_OF_KINDS)],
    *,
    eps: Annotated[float, clustering("Largest distance of neighbours, in the unit of the coordinates.")],
    min_samples: Annotated[int, clustering("Neighbours of a core point, itself included, or weights.", min=1)] = 5,
    boxsize: Box = None,
    weight: Annotated[str | None, clustering("Column of weights.", default="1 for each point")] = None,
    coordinates: Annotated[
        str | None, reading("Columns of the axes, e.g. x,y.", default="x,y,z, those there are")
    ] = None,
    file: Reading,
    output: Output = None,
    table: Table = None,
    chunks: Chunks = None,
    run: Running,
) -> None:
    """Cluster points with DBSCAN.

    Core points within --eps of each other are one cluster; points within --eps of a core point belong to it.
    """
    from daskclust.core.data.checks import check_positive
    from daskclust.dbscan.plan import DbscanPlan

    job = Job("DBSCAN", "points", path, run, {"-o": output, "--table": table})
    parameters: dict[str, Any] = {
        "eps": check_positive("--eps", eps),
        "min_samples": min_samples,
        "boxsize": box_of(boxsize),
        "coordinates": names(coordinates),
        "weight": weight,
    }
    reader = file.reader(coordinates=parameters["coordinates"], weight=weight)
    if run.dry_run:
        plan = DbscanPlan(eps, min_samples, 1, (), weight is not None)
        estimate(job, reader, lambda *_: plan.cost, chunks)
        return
    with job.started():
        points = job.read(reader, chunks)
        result = job.cluster(points, "dbscan", parameters, None if output or table else ["label", "is_core"])
        job.summary = {
            "points": int(result["label"].size),
            "clusters": _count(result["label"]),
            "core_points": int(result["is_core"].sum()),
            "noise": int((result["label"] < 0).sum()),
        }
        job.none("clusters", lambda: _why_no_core(points, parameters))
        job.save(result, output)
        if table is not None:
            count = job.summary["clusters"]
            job.save(job.table(lambda: _table(result, parameters, count)), table)
    job.show(output=output, table=table)
    of_axes = ["--coordinates", coordinates] if coordinates else []
    of_box = ["--boxsize", boxsize] if boxsize else []
    job.next(output, "dbscan", *of_axes, reading=[*file.words, *of_box] if file.particle_type == "dm" else None)


def _table(result: xr.Dataset, parameters: dict[str, Any], count: int) -> xr.Dataset:
    """Return the table of clusters; in a box they may be across its faces."""
    from daskclust.properties import cluster_table, halo_table

    box, axes, weight = parameters["boxsize"], parameters["coordinates"], parameters["weight"]
    if axes is None and (result.attrs.get("boxsize") if box is ... else box) is not None:
        return halo_table(result, boxsize=box, mass=weight, velocities=None, n_clusters=count)
    return cluster_table(result, weight=weight, coords=axes, n_clusters=count)


def _why_no_core(points: xr.Dataset, parameters: dict[str, Any]) -> str:
    """Return how many neighbours a point has at most: the density of CLUE, whose kernel is flat."""
    least, eps, box = parameters["min_samples"], parameters["eps"], parameters["boxsize"]
    axes = parameters["coordinates"] or [name for name in ("x", "y", "z") if name in points]
    box = points.attrs.get("boxsize") if box is ... else box
    sides = box if isinstance(box, list | tuple) else [box] * len(axes)
    wrap = {axis: side for axis, side in zip(axes, sides, strict=True) if side}
    alone = {"coordinates": axes, "layer": None, "event": None, "weight": parameters["weight"]}
    largest = points.clust.clue(eps, 1.0, wrap=wrap or None, **alone)["density"].max()
    what = "number of neighbours" if parameters["weight"] is None else "sum of weights"
    return f"min-samples {least} exceeds the largest {what} within eps {eps:g}, {float(largest):g}"


# ------------------------------------------------------------------------------------------------------------------ fof
def fof(
    path: Annotated[Path, typer.Argument(metavar="FILE", help=_OF_KINDS)],
    *,
    b: Annotated[float | None, clustering("Linking length over the mean separation: 0.2 usually.")] = None,
    linking_length: Annotated[float | None, clustering("Or the length itself, in the positions' unit.")] = None,
    min_members: Annotated[int, clustering("Particles of a halo at least; often 20.", min=1)] = 2,
    boxsize: Box = None,
    file: Reading,
    output: Output = None,
    table: Table = None,
    chunks: Chunks = None,
    run: Running,
) -> None:
    """Find halos: friends-of-friends groups of particles.

    Particles closer than the linking length are friends; friends of friends are one halo. Give --b or --linking-length.
    """
    from daskclust.core.data.checks import check_positive
    from daskclust.dbscan.plan import DbscanPlan
    from daskclust.properties import halo_table

    job = Job("Friends-of-friends", "particles", path, run, {"-o": output, "--table": table})
    if (b is None) == (linking_length is None):
        raise ValueError(
            f"got --b {b} and --linking-length {linking_length}; give --b or --linking-length, and not both"
        )
    check_positive(*(("--b", b) if linking_length is None else ("--linking-length", linking_length)))
    parameters = {"linking_length": linking_length, "b": b, "min_members": min_members, "boxsize": box_of(boxsize)}
    reader = file.reader()
    if run.dry_run:
        estimate(job, reader, lambda *_: DbscanPlan(1.0, 2, 2, ()).cost, chunks)
        return
    with job.started():
        particles = job.read(reader, chunks)
        result = job.cluster(particles, "fof", parameters, None if output or table else ["label"])
        label = result["label"]
        job.summary = {
            "particles": int(label.size),
            "linking_length": label.attrs["linking_length"],
            "halos": _count(label),
            "particles_in_halos": int((label >= 0).sum()),
        }
        job.none("halos", lambda: _why_no_halo(particles, parameters))
        job.save(result, output)
        if table is not None:
            count = job.summary["halos"]
            halos = job.table(lambda: halo_table(result, boxsize=parameters["boxsize"], n_clusters=count))
            job.summary["largest"] = int(halos["size"].max()) if count else 0
            job.save(halos, table)
    job.show(output=output, table=table)
    of_box = ["--boxsize", boxsize] if boxsize else []
    job.next(output, "fof", reading=[*file.words, *of_box] if file.particle_type == "dm" else None)


def _why_no_halo(particles: xr.Dataset, parameters: dict[str, Any]) -> str:
    """Return how many members the largest group has."""
    import numpy as np

    label = particles.clust.fof(**{**parameters, "min_members": 2})["label"]
    members = np.asarray(label.data)
    if not (members >= 0).any():
        return f"no two particles are within the linking length, {label.attrs['linking_length']:g}"
    largest = np.bincount(members[members >= 0]).max()
    return f"min-members {parameters['min_members']} exceeds the largest group, {largest}"


def _count(label: xr.DataArray) -> int:
    return int(label.max()) + 1 if label.size else 0
