"""Files with one array of numbers for all particles: NumPy's and ArborX's."""

from __future__ import annotations

import os
from typing import BinaryIO

import numpy as np
import xarray as xr

from daskclust.core.data.quote import quoted
from daskclust.io.blocks import blocks_of
from daskclust.io.fields import PARTICLES
from daskclust.io.particles.arrays import Array, Part, Stored, check_numbers
from daskclust.io.schema import Naming, Table
from daskclust.io.tables.binary import map_npy

_ARBORX_HEADER = np.dtype("<i4")
_ARBORX_VALUE = np.dtype("<f4")
_ARBORX_START = 2 * _ARBORX_HEADER.itemsize


def read_npy(path: str, naming: Naming, chunks: int | None) -> Table:
    """Read the columns of a ``.npy`` file, which is mapped: an array (n,) or (n, d), or a structured one."""
    array = map_npy(path)
    if array.dtype.names is None:
        remedy = "write the particles as rows, with their coordinates first"
        check_numbers(array.shape, array.dtype, f"the array of {path}", remedy)
        return table_of(_stored_npy(path, "", array), naming, chunks)
    names = list(array.dtype.names)
    chosen = naming.choose(names, named=True)
    columns = {}
    for name, ours in chosen.items():
        remedy = f"leave it out with columns={{{quoted(name)}: None}}"
        if check_numbers(array[name].shape, array[name].dtype, f"column {quoted(name)} of {path}", remedy) is not None:
            raise ValueError(f"column {quoted(name)} of {path} has shape {array[name].shape}, expected (n,); {remedy}")
        [columns[ours]] = _stored_npy(path, name, array[name]).columns(chunks)
    return Table(columns, naming)


def _stored_npy(path: str, member: str, array: Array) -> Stored:
    """Return an array of a ``.npy`` file."""
    width = array.shape[1] if array.ndim == 2 else None
    return Stored(_npy_rows, (Part(path, member, len(array)),), width, array.dtype.newbyteorder("="))


def _npy_rows(path: str, member: str, start: int, stop: int) -> Array:
    """Return rows of a ``.npy`` file, of one field where it is structured."""
    array: Array = map_npy(path)[start:stop]
    return np.asarray(array[member] if member else array)


def table_of(stored: Stored, naming: Naming, chunks: int | None) -> Table:
    """Return the columns of one array without names."""
    names = naming.names(None, stored.width or 1)
    chosen = naming.choose(names)
    columns = dict(zip(names, stored.columns(chunks), strict=True))
    return Table({ours: columns[name] for name, ours in chosen.items()}, naming)


def read_arborx(path: str, naming: Naming, chunks: int | None) -> Table:
    """Read the coordinates of an ArborX file, whose size must be what the numbers at its beginning say."""
    size = os.path.getsize(path)
    n, d = np.fromfile(path, _ARBORX_HEADER, 2).tolist() if size >= _ARBORX_START else (0, 0)
    expected = _ARBORX_START + n * d * _ARBORX_VALUE.itemsize
    if n < 0 or d < 1 or size != expected:
        raise ValueError(
            f"{path} has {size} bytes; as an ArborX file (int32 n, int32 d, float32 coordinates) it begins with n = "
            f"{n} and d = {d}, which makes {expected}: it is cut, or has another format"
        )
    if d > 3 and naming.columns is None:
        raise ValueError(f"{path} has {d} coordinates for each point; name them with columns=[...], 'x' first")
    return table_of(Stored(_arborx_rows, (Part(path, "", n),), d, np.dtype(np.float32)), naming, chunks)


def _arborx_rows(path: str, member: str, start: int, stop: int) -> Array:
    """Return rows of an ArborX file."""
    d = int(np.fromfile(path, _ARBORX_HEADER, 2)[1])
    offset = _ARBORX_START + start * d * _ARBORX_VALUE.itemsize
    return np.fromfile(path, _ARBORX_VALUE, (stop - start) * d, offset=offset).reshape(-1, d)


def write_npy(stream: BinaryIO, ds: xr.Dataset, dim: str) -> None:
    """Write the particles as an array (n, d) of columns that reading knows without names."""
    names = _ordered(ds, tuple(PARTICLES.headerless.values()), ".npy")
    dtype = np.result_type(*[ds[name].dtype for name in names]).newbyteorder("=")
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": (ds.sizes[dim], len(names)),
    }
    np.lib.format.write_array_header_1_0(stream, header)
    _write_rows(stream, ds, dim, names, dtype)


def write_arborx(stream: BinaryIO, ds: xr.Dataset, dim: str) -> None:
    """Write one to three coordinates in ArborX's format, as float32."""
    names = _ordered(ds, tuple(PARTICLES.headerless[d] for d in (1, 2, 3)), "ArborX")
    if ds.sizes[dim] > np.iinfo(np.int32).max:
        raise ValueError(f"an ArborX file has at most 2**31 - 1 points, got {ds.sizes[dim]}; write .npy or .parquet")
    stream.write(np.array([ds.sizes[dim], len(names)], _ARBORX_HEADER).tobytes())
    _write_rows(stream, ds, dim, names, _ARBORX_VALUE)


def _ordered(ds: xr.Dataset, known: tuple[tuple[str, ...], ...], kind: str) -> tuple[str, ...]:
    """Return the variables in the order of their columns, if a file without names can hold them."""
    names = next((names for names in known if set(names) == set(ds.variables)), None)
    if names is None:
        ways = "; ".join(", ".join(names) for names in known)
        raise ValueError(
            f"{kind} files have no names, so that they hold one of: {ways}; the Dataset has "
            f"{', '.join(map(str, ds.variables))}: choose with ds[['x', 'y', 'z']], or write .parquet, .hdf5 or .zarr"
        )
    return names


def _write_rows(
    stream: BinaryIO, ds: xr.Dataset, dim: str, names: tuple[str, ...], dtype: np.dtype[np.generic]
) -> None:
    """Write rows of the variables, block by block."""
    for block in blocks_of(ds, dim):
        stream.write(np.stack([block[name] for name in names], axis=1).astype(dtype, copy=False).tobytes())
