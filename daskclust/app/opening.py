"""Files of any field as a data set, and the Python line that opens them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import xarray as xr

from daskclust.core.data.files import HDF5, PARQUET, TEXT, check_file
from daskclust.io.particles.snapshot import is_snapshot
from daskclust.io.schema import Columns

_OF_FIELD = {"events": "timepix", "fof": "particles", "dbscan": "particles", "clue": "calorimeter"}
_PARTICLES = (".arborx", ".zarr")
_TABLES = (*TEXT, *PARQUET)


def open_file(path: Path, system: str | None = None, columns: Columns | None = None) -> tuple[xr.Dataset, str]:
    """Return the points of a file in memory, and the line that reads them."""
    if not path.is_dir():
        check_file(str(path))
    name, options = _reader(path, system, columns)
    if columns is not None and name != "read_hits":
        raise ValueError(f"columns cannot be chosen of {path.name}, a file for daskclust.io.{name}; leave them out")
    try:
        return _read(path, name, options)
    except ValueError:
        with contextlib.suppress(ValueError):
            if name == "open_fcs":  # values may be transformed already
                return _read(path, name, {"transform": None})
            if name == "read_hits" and system is columns is None and path.suffix.lower() in _TABLES:
                return _read(path, "read_cells", {})  # a table without positions may be one of cells
        raise


def _reader(path: Path, system: str | None, columns: Columns | None) -> tuple[str, dict[str, Any]]:
    suffix = path.suffix.lower()
    if suffix in (".tpx3", ".t3pa"):
        return f"open_{suffix[1:]}", {}
    if suffix == ".fcs":
        return "open_fcs", {}
    if system == "hca" and suffix in (*_TABLES, ".bin"):
        return "read_cells", {}
    if suffix in _PARTICLES or (suffix in HDF5 and is_snapshot(path)):
        return "open_particles", {"chunks": None}
    field = {} if system is None else {"field": _OF_FIELD.get(system)}
    return "read_hits", {**field, **({} if columns is None else {"columns": columns})}


def _read(path: Path, name: str, options: dict[str, Any]) -> tuple[xr.Dataset, str]:
    from daskclust import io

    ds = getattr(io, name)(path, **options)
    is_bare = name == "read_hits" and "field" not in options and not {"layer", "energy", "toa"} & set(ds.variables)
    if is_bare and "z" in ds.variables and ds.attrs.get("field") == "calorimeter":
        options = {**options, "field": "particles"}  # three coordinates and no layers: no hits of a calorimeter
        ds = io.read_hits(path, **options)
    given = "".join(f", {key}={value!r}" for key, value in options.items())
    return ds.compute(), f"ds = io.{name}({str(path)!r}{given})"
