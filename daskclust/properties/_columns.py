"""What a table is made of: variables of a data set by role, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.columns import column, coordinate, for_kernels, label_numbers, native, numbers_of
from daskclust.core.data.quote import quoted

Array = npt.NDArray[Any]

# More rows than this for each hit means that the labels are no cluster numbers, but some other ids.
_MOST_ROWS_PER_HIT = 100
_MOST_EMPTY_ROWS = 1 << 24  # 128 MiB a column


def variable(ds: xr.Dataset, name: str, argument: str) -> xr.DataArray:
    """Return a variable of the Dataset, or say which it has.

    Parameters
    ----------
    ds : xarray.Dataset
        Points.
    name : str
        The variable.
    argument : str
        What of `cluster_table` names it.

    Returns
    -------
    xarray.DataArray
        The variable.

    Raises
    ------
    ValueError
        If there is none.
    """
    if name not in ds:
        remedy = "; use weight=None for equal weights" if argument == "weight" else ""
        raise ValueError(f"{argument}: the Dataset has no variable {name!r}; it has {', '.join(map(str, ds))}{remedy}")
    return ds[name]


def label_values(ds: xr.Dataset, labels: Any) -> Any:
    """Return the labels: a variable of the Dataset by its name, or what the user gives."""
    return variable(ds, labels, "labels").data if isinstance(labels, str) else labels


def checked(arrays: Mapping[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """Return arrays as kernels take them, by their role; refuse those of another shape or kind than their role has.

    Parameters
    ----------
    arrays : mapping of str to array_like
        By role: "labels", "layer", "is_seed", "x of pixels" and so on.
    shape : tuple of int
        The shape that all must have, (n,).

    Returns
    -------
    dict of str to numpy, cupy or dask array
        Of shape (n,).

    Raises
    ------
    ValueError
        For unknown chunk sizes, another shape, another kind of values.
    """
    kinds = dict.fromkeys(("layer", "x of pixels", "y of pixels", "chip"), numbers_of)
    kinds |= {"labels": label_numbers, "is_seed": native}
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
    """Raise for what is no number of rows.

    Parameters
    ----------
    n_clusters : int or None
        As the user gives it.
    n_points : int
        Number of points.

    Raises
    ------
    ValueError
        For negative numbers, what is no integer, and far more rows than there are points.
    """
    if n_clusters is None:
        return
    if isinstance(n_clusters, bool) or not isinstance(n_clusters, int | np.integer) or n_clusters < 0:
        raise ValueError(f"n_clusters must be a number of clusters or None, got {n_clusters!r}")
    most = max(_MOST_EMPTY_ROWS, _MOST_ROWS_PER_HIT * n_points)
    if n_clusters > most:
        raise ValueError(
            f"n_clusters must be at most {most} for {n_points} points, got {quoted(n_clusters)}: each is a row of the "
            "table; number clusters from 0 first, with np.unique(labels, return_inverse=True)"
        )


def row_count(largest: int, n_points: int, n_clusters: int | None) -> int:
    """Return the number of rows of the table.

    Parameters
    ----------
    largest : int
        The largest label, -1 if there is none.
    n_points : int
        Number of points.
    n_clusters : int or None
        Number of rows, if given.

    Returns
    -------
    int
        `n_clusters`, or the largest label plus 1.

    Raises
    ------
    ValueError
        For a label that is not below `n_clusters`, and labels that cannot be numbers of clusters.
    """
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
    """Return columns as the table, with its noise.

    Parameters
    ----------
    columns : mapping of str to array, of shape (k,) or ()
        With "size", and numbers of noise.
    units : mapping of str to str
        Units of the columns that have any.

    Returns
    -------
    xarray.Dataset
        Along ``cluster``; the numbers of noise are attributes, and variables if they are lazy.
    """
    noise = {n: v.item() for n, v in columns.items() if not v.ndim and not hasattr(v, "__dask_graph__")}
    variables = {
        name: ("cluster" if column.ndim else (), column, {"units": units[name]} if name in units else {})
        for name, column in columns.items()
        if name not in noise
    }
    return xr.Dataset(variables, coords={"cluster": np.arange(len(columns["size"]))}, attrs=noise)


def finite(values: Array, name: str, start: int) -> npt.NDArray[np.float64]:
    """Return values as float64, if they are finite.

    Parameters
    ----------
    values : numpy.ndarray, shape (n,)
        Numbers.
    name : str
        What they are.
    start : int
        Index of the first in the data set.

    Returns
    -------
    numpy.ndarray of float64, shape (n,)
        The values.

    Raises
    ------
    ValueError
        For the first that is not finite.
    """
    array = values.astype(np.float64, copy=False)
    check(np.isfinite(array), array, name, "must be finite", start)
    return array


def check(good: npt.NDArray[np.bool_], values: Array, name: str, rule: str, start: int) -> None:
    """Raise for the first point that breaks a rule.

    Parameters
    ----------
    good : numpy.ndarray of bool, shape (n,)
        Whether each value is right.
    values : numpy.ndarray, shape (n,)
        The values.
    name, rule : str
        For the message.
    start : int
        Index of the first in the data set.

    Raises
    ------
    ValueError
        If any is wrong.
    """
    if not good.all():
        index = int(np.argmin(good))
        raise ValueError(
            f"{name} {rule}, got {values[index]} at index {start + index}; correct or leave out such points"
        )
