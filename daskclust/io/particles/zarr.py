"""Particles in zarr stores: a group with one array for each column, or one array for all."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import xarray as xr

from daskclust.core.data.quote import quoted
from daskclust.io.attrs import plain_attrs, stored_attrs
from daskclust.io.particles.arrays import Array, Part, Stored, check_numbers
from daskclust.io.particles.plain import table_of
from daskclust.io.particles.snapshot import COMPONENTS, KNOWN
from daskclust.io.particles.zarr_chunks import check_chunks, check_codecs, check_parts
from daskclust.io.schema import Naming, Table
from daskclust.io.tables.binary import check_lengths, reading

_MARKS = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")

# Rows of a chunk that is written: 4 MB for a column of float32.
_CHUNK_ROWS = 1 << 20


def is_zarr(path: str) -> bool:
    """Return whether a path is a zarr store on disk."""
    return os.path.isdir(path) and any(os.path.exists(os.path.join(path, mark)) for mark in _MARKS)


def import_zarr() -> ModuleType:
    """Import zarr, or say what to install."""
    try:
        import zarr
    except ImportError as error:
        raise ImportError('zarr stores need zarr: pip install "daskclust[io]"') from error
    return zarr


def read_zarr(path: str, naming: Naming, chunks: int | None, fill_missing: bool) -> Table:
    """Read the columns of a zarr store, of format 2 or 3.

    Parameters
    ----------
    path : str
        Its folder.
    naming : Naming
        Which arrays become which variables.
    chunks : int or None
        Rows per chunk of lazy columns; None reads at once.
    fill_missing : bool
        Whether chunks that are not there have the fill value.

    Returns
    -------
    Table
        Columns, the ``units`` attributes of the arrays, and the attributes of the store.

    Raises
    ------
    ImportError
        Without zarr.
    ValueError
        For damaged stores, arrays of other shapes or of packed values, and chunks that are not there.
    """
    root = _open(path)
    if hasattr(root, "shape"):
        with reading(path, "zarr"):
            attrs = plain_attrs(dict(root.attrs))
        return replace(table_of(_stored(path, "", root, fill_missing), naming, chunks), attrs=attrs)
    with reading(path, "zarr"):
        arrays = {str(name): array for name, array in root.arrays()}
        attrs = plain_attrs(dict(root.attrs))
        units = {name: dict(array.attrs).get("units") for name, array in arrays.items()}
    columns = _columns(arrays)
    chosen = naming.choose(list(columns), named=True)
    with reading(path, "zarr"):
        lengths = {ours: arrays[columns[name][0]].shape[0] for name, ours in chosen.items()}
    check_lengths(lengths, path)
    read: dict[str, list[Any]] = {}
    found: dict[str, Any] = {}
    told: dict[str, str] = {}
    for name, ours in chosen.items():
        member, column = columns[name]
        if member not in read:
            read[member] = _stored(path, member, arrays[member], fill_missing).columns(chunks)
        found[ours] = read[member][column]
        unit = units[member]
        if isinstance(unit, str):
            told[ours] = unit
    return Table(found, naming, told, attrs)


def _open(path: str) -> Any:
    """Return the root of a store: a group or an array."""
    zarr = import_zarr()
    if not is_zarr(path):
        raise ValueError(f"{path} is no zarr store: it has none of {', '.join(_MARKS)}; give the folder that has one")
    with reading(path, "zarr"):
        check_codecs(path)
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


def _stored(path: str, member: str, array: Any, fill_missing: bool) -> Stored:
    """Return one array of a store, if it can be read and is complete."""
    what = f"array {quoted(member)} of {path}" if member else f"the array of {path}"
    remedy = f"leave it out with columns={{{quoted(member)}: None}}" if member else "write the particles as rows"
    with reading(path, "zarr"):
        shape, dtype, packed = array.shape, np.dtype(array.dtype), {"scale_factor", "add_offset"} & set(array.attrs)
        check_chunks(array, os.path.join(path, member), fill_missing)
    width = check_numbers(shape, dtype, what, remedy)
    if packed:
        raise ValueError(f"{what} has packed values ({', '.join(sorted(packed))}); xarray.open_zarr unpacks them")
    read = partial(_zarr_rows, fill_missing=fill_missing)
    return Stored(read, (Part(path, member, shape[0]),), width, dtype.newbyteorder("="))


def _zarr_rows(path: str, member: str, start: int, stop: int, *, fill_missing: bool) -> Array:
    """Return rows of one array of a store."""
    with reading(path, "zarr"):
        root = import_zarr().open(path, mode="r")
        array = root[member] if member else root
        check_parts(array, os.path.join(path, member), start, stop, fill_missing)
    try:
        return np.asarray(array[start:stop])
    except Exception:  # of almost any class, and it does not tell the chunk
        with reading(path, "zarr", f"{_damaged(array, start, stop)} of array {quoted(member)}"):
            raise


def _damaged(array: Any, start: int, stop: int) -> str:
    """Return which chunk is the first that cannot be read, of those that have rows start to stop."""
    rows = array.chunks[0]
    for k in range(start // rows, -(-stop // rows)):
        first, end = k * rows, min((k + 1) * rows, array.shape[0])
        try:
            array[first:end]
        except Exception:
            return f"chunk {k} (rows {first} to {end - 1}, counted from 0)"
    return f"rows {start} to {stop - 1}, counted from 0,"


def write_zarr(folder: Path, ds: xr.Dataset, dim: str) -> None:
    """Write variables as arrays of a group, which `xarray.open_zarr` opens too.

    Parameters
    ----------
    folder : Path
        Where to write; it is empty.
    ds : xarray.Dataset
        Variables along one dimension, numpy or dask.
    dim : str
        Its dimension.

    Raises
    ------
    ImportError
        Without zarr.
    """
    import_zarr()
    plain = xr.Dataset(
        {
            str(name): (dim, v.data, {"units": v.attrs["units"]} if "units" in v.attrs else {})
            for name, v in ds.variables.items()
        },
        attrs=stored_attrs(ds, dim),
    )
    # Equal chunks, as the format wants them, each written by one task; empty ones too, or they would seem missing.
    plain = plain.chunk({dim: _CHUNK_ROWS})
    encoding = {name: _checked() for name in plain.variables}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Cc]onsolidated metadata.*")
        plain.to_zarr(folder, mode="w", consolidated=False, write_empty_chunks=True, encoding=encoding)


def _checked() -> dict[str, Any]:
    """Return the encoding of arrays whose chunks have checksums: a damaged number would not show otherwise."""
    codecs = import_zarr().codecs
    if hasattr(codecs, "ZstdCodec"):
        return {"compressors": [codecs.ZstdCodec(level=0, checksum=True)]}
    return {"compressor": codecs.Zstd(level=0, checksum=True)}  # before zarr 3
