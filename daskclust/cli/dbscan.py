"""``daskclust dbscan`` and ``daskclust fof``."""

from __future__ import annotations

import time
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daskclust.cli._frame import check_outputs, cluster, progress, show

if TYPE_CHECKING:
    import xarray as xr

_WRITABLE = (".parquet", "(.pq)", ".csv", ".h5", "(.hdf5)", ".npz", ".zarr")
_PARTICLES = (".parquet", ".pq", ".npy", ".zarr", ".arborx", ".bin")
_HDF5 = (".hdf5", ".h5")

Input = Annotated[
    Path,
    typer.Argument(
        metavar="IN", help="Snapshot (HDF5 of Gadget, AREPO, EAGLE, SWIFT), Parquet, CSV, NumPy, zarr, ArborX, ROOT."
    ),
]
Type = Annotated[str, typer.Option(help="Which particles of a snapshot: gas, dm, stars, bh, or a number.")]
Columns = Annotated[str | None, typer.Option(help="Names of the columns of a file without names, e.g. x,y,z.")]
Box = Annotated[
    str | None,
    typer.Option(
        help="Period of the axes, or of each: 100 or 100,100,none; none: open.  \\[default: the file's, or open]"
    ),
]
Workers = Annotated[int, typer.Option(help="Dask workers; 0: in memory, on all cores.")]
Chunks = Annotated[int, typer.Option(help="Points a chunk, with --workers.")]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]


def dbscan(
    path: Input,
    eps: Annotated[float, typer.Argument(help="Largest distance of neighbours, in the unit of the coordinates.")],
    min_samples: Annotated[int, typer.Option(help="Neighbours that make a core point, itself included.")] = 5,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Points with labels: .parquet, .csv, .h5, .npz or .zarr.")
    ] = None,
    boxsize: Box = None,
    coordinates: Annotated[str | None, typer.Option(help="Columns, e.g. x,y.  \\[default: x,y,z]")] = None,
    weight: Annotated[str | None, typer.Option(help="Column whose sum is compared with --min-samples.")] = None,
    columns: Columns = None,
    particle_type: Type = "dm",
    workers: Workers = 0,
    chunks: Chunks = 1_000_000,
    as_json: Json = False,
) -> None:
    """Cluster points with DBSCAN.

    Labels are those of scikit-learn, and the same with any number of workers and chunks. Writes the points with label
    (noise -1) and is_core.
    """
    from daskclust.accessor import ClustAccessor
    from daskclust.core.checks import check_positive, check_whole

    began = time.perf_counter()
    check_outputs(path, {"-o": output}, _WRITABLE)
    check_positive("EPS", eps)
    check_whole("--min-samples", min_samples, 1)
    parameters: dict[str, Any] = {
        "min_samples": min_samples,
        "boxsize": _box(boxsize),
        "coordinates": _names(coordinates),
        "weight": weight,
    }
    with cluster(workers), progress(f"clustering {path.name}", quiet=as_json) as work:
        points = _open(path, particle_type, _names(columns), chunks if workers else None)
        result = ClustAccessor(points).dbscan(eps, **parameters)
        if workers:
            result = work.compute(result if output else result[["label", "is_core"]])
        label = result["label"]
        summary = {
            "points": int(label.size),
            "clusters": _count(label),
            "core_points": int(result["is_core"].sum()),
            "noise": int((label < 0).sum()),
        }
        _write(result, output)
    _finish(summary, began, {"output": output}, as_json, f"DBSCAN: {path}")


def fof(
    path: Input,
    b: Annotated[float | None, typer.Option(help="Linking length as a fraction of the mean separation.")] = None,
    linking_length: Annotated[float | None, typer.Option(help="Linking length, in the unit of the positions.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", "--table", help="Catalogue of halos: .parquet, .csv, .h5, .npz or .zarr."),
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="Also write the particles, with their labels.")] = None,
    min_members: Annotated[int, typer.Option(help="Members of a group at least; catalogues usually have 20.")] = 2,
    boxsize: Box = None,
    columns: Columns = None,
    particle_type: Type = "dm",
    workers: Workers = 0,
    chunks: Chunks = 1_000_000,
    as_json: Json = False,
) -> None:
    """Find halos: friends-of-friends groups of particles.

    Give --b (0.2 or 0.168 are usual) or --linking-length. The catalogue has a row for each halo: size, mass, centre,
    velocity, radii, angular momentum, axis ratios. The answer is the same with any number of workers and chunks.
    """
    from daskclust.accessor import ClustAccessor
    from daskclust.core.checks import check_positive, check_whole
    from daskclust.properties import halo_table

    began = time.perf_counter()
    check_outputs(path, {"-o": output, "--labels": labels}, _WRITABLE)
    if (b is None) == (linking_length is None):
        raise ValueError(f"give --b or --linking-length, and not both; got {b} and {linking_length}")
    check_positive(
        "--b" if linking_length is None else "--linking-length", b if linking_length is None else linking_length
    )
    check_whole("--min-members", min_members, 1)
    box = _box(boxsize)
    with cluster(workers), progress(f"finding halos of {path.name}", quiet=as_json) as work:
        particles = _open(path, particle_type, _names(columns), chunks if workers else None)
        if not isinstance(box, EllipsisType):
            particles = _with_box(particles, box)
        result = ClustAccessor(particles).fof(linking_length, b=b, min_members=min_members)
        if workers:
            result = work.compute(result if output or labels else result[["label"]])
        label = result["label"]
        summary: dict[str, Any] = {
            "particles": int(label.size),
            "linking_length": label.attrs["linking_length"],
            "halos": _count(label),
            "particles_in_halos": int((label >= 0).sum()),
        }
        if output is not None:
            table = halo_table(result)
            summary["largest"] = int(table["size"].max()) if table.sizes["cluster"] else 0
            _write(table, output)
        _write(result, labels)
    _finish(summary, began, {"output": output, "labels": labels}, as_json, f"Friends-of-friends: {path}")


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _box(text: str | None) -> Any:
    """Return the period of all axes or of each, None for open ones, ... for that of the file."""
    if text is None:
        return ...
    try:
        sides = [None if side.strip().lower() == "none" else float(side) for side in text.split(",")]
    except ValueError:
        raise ValueError(f"--boxsize must be a number, or one for each axis, or none, got {text!r}") from None
    return sides[0] if len(sides) == 1 else sides


def _with_box(particles: xr.Dataset, box: Any) -> xr.Dataset:
    """Return particles in another box; an open axis has 0 there, as in catalogues."""
    particles = particles.assign_attrs(boxsize=[side or 0.0 for side in box] if isinstance(box, list) else box)
    if box is None:
        del particles.attrs["boxsize"]
    return particles


def _open(path: Path, particle_type: str, columns: list[str] | None, chunks: int | None) -> xr.Dataset:
    """Return the points of a file, lazy with `chunks`."""
    from daskclust import io

    suffix = path.suffix.lower()
    if suffix in _PARTICLES or path.is_dir() or (suffix in _HDF5 and _is_snapshot(path)):
        kind = int(particle_type) if particle_type.isdecimal() else particle_type
        return io.open_particles(path, particle_type=kind, columns=columns, chunks=chunks)
    return io.read_hits(path, field="particles", columns=columns, chunks=chunks)


def _is_snapshot(path: Path) -> bool:
    """Return whether an HDF5 file is not one of plain columns; of damaged files, too, readers tell more."""
    try:
        import h5py  # type: ignore[import-untyped,unused-ignore]

        with h5py.File(path, "r") as file:
            return "Header" in file
    except (ImportError, OSError):
        return True


def _count(label: xr.DataArray) -> int:
    return int(label.max()) + 1 if label.size else 0


def _write(data: xr.Dataset, path: Path | None) -> None:
    from daskclust.io import write_hits, write_particles

    if path is not None:
        (write_particles if path.suffix == ".zarr" else write_hits)(data, path)


def _finish(summary: dict[str, Any], began: float, outputs: dict[str, Path | None], as_json: bool, title: str) -> None:
    summary["seconds"] = round(time.perf_counter() - began, 3)
    summary |= {name: str(path) for name, path in outputs.items() if path is not None}
    show(summary, as_json, title)
