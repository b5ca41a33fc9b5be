"""Files with one array of numbers for all particles: NumPy's and ArborX's."""

from __future__ import annotations

import os
from functools import partial
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.io.blocks import blocks_of
from daskclust.io.fields import PARTICLES
from daskclust.io.lazy import columns_in
from daskclust.io.schema import Naming, Table
from daskclust.io.tables.binary import unnamed

_ARBORX_HEADER = np.dtype("<i4")
_ARBORX_VALUE = np.dtype("<f4")
_ARBORX_START = 2 * _ARBORX_HEADER.itemsize


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
    here = os.path.abspath(path)
    return unnamed(columns_in(partial(_arborx_rows, here, d), [here], (n, d), np.float32, chunks), naming)


def _arborx_rows(path: str, d: int, start: int, stop: int) -> npt.NDArray[np.float32]:
    """Return rows of an ArborX file."""
    row = np.dtype((_ARBORX_VALUE, (d,)))
    found = np.fromfile(path, row, stop - start, offset=_ARBORX_START + start * row.itemsize)
    return found.astype(np.float32, copy=False)


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
            f"{kind} files store no names, so they can hold only one of: {ways}; the Dataset has "
            f"{', '.join(map(str, ds.variables))}: choose with ds[['x', 'y', 'z']], or write .parquet, .hdf5 or .zarr"
        )
    return names


def _write_rows(
    stream: BinaryIO, ds: xr.Dataset, dim: str, names: tuple[str, ...], dtype: np.dtype[np.generic]
) -> None:
    """Write rows of the variables, block by block."""
    for block in blocks_of(ds, dim):
        stream.write(np.stack([block[name] for name in names], axis=1).astype(dtype, copy=False).tobytes())
