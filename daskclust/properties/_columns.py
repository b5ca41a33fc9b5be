"""What a table is made of: variables of a data set by role, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.checks import check_whole
from daskclust.core.data.columns import column, coordinate, for_kernels, label_numbers, native, numbers_of
from daskclust.core.data.quote import quoted
from daskclust.core.device.arrays import HOST, Cuda, Host, device_of, is_cuda
from daskclust.core.merge.labels import NOISE

Array = npt.NDArray[Any]
Int = npt.NDArray[np.int64]

# More rows than this for each hit means that the labels are no cluster numbers, but some other ids.
_MOST_ROWS_PER_HIT = 100
_MOST_EMPTY_ROWS = 1 << 24  # 128 MiB a column


def variable(ds: xr.Dataset, name: str, argument: str) -> xr.DataArray:
    """Return a variable of the Dataset, or say which it has."""
    if name not in ds:
        remedy = "; use weight=None for equal weights" if argument == "weight" else ""
        raise ValueError(f"{argument}: the Dataset has no variable {name!r}; it has {', '.join(map(str, ds))}{remedy}")
    return ds[name]


def label_values(ds: xr.Dataset, labels: Any) -> Any:
    """Return the labels: a variable of the Dataset by its name, or what the user gives."""
    return variable(ds, labels, "labels").data if isinstance(labels, str) else labels


def checked(arrays: Mapping[str, Any], shape: tuple[int, ...], whole: Collection[str] = ()) -> dict[str, Any]:
    """Return arrays as kernels take them, by their role; refuse those of another shape or kind than their role has."""
    kinds = {"labels": label_numbers, "is_seed": native} | dict.fromkeys(whole, numbers_of)
    found = {}
    for role, values in arrays.items():
        array = column(role.strip("[]"), values, kinds.get(role, coordinate))
        if any(np.isnan(size) for size in array.shape):
            raise ValueError(f"{role} has unknown chunk sizes; call .compute_chunk_sizes() first")
        if array.shape != shape or array.ndim != 1:
            raise ValueError(
                f"{role} must have one dimension and the length of the coordinates {shape}, got {array.shape}"
            )
        if role == "is_seed" and array.dtype != bool and array.shape[0]:
            raise ValueError(f"is_seed must be boolean, got dtype {array.dtype}; convert it with .astype")
        found[role] = for_kernels(role, array)
    return found


def check_n_clusters(n_clusters: int | None, n_points: int) -> None:
    """Raise for what is no number of rows."""
    most = max(_MOST_EMPTY_ROWS, _MOST_ROWS_PER_HIT * n_points)
    if n_clusters is not None and check_whole("n_clusters", n_clusters, 0) > most:
        raise ValueError(
            f"n_clusters must be at most {most} for {n_points} points, got {quoted(n_clusters)}: each is a row of the "
            "table; number clusters from 0 first, with np.unique(labels, return_inverse=True)"
        )


def row_count(largest: int, n_points: int, n_clusters: int | None) -> int:
    """Return the number of rows of the table."""
    rows = largest + 1 if n_clusters is None else int(n_clusters)
    if largest >= rows:
        raise ValueError(f"labels go up to {largest}, but n_clusters is {rows}; give at least {largest + 1}")
    if n_clusters is None and rows > max(1_000_000, _MOST_ROWS_PER_HIT * n_points):
        raise ValueError(
            f"labels go up to {largest} for {n_points} points; number clusters from 0 first, "
            "with np.unique(labels, return_inverse=True)"
        )
    return rows


def table_of(columns: Mapping[str, Any], units: Mapping[str, Any]) -> xr.Dataset:
    """Return columns as the table, with its noise."""
    noise = {n: v.item() for n, v in columns.items() if not v.ndim and not hasattr(v, "__dask_graph__")}
    variables = {
        name: ("cluster" if column.ndim else (), column, {"units": units[name]} if name in units else {})
        for name, column in columns.items()
        if name not in noise
    }
    return xr.Dataset(variables, coords={"cluster": np.arange(len(columns["size"]))}, attrs=noise)


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


def on_device(device: Host | Cuda, array: Any) -> Any:
    """Return an array where kernels are to find it."""
    if device is HOST:
        return device_of(array).to_host(array) if is_cuda(array) else array
    return array if is_cuda(array) else device.from_host(array)


def groups(labels: Int) -> tuple[Int, Int]:
    """Return the distinct labels, ascending, and for each point the position of its label among them."""
    if not len(labels):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    first, last = int(labels.min()), int(labels.max())
    if last - first > 4 * len(labels) + 1024:
        ids, group = np.unique(labels, return_inverse=True)
        return ids, group
    # Cluster numbers are dense, so a table of them is smaller and faster than a sort of the points.
    shifted = labels - first
    present = np.zeros(last - first + 1, dtype=bool)
    present[shifted] = True
    position = np.cumsum(present) - 1
    return np.flatnonzero(present) + first, position[shifted]


def numbered(labels: Int) -> tuple[Int, Int]:
    """Return the clusters of a chunk, and for each point the position of its cluster among them, or -1."""
    inside = labels >= 0
    ids, group = groups(labels[inside])
    local = np.full(len(labels), NOISE, np.int64)
    local[inside] = group
    return ids, local
