"""``daskclust dbscan``, ``fof`` and ``hdbscan``: points of many kinds of files, and periodic boxes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from daskclust.cli._estimate import estimate
from daskclust.cli._job import Job
from daskclust.cli._options import (
    Axes,
    Box,
    Chunks,
    ColumnOptions,
    ParametersOf,
    box_of,
    clustering,
    file_argument,
    in_unit_of,
    names,
    quantity,
    reading,
    words_of,
)
from daskclust.cli._running import Running
from daskclust.core.data.quote import listed
from daskclust.io.files import HDF5, PARQUET, READABLE

if TYPE_CHECKING:
    import xarray as xr

logger = logging.getLogger(__name__)

_PARTICLES = (*PARQUET, ".npy", ".zarr", ".arborx", ".bin")
_AXES = ("x", "y", "z")
_MPC, _BOXES = ("Mpc/h", "Mpc"), (1e-2, 2e4)  # sides that simulations have
_OF_KINDS = "Points: a snapshot (.hdf5), .parquet, .csv, .npy, .zarr, .arborx, .root ..."

DBSCAN = """
  # a periodic box, ten neighbours
  daskclust dbscan snapshot.hdf5 --eps 0.2 --min-samples 10 --boxsize 100 -o labels.parquet
  # your own names of columns, in two dimensions
  daskclust dbscan places.csv --eps 5 --columns lon=x,lat=y --coordinates x,y
  # angles on a sphere
  daskclust dbscan places.csv --eps 0.5 --metric haversine --units degrees --columns lat=x,lon=y
"""

FOF = """
  # a catalogue of halos
  daskclust fof snapshot.hdf5 --b 0.2 --min-members 20 --table halos.parquet
  # particles with their halos, stars alone
  daskclust fof snapshot.hdf5 --linking-length 0.05 --particle-type stars -o stars.parquet
"""

HDBSCAN = """
  # clusters of 50 points and more
  daskclust hdbscan places.csv --min-cluster-size 50 -o labels.parquet
  # a periodic box, smooth densities, a table of clusters
  daskclust hdbscan snapshot.hdf5 --min-cluster-size 20 --min-samples 10 --boxsize 100 --table clusters.parquet
"""

_ANGLES = ("degrees", "radians")  # --units of a sphere
_METRICS = "haversine: angles of x, y = lat, lon or dec, ra, in --units degrees or radians."
Metric = Annotated[Literal["euclidean", "haversine"], clustering(_METRICS)]

_OPTIONS = (
    "min_cluster_size", "min_samples", "cluster_selection_method", "cluster_selection_epsilon", "max_cluster_size",
    "alpha", "allow_single_cluster",
)  # fmt: skip

_NOT_EXPLORED = {"max_cluster_size": None, "alpha": 1.0, "allow_single_cluster": False}  # the explorer has the defaults


# -------------------------------------------------------------------------------------------------------------- reading
@dataclass(frozen=True, kw_only=True)
class Reading(ColumnOptions):
    """Options of how points are read."""

    particle_type: Annotated[str, reading("Of a snapshot: gas, dm, stars, bh, or a number.")] = "dm"
    fill_missing: Annotated[bool, reading("Fill chunks that a zarr store lacks.", "--fill-missing")] = False

    def reader(self, paths: Sequence[Path], **needs: Any) -> Callable[..., xr.Dataset]:
        """Return what opens a file; options for particles are of no use for tables."""
        kind = int(self.particle_type) if self.particle_type.isdecimal() else self.particle_type
        naming = replace(self, units=self.units_of_columns).naming("particles", paths, **needs)

        def open_points(path: Path, chunks: int | None) -> xr.Dataset:
            from daskclust import io
            from daskclust.io.particles.snapshot import is_snapshot

            suffix = path.suffix.lower()
            if suffix in _PARTICLES or path.is_dir() or (suffix in HDF5 and is_snapshot(path)):
                how: dict[str, Any] = {"particle_type": kind, "fill_missing": self.fill_missing}
                return io.open_particles(path, chunks=chunks, **how, **naming)
            return io.read_hits(path, field="particles", chunks=chunks, **naming)

        return open_points

    @property
    def units_of_columns(self) -> str | None:
        """What --units says but of angles."""
        return None if self.units in _ANGLES else self.units

    def on_sphere(self, metric: str, is_table: bool) -> dict[str, Any]:
        """Return the parameters of angles, which --units may name; refuse what is for positions in space."""
        if metric != "haversine":
            if self.units in _ANGLES:
                raise ValueError(f"--units {self.units} is for --metric haversine; name a unit for each column: x=mm")
            return {"metric": metric}
        if is_table:
            raise ValueError("--table has positions in space, which --metric haversine has not; leave out one")
        return {"metric": metric, "units": self.units if self.units in _ANGLES else "radians"}

    def question(self, points: xr.Dataset) -> None:
        """Ask whether --units are right where they make a box larger than any simulation has, or smaller."""
        from daskclust.core.data.units import ratio

        box, unit = points.attrs.get("boxsize"), points["x"].attrs.get("units") if "x" in points else None
        by = next(filter(None, (ratio(unit, each) for each in _MPC)), None) if unit is not None else None
        sides = [float(side or 0) for side in (box if isinstance(box, list | tuple) else [box])]
        if self.units is None or by is None or not any(sides):
            return
        side = max(sides) * float(by)
        if not _BOXES[0] <= side <= _BOXES[1]:
            logger.warning(
                "the box has a side of %s Mpc%s: are --units right?", f"{side:,.6g}", "/h" * ("/h" in str(unit))
            )

    @property
    def words(self) -> list[str] | None:
        """The options with which the explorer reads the same points; it has none for particles of a type."""
        return words_of(self, ColumnOptions) if self.particle_type == "dm" else None


def _space_of(points: xr.Dataset, parameters: dict[str, Any]) -> tuple[tuple[str, ...], Any]:
    """Return the axes that points are clustered along, and the box in their unit, None where all are open."""
    from daskclust.accessor._results import points_of

    none = points.isel(dict.fromkeys(points.dims, slice(0)))
    found = points_of(none, parameters.get("coordinates"))
    return found.axes, found.box(parameters["boxsize"])


def _next(
    job: Job,
    points: xr.Dataset,
    parameters: dict[str, Any],
    file: Reading,
    system: str,
    shown: dict[str, Any],
    *how: str,
) -> None:
    """Say what shows the same clusters in the explorer, which has two or three axes, and neither weights nor hits."""
    axes, box = _space_of(points, parameters)
    if len(axes) not in (2, 3) or parameters.get("weight") is not None or {"layer", "toa"} & points.variables.keys():
        return
    if parameters.get("coordinates") is not None or axes != _AXES[: len(axes)]:
        shown = {"coordinates": ",".join(axes), **shown}
    sides = box if isinstance(box, list | tuple) else [box]  # which not every output tells
    words = ["--boxsize", ",".join(str(side or "none") for side in sides)] if any(sides) else []
    job.next(system, shown, *how, *words, reading=file.words)


# --------------------------------------------------------------------------------------------------------------- dbscan
def dbscan(
    paths: Annotated[list[Path], file_argument(_OF_KINDS, *_PARTICLES, *READABLE)],
    *,
    given: Annotated[dict[str, Any], ParametersOf("dbscan:DBSCAN", "eps", "min_samples", required=("eps",))],
    boxsize: Box = None,
    metric: Metric = "euclidean",
    weight: Annotated[str | None, clustering("Column of weights.", default="1 for each point")] = None,
    coordinates: Axes = None,
    file: Reading,
    run: Running,
    chunks: Chunks = None,
) -> None:
    """Cluster points with DBSCAN.

    Core points within --eps of each other are one cluster; points within --eps of a core point belong to it.
    """
    job = Job("DBSCAN", "points", paths, run)
    from daskclust.core.data.checks import check_distance, check_whole

    check_distance("eps", given["eps"])  # refused before anything else is imported
    check_whole("min_samples", given["min_samples"], 1, 10**308)
    from daskclust.core.merge.labels import count_clusters, count_true
    from daskclust.dbscan.plan import DbscanPlan

    axes, space = names(coordinates), file.on_sphere(metric, run.table is not None)
    parameters: dict[str, Any] = {**given, **space, "boxsize": box_of(boxsize), "coordinates": axes, "weight": weight}
    reader = file.reader(paths, coordinates=axes, weight=weight)
    if run.dry_run:
        plan = DbscanPlan(given["eps"], given["min_samples"], 1, (), weight is not None)
        estimate(job, reader, lambda *_: plan.cost, chunks)
        return
    with job.started():
        points = job.read(reader, chunks, "dbscan")
        file.question(points)
        given = in_unit_of(space.get("units") or points[(axes or ["x"])[0]].attrs.get("units"), given)
        parameters |= given
        _check_table(points, partial(_table, parameters=parameters), run)
        result = job.cluster(points, "dbscan", parameters, ["label", "is_core"])
        count, noise = count_clusters(result["label"].data)
        job.summary = {
            "points": int(result["label"].size),
            "clusters": count,
            "core_points": count_true(result["is_core"].data),
            "noise": noise,
        }
        job.none("clusters", lambda: _why_no_core(points, parameters))
        job.save_points(result, "dbscan", is_converted=file.units_of_columns is not None)
        job.table(lambda: _table(result, parameters))
    job.show()
    if metric == "euclidean":  # the explorer has no sphere
        _next(job, points, parameters, file, "dbscan", given)


def _check_table(points: xr.Dataset, make: Callable[[xr.Dataset], xr.Dataset], run: Running) -> None:
    """Make the table of no points, so that one that cannot be made is refused before the work."""
    import numpy as np

    if run.table is not None:
        none = points.isel(dict.fromkeys(points.dims, slice(0)))
        none = none.assign({name: each.copy(data=np.empty(0, each.dtype)) for name, each in none.variables.items()})
        make(none.assign(label=(list(none.dims), np.empty(0, np.int64))))


def _table(result: xr.Dataset, parameters: dict[str, Any]) -> xr.Dataset:
    """Return the table of clusters; in a box they may be across its faces."""
    from daskclust.core.data.checks import sides_of_box
    from daskclust.properties import cluster_table, halo_table

    weight = parameters.get("weight")
    axes, box = _space_of(result, parameters)
    if box is None:
        return cluster_table(result, weight=weight, coords=parameters["coordinates"])
    if len(axes) > len(_AXES):
        raise ValueError(
            f"--table in a box takes one to three --coordinates, got {','.join(axes)}; leave out --table, or give "
            "--boxsize none"
        )
    roles = dict(zip(_AXES, axes, strict=False))
    columns = {role: result[name] for role, name in roles.items()} | ({"mass": result[weight]} if weight else {})
    positions = result.drop_vars(_AXES, errors="ignore").assign(columns)
    table = halo_table(positions, boxsize=box, mass="mass" if weight else None, velocities=None)
    if twice := sorted((set(axes) - set(_AXES)) & table.variables.keys()):
        raise ValueError(f"the table would have {listed(twice)} twice; give the axis another name with --columns")
    table = table.rename(roles)
    sides = dict(zip(axes, sides_of_box(box, len(axes)), strict=True))
    # a file has its sides in the order of x, y, z
    return table.assign_attrs(boxsize=[sides[axis] for axis in sorted(axes)]) if any(sides.values()) else table


def _why_no_core(points: xr.Dataset, parameters: dict[str, Any]) -> str:
    """Return how many neighbours a point has at most: the density of CLUE, whose kernel is flat."""
    from daskclust.core.data.checks import sides_of_box

    least, eps = parameters["min_samples"], parameters["eps"]
    if parameters["metric"] != "euclidean":
        return f"min-samples {least} exceeds what every point has within eps {eps:g}"
    axes, box = _space_of(points, parameters)
    wrap = {axis: side for axis, side in zip(axes, sides_of_box(box, len(axes)), strict=True) if side}
    alone = {"coordinates": axes, "layer": None, "weight": parameters["weight"]}
    largest = points.clust.clue(eps, 1.0, wrap=wrap or None, **alone)["density"].max()
    what = "number of neighbours" if parameters["weight"] is None else "sum of weights"
    return f"min-samples {least} exceeds the largest {what} within eps {eps:g}, {float(largest):g}"


# ------------------------------------------------------------------------------------------------------------------ fof
def fof(
    paths: Annotated[list[Path], file_argument(_OF_KINDS, *_PARTICLES, *READABLE)],
    *,
    b: Annotated[float | None, clustering("Linking length over the mean separation: 0.2 usually.")] = None,
    linking_length: Annotated[
        float | None, clustering("Or the length itself, in the positions' unit.", parser=quantity, metavar="N[UNIT]")
    ] = None,
    given: Annotated[dict[str, Any], ParametersOf("dbscan:FriendsOfFriends", "min_members")],
    boxsize: Box = None,
    metric: Metric = "euclidean",
    file: Reading,
    run: Running,
    chunks: Chunks = None,
) -> None:
    """Find halos: friends-of-friends groups of particles.

    Particles closer than the linking length are friends; friends of friends are one halo. Give --b or --linking-length.
    """
    job = Job("Friends-of-friends", "particles", paths, run)
    if (b is None) == (linking_length is None):
        raise ValueError(f"got --b {b} and --linking-length {linking_length}; give one of them")
    from daskclust.core.data.checks import check_positive, check_whole

    check_positive(*(("--b", b) if linking_length is None else ("--linking-length", linking_length)))
    check_whole("min_members", given["min_members"], 1)  # refused before anything else is imported
    import numpy as np

    from daskclust.core.data.boxes import mean_separation
    from daskclust.core.data.checks import sides_of_box
    from daskclust.core.data.lazy import of_blocks
    from daskclust.core.merge.labels import count_clusters
    from daskclust.dbscan.plan import DbscanPlan
    from daskclust.properties import halo_table

    space = file.on_sphere(metric, run.table is not None)
    parameters = {"linking_length": linking_length, "b": b, **given, **space, "boxsize": box_of(boxsize)}
    reader = file.reader(paths)
    if run.dry_run:
        estimate(job, reader, lambda *_: DbscanPlan(1.0, 2, 2, ()).cost, chunks)
        return
    with job.started():
        particles = job.read(reader, chunks, "fof")
        file.question(particles)
        parameters = in_unit_of(space.get("units") or particles["x"].attrs.get("units"), parameters)
        linking_length = parameters["linking_length"]
        make_table = partial(halo_table, boxsize=parameters["boxsize"])
        _check_table(particles, make_table, run)
        result = job.cluster(particles, "fof", parameters, ["label"])
        label = result["label"]
        count, noise = count_clusters(label.data)
        axes, box = _space_of(particles, parameters)
        sides = sides_of_box(box, len(axes))
        separation = mean_separation(sides, label.size) if all(sides) and label.size else None
        job.summary = {
            "particles": int(label.size),
            "linking_length": label.attrs["linking_length"],
            "linking_length_units": label.attrs.get("linking_length_units"),
            **({"b": label.attrs["linking_length"] / separation} if separation else {}),
            "halos": count,
            "particles_in_halos": int(label.size) - noise,
        }
        job.none("halos", lambda: _why_no_halo(particles, parameters))
        job.save_points(result, "fof", is_converted=file.units_of_columns is not None)
        halos = job.table(partial(make_table, result, n_clusters=count))
        if halos is not None:
            job.summary["largest"] = int(of_blocks(partial(np.max, initial=0), halos["size"].data).max())
    job.show()
    if metric == "euclidean" and given["min_members"] > 1:  # the explorer's halos have two members at least
        _next(job, particles, parameters, file, "fof", {"b": b, "linking_length": linking_length, **given})


def _why_no_halo(particles: xr.Dataset, parameters: dict[str, Any]) -> str:
    """Return how many members the largest group has."""
    import numpy as np

    label = particles.clust.fof(**{**parameters, "min_members": 2})["label"]
    members = np.asarray(label.data)
    if not (members >= 0).any():
        return f"no two particles are within the linking length, {label.attrs['linking_length']:g}"
    largest = np.bincount(members[members >= 0]).max()
    return f"min-members {parameters['min_members']} exceeds the largest group, {largest}"


# ------------------------------------------------------------------------------------------------------------- hdbscan
def hdbscan(
    paths: Annotated[list[Path], file_argument(_OF_KINDS, *_PARTICLES, *READABLE)],
    *,
    given: Annotated[dict[str, Any], ParametersOf("hdbscan:HDBSCAN", *_OPTIONS)],
    boxsize: Box = None,
    coordinates: Axes = None,
    file: Reading,
    run: Running,
    chunks: Chunks = None,
) -> None:
    """Cluster points with HDBSCAN*, whatever their density.

    A cluster is what stays together over the longest range of distances. The same for any order of points.
    """
    job = Job("HDBSCAN*", "points", paths, run)
    from daskclust.core.data.checks import check_whole

    check_whole("min_cluster_size", given["min_cluster_size"], 2, clamp=True)  # before anything else is imported
    from daskclust.core.merge.labels import count_clusters

    axes = names(coordinates)
    file.on_sphere("euclidean", False)
    parameters: dict[str, Any] = {**given, "boxsize": box_of(boxsize), "coordinates": axes}
    reader = file.reader(paths, coordinates=axes)
    if run.dry_run:
        from daskclust.hdbscan.plan import TreePlan

        estimate(job, reader, lambda *_: TreePlan(1, 1, 1.0, ()).cost, chunks)
        return
    with job.started():
        points = job.read(reader, chunks, "hdbscan")
        file.question(points)
        given = in_unit_of(points[(axes or ["x"])[0]].attrs.get("units"), given)
        parameters |= given
        _check_table(points, partial(_table, parameters=parameters), run)
        result = job.cluster(points, "hdbscan", parameters, ["label"])
        label = result["label"]
        count, noise = count_clusters(label.data)
        job.summary = {"points": int(label.size), "clusters": count, "noise": noise}
        job.none("clusters", lambda: f"no {given['min_cluster_size']} points stay together apart from all others")
        job.save_points(result, "hdbscan", is_converted=file.units_of_columns is not None)
        job.table(lambda: _table(result, parameters))
    job.show()
    if any(given[name] != default for name, default in _NOT_EXPLORED.items()):
        return
    more = ["--min-samples", str(given["min_samples"] or given["min_cluster_size"])]
    explored = {name: given[name] for name in given if name not in ("min_samples", *_NOT_EXPLORED)}
    _next(job, points, parameters, file, "hdbscan", explored, *more)
