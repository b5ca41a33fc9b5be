"""What a table is made of: variables of a data set by role, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.checks import check_count, check_whole
from daskclust.core.data.columns import Kind, column, for_kernels, label_numbers, native, numbers_of, reals
from daskclust.core.data.datasets import variable_of
from daskclust.core.data.quote import quoted
from daskclust.core.device.arrays import HOST, Cuda, Host, device_of, is_cuda, to_host
from daskclust.core.merge.labels import NOISE

from ._summary import MOST_ROWS_PER_POINT, Array

if TYPE_CHECKING:
    import xarray as xr


_MOST_EMPTY_ROWS = 1 << 24  # 128 MiB a column


def variable(ds: xr.Dataset, name: str, argument: str) -> xr.DataArray:
    """Return a variable of the Dataset, or say which it has."""
    if name not in ds:
        remedy = "; use weight=None for equal weights" if argument == "weight" else ""
        raise ValueError(f"{argument}: the Dataset has no variable {name!r}; it has {', '.join(map(str, ds))}{remedy}")
    return ds[name]


def label_values(ds: xr.Dataset, labels: Any) -> Any:
    """Return the labels: a variable of the Dataset by its name, or what the user gives."""
    if isinstance(labels, str):
        return variable(ds, labels, "labels").data
    for dim, index in getattr(labels, "indexes", {}).items():  # a DataArray's
        if dim in ds.indexes and not index.equals(ds.indexes[dim]):
            raise ValueError(
                f"labels have other coordinates along {dim!r} than the points, or another order; "
                "bring them into this order: labels.reindex_like(ds)"
            )
    return labels


def checked(arrays: Mapping[str, Any], shape: tuple[int, ...], kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """Return arrays as kernels take them, by role: real numbers where `kinds` names no other; refuse other shapes."""
    kinds = {"labels": label_numbers, "is_seed": native, **kinds}
    found = {}
    for role, values in arrays.items():
        array = column(role.strip("[]"), values, kinds.get(role, reals))
        if array.shape != shape or array.ndim != 1:
            raise ValueError(
                f"{role} must have one dimension and the length of the coordinates {shape}, got {array.shape}"
            )
        if role == "is_seed" and array.dtype != bool and array.shape[0]:
            raise ValueError(f"is_seed must be boolean, got dtype {array.dtype}; convert it with .astype")
        found[role] = for_kernels(role, array)
    return found


def pixels(name: str, values: Any, first: int = 0) -> Any:
    """Return numbers of pixels or chips, a kind of columns: unsigned integers of at most 16 bits."""
    values = numbers_of(name, values, first)
    if values.dtype in (np.uint8, np.uint16):
        return values
    host = to_host(values)
    check((host >= 0) & (host <= 65535), host, name, "must be from 0 to 65535", first)
    return device_of(values).cast(values, np.uint16)


def checked_n_clusters(n_clusters: int | None, n_points: int) -> int | None:
    """Return a number of rows, or None; raise for what is none."""
    most = max(_MOST_EMPTY_ROWS, MOST_ROWS_PER_POINT * n_points)
    if n_clusters is None:
        return None
    if check_whole("n_clusters", n_clusters, 0) > most:
        raise ValueError(
            f"n_clusters must be at most {most} for {n_points} points, got {quoted(n_clusters)}: each is a row of the "
            "table; number clusters from 0 first, with np.unique(labels, return_inverse=True)"
        )
    return int(n_clusters)


def table_of(columns: Mapping[str, Any], units: Mapping[str, Any]) -> xr.Dataset:
    """Return columns as the table, with its noise."""
    import pandas as pd
    import xarray as xr

    noise = {n: v.item() for n, v in columns.items() if not v.ndim and not hasattr(v, "__dask_graph__")}
    variables = {
        name: variable_of(
            "cluster" if column.ndim else (), column, {"units": unit} if (unit := units.get(name)) is not None else {}
        )
        for name, column in columns.items()
        if name not in noise
    }
    return xr.Dataset(variables, coords={"cluster": pd.RangeIndex(len(columns["size"]))}, attrs=noise)


def finite(values: Array, name: str, start: int) -> npt.NDArray[np.float64]:
    """Return values as float64, if they are finite."""
    array = values.astype(np.float64, copy=False)
    check(np.isfinite(array), array, name, "must be finite", start)
    return array


def check_labels(labels: Array, start: int) -> None:
    """Raise for the first label that is neither a cluster nor noise."""
    check(labels >= NOISE, labels, "labels", f"must be {NOISE} (noise) or larger", start)


def check(good: npt.NDArray[np.bool_], values: Array, name: str, rule: str, start: int) -> None:
    """Raise for the first point that breaks a rule."""
    if not good.all():
        index = int(np.argmin(good))
        raise ValueError(
            f"{name} {rule}, got {values[index]} at index {start + index}; correct or leave out such points"
        )


def explain(arrays: Mapping[str, Any], start: int, names: Collection[str], not_negative: Collection[str]) -> None:
    """Raise for the first label below -1, and value of `names` that is not finite or that must not be negative.

    `start` is the index of point 0.
    """
    host = {role: to_host(array) for role, array in arrays.items()}
    check_labels(host["labels"], start)
    for name in names:
        if name in host:
            values = finite(host[name], name, start)
            if name in not_negative:
                check(values >= 0, host[name], name, "must not be negative", start)


def on_device(device: Host | Cuda, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays of `checked` where kernels are to find them."""
    check_count(len(arrays["labels"]))
    if device is HOST:
        return {role: to_host(array) for role, array in arrays.items()}
    return {role: array if is_cuda(array) else device.from_host(array) for role, array in arrays.items()}
