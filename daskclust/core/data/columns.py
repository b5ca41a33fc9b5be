"""The one door for numbers: what a column of the user's may hold, what it becomes, what is refused in which words.

A column of any container becomes an array of NumPy, CuPy or Dask that kernels can take. What holds values in memory is
looked at now, a dask array block by block when it is computed, by the same function; docs/howto/data.md has the table.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from daskclust.core.data.foreign import arrow_series, comes_from, gives_arrow, separated
from daskclust.core.data.lazy import meta_of, with_first_rows
from daskclust.core.data.nested import flat, is_awkward
from daskclust.core.device.arrays import as_cupy, device_of, is_cuda, is_dask, library, to_host

Kind = Callable[[str, Any, int], Any]  # name, values in memory, index of the first -> what they become


# ----------------------------------------------------------------------------------------------------- kinds of columns
def reals(name: str, values: Any, first: int = 0) -> Any:
    """Return numbers as float32 where they are, else as float64."""
    values = native(name, values, first)
    if values.dtype.kind != "f":
        _check_size(name, values, first, 2**53, "2**53, where float64 has gaps; subtract an offset first")
    return values if values.dtype == np.float32 else _cast(values, np.float64)


def coordinate(name: str, values: Any, first: int = 0) -> Any:
    """Return numbers of which several columns make one table: small integers as they are, float32 may hold them."""
    values = native(name, values, first)
    return reals(name, values, first) if values.dtype.itemsize == 8 else values


def doubles(name: str, values: Any, first: int = 0) -> Any:
    """Return numbers as float64."""
    return _cast(reals(name, values, first), np.float64)


def groups(name: str, values: Any, first: int = 0) -> Any:
    """Return integers as `integers` does, and False and True as 0 and 1."""
    values = native(name, values, first)
    return _cast(values, np.int64) if values.dtype.kind == "b" else integers(name, values, first)


def integers(name: str, values: Any, first: int = 0) -> Any:
    """Return whole numbers as integers: those of the user's type, int64 where that is none."""
    values = native(name, values, first)
    if values.dtype.kind == "b":
        raise ValueError(f"{name} must be whole numbers, got bool; use {name}.astype(int)")
    if values.dtype.kind == "f":
        host = to_host(values)
        good = (host == np.floor(host)) & (np.abs(host) < 2.0**63)
        if not good.all():
            row = int(np.argmin(good))
            raise ValueError(
                f"{name} must be whole numbers, got {values.dtype}; {name}.astype(int) cuts off the fractions: "
                f"{name}[{first + row}] = {host[row]}"
            )
    if values.dtype == np.uint64:
        _check_size(name, values, first, 2**63 - 1, "2**63 - 1; number them again, np.unique(..., return_inverse=True)")
    return values if values.dtype.kind in "iu" and values.dtype != np.uint64 else _cast(values, np.int64)


def numbers_of(name: str, values: Any, first: int = 0) -> Any:
    """Return integers of the user's type, such as numbers of layers or pixels in a table; floats are refused."""
    values = native(name, values, first)
    if values.dtype.kind not in "iu" and values.shape[0]:
        raise ValueError(f"{name} must be integers, got dtype {values.dtype}; use .astype(int)")
    return integers(name, values, first)


def label_numbers(name: str, values: Any, first: int = 0) -> Any:
    """Return integers as int64; other numbers are no labels."""
    return _cast(numbers_of(name, values, first), np.int64)


def native(name: str, values: Any, first: int = 0) -> Any:
    """Return numbers in this machine's byte order, of a type that kernels know; refuse what is masked or no number."""
    values = _unmasked(name, values)
    kind = values.dtype.kind
    if kind == "O":
        values = _of_objects(name, values, first)
        kind = values.dtype.kind
    if kind == "c":
        raise ValueError(f"Complex data not supported: {name} is {values.dtype}; pass real and imaginary part by part")
    if kind not in "biuf":
        raise ValueError(f"{name} must be numbers, got dtype {values.dtype}{remedy_of(kind)}")
    if kind == "f" and values.dtype.itemsize not in (4, 8):
        return _cast(values, np.float64)
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def _unmasked(name: str, values: Any) -> Any:
    """Return the data of a masked array; refuse masked elements."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    count = int(np.count_nonzero(np.ma.getmaskarray(values)))
    if count:
        raise ValueError(f"{name} has {count} masked elements of {values.size}; fill or leave out what is masked")
    return values.data


def remedy_of(kind: str) -> str:
    """Return what makes numbers of values that are of another kind, for messages; "" where nothing is known."""
    if kind in "mM":
        return "; subtract a start and divide by a unit, e.g. (t - t[0]) / np.timedelta64(1, 'ns')"
    return "; np.unique(..., return_inverse=True) numbers names, .astype(float) reads numbers" if kind in "US" else ""


def _of_objects(name: str, values: Any, first: int) -> Any:
    """Return numbers that are Python's objects as an array of numbers."""
    for place, value in np.ndenumerate(values):
        if not isinstance(value, bool | int | float | np.number | np.bool_):
            raise TypeError(
                f"{name} must be numbers, got {_at(name, place, first)} = {reprlib.repr(value)}; an argument must be "
                "free of strings and other objects: turn each into a number"
            )
    return np.array(values.tolist()).reshape(values.shape) if values.size else values.astype(np.float64)


def _check_size(name: str, values: Any, first: int, most: int, beyond: str) -> None:
    """Refuse whole numbers of 64 bits whose size is above `most`."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or 0 in values.shape:
        return
    host = to_host(values)
    if host.max() > most or host.min() < -most:
        place = np.unravel_index(int(host.argmax() if host.max() > most else host.argmin()), host.shape)
        raise ValueError(f"{_at(name, place, first)} = {host[place]} is beyond {beyond}")


def _at(name: str, place: Sequence[Any], first: int) -> str:
    """Return what an element is called, of an array whose first row has the number `first`."""
    return f"{name}[{', '.join(str(int(k) + first * (axis == 0)) for axis, k in enumerate(place))}]" if place else name


def _cast(values: Any, dtype: Any) -> Any:
    return device_of(values).cast(values, dtype)


# ----------------------------------------------------------------------------------------------------------- any holder
def column(name: str, values: Any, kind: Kind = native) -> Any:
    """Return a column, or a table of one type, of any container as an array of numpy, cupy or dask."""
    values = values if is_dask(values) else plain(name, values)
    if not is_dask(values):
        return kind(name, values, 0)
    if np.isnan(values.shape).any():
        raise ValueError(f"{name} has unknown chunk sizes; call .compute_chunk_sizes() on it first")
    like = meta_of(values)
    if values.dtype.kind == "O":
        start = np.dtype(np.float64 if kind in (reals, coordinate, doubles, native) else np.int64)
    else:
        start = values.dtype
    # an array of one element has the same type as others, and raises for types that are refused
    dtype = kind(name, np.zeros(1, start), 0).dtype
    if dtype == values.dtype and not isinstance(like, np.ma.MaskedArray):
        return values
    like = like.astype(dtype) if is_cuda(like) else np.empty((0,) * values.ndim, dtype)
    return with_first_rows(_block, values, name, kind, dtype, dtype=dtype, meta=like, token="daskclust-column")


def _block(block: Any, first: int, name: str, kind: Kind, dtype: Any) -> Any:
    """Return a block of a dask array as a column of a kind."""
    return _cast(kind(name, block, first), dtype)


def plain(name: str, values: Any) -> Any:
    """Return what data frames of any library, xarray and lists hold as arrays of numpy, cupy or dask.

    Numbers that carry a unit are taken as they are: who compares them with others asks `unit_of` before.
    """
    if type(values) is np.ndarray:
        return values
    if hasattr(values, "data_vars") or (hasattr(values, "columns") and len(getattr(values, "shape", ())) == 2):
        raise TypeError(f"{name} must be one column, got a table, {type(values).__name__}; choose a column by its name")
    if comes_from(values, "xarray"):
        values = values.data
    if is_awkward(values):
        return flat(values, name)
    if comes_from(values, "pandas"):
        return _of_series(name, values)
    if library(values) == "dask" and hasattr(values, "to_dask_array"):
        return of_dask_series(name, values, lengths_of(values))
    if library(values) == "dask_array":
        raise TypeError(f"{name} is an array of dask-array, which is not taken; give one of dask.array")
    if is_dask(values) and isinstance(meta_of(values), np.ma.MaskedArray):
        return column(name, values)
    values, _ = separated(name, values)
    if is_cuda(values):
        return as_cupy(values)
    if gives_arrow(values):
        return _of_series(name, arrow_series(name, values))
    return values if is_dask(values) else np.asarray(_unmasked(name, values))


def _of_series(name: str, series: Any) -> Any:
    """Return the values of a pandas Series or Index; of a type of pandas' or Arrow's own in NumPy's of that size."""
    dtype = getattr(series.dtype, "numpy_dtype", None)  # nullable types and those of Arrow
    if dtype is None:
        return np.asarray(series)
    missing = int(series.isna().sum())
    if missing:
        raise ValueError(
            f"{name} has {missing} missing values (NA) of {len(series)}; drop them first, e.g. df.dropna()"
        )
    return series.to_numpy(dtype=None if dtype.kind == "O" else dtype)


def lengths_of(frame: Any) -> tuple[int, ...]:
    """Return how long the partitions of a dask DataFrame are: this counts them."""
    return tuple(int(length) for length in frame.map_partitions(len).compute())


def of_dask_series(name: str, series: Any, lengths: tuple[int, ...]) -> Any:
    """Return a dask Series as a dask array of NumPy's types."""
    numbers = series.map_partitions(_numpy_series, name, meta=_numpy_series(meta_of(series), name))
    return numbers.to_dask_array(lengths=lengths)


def _numpy_series(series: Any, name: str) -> Any:
    values = _of_series(name, series)
    return type(series)(values, index=series.index, name=series.name, dtype=values.dtype)


# -------------------------------------------------------------------------------------------------------------- kernels
class _Writable:
    """The memory of an array, without the flag that forbids to write: numba compiles all kernels anew for it."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__ | {"data": (array.__array_interface__["data"][0], False)}


def for_kernels(name: str, array: Any) -> Any:
    """Return an array as kernels take it: in C order, aligned, in this machine's byte order; a copy only if it must be.

    numba tells arrays apart by less than that. Kernels write to no column, so one that is read-only is not copied.
    """
    if is_cuda(array):
        return as_cupy(array)
    if not isinstance(array, np.ndarray):
        return array
    array = np.require(native(name, array), requirements=("C", "A", "E"))
    return array if array.flags.writeable else np.asarray(_Writable(array))


def named_for_kernels(columns: dict[str, Any]) -> dict[str, Any]:
    """Return columns as kernels take them."""
    return {name: for_kernels(name, values) for name, values in columns.items()}


def narrowed(values: Any) -> Any:
    """Return integers as int32 where they fit and that is known without a pass over chunks, else as int64."""
    fits = np.can_cast(values.dtype, np.int32)
    if not fits and library(values) == "numpy":
        fits = not len(values) or (values.min() > -(2**31) and values.max() < 2**31)
    return _cast(values, np.int32 if fits else np.int64)


def group_number(event: Any, layer: Any) -> Any:
    """Return one int64 number for an event and a layer, each of 32 bits."""
    for name, values in (("event", event), ("layer", layer)):
        if len(values) and not (values.min() >= -(2**31) and values.max() < 2**31):
            raise ValueError(
                f"event and layer must lie within 32 bits where both are given, got {name} {values.min()} to "
                f"{values.max()}; number them again from 0, e.g. by np.unique(..., return_inverse=True)"
            )
    return event.astype(np.int64) * 2**32 + (layer.astype(np.int64) + 2**31)


def group_name(group: int) -> str:
    """Return what a group is called: a layer, or one of an event."""
    if -(2**31) <= group < 2**31:
        return f"layer {group}"
    return f"layer {group % 2**32 - 2**31} of event {group // 2**32}"
