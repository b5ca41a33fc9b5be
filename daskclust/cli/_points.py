"""What ``daskclust dbscan`` and ``daskclust fof`` share: points of many kinds of files, and periodic boxes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daskclust.cli._options import CLUSTERING, READING, columns_of, units_of
from daskclust.core.data.files import check_file

if TYPE_CHECKING:
    import xarray as xr

WRITABLE = (".parquet", "(.pq)", ".csv", ".h5", "(.hdf5)", ".npz", ".zarr")
_PARTICLES = (".parquet", ".pq", ".npy", ".zarr", ".arborx", ".bin")
_HDF5 = (".hdf5", ".h5")

FORMATS = "snapshots (HDF5 of Gadget, AREPO, EAGLE, SWIFT), Parquet, CSV, HDF5, NumPy, zarr, ArborX, ROOT"
Type = Annotated[
    str,
    typer.Option(help="Which particles of a snapshot: gas, dm, stars, bh, or a number.", rich_help_panel=READING),
]
FillMissing = Annotated[
    bool,
    typer.Option(
        "--fill-missing",
        help="Take the fill value for chunks that a zarr store does not have, which are an error else.",
        rich_help_panel=READING,
    ),
]
Box = Annotated[
    str | None,
    typer.Option(
        help="Period of the axes, or of each: 100 or 100,100,none; none: open. Unit of the coordinates.  "
        "\\[default: the file's, or open]",
        rich_help_panel=CLUSTERING,
    ),
]


def box_of(text: str | None) -> Any:
    """Return the period of all axes or of each, None for open ones, ... for that of the file."""
    if text is None:
        return ...
    from daskclust.core.data.checks import check_positive

    try:
        sides = [None if side.strip().lower() == "none" else float(side) for side in text.split(",")]
    except ValueError:
        raise ValueError(f"--boxsize must be a number, or one for each axis, or none, got {text!r}") from None
    for side in sides:
        if side is not None:
            check_positive("--boxsize", side)
    return sides[0] if len(sides) == 1 else sides


def in_box(particles: xr.Dataset, box: Any) -> xr.Dataset:
    """Return particles in a box of `box_of`, for catalogues, too: 0 is an open axis there, ... the file's box."""
    if box is ...:
        return particles
    axes = [axis for axis in "xyz" if axis in particles.variables]
    if isinstance(box, list) and len(box) != len(axes):
        raise ValueError(f"--boxsize must be one number or one for each of {', '.join(axes)}, got {_words(box)}")
    attrs = {name: value for name, value in particles.attrs.items() if name not in ("boxsize", "boxsize_units")}
    if box is not None:
        attrs["boxsize"] = [side or 0.0 for side in box] if isinstance(box, list) else box
    return particles.drop_attrs(deep=False).assign_attrs(attrs)


def _words(box: list[float | None]) -> str:
    return ",".join("none" if side is None else f"{side:g}" for side in box)


def open_points(
    path: Path,
    particle_type: str,
    columns: str | None,
    units: str | None,
    chunks: int | None,
    fill_missing: bool,
    needs: dict[str, list[str]] | None = None,
) -> xr.Dataset:
    """Return the points of a file, lazy with `chunks`."""
    from daskclust import io

    suffix = path.suffix.lower()
    given: dict[str, Any] = {"columns": columns_of(columns), "units": units_of(units), "chunks": chunks}
    given["needs"] = needs
    if suffix in _PARTICLES or path.is_dir() or (suffix in _HDF5 and _is_snapshot(path)):
        kind = int(particle_type) if particle_type.isdecimal() else particle_type
        return io.open_particles(path, particle_type=kind, fill_missing=fill_missing, **given)
    return io.read_hits(path, field="particles", **given)


def _is_snapshot(path: Path) -> bool:
    """Return whether an HDF5 file is not one of plain columns; of damaged files, too, readers tell more."""
    try:
        import h5py  # type: ignore[import-untyped,unused-ignore]

        check_file(str(path))  # a pipe would be waited for
        with h5py.File(path, "r") as file:
            return "Header" in file
    except (ImportError, OSError, ValueError):
        return True


def count(label: xr.DataArray) -> int:
    """Return the number of clusters."""
    return int(label.max()) + 1 if label.size else 0


def write_points(data: xr.Dataset, path: Path) -> None:
    """Write points, or a table of them."""
    from daskclust.io import write_hits, write_particles

    (write_particles if path.suffix == ".zarr" else write_hits)(data, path)
