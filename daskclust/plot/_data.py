"""What pictures draw: variables in memory, and dimensions with their units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.columns import column, coordinate, label_numbers, native, plain
from daskclust.core.device.arrays import device_of, is_dask
from daskclust.plot._elements import hv

_TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))  # in ns


def in_memory(ds: xr.Dataset, needed: Sequence[str], wanted: Sequence[str | None] = ()) -> xr.Dataset:
    """Return the variables of a Dataset, those that are `wanted` where they are there, on the host."""
    missing = [name for name in needed if name not in ds.variables]
    if missing:
        known = ", ".join(map(str, ds.variables)) or "none"
        raise ValueError(f"the Dataset has no variable {missing[0]!r}, which the picture needs; it has {known}")
    names = [*needed, *(name for name in wanted if name is not None and name in ds.variables and name not in needed)]
    chosen = ds[list(dict.fromkeys(names))].reset_coords().compute()
    return chosen.map(lambda array: array.copy(data=on_host(array.data, str(array.name))))


def shown(name: str, values: Any, first: int = 0) -> Any:
    """Return numbers as they are, False and True as 0 and 1; refuse what float64, which pictures are made of, lacks."""
    values = native(name, values, first)
    coordinate(name, values, first)
    return values.astype(np.float64) if values.dtype == bool else values


def on_host(values: Any, name: str = "values") -> npt.NDArray[Any]:
    """Return numbers of any class as a numpy array, computed if they are lazy."""
    values = plain(name, values)
    values = values.compute() if is_dask(values) else values
    kind = {"label": label_numbers, "is_seed": native}.get(name, shown)
    return np.asarray(column(name, device_of(values).to_host(values), kind))


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
    """Return times in a unit that suits the longest one, and that unit.

    Parameters
    ----------
    times : numpy.ndarray
        In ns.

    Returns
    -------
    times : numpy.ndarray
        In the unit.
    unit : str
        ns, µs, ms or s.
    """
    longest = float(np.abs(times).max(initial=0.0))
    size, unit = next(((size, unit) for size, unit in _TIME_UNITS if longest >= 2 * size), (1.0, "ns"))
    return times / size, unit


def check_bins(bins: int) -> None:
    """Raise for what is no number of bins."""
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise ValueError(f"bins must be a whole number of at least 1, got {bins!r}")


def counted(array: xr.DataArray) -> str:
    """Return what the values are of: "hits", "clusters", or as the dimension is called."""
    return f"{array.dims[0]}s" if array.ndim else "values"
