"""Data sets block by block, for writers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from daskclust.core.data.columns import plain
from daskclust.core.data.datasets import dataset_of
from daskclust.core.data.foreign import separated
from daskclust.core.data.lazy import futures_along, workers_client
from daskclust.core.data.quote import quoted
from daskclust.core.data.units import BOX
from daskclust.core.device.arrays import is_dask
from daskclust.core.run.graph import only_needed
from daskclust.core.space.partition import block_sizes

if TYPE_CHECKING:
    import xarray as xr

Block = Mapping[str, npt.NDArray[Any]]
"""Columns of some consecutive rows, by name."""

Labelled = TypeVar("Labelled", "xr.Dataset", "xr.DataArray")

# Rows of one block of a Dataset in memory: a row group of about 8 MB per column of float64.
BLOCK_ROWS = 1 << 20


def only_dim(ds: xr.Dataset, kinds: str = "fiubmMO") -> str:
    """Return the one dimension of all variables, if they are columns of numbers, or times and text (objects)."""
    if not ds.variables:
        raise ValueError("the Dataset has no variables; there is nothing to write")
    for name, v in ds.variables.items():
        if v.ndim != 1 or v.dtype.kind not in kinds:
            raise ValueError(
                f"variable {quoted(name)} has dimensions {v.dims} and dtype {v.dtype}, which is no column of "
                f"numbers{' or text' * ('O' in kinds)}; leave it out with ds.drop_vars({quoted(name)})"
            )
    dims = {v.dims[0] for v in ds.variables.values()}
    if len(dims) > 1:
        raise ValueError(f"variables have dimensions {sorted(map(str, dims))}; choose those along one dimension")
    return str(dims.pop())


def to_write(data: Any, dim: str = "hit") -> xr.Dataset:
    """Return what a user writes as a Dataset of NumPy's types, with units in attributes."""
    import pandas as pd

    ds: xr.Dataset = dataset_of(data, dim=dim)
    box, unit = separated("attrs['boxsize']", ds.attrs.get("boxsize"))
    if unit is not None:
        ds = ds.assign_attrs({"boxsize": box, BOX: unit})
    ds = ds.reset_index([name for name in ds.dims if isinstance(ds.indexes.get(name), pd.MultiIndex)])
    own = {name: v for name, v in ds.variables.items() if not isinstance(v.dtype, np.dtype)}  # types of pandas
    return ds.assign({name: (v.dims, plain(str(name), v), v.attrs) for name, v in own.items()}) if own else ds


def scalars_of(ds: xr.Dataset) -> list[Any]:
    """Return the names of numbers without dimension, such as the noise of a lazy table: they become attributes."""
    return [name for name, v in ds.variables.items() if not v.ndim and v.dtype.kind in "fiub"]


def with_scalars_told(ds: xr.Dataset) -> xr.Dataset:
    """Return a data set with its numbers without dimension as attributes."""
    scalars = scalars_of(ds)
    if not scalars:
        return ds
    ds = computed_once(ds)
    lazy = [name for name in scalars if is_dask(ds[name].data)]
    computed = dict(zip(lazy, ahead(ds[name].data for name in lazy), strict=True))
    told = {str(name): computed.get(name, ds[name].data).item() for name in scalars}
    return ds.drop_vars(scalars).assign_attrs(told)


def column_dtypes(ds: xr.Dataset) -> dict[str, np.dtype[Any]]:
    """Return the types of all variables in native byte order, by name."""
    return {str(name): v.dtype.newbyteorder("=") for name, v in ds.variables.items()}


def as_text(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return times and objects as text, what is missing (NaN in pandas) as an empty one; numbers as they are.

    Spans of time have their unit behind them, as in ``"3 milliseconds"``.
    """
    if values.dtype.kind in "mM":
        words = np.datetime_as_string(values) if values.dtype.kind == "M" else [str(value) for value in values]
        values = np.where(np.isnat(values), "", words)
    elif values.dtype.kind == "O":
        values = np.array(["" if value is None or value != value else str(value) for value in values], np.str_)
    return values


def as_objects(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return texts as objects, bytes decoded; numbers and times as they are."""
    if values.dtype.kind not in "SUTO":
        return values
    return np.array([v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in values.tolist()], object)


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

    Workers of a cluster make the next blocks meanwhile, one a thread. Without points there is still one block, of
    length 0: it carries the names.
    """
    if ds.chunks:
        ds = computed_once(ds.unify_chunks())
        sizes: tuple[int, ...] = ds.chunks[dim]
    else:
        sizes = block_sizes(ds.sizes[dim], BLOCK_ROWS)
    ends = np.cumsum([size for size in sizes if size] or [0]).tolist()
    parts = (ds.isel({dim: slice(start, stop)}) for start, stop in zip([0, *ends], ends, strict=False))
    yield from map(native_block, ahead(parts) if ds.chunks else parts)


def computed_once(ds: xr.Dataset) -> xr.Dataset:
    """Return a data set of which one chunk after the other may be computed.

    Variables whose chunks have most of their steps in common, as labels and tables of clusters have, are computed now,
    where they stay: on the workers of a cluster, or in memory.
    """
    names = lazy_names(ds)
    shared = [name for name in names if not ds[name].ndim or has_common_steps(ds[name].data)]
    with only_needed():
        return ds.assign(ds[shared].persist()) if shared else ds


def lazy_names(ds: xr.Dataset) -> list[Any]:
    """Return the names of variables that are dask arrays."""
    return [name for name, v in ds.variables.items() if name not in ds.indexes and is_dask(v.data)]


def has_common_steps(array: Any, times: float = 2.0) -> bool:
    """Return whether chunk after chunk takes so many times as many steps as all at once, or more."""
    from dask.core import flatten

    keys, graph = list(flatten(array.__dask_keys__())), array.__dask_graph__()
    return len(keys) * len(graph.cull({keys[len(keys) // 2]})) > times * len(graph.cull(set(keys)))


def ahead(parts: Iterable[Any]) -> Iterator[Any]:
    """Yield lazy data sets or arrays in memory; workers, if there are any, compute some that follow meanwhile."""
    client = workers_client()
    if client is None:
        yield from map(in_memory, parts)
        return
    under_way: deque[Any] = deque()
    most = 1 + sum(client.nthreads().values())
    for part in parts:
        with only_needed():
            under_way.append(futures_along(part)[0] if is_dask(part) else client.compute(part))
        if len(under_way) == most:
            yield under_way.popleft().result()
    while under_way:
        yield under_way.popleft().result()
