"""Particles in zarr stores: a group with one array for each column, or one array for all."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from daskclust.core.data.quote import quoted
from daskclust.io.attrs import plain_attrs, stored_attrs
from daskclust.io.files import import_library, reading
from daskclust.io.particles.snapshot import COMPONENTS, KNOWN
from daskclust.io.rows import Rows, chunk_sizes, columns_in
from daskclust.io.schema import Naming, Table
from daskclust.io.tables.binary import Array, check_lengths, check_numbers, unnamed

_import_zarr = partial(import_library, "zarr", "zarr stores")

_MARKS = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")

# Rows of a chunk that is written: 4 MB for a column of float32.
_CHUNK_ROWS = 1 << 20


def is_zarr(path: str) -> bool:
    """Return whether a path is a zarr store on disk."""
    return os.path.isdir(path) and any(os.path.exists(os.path.join(path, mark)) for mark in _MARKS)


def read_zarr(path: str, naming: Naming, chunks: int | None, fill_missing: bool) -> Table:
    """Read the columns of a zarr store, of format 2 or 3; by default, chunks that are not there are an error."""
    root = _open(path)
    with reading(path, "zarr"):
        is_array, attrs = hasattr(root, "shape"), plain_attrs(dict(root.attrs))
        arrays = {} if is_array else {str(name): array for name, array in root.arrays()}
        units = {name: array.attrs.get("units") for name, array in arrays.items()}
    if is_array:
        rows = _rows(root, chunks)
        return replace(unnamed(_load(naming, "", root, rows, fill_missing), naming), attrs=attrs)
    columns = _columns(arrays)
    chosen = naming.choose(list(columns), named=True)
    check_lengths({ours: arrays[columns[name][0]].shape[0] for name, ours in chosen.items()}, path)
    members = list(dict.fromkeys(columns[name][0] for name in chosen))
    rows = _rows(arrays[members[0]], chunks) if members else None
    read = {member: _load(naming, member, arrays[member], rows, fill_missing) for member in members}
    found = {ours: read[columns[name][0]][columns[name][1]] for name, ours in chosen.items()}
    told = {ours: unit for name, ours in chosen.items() if isinstance(unit := units[columns[name][0]], str)}
    return Table(found, naming, told, attrs)


def _open(path: str) -> Any:
    """Return the root of a store: a group or an array."""
    zarr = _import_zarr()
    if not is_zarr(path):
        raise ValueError(f"{path} is not a zarr store: it has none of {', '.join(_MARKS)}; give a folder with one")
    with reading(path, "zarr"):
        return zarr.open(path, mode="r")


def _columns(arrays: dict[str, Any]) -> dict[str, tuple[str, int]]:
    """Return array and number of each column: arrays (n,), and those (n, 3) that snapshots have."""
    columns: dict[str, tuple[str, int]] = {}
    for name, array in arrays.items():
        if len(array.shape) == 1:
            columns[KNOWN.get(name, name)] = (name, 0)
        elif len(array.shape) == 2 and name in KNOWN:
            columns.update(
                {KNOWN[name] + axis: (name, k) for k, axis in zip(range(array.shape[1]), COMPONENTS, strict=False)}
            )
    return columns


def _rows(array: Any, chunks: int | None) -> Rows:
    """Return the rows of all chunks of columns, after the chunks of one array."""
    return None if chunks is None or not array.shape else chunk_sizes(chunks, [(array.shape[0], array.chunks[0])])


def _load(naming: Naming, member: str, array: Any, chunks: Rows, fill_missing: bool) -> list[Any]:
    """Return the columns of one array of a store."""
    path = naming.source
    what = f"array {quoted(member)} of {path}" if member else f"the array of {path}"
    remedy = naming.without(member) if member else "write the particles as rows"
    with reading(path, "zarr"):
        shape, dtype, packed = array.shape, np.dtype(array.dtype), {"scale_factor", "add_offset"} & set(array.attrs)
    check_numbers(shape, dtype, what, remedy)
    if packed:
        raise ValueError(f"{what} has packed values ({', '.join(sorted(packed))}); xarray.open_zarr unpacks them")
    here = os.path.abspath(path)
    read = partial(_read_rows, here, member, fill_missing)
    return columns_in(read, [os.path.join(here, member)], shape, dtype.newbyteorder("="), chunks)


def _read_rows(path: str, member: str, fill_missing: bool, start: int, stop: int) -> Array:
    """Return rows of one array of a store."""
    with reading(path, "zarr"):
        root = _import_zarr().open(path, mode="r")
        array = root[member] if member else root
    with reading(path, "zarr", f"rows {start} to {stop - 1}, counted from 0, of array {quoted(member)}"):
        found = np.asarray(array[start:stop])
    if not fill_missing:
        with reading(path, "zarr"):
            _check_filled(array, found, start)
    return found.astype(found.dtype.newbyteorder("="), copy=False)


def _check_filled(array: Any, found: Array, start: int) -> None:
    """Raise where some rows are not stored: with another fill value, zarr gives other numbers there."""
    fill = np.asarray(0 if array.fill_value is None else array.fill_value, found.dtype)
    if not ((found == fill) | (np.isnan(found) & np.isnan(fill))).any():
        return
    zarr = _import_zarr()
    other = replace(array.metadata, fill_value=fill.dtype.type(fill == 0))
    again = zarr.Array(zarr.AsyncArray(other, array.store_path))[start : start + len(found)]
    differs = ~((found == again) | (np.isnan(found) & np.isnan(again)))
    if differs.any():
        row, rows = start + int(np.argmax(differs.reshape(len(found), -1).any(axis=1))), array.chunks[0]
        first = row - row % rows
        what = f"array {quoted(array.path)}" if array.path else "the array"
        raise ValueError(
            f"{what} has no chunk of rows {first} to {min(first + rows, array.shape[0]) - 1} (counted from 0): it is "
            "lost or was never written, or all its values equal the fill value "
            f"{array.fill_value}, and the writer left it out, as zarr does without write_empty_chunks=True; write the "
            "store again, or give fill_missing=True to take the fill value there"
        )


def write_zarr(folder: Path, ds: xr.Dataset, dim: str) -> None:
    """Write variables as arrays of a group into an empty folder, which `xarray.open_zarr` opens too."""
    zarr = _import_zarr()
    plain = xr.Dataset(
        {
            str(name): (dim, v.data, {"units": v.attrs["units"]} if "units" in v.attrs else {})
            for name, v in ds.variables.items()
        },
        attrs=stored_attrs(ds, dim),
    )
    # Equal chunks, as the format wants them, each written by one task; empty ones too, or they would seem missing.
    plain = plain.chunk({dim: _CHUNK_ROWS})
    # With checksums: a damaged number would not show otherwise.
    checked = {"compressors": [zarr.codecs.ZstdCodec(level=0, checksum=True)]}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Cc]onsolidated metadata.*")
        plain.to_zarr(
            folder,
            mode="w",
            consolidated=False,
            write_empty_chunks=True,
            encoding=dict.fromkeys(plain.variables, checked),
        )
