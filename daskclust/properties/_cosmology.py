"""Densities that halos are defined by, from what a Dataset of particles tells of the universe."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from daskclust.core.data.checks import check_positive
from daskclust.core.data.quote import quoted
from daskclust.core.data.units import ratio

_CRITICAL = 2.77536627e11  # today's critical density, 3 H**2 / (8 pi G), in Msun/h / (Mpc/h)**3
_GRAVITY = 4.30091727e-9  # Mpc (km/s)**2 / Msun, the same for both with 1/h
_OF_BACKGROUND = re.compile(r"([0-9.]+)([cm])")


class HaloDensities(NamedTuple):
    """Comoving densities in units of the particles, and what turns mass / comoving radius into (km/s)**2."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    gravity: float


def densities(attrs: Mapping[Any, Any], definitions: tuple[str, ...], length: Any, mass: Any) -> HaloDensities:
    """Return the densities of some definitions: 200c, 200m, vir."""
    if "omega_m" not in attrs:
        raise ValueError("the Dataset has no attrs['omega_m']; give it with ds.assign_attrs(omega_m=...)")
    told = {name: attrs[name] for name in ("omega_m", "omega_lambda", "scale_factor") if name in attrs}
    told = {name: check_positive(f"attrs[{name!r}]", value, zero=True) for name, value in told.items()}
    matter, a = told["omega_m"], told.get("scale_factor", 1 / (1 + float(attrs.get("redshift", 0.0))))
    dark = told.get("omega_lambda", 1 - matter)
    expansion = matter / a**3 + (1 - matter - dark) / a**2 + dark  # (H / H0)**2
    to_length, to_mass = _to("Mpc/h", length, "positions", attrs), _to("Msun/h", mass, "masses", attrs)
    critical = _CRITICAL * expansion * a**3 * to_length**3 / to_mass
    mean = _CRITICAL * matter * to_length**3 / to_mass
    values = tuple(_density(name, critical, mean, matter / a**3 / expansion) for name in definitions)
    if not values or len(set(definitions)) < len(values):
        raise ValueError(f"definitions must be different ones, at least one, got {definitions!r}")
    return HaloDensities(definitions, values, _GRAVITY * to_mass / to_length / a)


def _to(wanted: str, unit: Any, what: str, attrs: Mapping[Any, Any]) -> float:
    """Return what values in a unit are multiplied by to be in that with which the constants are."""
    by = None if unit is None else ratio(str(unit), wanted, attrs.get("hubble"))
    if by is None:
        raise ValueError(
            f"{what} must have a unit that converts to {wanted!r}, got {unit!r}; name it in attrs['units'], and tell "
            "attrs['hubble'] of the Dataset where the unit is without 1/h"
        )
    return float(by)


def _density(name: str, critical: float, mean: float, matter_now: float) -> float:
    """Return the comoving density of a definition, given the fraction of matter at the time of the snapshot."""
    if name == "vir":
        x = matter_now - 1
        return (18 * math.pi**2 + 82 * x - 39 * x**2) * critical  # Bryan and Norman, eq. 6
    found = _OF_BACKGROUND.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        raise ValueError(f"definitions must be such as '200c', '200m' or 'vir', got {quoted(name)}")
    return check_positive("definitions", float(found[1])) * {"c": critical, "m": mean}[found[2]]
