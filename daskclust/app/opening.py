"""Files of any field as a data set, and the Python line that opens them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from daskclust.core.data.files import HDF5, PARQUET, TEXT, check_file
from daskclust.core.data.quote import listed
from daskclust.io.particles.snapshot import is_snapshot
from daskclust.io.schema import Columns

_OF_FIELD = {"events": "timepix", "fof": "particles", "dbscan": "particles", "clue": "calorimeter"}
_PARTICLES = (".arborx", ".zarr")
_TABLES = (*TEXT, *PARQUET)


def open_file(
    path: Path,
    system: str | None = None,
    columns: Columns | None = None,
    units: Mapping[str, str] | None = None,
    coordinates: Sequence[str] | None = None,
) -> tuple[xr.Dataset, *tuple[str, ...]]:
    """Return the points of a file in memory, and the lines that read them; `coordinates` become ``x``, ``y``, ``z``."""
    if not path.is_dir():
        check_file(str(path))
    chosen = {name: value for name, value in (("columns", columns), ("units", units)) if value is not None}
    name, options = _reader(path, system, chosen)
    if chosen and name not in ("read_hits", "open_particles"):
        raise ValueError(
            f"{' and '.join(chosen)} cannot be chosen of {path.name}, a file for daskclust.io.{name}; leave them out"
        )
    ds, line = _opened(path, system, name, options, is_bare=system is None and not chosen)
    if coordinates is None:
        return ds, line
    names, others = dict(zip(coordinates, ("x", "y", "z"), strict=False)), {"x", "y", "z"} - set(coordinates)
    if unknown := [each for each in coordinates if each not in ds.variables]:
        raise ValueError(f"coordinates names {unknown[0]!r}, which {path.name} does not have; it has {listed(ds)}")
    left_out = sorted(others & {str(each) for each in ds.variables})
    return ds.drop_vars(left_out).rename(names), line, f"ds = ds.drop_vars({left_out!r}).rename({names!r})"


def _opened(path: Path, system: str | None, name: str, options: dict[str, Any], *, is_bare: bool) -> Any:
    try:
        return _read(path, name, options)
    except ValueError:
        with contextlib.suppress(ValueError):
            if name == "open_fcs":  # values may be transformed already
                return _read(path, name, {"transform": None})
            if name == "read_hits" and is_bare and path.suffix.lower() in _TABLES:
                return _read(path, "read_cells", {})  # a table without positions may be one of cells
        raise


def _reader(path: Path, system: str | None, chosen: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    suffix = path.suffix.lower()
    if suffix in (".tpx3", ".t3pa"):
        return f"open_{suffix[1:]}", {}
    if suffix == ".fcs":
        return "open_fcs", {}
    if system == "hca" and suffix in (*_TABLES, ".bin"):
        return "read_cells", {}
    if suffix in _PARTICLES or (suffix in HDF5 and is_snapshot(path)):
        return "open_particles", {"chunks": None, **chosen}
    return "read_hits", {**({} if system is None else {"field": _OF_FIELD.get(system)}), **chosen}


def _read(path: Path, name: str, options: dict[str, Any]) -> tuple[xr.Dataset, str]:
    from daskclust import io

    ds = getattr(io, name)(path, **options)
    is_bare = name == "read_hits" and "field" not in options and not {"layer", "energy", "toa"} & set(ds.variables)
    if is_bare and "z" in ds.variables and ds.attrs.get("field") == "calorimeter":
        options = {**options, "field": "particles"}  # three coordinates and no layers: no hits of a calorimeter
        ds = io.read_hits(path, **options)
    given = "".join(f", {key}={value!r}" for key, value in options.items())
    return ds.compute(), f"ds = io.{name}({str(path)!r}{given})"
