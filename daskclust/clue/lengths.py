"""CLUE's distances where they differ from point to point: a column of each, and the largest, which cells follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.data.checks import check_distance, check_whole
from daskclust.core.data.columns import groups, plain, reals
from daskclust.core.data.foreign import unit_of
from daskclust.core.data.inputs import Points
from daskclust.core.data.lazy import extremes, map_points
from daskclust.core.data.units import threshold_in
from daskclust.core.device.arrays import on_device_of, to_host

NAMES = "dc", "delta_c", "delta_o"


class Lengths(NamedTuple):
    """The distances of an estimator."""

    given: dict[str, Any]  # as the user gave them
    largest: dict[str, float]
    columns: dict[str, Any]  # one for each point, of those that are not one number

    def farthest(self) -> Any:
        """Return how far a nearest higher may be: of all points, or of each."""
        return np.maximum(*(self.columns.get(name, self.largest[name]) for name in NAMES[1:]))


def is_one(value: Any) -> bool:
    """Return whether a parameter is the same for all points, not an array, a mapping or the name of a column."""
    if isinstance(value, int | float):
        return True
    dimensions = value.ndim if hasattr(value, "ndim") else np.ndim(value)
    return not isinstance(value, str | Mapping) and dimensions == 0


def given_lengths(estimator: Any) -> dict[str, Any]:
    """Return the distances of an estimator, deltas as they follow from others."""
    delta_c = estimator.dc if estimator.delta_c is None else estimator.delta_c
    delta_o = delta_c if estimator.delta_o is None else estimator.delta_o
    return dict(zip(NAMES, (estimator.dc, delta_c, delta_o), strict=True))


def check_lengths(given: Mapping[str, Any], dtype: Any) -> Lengths:
    """Check what needs no data; of columns nothing is known yet, and their largest is 1."""
    largest = {}
    for name, value in given.items():
        if is_one(value):
            largest[name] = check_distance(name, value, dtype)
        else:
            largest[name] = max(_checked(name, value, dtype).values()) if isinstance(value, Mapping) else 1.0
    return Lengths(dict(given), largest, {})


def read_lengths(given: Mapping[str, Any], points: Points, sections: Any, before: Lengths | None = None) -> Lengths:
    """Return distances with the columns of those that differ; those that are as `before` are not read again."""
    lengths = check_lengths(given, points.X.dtype)
    known = [] if before is None else [(before.given[name], before, name) for name in before.given]
    for name, value in given.items():
        if is_one(value):
            continue
        same = next((each[1:] for each in known if each[0] is value), None)
        if same is not None:
            lengths.columns[name], lengths.largest[name] = same[0].columns[same[1]], same[0].largest[same[1]]
        elif isinstance(value, Mapping):
            lengths.columns[name] = _of_sections(name, _checked(name, value, points.X.dtype), points, sections)
        else:
            lengths.columns[name] = column = _own(name, value, points)
            lengths.largest[name] = _largest(name, column)
        known.append((value, lengths, name))
    return lengths


def check_of_all(given: Mapping[str, Any]) -> None:
    """Refuse lengths of single points: others have none."""
    for name, value in given.items():
        if not (isinstance(value, str | Mapping) or is_one(value)):
            remedy = "fit with one for each section, or with the name of a column"
            raise ValueError(f"{name} has a length for each point of the fit, and new ones have none; {remedy}")


def _checked(name: str, value: Mapping[Any, Any], dtype: Any) -> dict[int, float]:
    if not value:
        raise ValueError(f"{name} must have a length for each section, got an empty mapping")
    most = 2**63 - 1
    return {
        check_whole(f"a section of {name}", key, -most): check_distance(f"{name}[{key!r}]", length, dtype)
        for key, length in value.items()
    }


def _of_sections(name: str, lengths: dict[int, float], points: Points, sections: Any) -> Any:
    """Return the length of each point's section."""
    if sections is None:
        raise ValueError(f"{name} has a length for each section; say which one a point is in: section=, or layer=")
    sections = points.aligned("section", sections, groups)
    keys = np.array(sorted(lengths), np.int64)
    values = np.array([lengths[key] for key in keys.tolist()], points.X.dtype)
    return map_points(_looked_up, sections, name, keys, values, dtype=values.dtype)


def _looked_up(sections: Any, name: str, keys: Any, values: Any) -> Any:
    numbers = to_host(sections)
    at = np.searchsorted(keys, numbers).clip(max=len(keys) - 1)
    known = keys[at] == numbers
    if not known.all():
        missing = numbers[int(np.argmin(known))]
        raise ValueError(f"{name} has no length for section {missing}; it has those of {keys.tolist()}")
    return on_device_of(sections, values[at])


def _own(name: str, value: Any, points: Points) -> Any:
    """Return a length of each point in the unit of the coordinates: a column of X, or what the user gives."""
    if isinstance(value, str):
        if value not in points.columns:
            raise ValueError(f"{name} names the column {value!r}; X has {sorted(points.columns)}")
        values, unit = points.columns[value], points.units.get(value)
    else:
        values, unit = value, unit_of(name, value)
    if unit is not None:
        axis = points.axes[0] if points.axes else None
        values = threshold_in(name, plain(name, values), unit, points.units.get(axis))
    return points.aligned(name, values, reals, points.X.dtype)


def _largest(name: str, column: Any) -> float:
    """Return the largest length; refuse what is none. Of a dask array this is a pass over it."""
    return max(check_distance(f"each {name}", float(end), column.dtype) for end in extremes(column))
