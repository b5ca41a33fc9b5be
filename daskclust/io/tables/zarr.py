"""Particles in zarr stores: a group with one array for each column, or one array for all."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daskclust.core.data.quote import quoted
from daskclust.io.attrs import plain_attrs, stored_attrs
from daskclust.io.blocks import as_objects, as_text, in_memory
from daskclust.io.files import STORE, import_library, is_store, reads
from daskclust.io.rows import Stored
from daskclust.io.schema import COMPONENTS, KNOWN, Naming, Table
from daskclust.io.tables.binary import Array, no_numbers, table_of, unnamed

if TYPE_CHECKING:
    import xarray as xr

_import_zarr = partial(import_library, "zarr", "zarr stores")

# Rows of a chunk that is written: 4 MB for a column of float32.
_CHUNK_ROWS = 1 << 20


@reads("zarr")
def read_zarr(path: str, naming: Naming, chunks: int | None, fill_missing: bool) -> Table:
    """Read the columns of a zarr store, of format 2 or 3; by default, chunks that are not there are an error."""
    zarr = _import_zarr()
    if not is_store(path):
        raise ValueError(f"{path} is not a zarr store: it has none of {', '.join(STORE)}; give a folder with one")
    root = zarr.open(path, mode="r")
    attrs = plain_attrs(dict(root.attrs))
    if hasattr(root, "shape"):
        return unnamed(_stored(path, root, "", fill_missing), naming, chunks, attrs)
    columns: dict[str, tuple[Stored, int]] = {}
    for name, array in stored_arrays(path, fill_missing).items():
        if len(array.shape) == 1:
            columns[KNOWN.get(name, name)] = array, 0
        elif len(array.shape) == 2 and name in KNOWN:  # as snapshots have
            axes = zip(COMPONENTS, range(array.shape[1]), strict=False)
            columns |= {KNOWN[name] + axis: (array, k) for axis, k in axes}
    return table_of(columns, naming, chunks, attrs)


def stored_arrays(path: str, fill_missing: bool) -> dict[str, Stored]:
    """Return the arrays of the group of a store by name; none of a store that is one array."""
    root = _import_zarr().open(path, mode="r")
    arrays = () if hasattr(root, "shape") else sorted(root.arrays())  # a folder is in no order
    return {str(name): _stored(path, array, str(name), fill_missing) for name, array in arrays}


def _stored(path: str, array: Any, member: str, fill_missing: bool) -> Stored:
    what = f"array {quoted(member)} of {path}" if member else f"the array of {path}"
    shape, dtype, units = array.shape, np.dtype(array.dtype), array.attrs.get("units")
    fault = no_numbers(shape, dtype, what)
    if packed := {"scale_factor", "add_offset"} & set(array.attrs):
        fault = f"{what} has packed values ({', '.join(sorted(packed))}); xarray.open_zarr unpacks them, or "
    here, units = os.path.abspath(path), units if isinstance(units, str) else None
    read = partial(_read_rows, os.path.join(here, member) if member else here, fill_missing)
    own, of_it = array.chunks[0] if shape else None, f" of {quoted(member)}" if member else ""
    dtype = dtype.newbyteorder("=") if dtype.kind in "fiub" else np.dtype(object)
    return Stored(read, (here,), "zarr", shape, dtype, own, units, of_it, fault)


def _read_rows(path: str, fill_missing: bool, start: int, stop: int) -> Array:
    array = _import_zarr().open_array(path, mode="r")
    found = as_objects(np.asarray(array[start:stop]))
    if not fill_missing:
        _check_filled(path, array, found, start)
    return found


def _check_filled(path: str, array: Any, found: Array, start: int) -> None:
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
        raise ValueError(
            f"{path} has no chunk of rows {first} to {min(first + rows, array.shape[0]) - 1} (counted from 0): it is "
            f"lost or was never written, or all its values equal the fill value {array.fill_value}, and the writer "
            "left it out, as zarr does without write_empty_chunks=True; write the store again, or give "
            "fill_missing=True to take the fill value there"
        )


def write_zarr(folder: Path, ds: xr.Dataset, dim: str) -> None:
    """Write variables as arrays of a group into an empty folder, which `xarray.open_zarr` opens too."""
    import xarray as xr

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
    words = [name for name, v in ds.variables.items() if v.dtype.kind in "mMO"]  # in memory: xarray looks at text
    plain = plain.assign({name: (dim, as_text(in_memory(ds[name]).values).astype(object)) for name in words})
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
