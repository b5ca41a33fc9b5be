"""Data sets block by block, for writers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.quote import quoted
from daskclust.core.run.graph import only_needed

Block = Mapping[str, npt.NDArray[Any]]
"""Columns of some consecutive rows, by name."""

Labelled = TypeVar("Labelled", xr.Dataset, xr.DataArray)

# Rows of one block of a Dataset in memory: a row group of about 8 MB per column of float64.
_BLOCK_ROWS = 1 << 20


def only_dim(ds: xr.Dataset) -> str:
    """Return the one dimension of all variables, if they are columns of numbers."""
    if not ds.variables:
        raise ValueError("the Dataset has no variables; there is nothing to write")
    for name, v in ds.variables.items():
        if v.ndim != 1 or v.dtype.kind not in "fiub":
            raise ValueError(
                f"variable {quoted(name)} has dimensions {v.dims} and dtype {v.dtype}, which is no column of numbers; "
                f"leave it out with ds.drop_vars({quoted(name)})"
            )
    dims = {v.dims[0] for v in ds.variables.values()}
    if len(dims) > 1:
        raise ValueError(f"variables have dimensions {sorted(map(str, dims))}; choose those along one dimension")
    return str(dims.pop())


def column_dtypes(ds: xr.Dataset) -> dict[str, np.dtype[Any]]:
    """Return the types of all variables in native byte order, by name."""
    return {str(name): v.dtype.newbyteorder("=") for name, v in ds.variables.items()}


def native_block(ds: xr.Dataset) -> Block:
    """Return all variables of a data set as arrays in native byte order."""
    return {str(name): native(v.values) for name, v in ds.variables.items()}


def native(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array in native byte order."""
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def in_memory(part: Labelled) -> Labelled:
    """Return a part of a data set, one of several that may share steps, in memory."""
    with only_needed() if part.chunks else nullcontext():
        return part.compute()


def blocks_of(ds: xr.Dataset, dim: str) -> Iterator[Block]:
    """Yield the columns block by block: dask chunks, or slices of arrays in memory. Only one is in memory.

    Without points there is still one block, of length 0: it carries the names.
    """
    if ds.chunks:
        ds = ds.unify_chunks()
        sizes: tuple[int, ...] = ds.chunks[dim]
    else:
        sizes = (_BLOCK_ROWS,) * (ds.sizes[dim] // _BLOCK_ROWS) + (ds.sizes[dim] % _BLOCK_ROWS,)
    stop = 0
    for size in [size for size in sizes if size] or [0]:
        start, stop = stop, stop + size
        yield native_block(in_memory(ds.isel({dim: slice(start, stop)})))
