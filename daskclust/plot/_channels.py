"""Cells as pictures take them: names and columns of channels, labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.inputs import stack, table_of
from daskclust.core.merge.labels import NOISE
from daskclust.plot._data import on_host

Array = npt.NDArray[Any]
Ids = npt.NDArray[np.int64]
Channel = str | int


def matrix(data: Any) -> Any:
    """Return X (cell, channel) of what the user gave, as it is."""
    if isinstance(data, xr.Dataset):
        if "X" not in data.variables:
            known = ", ".join(map(str, data.variables)) or "none"
            raise ValueError(f"the Dataset has no variable 'X', which the picture needs; it has {known}")
        data = data["X"]
    table = table_of(data)
    if table is not None:
        data = xr.DataArray(
            stack(list(table), list(table.values())), dims=("cell", "channel"), coords={"channel": list(table)}
        )
    values = data if hasattr(data, "shape") else np.asarray(data)
    if len(values.shape) != 2:
        raise ValueError(f"X must have shape (cell, channel), got {tuple(values.shape)}")
    return values


def length(data: Any) -> int:
    return int(matrix(data).shape[0])


def names_of(data: Any) -> list[str]:
    """Return the names of channels, "channel 0" and so on where there are none."""
    X = matrix(data)
    if isinstance(X, xr.DataArray) and X.dims[1] in X.coords:
        return [str(name) for name in X.coords[X.dims[1]].values]
    return [f"channel {k}" for k in range(X.shape[1])]


def place_of(data: Any, channel: Channel) -> int:
    """Return the number of a channel."""
    names = names_of(data)
    if isinstance(channel, str):
        if channel not in names:
            raise ValueError(f"there is no channel {channel!r}; there are {', '.join(names)}")
        return names.index(channel)
    if not 0 <= channel < len(names):
        raise ValueError(f"channels must be names, or numbers from 0 to {len(names) - 1}, got {channel!r}")
    return int(channel)


def columns_of(data: Any, places: list[int]) -> Array:
    """Return channels (n, k) on the host."""
    X = matrix(data)
    return on_host((X.data if isinstance(X, xr.DataArray) else X)[:, places])


def labels_of(labels: Any, n: int) -> Ids:
    """Return labels as int64, if there is one for each cell; all that are negative are noise."""
    there = on_host(labels, "labels")
    if there.shape != (n,) or there.dtype.kind not in "iu":
        raise ValueError(
            f"labels must be integers, one for each of the {n} cells, got shape {there.shape} of {there.dtype}"
        )
    return np.maximum(there.astype(np.int64), NOISE)
