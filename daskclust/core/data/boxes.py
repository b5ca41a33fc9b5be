"""Periodic boxes as users and files give them: lengths along the axes, and their unit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from daskclust.core.data.checks import check_number, check_positive
from daskclust.core.data.foreign import separated
from daskclust.core.data.units import BOX, common, converted

AXES = ("x", "y", "z")
Boxsize = float | Sequence[float | None] | Literal["auto"] | None  # as users give it


def box_in(ds: Any, unit: str | None, boxsize: Any = "auto") -> Any:
    """Return a box that a user gives; instead of "auto" ``ds.attrs["boxsize"]`` in the unit of coordinates.

    Without an attribute for its own unit that is in the unit of x.
    """
    if not (isinstance(boxsize, str) and boxsize == "auto"):
        return boxsize
    box, own = separated("attrs['boxsize']", ds.attrs.get("boxsize"))
    x = ds["x"].attrs.get("units") if "x" in ds.variables else None
    box_unit = own or ds.attrs.get(BOX, x)
    if box is None or box_unit is None or box_unit == unit:
        return box
    name = "attrs['boxsize']"
    if unit is None:
        raise ValueError(f"{name} has the unit {box_unit!r}, and coordinates have none; name it in their attrs")
    by = common({"the coordinates": unit, name: box_unit}, ds.attrs.get("hubble"))[1][name]
    sides = [None if side is None else converted(np.float64(side), by).item() for side in np.ravel(box).tolist()]
    return sides if np.ndim(box) else sides[0]


def box_sides(boxsize: Any, axes: Sequence[str]) -> list[float]:
    """Return the length of a box along axes, 0 where it is open, of one length, those of the axes, or of x, y, z.

    Those of the axes are in the order of x, y, z, too, as `open_particles` gives them.
    """
    if hasattr(boxsize, "unit"):  # astropy makes no list of its quantities
        check_number("boxsize", boxsize)
    lengths = [check_positive("boxsize", length or 0.0, zero=True) for length in np.ravel(boxsize).tolist()]
    if len(lengths) == 1:
        return lengths * len(axes)
    if not len(axes) <= len(lengths) <= len(AXES):
        raise ValueError(f"boxsize must be a length, or one for each of {', '.join(axes)}, got {boxsize!r}")
    own = len(lengths) == len(axes) and set(axes) <= set(AXES)
    found = dict(zip(sorted(axes) if own else AXES, lengths, strict=False))
    return [found.get(name, 0.0) for name in axes]


def mean_separation(sides: Sequence[float], n: int) -> float:
    """Return the mean separation of `n` points in a box with these sides: (volume / n)**(1 / d)."""
    return float((math.prod(sides) / n) ** (1 / len(sides)))
