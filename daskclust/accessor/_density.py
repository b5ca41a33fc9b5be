"""Boxes and linking lengths: what ``ds.clust.dbscan`` and ``ds.clust.fof`` take from a Dataset."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np
import xarray as xr

from daskclust.core.data.checks import check_distance, check_positive
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


def length_of(linking_length: float | None, b: float | None, points: Points, box: Any) -> float:
    """Return the linking length, which is given or `b` times the mean separation."""
    if (linking_length is None) == (b is None):
        raise ValueError(f"give linking_length or b, and not both; got linking_length={linking_length!r} and b={b!r}")
    if linking_length is not None:
        return linking_length
    from daskclust.io import linking_length as times_separation

    n, d = points.X.shape
    if d > len(_AXES) or box is None:
        axes = ", ".join(map(str, points.axes))
        raise ValueError(
            f"b={b!r} is a fraction of the mean separation, which needs a box of one to three axes, got "
            f"boxsize={box!r} of {axes}; give boxsize=, its side (or one for each axis), or a linking_length"
        )
    if n == 0:  # no separation, and nothing to link
        return check_positive("b", b)
    columns = {axis: ("point", np.broadcast_to(0.0, n)) for axis in _AXES[:d]}
    length = times_separation(xr.Dataset(columns, attrs={"boxsize": box}), b)  # type: ignore[arg-type]
    if not 0 < 2 * length <= np.min(box):  # here, where the error can name what the user gave
        raise ValueError(
            f"b must be positive, and give a linking length of at most half of the box, got b={b!r}: {length:g} in a "
            f"box of {np.min(box):g}"
        )
    return check_distance(f"the linking length of b={b!r}", length)
