"""The columns of points that CLUE takes: which ones are together, their sections, weights and thresholds."""

from __future__ import annotations

from typing import Any

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


def groups_of(points: Points, layer: Any, event: Any) -> dict[str, Any]:
    """Return the integer column that says which points are in one group: of one event, layer and side in z."""
    given = {"event": points.event(event), "layer": points.first(LAYER) if layer is None else layer}
    if given["layer"] is not None and "z" in points.columns:
        layer, z = points.aligned("layer", given["layer"], groups), points.aligned("z", points.columns["z"], reals)
        given["layer"] = _of_sides(layer, z)
    columns = [narrowed(points.aligned(name, each, groups)) for name, each in given.items() if each is not None]
    if len(columns) == 2:
        columns = [joined_groups(points.X, *columns)]
    return {"layer": columns[0]} if columns else {}


def _of_sides(layer: Any, z: Any) -> Any:
    """Return a number of each layer at either side of z = 0; the layer as it is where there is one side."""
    if is_dask(z):
        return map_points(_sides, layer, z)
    other = z < 0
    return _sides(layer, z) if other.any() and (~other).any() else layer


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
