"""What users pass as data, made into columns: arrays of points, DataFrames and xarray data sets.

Known by name here, and imported nowhere: pandas, dask and xarray are looked for only if an object comes from them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.data.checks import check_length
from daskclust.core.data.columns import Kind, column, coordinate, lengths_of, of_dask_series, plain, reals
from daskclust.core.data.groups import group_number
from daskclust.core.data.nested import Nesting, flatten, is_awkward
from daskclust.core.data.units import HITS, common, converted, hit_column
from daskclust.core.device.arrays import device_of, here, is_cuda, is_dask, library, to_host

LAYER = ("layer",)
EVENT = ("event",)
WEIGHT = ("energy", "weight")


class Points(NamedTuple):
    """Coordinates and named columns as the user gave them."""

    X: Any  # (n, d) array of numpy, cupy or dask
    axes: tuple[Any, ...]  # their names, numbers where there are none
    columns: Mapping[str, Any]  # every other column, by its name
    features: bool = False  # whether the names are scikit-learn's names of features: those of a DataFrame
    nesting: Nesting | None = None  # of awkward arrays, which results are to have too
    units: Mapping[Any, str] = MappingProxyType({})  # of axes and columns that have one; axes have the same


class Table(Mapping[str, Any]):
    """Columns of what a user gives, by name: arrays of numpy, cupy or dask, made when they are asked for."""

    def __init__(self, names: Sequence[Any], column: Callable[[Any], Any]) -> None:
        self._names, self._column = {str(name): name for name in names}, column
        if len(self._names) < len(names):
            twice = next(name for name in self._names if [str(each) for each in names].count(name) > 1)
            raise ValueError(f"there are several columns {twice!r}; rename all but one of them")

    def __getitem__(self, name: str) -> Any:
        return plain(name, self.raw(name))

    def raw(self, name: str) -> Any:
        """Return a column as the user gave it: a Series, a DataArray, an array."""
        return self._column(self._names[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def keep(self, names: Sequence[str]) -> Table:
        """Return a table of some of the columns."""
        return Table(self.as_given(names), self._column)

    def as_given(self, names: Sequence[str]) -> list[Any]:
        """Return names as the user has them, who may have numbers."""
        return [self._names[name] for name in names]


def table_of(data: Any) -> Table | None:
    """Return the columns of a Dataset, a DataFrame, a mapping, records or a structured array; None without names."""
    kind = library(data)
    if is_awkward(data):
        data, _ = flatten(data)
    if kind == "xarray" and hasattr(data, "data_vars"):
        return Table(list(data.variables), lambda name: data[name])
    if kind == "pandas" and hasattr(data, "columns"):
        return Table(list(data.columns), lambda name: data[name])
    if kind == "dask" and hasattr(data, "columns"):
        lengths = functools.cache(lambda: lengths_of(data))
        return Table(list(data.columns), lambda name: of_dask_series(str(name), data[name], lengths()))
    if isinstance(data, Mapping):
        return Table(list(data), lambda name: data[name])
    if getattr(getattr(data, "dtype", None), "names", None):
        return Table(data.dtype.names, lambda name: data[name])
    return None


def dataset_of(data: Any) -> Any:
    """Return a Dataset as it is, and named columns of anything else as one with the dimension ``point``."""
    if library(data) == "xarray" and hasattr(data, "data_vars"):
        return data
    table = table_of(data)
    if table is None:
        raise TypeError(f"points must be a Dataset, a DataFrame or a mapping with named columns, got {type(data)!r}")
    import xarray as xr

    return xr.Dataset({name: ("point", values) for name, values in table.items()})


def split_points(data: Any, not_coordinates: Sequence[str], coordinates: Sequence[str] | None = None) -> Points:
    """Return the coordinates in `data` and its other columns.

    Coordinates are the columns of that name; by default ``x``, ``y``, and ``z`` where there is no ``layer``; without
    ``x``, all columns but those of `not_coordinates`.
    """
    if is_awkward(data):
        flattened, nesting = flatten(data)
        return split_points(flattened, not_coordinates, coordinates)._replace(nesting=nesting)
    table = table_of(data)
    if table is not None:
        axes = _coordinate_names(list(table), not_coordinates, coordinates)
        return _points_of(data, table, axes)
    if library(data) == "dask" and not is_dask(data):
        raise TypeError(f"X must be an array, a DataFrame or an xarray.Dataset, got {type(data)!r}")
    X = data if library(data) == "scipy" else column("X", data, reals)
    return Points(X, tuple(range(X.shape[1])) if len(X.shape) == 2 else (), {})


def _points_of(data: Any, table: Table, axes: list[str]) -> Points:
    """Return the coordinates in a table, all in the unit of the first, and its other columns."""
    if library(data) == "xarray":
        table = _along_points(data, table, axes)
    may_tell = library(data) == "xarray" or isinstance(data, Mapping)  # columns may be DataArrays
    told = {name: getattr(table.raw(name), "attrs", {}).get("units") for name in table if may_tell}
    unit, ratios = common({name: told.get(name) for name in axes}, getattr(data, "attrs", {}).get("hubble"))
    columns = [converted(column(name, table[name], coordinate), ratios[name]) for name in axes]
    units = {name: str(each) for name, each in (told | dict.fromkeys(axes, unit)).items() if each is not None}
    others = table.keep([name for name in table if name not in axes])
    X = column("X", stack(axes, columns), reals)
    return Points(X, tuple(table.as_given(axes)), others, hasattr(data, "columns"), units=units)


def _coordinate_names(names: list[str], not_coordinates: Sequence[str], asked: Sequence[str] | None) -> list[str]:
    if asked is not None:
        missing = [name for name in asked if name not in names]
        if missing:
            raise ValueError(f"there is no column {missing[0]!r} for a coordinate; the columns are {names}")
        return list(asked)
    if "x" in names:
        return [name for name in ("x", "y", "z") if name in names and not (name == "z" and "layer" in names)]
    found = [name for name in names if name not in not_coordinates]
    if not found:
        raise ValueError(f"there is no column for a coordinate; the columns are {names}")
    return found


def _along_points(dataset: Any, table: Table, axes: list[str]) -> Table:
    """Return the variables of a Dataset that have the dimension of its coordinates."""
    first = dataset[axes[0]]
    if first.ndim != 1:
        raise ValueError(f"the Dataset has no one-dimensional coordinate variable x; its variables are {list(table)}")
    return table.keep([name for name in table if dataset[name].dims == first.dims or name in axes])


def stack(names: Sequence[str], arrays: Sequence[Any], kind: Kind = coordinate) -> Any:
    """Return columns (n,) of numpy, cupy or dask side by side as (n, d): coordinates, or of another kind."""
    columns = [column(name, values, kind) for name, values in zip(names, arrays, strict=True)]
    shapes = {name: values.shape for name, values in zip(names, columns, strict=True)}
    if len(set(shapes.values())) > 1 or any(len(shape) != 1 for shape in shapes.values()):
        raise ValueError(f"columns must have one dimension and one length, got shapes {shapes}")
    if any(is_dask(values) for values in columns):
        import dask.array as da

        _, columns = da.core.unify_chunks(*[part for each in columns for part in (da.asarray(each), "i")])
        meta = _stacked(*[values._meta for values in columns])
        chunks = (columns[0].chunks[0], (len(columns),))
        # one step: da.stack has one for each column, and another to put them together
        options = {"dtype": meta.dtype, "meta": meta, "token": "daskclust-stack"}
        return da.map_blocks(_stacked, *columns, new_axis=1, chunks=chunks, **options)
    return _stacked(*columns)


def _stacked(*arrays: Any) -> Any:
    dtype = np.result_type(*[array.dtype for array in arrays])
    return np.stack([array.astype(dtype, copy=False) for array in arrays], axis=1)


def beside(X: Any, name: str, values: Any, kind: Kind, dtype: Any = None) -> Any:
    """Return a column of a kind with one value for each point of X, as an array of X's class and chunks."""
    if library(values) == "dask" and not is_dask(X):
        raise TypeError(f"{name} is a dask collection and X is not; pass X as a dask array too, or {name}.compute()")
    values = plain(name, values)
    check_length(name, values, X.shape[0])
    values = column(name, values, kind)
    dtype = values.dtype if dtype is None else dtype
    if is_dask(X):
        return chunked_as(X, values).astype(dtype)
    if is_cuda(X):
        return on_device_of(X, values, dtype)
    return np.ascontiguousarray(to_host(values), dtype)


def chunked_as(X: Any, values: Any) -> Any:
    """Return values (n,) or (n, k) as a dask array with the chunks of X along the points."""
    import dask.array as da

    values = da.asarray(values)
    return values.rechunk((X.chunks[0],) if values.ndim == 1 else (X.chunks[0], (values.shape[1],)))


def joined_groups(X: Any, event: Any, layer: Any) -> Any:
    """Return a column of one number for each pair of event and layer, of X's class, device and chunks."""
    if is_dask(X):
        import dask.array as da

        options = {"dtype": np.int64, "meta": X._meta.ravel()[:0].astype(np.int64), "token": "daskclust-group"}
        return da.map_blocks(_joined, event, layer, **options)
    return on_device_of(X, _joined(event, layer))


def _joined(event: Any, layer: Any) -> Any:
    number = group_number(*[to_host(values) for values in (event, layer)])
    return on_device_of(event, number)


def columns_of(data: Any, names: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """Return named columns (n,) of what a user gives."""
    if library(data) == "xarray" and not hasattr(data, "data_vars"):
        data = data.data
    if is_awkward(data):
        data, _ = flatten(data)
    table = table_of(data)
    if table is not None:
        missing = [name for name in names if name not in table]
        if missing:
            there = ", ".join(table) or "none"
            raise ValueError(f"there is no column {missing[0]!r}; needed are {', '.join(names)}, there are {there}")
        given = {name: table.raw(name) for name in (*names, *optional) if name in table}
        given |= {name: hit_column(given[name], name) for name in HITS if library(given.get(name)) == "xarray"}
        return {name: plain(name, values) for name, values in given.items()}
    array = plain("hits", data) if getattr(data, "ndim", 0) == 2 or isinstance(data, list | tuple) else None
    if array is None:
        raise TypeError(
            f"hits must be a Dataset, a DataFrame, a mapping or an array (n, {len(names)}) with the columns "
            f"{', '.join(names)}, got {type(data)!r}"
        )
    if array.ndim != 2 or not len(names) <= array.shape[1] <= len(names) + len(optional):
        raise ValueError(
            f"an array of hits must have shape (n, {len(names)}): {', '.join(names)}; or more columns for "
            f"{', '.join(optional)}; got {array.shape}"
        )
    return {name: array[:, k] for k, name in enumerate([*names, *optional][: array.shape[1]])}


def on_device_of(X: Any, values: Any, dtype: Any = None) -> Any:
    """Return an array of the host or a device on the device of X, in its class, as `dtype` if given."""
    device = device_of(X)
    if is_cuda(values) != is_cuda(X):
        values = device.from_host(to_host(values))
    elif is_cuda(values):
        values = here(values)
    return values if dtype is None else device.cast(values, dtype)
