"""What users pass as data, made into columns: arrays of points, DataFrames and xarray data sets.

Known by name here, and imported nowhere: pandas, dask and xarray are looked for only if an object comes from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.arrays import device_of, is_cuda, is_dask, library
from daskclust.core.checks import check_length
from daskclust.core.merge import group_number
from daskclust.core.units import HITS, common, converted, hit_column

LAYER = ("layer",)
EVENT = ("event",)
WEIGHT = ("energy", "weight")


class Points(NamedTuple):
    """Coordinates and named columns as the user gave them."""

    X: Any  # (n, d) array of numpy, cupy or dask, or a pandas DataFrame of the coordinates alone
    axes: tuple[Any, ...]  # their names, numbers where there are none
    columns: dict[str, Any]  # every other column, by its name
    units: Mapping[Any, str] = MappingProxyType({})  # of axes and columns that have one; axes have the same


def split_points(data: Any, not_coordinates: Sequence[str], coordinates: Sequence[str] | None = None) -> Points:
    """Return the coordinates in `data` and its other columns.

    Parameters
    ----------
    data : array (n, d), DataFrame, xarray.Dataset or xarray.DataArray
        Coordinates are the columns `coordinates`; by default ``x``, ``y``, and ``z`` where there is no ``layer``, or,
        in a DataFrame without ``x``, all columns but those of `not_coordinates`.
    not_coordinates : sequence of str
        Columns that mean something else.
    coordinates : sequence of str, optional
        Names of the coordinate columns.
    """
    if library(data) == "xarray" and hasattr(data, "data_vars"):
        return _from_dataset(data, not_coordinates, coordinates)
    if library(data) == "xarray":
        return split_points(data.data, not_coordinates)
    if library(data) in ("pandas", "dask") and hasattr(data, "columns"):
        return _from_frame(data, not_coordinates, coordinates)
    if library(data) == "dask" and not is_dask(data):
        raise TypeError(f"X must be an array, a DataFrame or an xarray.Dataset, got {type(data)!r}")
    shape: tuple[int, ...] = getattr(data, "shape", ())
    return Points(data, tuple(range(shape[1])) if len(shape) == 2 else (), {})


def _coordinate_names(names: list[Any], not_coordinates: Sequence[str], asked: Sequence[str] | None) -> list[Any]:
    if asked is not None:
        missing = [name for name in asked if name not in names]
        if missing:
            raise ValueError(f"there is no column {missing[0]!r} for a coordinate; the columns are {names}")
        return list(asked)
    if "x" in names:
        return [name for name in ("x", "y", "z") if name in names and not (name == "z" and "layer" in names)]
    return [name for name in names if name not in not_coordinates]


def _from_frame(frame: Any, not_coordinates: Sequence[str], asked: Sequence[str] | None) -> Points:
    names = list(frame.columns)
    axes = _coordinate_names(names, not_coordinates, asked)
    if library(frame) == "pandas":
        others = {str(name): frame[name].to_numpy() for name in names if name not in axes}
        return Points(frame[axes], tuple(axes), others)
    # a dask DataFrame does not know how long its partitions are: this counts them
    columns = frame.to_dask_array(lengths=True)
    X = columns[:, [names.index(name) for name in axes]]
    others = {str(name): columns[:, k].astype(frame.dtypes[name]) for k, name in enumerate(names) if name not in axes}
    return Points(X, tuple(axes), others)


def _from_dataset(dataset: Any, not_coordinates: Sequence[str], asked: Sequence[str] | None) -> Points:
    names = [str(name) for name in dataset.variables]
    wanted = _coordinate_names(names, not_coordinates, asked)
    first = dataset[wanted[0]] if wanted else None
    if first is None or first.ndim != 1:
        raise ValueError(f"the Dataset has no one-dimensional coordinate variable x; its variables are {names}")
    others = {name: dataset[name].data for name in names if name not in wanted and dataset[name].dims == first.dims}
    told = {name: dataset[name].attrs.get("units") for name in (*wanted, *others)}
    unit, ratios = common({name: told[name] for name in wanted}, dataset.attrs.get("hubble"))
    units = {name: str(told[name]) for name in others if told[name] is not None}
    units |= {} if unit is None else dict.fromkeys(wanted, unit)
    X = stack([dataset[name].data for name in wanted], [ratios[name] for name in wanted])
    return Points(X, tuple(wanted), others, units)


def stack(arrays: Sequence[Any], ratios: Sequence[Fraction] = ()) -> Any:
    """Return columns (n,) of numpy, cupy or dask side by side as (n, d), each times its ratio of units."""
    if any(is_dask(array) for array in arrays):
        import dask.array as da

        _, columns = da.core.unify_chunks(*[part for array in arrays for part in (da.asarray(array), "i")])
        meta = stack([column._meta for column in columns], ratios)
        chunks = (columns[0].chunks[0], (len(columns),))
        # one step: da.stack has one for each column, and another to put them together
        return da.map_blocks(_stacked, *columns, ratios=ratios, new_axis=1, chunks=chunks, dtype=meta.dtype, meta=meta)
    return _stacked(*arrays, ratios=ratios)


def _stacked(*arrays: Any, ratios: Sequence[Fraction]) -> Any:
    arrays = tuple(map(converted, arrays, ratios)) if ratios else arrays
    dtype = np.result_type(*[array.dtype for array in arrays])
    return np.stack([array.astype(dtype) for array in arrays], axis=1)


def beside(X: Any, name: str, values: Any, dtype: Any) -> Any:
    """Return a column with one value for each point of X, as an array of X's class and chunks.

    Raises
    ------
    ValueError
        Where there is not one value for each point.
    """
    if library(values) == "dask" and not is_dask(X):
        raise TypeError(f"{name} is a dask collection and X is not; pass X as a dask array too, or {name}.compute()")
    values = plain(values)
    if is_dask(X):
        check_length(name, values, X.shape[0])
        return chunked_as(X, values).astype(dtype)
    if is_cuda(X):
        values = values if is_cuda(values) else np.asarray(values)
        check_length(name, values, len(X))
        return on_device_of(X, values, dtype)
    values = np.asarray(values)
    check_length(name, values, len(X))
    return np.ascontiguousarray(values, dtype)


def plain(values: Any) -> Any:
    """Return what pandas, xarray and dask DataFrames hold as arrays; others as they are."""
    if hasattr(values, "to_numpy") and library(values) == "pandas":
        return values.to_numpy()
    if library(values) == "xarray":
        return values.data
    if library(values) == "dask" and hasattr(values, "to_dask_array"):
        return values.to_dask_array(lengths=True)
    return values


def chunked_as(X: Any, values: Any) -> Any:
    """Return values (n,) or (n, k) as a dask array with the chunks of X along the points."""
    import dask.array as da

    values = da.asarray(values)
    return values.rechunk((X.chunks[0],) if values.ndim == 1 else (X.chunks[0], (values.shape[1],)))


def joined_groups(X: Any, event: Any, layer: Any) -> Any:
    """Return a column of one number for each pair of event and layer, of X's class, device and chunks."""
    if is_dask(X):
        import dask.array as da

        return da.map_blocks(_joined, event, layer, dtype=np.int64, meta=X._meta.ravel()[:0].astype(np.int64))
    return on_device_of(X, _joined(event, layer))


def _joined(event: Any, layer: Any) -> Any:
    number = group_number(*[device_of(values).to_host(values) for values in (event, layer)])
    return on_device_of(event, number)


def columns_of(data: Any, names: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """Return named columns (n,) of what a user gives.

    Parameters
    ----------
    data : xarray.Dataset, DataFrame, mapping of arrays, or array (n, d)
        The columns of an array are `names`, and then `optional` as far as it has more.
    names : sequence of str
        Columns that must be there.
    optional : sequence of str
        Columns that may be.

    Raises
    ------
    TypeError
        For other objects.
    ValueError
        For missing columns, and arrays of another shape.
    """
    kind = library(data)
    if kind == "xarray" and not hasattr(data, "data_vars"):
        return columns_of(data.data, names, optional)
    if hasattr(data, "columns") and kind in ("pandas", "dask"):
        found = _frame_columns(data, [name for name in (*names, *optional) if name in data.columns])
    elif kind == "xarray" or isinstance(data, Mapping):
        given = {name: data[name] for name in (*names, *optional) if name in data}
        given |= {name: hit_column(given[name], name) for name in HITS if library(given.get(name)) == "xarray"}
        found = {name: values.data if library(values) == "xarray" else values for name, values in given.items()}
    elif getattr(data, "ndim", 0) == 2 or isinstance(data, list | tuple):
        return _array_columns(data, names, optional)
    else:
        raise TypeError(
            f"hits must be a Dataset, a DataFrame, a mapping or an array (n, {len(names)}) with the columns "
            f"{', '.join(names)}, got {type(data)!r}"
        )
    missing = [name for name in names if name not in found]
    if missing:
        raise ValueError(f"there is no column {missing[0]!r}; needed are {', '.join(names)}, there are {_listed(data)}")
    return found


def _listed(data: Any) -> str:
    return ", ".join(map(str, getattr(data, "columns", data))) or "none"


def _array_columns(data: Any, names: Sequence[str], optional: Sequence[str]) -> dict[str, Any]:
    array = data if hasattr(data, "ndim") else np.asarray(data)
    if array.ndim != 2 or not len(names) <= array.shape[1] <= len(names) + len(optional):
        raise ValueError(
            f"an array of hits must have shape (n, {len(names)}): {', '.join(names)}; or more columns for "
            f"{', '.join(optional)}; got {array.shape}"
        )
    return {name: array[:, k] for k, name in enumerate([*names, *optional][: array.shape[1]])}


def _frame_columns(frame: Any, names: Sequence[str]) -> dict[str, Any]:
    if library(frame) == "pandas":
        return {name: frame[name].to_numpy() for name in names}
    # a dask DataFrame does not know how long its partitions are: this counts them
    columns = frame[list(names)].to_dask_array(lengths=True)
    return {name: columns[:, k].astype(frame.dtypes[name]) for k, name in enumerate(names)}


def on_device_of(X: Any, values: Any, dtype: Any = None) -> Any:
    """Return an array of the host or a device on the device of X, in its class, as `dtype` if given."""
    device = device_of(X)
    if is_cuda(values) != is_cuda(X):
        values = device.give(device.from_host(device_of(values).to_host(values)))
    return values if dtype is None else device.cast(values, dtype)
