"""What pictures draw: variables in memory, channels of cells, labels, and dimensions with their units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.columns import column, coordinate, label_numbers, native, plain
from daskclust.core.data.inputs import stack, table_of
from daskclust.core.data.units import hit_column
from daskclust.core.device.arrays import is_dask, to_host
from daskclust.core.merge.labels import NOISE
from daskclust.plot._look import hv

Array = npt.NDArray[Any]
Ids = npt.NDArray[np.int64]
Channel = str | int

_TIMES = ("toa", "tot", "tof")  # of Timepix hits
_TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))  # in ns


def in_memory(ds: xr.Dataset, needed: Sequence[str], wanted: Sequence[str | None] = ()) -> xr.Dataset:
    """Return the variables of a Dataset, those that are `wanted` where they are there, on the host."""
    missing = [name for name in needed if name not in ds.variables]
    if missing:
        known = ", ".join(map(str, ds.variables)) or "none"
        raise ValueError(f"the Dataset has no variable {missing[0]!r}, which the picture needs; it has {known}")
    names = dict.fromkeys([*needed, *(name for name in wanted if name in ds.variables)])
    chosen = ds[list(names)].reset_coords().compute()
    return chosen.map(lambda array: array.copy(data=on_host(array.data, str(array.name))))


def hits_in_memory(ds: xr.Dataset, needed: Sequence[str], wanted: Sequence[str] = ()) -> xr.Dataset:
    """Return what `in_memory` does, with times in ns, which those without a unit are in already."""
    loaded = in_memory(ds, needed, wanted)
    return loaded.assign({name: hit_column(loaded[name], name) for name in _TIMES if name in loaded})


def shown(name: str, values: Any, first: int = 0) -> Any:
    """Return numbers as they are, False and True as 0 and 1; refuse what float64, which pictures are made of, lacks."""
    values = native(name, values, first)
    coordinate(name, values, first)
    return values.astype(np.float64) if values.dtype == bool else values


def on_host(values: Any, name: str = "values") -> Array:
    """Return numbers of any class as a numpy array, computed if they are lazy."""
    values = plain(name, values)
    values = values.compute() if is_dask(values) else values
    kind = {"label": label_numbers, "is_seed": native}.get(name, shown)
    return np.asarray(column(name, to_host(values), kind))


# ---------------------------------------------------------------------------------------------------------------- cells
class Cells(NamedTuple):
    """Cells as pictures take them: what the user gave (cell, channel), the names and the unit of channels."""

    X: Any
    names: list[str]
    unit: str

    def columns(self, places: Sequence[int]) -> Array:
        """Return channels (n, k) on the host."""
        return on_host((self.X.data if isinstance(self.X, xr.DataArray) else self.X)[:, list(places)])

    def place(self, channel: Channel) -> int:
        """Return the number of a channel."""
        if isinstance(channel, str):
            if channel not in self.names:
                raise ValueError(f"there is no channel {channel!r}; there are {', '.join(self.names)}")
            return self.names.index(channel)
        if not 0 <= channel < len(self.names):
            raise ValueError(f"channels must be names, or numbers from 0 to {len(self.names) - 1}, got {channel!r}")
        return int(channel)

    def labels(self, labels: Any) -> Ids:
        """Return labels as int64, if there is one for each cell; all that are negative are noise."""
        n, there = self.X.shape[0], on_host(labels, "labels")
        if there.shape != (n,) or there.dtype.kind not in "iu":
            raise ValueError(
                f"labels must be integers, one for each of the {n} cells, got shape {there.shape} of {there.dtype}"
            )
        return np.maximum(there.astype(np.int64), NOISE)


def cells_of(data: Any) -> Cells:
    """Return cells of a Dataset with ``X``, a table with a column for each channel, or an array."""
    if isinstance(data, xr.Dataset):
        if "X" not in data.variables:
            known = ", ".join(map(str, data.variables)) or "none"
            raise ValueError(f"the Dataset has no variable 'X', which the picture needs; it has {known}")
        data = data["X"]
    table = table_of(data)
    X = stack(list(table), list(table.values())) if table is not None else data
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2:
        raise ValueError(f"X must have shape (cell, channel), got {tuple(X.shape)}")
    named = list(table) if table is not None else [f"channel {k}" for k in range(X.shape[1])]
    if isinstance(X, xr.DataArray) and X.dims[1] in X.coords:
        named = [str(name) for name in X.coords[X.dims[1]].values]
    return Cells(X, named, unit_of(X))


# ---------------------------------------------------------------------------------------------------- words and numbers
def finite(array: xr.DataArray, name: str) -> tuple[npt.NDArray[np.float64], str]:
    """Return values that are finite, and words on how many are not."""
    values = np.asarray(array.values, dtype=np.float64)
    there = values[np.isfinite(values)]
    return there, without(values.size - there.size, name)


def without(missing: int, name: str) -> str:
    """Return words for a title on how many have no `name`."""
    return f", {missing:,} without {name}" if missing else ""


def unit_of(array: Any) -> str:
    """Return the unit that an array's attributes name, "" where it has none."""
    unit = str(getattr(array, "attrs", {}).get("units", ""))
    return "" if unit == "1" else unit


def dimension(array: xr.DataArray, words: str) -> hv.Dimension:
    """Return the dimension for a variable, with its unit in the label."""
    return hv.Dimension(str(array.name), label=words, unit=unit_of(array) or None)


def in_time_units(times: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], str]:
    """Return times in ns in a unit that suits the longest one, and that unit: ns, µs, ms or s."""
    longest = float(np.abs(times).max(initial=0.0))
    size, unit = next(((size, unit) for size, unit in _TIME_UNITS if longest >= 2 * size), (1.0, "ns"))
    return times / size, unit


def counted(array: xr.DataArray) -> str:
    """Return what the values are of: "hits", "clusters", or as the dimension is called."""
    return f"{array.dims[0]}s" if array.ndim else "values"
