"""Slices of a data set that are looked at one by one: layers of a calorimeter, windows of time of a detector."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.app.selection import Columns, Mask, Range
from daskclust.app.systems._base import is_timepix

Slice = int | tuple[float, float]  # a layer, or when a window of time begins and ends

_HITS = 2_000  # of a window of time at first
_FEWEST = 20  # of the shortest window
_UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}


class Layers:
    """The layers of a calorimeter."""

    name = column = "layer"
    lengths: Mapping[str, float] = {"one layer": 1.0}
    first: Slice | None = None

    def __init__(self, layer: npt.NDArray[Any]) -> None:
        self._numbers = np.unique(layer)

    def count(self, length: float) -> int:
        """Return the number of slices."""
        return len(self._numbers)

    def at(self, position: int, length: float) -> Slice:
        """Return the slice at a position, from 0."""
        return int(self._numbers[position])

    def position(self, value: float, length: float) -> int:
        """Return where the slice is that holds a value of the column."""
        return int(np.searchsorted(self._numbers, value))

    def inside(self, part: Slice, columns: Columns) -> Mask:
        """Return which points are in a slice."""
        return np.asarray(columns["layer"] == part)

    def words(self, part: Slice) -> str:
        """Return what a slice is called."""
        return f"layer {part}"

    def range(self, part: Slice, columns: Columns) -> Range:
        """Return the values of the column in a slice."""
        assert isinstance(part, int)
        return Range("layer", part, part)

    def place(self, part: Slice) -> tuple[int, float]:
        """Return the position and the length of a slice."""
        assert isinstance(part, int)
        return self.position(part, 1.0), 1.0

    def key(self, part: Slice) -> str:
        """Return what the address of a page keeps of a slice."""
        return str(part)

    def of_key(self, key: str) -> Slice:
        """Return the slice of which this was kept."""
        found = [int(each) for each in self._numbers if str(each) == key]
        if not found:
            raise ValueError(f"slice must be a layer, got {key!r}")
        return found[0]


class TimeWindows:
    """Windows of time, equally long, with methods as `Layers` has; the first begins at a multiple of its length."""

    name, column = "time", "toa"

    def __init__(self, toa: npt.NDArray[Any], unit: str) -> None:
        self._low, self._high = float(toa.min()), float(toa.max())
        span = self._high - self._low or 1.0
        names = [name for name, size in _UNITS.items() if self._high >= size or size == 1.0]
        self._unit, self._size = (names[0], _UNITS[names[0]]) if unit == "ns" else (unit, 1.0)
        shortest = span * min(_FEWEST / len(toa), 1.0)
        powers = range(math.floor(math.log10(shortest)), math.floor(math.log10(span)) + 1)
        series = (digit * 10.0**power for power in powers for digit in (1, 2, 5))
        lengths = [each for each in series if shortest <= each <= span] or [span]
        self.lengths = {self._told(each): each for each in lengths}
        usual = min(lengths, key=lambda each: abs(math.log(each / span * len(toa) / _HITS)))
        self.first: Slice | None = self.at(0, usual)

    def _told(self, length: float) -> str:
        if self._unit not in _UNITS:
            return f"{length:g} {self._unit}".rstrip()
        name = next(name for name, size in _UNITS.items() if length >= size or size == 1.0)
        return f"{length / _UNITS[name]:g} {name}"

    def count(self, length: float) -> int:
        return self.position(self._high, length) + 1

    def at(self, position: int, length: float) -> tuple[float, float]:
        begin = math.floor(self._low / length) + position
        return begin * length, (begin + 1) * length

    def position(self, value: float, length: float) -> int:
        place = math.floor(value / length) - math.floor(self._low / length)
        return place + (value >= self.at(place, length)[1])  # where value / length was rounded down

    def inside(self, part: Slice, columns: Columns) -> Mask:
        assert isinstance(part, tuple)
        toa = columns["toa"]
        return np.asarray((toa >= part[0]) & (toa < part[1]))

    def words(self, part: Slice) -> str:
        assert isinstance(part, tuple)
        digits = max(0, 1 - math.floor(math.log10((part[1] - part[0]) / self._size)))
        low, high = (f"{end / self._size:.{digits}f}" for end in part)
        return f"{low} - {high} {self._unit}".rstrip()

    def range(self, part: Slice, columns: Columns) -> Range:
        assert isinstance(part, tuple)
        mine = columns["toa"][self.inside(part, columns)]
        low, high = (mine.min(), mine.max()) if len(mine) else (part[0], part[0])
        return Range("toa", float(low), float(high))

    def place(self, part: Slice) -> tuple[int, float]:
        assert isinstance(part, tuple)
        length = min(self.lengths.values(), key=lambda each: abs(each - (part[1] - part[0])))
        return self.position((part[0] + part[1]) / 2, length), length

    def key(self, part: Slice) -> str:
        place, length = self.place(part)
        return f"{place} of {self._told(length)}"

    def of_key(self, key: str) -> Slice:
        place, _, name = key.partition(" of ")
        length = self.lengths.get(name)
        if length is None or not place.isdecimal() or int(place) >= self.count(length):
            raise ValueError(f"slice must be a window of time such as '0 of {next(iter(self.lengths))}', got {key!r}")
        return self.at(int(place), length)


Slices = Layers | TimeWindows


def slices_of(ds: xr.Dataset) -> Slices | None:
    """Return the slices of a data set: its layers, or windows of time; None if it has none."""
    if "layer" in ds.variables:
        return Layers(ds["layer"].values)
    if not is_timepix(ds) or not np.isfinite([ds["toa"].min(), ds["toa"].max()]).all():  # clustering tells of these
        return None
    return TimeWindows(ds["toa"].values, ds["toa"].attrs.get("units", "ns"))
