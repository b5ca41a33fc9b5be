"""Checks of what generators are given, and the data set that they return."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]
RNG = int | np.random.Generator | None

_UNITS = {
    "x": "cm",
    "y": "cm",
    "z": "cm",
    "layer": "1",
    "energy": "GeV",
    "eta": "1",
    "phi": "rad",
    "truth": "1",
}


def check_counts(least: int = 0, /, **values: int) -> None:
    """Raise for what is no whole number of at least `least`."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")


def check_positive(**values: float) -> None:
    """Raise for lengths that are not positive and finite."""
    for name, value in values.items():
        if not (value > 0 and np.isfinite(value)):
            raise ValueError(f"{name} must be positive and finite, got {value!r}")


def check_not_negative(**values: float) -> None:
    """Raise for lengths that are negative or not finite."""
    for name, value in values.items():
        if not (value >= 0 and np.isfinite(value)):
            raise ValueError(f"{name} must be finite and not negative, got {value!r}")


def check_fraction(**values: float) -> None:
    """Raise for what is not in 0 to 1."""
    for name, value in values.items():
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must be from 0 to 1, got {value!r}")


def dataset(columns: dict[str, npt.NDArray[Any]], /, **attrs: Any) -> xr.Dataset:
    """Return columns along ``hit`` with their units."""
    return xr.Dataset({name: ("hit", v, {"units": _UNITS[name]}) for name, v in columns.items()}, attrs=attrs)
