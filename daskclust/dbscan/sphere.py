"""Points of a sphere as unit vectors: the chord between two grows with the angle, so that neighbours are the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daskclust.core.data.checks import check_distance
from daskclust.core.data.inputs import Points
from daskclust.core.data.lazy import map_points
from daskclust.core.data.units import ratio

SPHERE = "haversine"
UNITS = {"degrees": math.pi / 180, "radians": 1.0}  # in radians
_ALL = 3.0  # a chord that no two points have
_ROUNDED = 1e-6  # of the latitude of a pole, in float32


def on_sphere(points: Points, units: Any, box: Any) -> Any:
    """Return points, whose coordinates are latitude and longitude, as unit vectors (n, 3)."""
    X = points.X
    check_units(units)
    if X.shape[1] != 2:
        raise ValueError(
            f"metric='haversine' takes two coordinates, (latitude, longitude), got {X.shape[1]}; choose them, e.g. "
            "X[:, :2] or coordinates=('lat', 'lon')"
        )
    if box is not None:
        raise ValueError(f"a sphere has no box, got boxsize={box!r}; give boxsize=None, or metric='euclidean'")
    own = points.unit
    by = None if own is None else ratio(own, "rad")
    if by is not None and not math.isclose(float(by), UNITS[units]):
        raise ValueError(f"coordinates have the unit {own!r}, got units={units!r}; give the other one")
    return map_points(unit_vectors, X, units, dtype=np.float64, width=3)


def check_units(units: Any) -> Any:
    """Return the unit of angles, which must be one of two."""
    if not isinstance(units, str) or units not in UNITS:
        raise ValueError(f"units must be 'radians' or 'degrees', got {units!r}")
    return units


def chord(name: str, angle: float, units: str) -> float:
    """Return the distance of unit vectors that are an angle apart; of half a turn or more, that of any two."""
    angle *= UNITS[units]
    return check_distance(f"the chord of {name}", 2 * math.sin(angle / 2) if angle < math.pi else _ALL)


def unit_vectors(X: Any, units: str) -> Any:
    """Return the unit vectors (n, 3) of latitudes and longitudes (n, 2), float64."""
    angles = X.astype(np.float64) * UNITS[units]
    far = np.abs(angles[:, 0]) > math.pi / 2 * (1 + _ROUNDED)
    if far.any():
        raise ValueError(
            f"a latitude of {float(X[far, 0][0]):g} {units} is beyond a pole; give coordinates in the order (latitude, "
            "longitude), on the sky (dec, ra), and units= of both"
        )
    with np.errstate(invalid="ignore"):  # of infinities, which then are refused
        cos, sin = np.cos(angles), np.sin(angles)
    return np.stack([cos[:, 0] * cos[:, 1], cos[:, 0] * sin[:, 1], sin[:, 0]], axis=1)
