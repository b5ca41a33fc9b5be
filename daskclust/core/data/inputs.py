"""What users pass as data, made into columns: arrays of points, DataFrames and xarray data sets.

Known by name here, and imported nowhere: pandas, dask and xarray are looked for only if an object comes from them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.data.boxes import AXES, box_in, box_sides
from daskclust.core.data.checks import check_length, check_points
from daskclust.core.data.columns import Kind, column, coordinate, group_number, lengths_of, of_dask_series, plain, reals
from daskclust.core.data.foreign import anndata_parts, arrow_table, comes_from, gives_arrow, separated, unit_of
from daskclust.core.data.lazy import meta_of
from daskclust.core.data.nested import Nesting, flat, flatten, is_awkward
from daskclust.core.data.units import HITS, common, converted, in_unit
from daskclust.core.device.arrays import is_cuda, is_dask, library, on_device_of, to_host

LAYER = ("layer",)
EVENT = ("event",)
SECTION = ("section",)
WEIGHT = ("energy", "weight")

_NONE: Mapping[str, str] = MappingProxyType({})
NOT_CLUSTERED = "not_clustered"
"""The attribute of a Dataset of cells that has the names of channels which are not clustered."""


class Points(NamedTuple):
    """Coordinates and named columns as the user gave them."""

    X: Any  # (n, d) array of numpy, cupy or dask
    axes: tuple[Any, ...]  # their names, numbers where there are none
    columns: Mapping[str, Any]  # every other column, by its name
    features: bool = False  # whether the names are scikit-learn's names of features: those of a DataFrame
    nesting: Nesting | None = None  # of awkward arrays, which results are to have too
    units: Mapping[Any, str] = MappingProxyType({})  # of axes and columns that have one; axes have the same
    dataset: Any = None  # what they are of, where it is a Dataset

    @property
    def unit(self) -> str | None:
        """Unit of the coordinates, None without one."""
        return self.units.get(next(iter(self.axes), None))

    @property
    def has_lists(self) -> bool:
        """Whether there is a list of points for each event."""
        return self.nesting is not None and self.nesting.counts is not None

    def box(self, boxsize: Any) -> Any:
        """Return a box that a user gives; instead of "auto" that of the Dataset, None where there is none."""
        if not (isinstance(boxsize, str) and boxsize == "auto"):
            return boxsize
        if self.dataset is None:
            return None
        there = [axis for axis in AXES if axis in self.dataset.variables]
        box = box_in(self.dataset, self.unit) if set(self.axes) & set(there) else None
        if box is None:
            return None
        known = dict(zip(there, box_sides(box, there), strict=True))
        sides = [known.get(str(axis)) or None for axis in self.axes]
        return sides[0] if len(set(sides)) == 1 else sides

    def first(self, names: Iterable[str]) -> Any:
        """Return the first column that has one of some names, None without one."""
        return next((self.columns[name] for name in names if name in self.columns), None)

    def event(self, given: Any = None) -> Any:
        """Return the event of each point: what a user gives, else its list or the column, None without any."""
        if given is not None or self.nesting is None:
            return self.first(EVENT) if given is None else given
        return self.nesting.event(self.first(EVENT))

    def aligned(self, name: str, values: Any, kind: Kind, dtype: Any = None) -> Any:
        """Return values that a user gives for each point, nested like the points or not, as `aligned_column`."""
        return aligned_column(self.X, name, flat(values, name, self.nesting), kind, dtype)


class ColumnTable(Mapping[str, Any]):
    """Columns of what a user gives, by name: arrays of numpy, cupy or dask, made when they are asked for."""

    def __init__(self, names: Sequence[Any], column: Callable[[Any], Any], units: Mapping[str, str] = _NONE) -> None:
        self._names, self._column, self._units = {str(name): name for name in names}, column, units
        if len(self._names) < len(names):
            twice = next(name for name in self._names if [str(each) for each in names].count(name) > 1)
            raise ValueError(f"there are several columns {twice!r}; rename all but one of them")

    def __getitem__(self, name: str) -> Any:
        return plain(name, self.raw(name))

    def raw(self, name: str) -> Any:
        """Return a column as the user gave it."""
        return self._column(self._names[name])

    def unit(self, name: str) -> Any:
        """Return the unit of a column, None without one."""
        return self._units.get(name) or unit_of(name, self.raw(name))

    def dims(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the dimensions of those columns that have named ones."""
        raw = {name: self.raw(name) for name in names}
        return {name: values.dims for name, values in raw.items() if comes_from(values, "xarray")}

    def variable(self, name: str) -> tuple[Any, dict[str, Any]]:
        """Return a column and its attributes in a Dataset."""
        unit = self.unit(name)
        return self[name], {} if unit is None else {"units": str(unit)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def keep(self, names: Sequence[str]) -> ColumnTable:
        """Return a table of some of the columns."""
        return ColumnTable(self.as_given(names), self._column, self._units)

    def as_given(self, names: Sequence[str]) -> list[Any]:
        """Return the original names of columns, which may be integers."""
        return [self._names[name] for name in names]


def table_of(data: Any) -> ColumnTable | None:
    """Return the columns of a Dataset, a data frame of any library, a mapping or records; None without names."""
    if isinstance(data, np.ndarray) and not data.dtype.names:
        return None
    if is_awkward(data):
        data, _ = flatten(data)
    if is_dataset(data):
        return ColumnTable(list(data.variables), lambda name: data[name])
    has_axes = comes_from(data, "xarray") and hasattr(data, "indexes") and data.ndim == 2
    names = list(data.indexes.get(data.dims[1], ())) if has_axes else []
    if "x" in names:  # a DataArray (point, name); others are a matrix
        return ColumnTable(names, lambda name: data[:, names.index(name)])
    if library(data) == "dask" and hasattr(data, "columns") and data.ndim == 2:  # a Series has columns, too
        lengths = functools.cache(lambda: lengths_of(data))
        return ColumnTable(list(data.columns), lambda name: of_dask_series(str(name), data[name], lengths()))
    if comes_from(data, "pandas") and hasattr(data, "columns"):
        return ColumnTable(list(data.columns), lambda name: data[name])
    if isinstance(data, Mapping):
        return ColumnTable(list(data), lambda name: data[name])
    if getattr(getattr(data, "dtype", None), "names", None):
        return ColumnTable(data.dtype.names, lambda name: data[name])
    if comes_from(data, "pandas", "xarray", "dask", "scipy"):  # one column, or a matrix
        return None
    if gives_arrow(data):
        table = arrow_table(data)
        if table is None:
            return None
        units = {each.name: (each.metadata or {}).get(b"units", b"").decode() for each in table.schema}
        return ColumnTable(table.column_names, table.column, units)
    if hasattr(data, "keys") and hasattr(data, "__getitem__"):
        return ColumnTable(list(data.keys()), lambda name: data[name])
    if hasattr(type(data), "columns"):
        raise TypeError(
            f"the columns of a {type(data).__module__}.{type(data).__name__} cannot be read by name; give a "
            "pandas.DataFrame, a polars.DataFrame or a pyarrow.Table of them (.collect(), .to_pandas())"
        )
    return None


def is_dataset(data: Any) -> bool:
    """Return whether data are a Dataset of xarray."""
    return hasattr(data, "data_vars") and comes_from(data, "xarray")


def cells_of(ds: Any) -> Any:
    """Return ``X`` (cell, channel) of a Dataset as a DataArray, without the channels that are not clustered."""
    X = ds["X"]
    if X.ndim != 2:
        raise ValueError(f"X must have the dimensions (cell, channel), got {X.dims}")
    X = X.transpose() if X.dims[0] == "channel" else X
    left_out = ds.attrs.get(NOT_CLUSTERED, ())
    if not len(left_out) or "channel" not in X.coords:
        return X
    kept = [name not in ([left_out] if isinstance(left_out, str) else left_out) for name in X["channel"].values]
    return X if all(kept) or not any(kept) else X.isel(channel=kept)


def has_cells(ds: Any) -> bool:
    """Return whether the points of a Dataset are cells: it has ``X`` (cell, channel), and no ``x``."""
    return "x" not in ds.variables and "X" in ds.variables and ds["X"].ndim == 2


def points_of_cells(ds: Any) -> Points:
    """Return the cells of a Dataset, with the names of their channels, and its other columns."""
    X = cells_of(ds)
    points = split_points(plain("X", X), ())
    axes = tuple(map(str, X["channel"].values)) if "channel" in X.coords else points.axes
    beside = [name for name, values in ds.variables.items() if values.dims == X.dims[:1]]
    return points._replace(axes=axes, columns=ColumnTable(beside, ds.__getitem__))


def read_points(estimator: Any, data: Any, not_coordinates: Sequence[str] = ()) -> Points:
    """Return the points in `data`, as `split_points` does, checked for an estimator, which learns their coordinates."""
    points = split_points(data, not_coordinates)
    points = points._replace(X=check_points(estimator, points))
    estimator._axes, estimator._unit = points.axes, points.unit
    return points


def read_new_points(estimator: Any, data: Any, not_coordinates: Sequence[str] = ()) -> Points:
    """Return points as `read_points` for an estimator that was fitted with the same coordinates."""
    points = split_points(data, not_coordinates)
    points = points._replace(X=check_points(estimator, points, reset=False))
    check_alike("X", points, "the points of the fit", estimator._axes, estimator._unit)
    return points


def check_alike(name: str, points: Points, whose: str, axes: tuple[Any, ...], unit: str | None) -> None:
    """Refuse points whose coordinates have another unit than others, or, where both have names, other ones."""
    if points.unit != unit:
        raise ValueError(f"{name} must have the unit of {whose}, {unit}, got {points.unit}; convert it first")
    numbers = tuple(range(len(axes)))
    if numbers not in (axes, points.axes) and points.axes != axes:
        raise ValueError(
            f"{name} must have the coordinates of {whose}, {list(axes)}, in this order, got {list(points.axes)}; "
            "choose them in this order, or give an array"
        )


def split_points(data: Any, not_coordinates: Sequence[str], coordinates: Sequence[str] | None = None) -> Points:
    """Return the coordinates in `data` and its other columns.

    Coordinates are the columns of that name; by default ``x``, ``y``, and ``z`` where there is no ``layer``; without
    ``x``, the channels of cells, or all columns but those of `not_coordinates` and indexes of a Dataset. Points that
    were taken apart before are as they are.
    """
    if isinstance(data, Points):
        return data
    if is_dataset(data) and coordinates is None and has_cells(data):
        return points_of_cells(data)
    if (type(data) is np.ndarray or is_dask(data)) and not data.dtype.names:
        X, unit = column("X", data, reals), None
    elif is_awkward(data):
        flattened, nesting = flatten(data)
        return split_points(flattened, not_coordinates, coordinates)._replace(nesting=nesting)
    elif (parts := anndata_parts(data)) is not None:
        X, names, cells = parts
        return split_points(X, ())._replace(axes=names, columns=ColumnTable(list(cells.columns), cells.__getitem__))
    elif (table := table_of(data)) is not None:
        known, others = list(table), list(not_coordinates)
        if is_dataset(data):
            others += map(str, data.indexes)
            if {"x", "layer"} <= {*known} and data["layer"].dims not in ((), data["x"].dims):
                known.remove("layer")  # it is not that of the points
        axes = _coordinate_names(known, others, coordinates)
        check_one_dimension(table.dims([*axes, *(name for name in not_coordinates if name in table)]), axes)
        if is_dataset(data):
            table = table.keep([name for name, dims in table.dims(table).items() if dims == table.raw(axes[0]).dims])
        return _points_of(data, table, axes)
    elif library(data) == "dask":
        raise TypeError(f"X must be an array, a DataFrame or an xarray.Dataset, got {type(data)!r}")
    else:
        X, unit = data if library(data) == "scipy" else column("X", data, reals), unit_of("X", data)
    numbers = range(X.shape[1] if len(X.shape) == 2 else 0)
    return Points(X, tuple(numbers), {}, units={} if unit is None else dict.fromkeys(numbers, str(unit)))


def _points_of(data: Any, table: ColumnTable, axes: list[str]) -> Points:
    """Return the coordinates in a table, all in the unit of the first, and its other columns."""
    frames = {getattr(table.raw(name), "comoving", None) for name in axes} if isinstance(data, Mapping) else set()
    if len(frames) > 1:
        raise ValueError(f"some of {', '.join(axes)} are comoving and some are not; convert them with .to_comoving()")
    given = {} if comes_from(data, "pandas", "dask") else {name: table.unit(name) for name in table}
    unit, ratios = common({name: given.get(name) for name in axes}, getattr(data, "attrs", {}).get("hubble"))
    columns = [converted(column(name, table[name], coordinate), ratios[name]) for name in axes]
    units = {name: str(each) for name, each in (given | dict.fromkeys(axes, unit)).items() if each is not None}
    others = table.keep([name for name in table if name not in axes])
    X = column("X", stack(axes, columns), reals)
    is_frame = hasattr(data, "columns") or gives_arrow(data)
    dataset = data if is_dataset(data) else None
    return Points(X, tuple(table.as_given(axes)), others, is_frame, units=units, dataset=dataset)


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


def check_one_dimension(dims: Mapping[str, Any], needed: Sequence[str]) -> None:
    """Refuse columns that are not along one dimension, the same for all: they are no list of points.

    Columns that are not `needed`, such as a layer, may be one number instead.
    """
    dims = {name: each for name, each in dims.items() if each or name in needed}
    if len(set(dims.values())) > 1 or any(len(each) != 1 for each in dims.values()):
        along = ", ".join(f"{name} ({', '.join(map(str, each))})" for name, each in dims.items())
        every = list(dict.fromkeys(str(dim) for each in dims.values() for dim in each))
        raise ValueError(
            f"points must be along one dimension, and their variables are {along}; make a list of points first, e.g. "
            f"ds.stack(point={every}).reset_index('point')"
        )


def stack(names: Sequence[str], arrays: Sequence[Any], kind: Kind = coordinate) -> Any:
    """Return columns (n,) of numpy, cupy or dask side by side as (n, d): coordinates, or of another kind."""
    columns = [column(name, values, kind) for name, values in zip(names, arrays, strict=True)]
    shapes = {name: values.shape for name, values in zip(names, columns, strict=True)}
    if len(set(shapes.values())) > 1 or any(len(shape) != 1 for shape in shapes.values()):
        raise ValueError(f"columns must have one dimension and one length, got shapes {shapes}")
    if any(is_dask(values) for values in columns):
        import dask.array as da

        _, columns = da.core.unify_chunks(*[part for each in columns for part in (da.asarray(each), "i")])
        meta = _stacked(*[meta_of(values) for values in columns])
        chunks = (columns[0].chunks[0], (len(columns),))
        # one step: da.stack has one for each column, and another to put them together
        options = {"dtype": meta.dtype, "meta": meta, "token": "daskclust-stack"}
        return da.map_blocks(_stacked, *columns, new_axis=1, chunks=chunks, **options)
    return _stacked(*columns)


def _stacked(*arrays: Any) -> Any:
    dtype = np.result_type(*[array.dtype for array in arrays])
    return np.stack([array.astype(dtype, copy=False) for array in arrays], axis=1)


def aligned_column(X: Any, name: str, values: Any, kind: Kind, dtype: Any = None) -> Any:
    """Return a column of a kind with one value for each point of X, as an array of X's class and chunks."""
    if library(values) == "dask" and not is_dask(X):
        raise TypeError(f"{name} is a dask collection and X is not; pass X as a dask array too, or {name}.compute()")
    values = column(name, values, kind)
    check_length(name, values, X.shape[0])
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


def joined_groups(event: Any, layer: Any) -> Any:
    """Return a column of one number for each pair of event and layer."""
    return on_device_of(event, group_number(to_host(event), to_host(layer)))


def columns_of(data: Any, names: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """Return named columns (n,) of what a user gives."""
    if is_awkward(data):
        data, _ = flatten(data)
    table = table_of(data)
    if table is None and comes_from(data, "xarray"):
        data = data.data
    if table is not None:
        missing = [name for name in names if name not in table]
        if missing:
            there = ", ".join(table) or "none"
            raise ValueError(f"there is no column {missing[0]!r}; needed are {', '.join(names)}, there are {there}")
        given = [name for name in (*names, *optional) if name in table]
        check_one_dimension(table.dims(given), names)
        units = {name: table.unit(name) for name in given if name in HITS}
        return {name: in_unit(name, table[name], units.get(name), HITS.get(name)) for name in given}
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
    unit, every = separated("hits", data)[1], [*names, *optional][: array.shape[1]]
    return {name: in_unit(name, array[:, k], unit, HITS.get(name)) for k, name in enumerate(every)}
