"""Boxes: what ``ds.clust.dbscan`` and ``ds.clust.fof`` take from a Dataset."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import xarray as xr

from daskclust.core.data.inputs import Points, box_in, box_sides

_AXES = ("x", "y", "z")


def box_of(ds: xr.Dataset, boxsize: Any, points: Points) -> Any:
    """Return the period of all axes, or of each, None where it is open, in the unit of the coordinates."""
    if not isinstance(boxsize, EllipsisType):
        return boxsize
    there = [axis for axis in _AXES if axis in ds.variables]
    told = box_in(ds, points.units.get(points.axes[0])) if set(points.axes) & set(there) else None
    if told is None:
        return None
    known = dict(zip(there, box_sides(told, there), strict=True))
    box = [known.get(str(axis)) or None for axis in points.axes]
    return box[0] if len(set(box)) == 1 else box
