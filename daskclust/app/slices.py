"""Slices of a data set that are looked at one by one: layers of a calorimeter, windows of time of a detector."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.app.selection import Range
from daskclust.app.systems._base import is_timepix

_HITS = 2_000  # of a window of time at first
_FEWEST = 20  # of the shortest window
_UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}


class Layers:
    """The layers of a calorimeter, or the chips of a detector."""

    first: Range | None = None

    def __init__(self, numbers: npt.NDArray[Any], column: str = "layer") -> None:
        self._numbers = np.unique(numbers)
        self.name = self.column = column
        self.lengths: Mapping[str, float] = {f"one {column}": 1.0}

    def count(self, length: float) -> int:
        """Return the number of slices."""
        return len(self._numbers)

    def at(self, position: int, length: float) -> Range:
        """Return the slice at a position, from 0."""
        number = int(self._numbers[position])
        return Range(self.column, number, number)

    def position(self, value: float, length: float) -> int:
        """Return where the slice is that holds a value of the column."""
        return int(np.searchsorted(self._numbers, value))

    def place(self, part: Range) -> tuple[int, float]:
        """Return the position and the length of a slice."""
        return self.position(part.low, 1.0), 1.0

    def words(self, part: Range) -> str:
        """Return what a slice is called."""
        return f"{self.column} {part.low}"

    def key(self, part: Range) -> str:
        """Return the value in the page's address."""
        return str(part.low)

    def of_key(self, key: str) -> Range:
        """Return the slice that has a key."""
        if key not in map(str, self._numbers):
            raise ValueError(f"there is no {self.column} {key!r}")
        return Range(self.column, int(key), int(key))


class TimeWindows:
    """Windows of time, equally long, with methods as `Layers` has; the first begins at a multiple of its length."""

    name, column = "time", "toa"

    def __init__(self, toa: npt.NDArray[Any], unit: str) -> None:
        self._low, self._high = float(toa.min()), float(toa.max())
        span = self._high - self._low or 1.0
        self._unit, self._size = time_unit(self._high, unit)
        self._given = unit
        shortest = span * min(_FEWEST / len(toa), 1.0)
        powers = range(math.floor(math.log10(shortest)), math.floor(math.log10(span)) + 1)
        series = (digit * 10.0**power for power in powers for digit in (1, 2, 5))
        lengths = [each for each in series if shortest <= each <= span] or [span]
        self.lengths = {self._name_of(each): each for each in lengths}
        usual = min(lengths, key=lambda each: abs(math.log(each / span * len(toa) / _HITS)))
        self.first: Range | None = self.at(0, usual)

    def _name_of(self, length: float) -> str:
        unit, size = time_unit(length, self._given)
        return f"{length / size:g} {unit}".rstrip()

    def count(self, length: float) -> int:
        return self.position(self._high, length) + 1

    def at(self, position: int, length: float) -> Range:
        begin = math.floor(self._low / length) + position
        return Range(self.column, begin * length, (begin + 1) * length, has_end=False)

    def position(self, value: float, length: float) -> int:
        place = math.floor(value / length) - math.floor(self._low / length)
        return place + (value >= self.at(place, length).high)  # where value / length was rounded down

    def place(self, part: Range) -> tuple[int, float]:
        length = min(self.lengths.values(), key=lambda each: abs(each - (part.high - part.low)))
        return self.position((part.low + part.high) / 2, length), length

    def words(self, part: Range) -> str:
        digits = max(0, 1 - math.floor(math.log10((part.high - part.low) / self._size)))
        return f"{part.low / self._size:.{digits}f} - {part.high / self._size:.{digits}f} {self._unit}".rstrip()

    def key(self, part: Range) -> str:
        place, length = self.place(part)
        return f"{place} of {self._name_of(length)}"

    def of_key(self, key: str) -> Range:
        place, _, name = key.partition(" of ")
        length = self.lengths.get(name)
        if length is None or not place.isdecimal() or int(place) >= self.count(length):
            raise ValueError(f"slice must be a window of time such as '0 of {next(iter(self.lengths))}', got {key!r}")
        return self.at(int(place), length)


Slices = Layers | TimeWindows


def time_unit(longest: float, unit: str) -> tuple[str, float]:
    """Return the unit in which times of up to so many nanoseconds are read, and its length; other units stay."""
    if unit != "ns":
        return unit, 1.0
    return next(((name, size) for name, size in _UNITS.items() if longest >= size), ("ns", 1.0))


def chips_of(ds: xr.Dataset) -> Layers | None:
    """Return the chips of pixel hits, where there are several; those that are apart are looked at one by one."""
    if not is_timepix(ds) or "chip" not in ds.variables or ds["chip"].dims != ds["toa"].dims:
        return None
    chips = Layers(ds["chip"].values, "chip")
    if chips.count(1.0) < 2:
        return None
    chips.first = None if ds.attrs.get("layout") == "quad" else chips.at(0, 1.0)
    return chips


def slices_of(ds: xr.Dataset) -> Slices | None:
    """Return the slices of a data set: its layers, or windows of time; None if it has none."""
    if "layer" in ds.variables:
        return Layers(ds["layer"].values)
    if not is_timepix(ds) or not np.isfinite([ds["toa"].min(), ds["toa"].max()]).all():  # refused when it is clustered
        return None
    return TimeWindows(ds["toa"].values, ds["toa"].attrs.get("units", "ns"))
