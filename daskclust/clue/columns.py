"""The columns of points that CLUE takes: which ones are together, their sections, weights and thresholds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.data.columns import groups, narrowed, plain, reals
from daskclust.core.data.foreign import unit_of
from daskclust.core.data.inputs import LAYER, SECTION, WEIGHT, Points, joined_groups
from daskclust.core.data.lazy import map_points
from daskclust.core.data.nested import flat
from daskclust.core.data.units import threshold_in
from daskclust.core.device.arrays import is_dask


def sections_of(points: Points, section: Any, layer: Any) -> Any:
    """Return the section of each point, by which lengths may differ; None where nothing says it."""
    if isinstance(section, str):
        if section not in points.columns:
            raise ValueError(f"section names the column {section!r}; X has {sorted(points.columns)}")
        return points.columns[section]
    if section is None:
        section = points.first(SECTION) if layer is None or SECTION[0] in points.columns else layer
    return points.first(LAYER) if section is None else section


class Grouping(NamedTuple):
    """What says which points of a fit are in one group."""

    names: tuple[str, ...]  # of event and layer
    sides: tuple[bool, ...]  # of each layer: whether z < 0; empty where z does not count


def groups_of(points: Points, layer: Any, event: Any, fit: Grouping | None = None) -> tuple[dict[str, Any], Grouping]:
    """Return the integer column that says which points are in one group: of one event, layer and side in z.

    Given what says so of the points of a fit, numbers are theirs; the smallest number is none of them.
    """
    given = {"event": points.event(event), "layer": points.first(LAYER) if layer is None else layer}
    given = {name: each for name, each in given.items() if each is not None}
    has_z, sides = "z" in points.columns, () if fit is None else fit.sides
    if fit is not None and (fit.names != tuple(given) or (sides and not has_z)):
        needed, there = [*fit.names, *"z" * bool(sides)], [*given, *"z" * has_z]
        raise ValueError(f"points of the fit have {needed or 'no layer'}, and new ones {there or 'no layer'}")
    if sides or (fit is None and "layer" in given and has_z):
        layer, z = points.aligned("layer", given["layer"], groups), points.aligned("z", points.columns["z"], reals)
        sides = sides or _sides_in(z)
        given["layer"] = map_points(_sides, layer, z) if len(sides) > 1 else layer
    columns = [narrowed(points.aligned(name, each, groups)) for name, each in given.items()]
    if len(columns) == 2:
        columns = [map_points(joined_groups, *columns)]
    if fit is not None and len(sides) == 1:
        columns = [np.where((z < 0) == sides[0], columns[0], np.iinfo(np.int64).min)]
    return {"layer": columns[0]} if columns else {}, Grouping(tuple(given), sides)


def _sides_in(z: Any) -> tuple[bool, ...]:
    """Return the sides of z = 0 where points are; of a dask array both, and nothing is computed."""
    if is_dask(z):
        return False, True
    other = z < 0
    return tuple(side for side, there in ((False, not other.all()), (True, other.any())) if there)


def _sides(layer: Any, z: Any) -> Any:
    return 2 * layer.astype(np.int64) + (z < 0)


def weights_of(points: Points, given: Any) -> tuple[dict[str, Any], Any]:
    """Return the column of weights, if there are any, and their unit, in which thresholds are."""
    unit: Any = "1"
    if given is not None:
        unit = unit_of("sample_weight", given)
    elif (name := next((name for name in WEIGHT if name in points.columns), None)) is not None:
        given, unit = points.columns[name], points.units.get(name)
    else:
        return {}, unit
    return {"weight": points.aligned("sample_weight", given, reals, points.X.dtype)}, unit


def thresholds_of(points: Points, rhoc: Any, has_units: bool, weight_unit: Any) -> Any:
    """Return the column of one rhoc for each point; that of `X` has its unit where the weights are of `X`, too."""
    if isinstance(rhoc, str):
        if rhoc not in points.columns:
            raise ValueError(f"rhoc names the column {rhoc!r}; X has {sorted(points.columns)}")
        unit = points.units.get(rhoc) if has_units else None
        rhoc = threshold_in(rhoc, points.columns[rhoc], unit, weight_unit)
    return points.aligned("rhoc", in_unit_of_weights(rhoc, weight_unit, points.nesting), reals, points.X.dtype)


def in_unit_of_weights(rhoc: Any, weight_unit: Any, nesting: Any) -> Any:
    """Return thresholds, which may carry a unit, one for each point."""
    unit, values = unit_of("rhoc", rhoc), flat(rhoc, "rhoc", nesting)
    return values if unit is None else threshold_in("rhoc", plain("rhoc", values), unit, weight_unit)
