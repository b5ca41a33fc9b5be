"""Units: their names and sizes, which of them convert into each other, and values in another unit.

The only table of units. Variables name theirs in ``attrs["units"]``; arrays and parameters have none of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.data.fields import TIMEPIX

_PLAIN = ("1", "", "dimensionless")
_PARSECS = {"": 18, "k": 21, "M": 24, "G": 27}  # powers of ten in cm

SIZES: dict[str, dict[str, float]] = {
    "length": {
        "cm": 1,
        "nm": 1e-7,
        "mm": 0.1,
        "m": 1e2,
        "km": 1e5,
        **dict.fromkeys(("um", "µm", "μm"), 1e-4),
        **{f"{prefix}pc": float(f"3.08567758149137e{power}") for prefix, power in _PARSECS.items()},
    },
    "angle": {
        **dict.fromkeys(("rad", "radian", "radians", *_PLAIN), 1),
        **dict.fromkeys(("deg", "degree", "degrees", "degrees_east", "degrees_north"), np.pi / 180),
        "mrad": 1e-3,
    },
    "pixel": dict.fromkeys(("pixel", "pixels", "px", *_PLAIN), 1),
    "number": dict.fromkeys(_PLAIN, 1),
    "time": {"ns": 1, "fs": 1e-6, "ps": 1e-3, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9},
    "energy": {"keV": 1, "eV": 1e-3, "MeV": 1e3, "GeV": 1e6, "TeV": 1e9},
    "charge": {"fC": 1, "pC": 1e3},
    "signal of a particle": {"MIP": 1},
    "count of a digitizer": {"ADC": 1},
    "velocity": {"cm/s": 1, "m/s": 1e2, "km/s": 1e5},
    "mass": {"g": 1, "kg": 1e3, "Msun": 1.98841e33},
}
"""Sizes of units by quantity, in the first one: that of cgs for lengths, velocities and masses."""

HITS = {variable.name: variable.unit for variable in TIMEPIX.variables if variable.fixed}
"""Units of Timepix hits, which `dt_max`, calibrations and streams are made for."""

BOX = "boxsize_units"
"""Attribute of a Dataset with the unit of its attribute ``boxsize``."""

ONE = Fraction(1)
_OVER_H = ("length", "mass")  # quantities of simulations that are given in units with 1/h
# Quantities in the place of another: positions that are no lengths, deposits before they are calibrated.
_INSTEAD: dict[str, set[str]] = {
    "length": {"angle", "pixel", "number"},
    "energy": {"number", "charge", "signal of a particle", "count of a digitizer"},
    "mass": {"number"},
}
_MULTIPLE = re.compile(r"([0-9.]+(?:e[+-]?[0-9]+)?)(?:\s+|(?=[^\W\d]))(\S+)", re.IGNORECASE)


class Unit(NamedTuple):
    """What a text says: quantities it can be of, its size in their first unit, and its power of h, 0 or -1."""

    quantities: frozenset[str]
    size: Fraction
    power: int


def parse(text: str) -> Unit | None:
    """Return the unit that a text names, such as ``"25 ns"`` or ``"Mpc/h"``, None where it is not known."""
    found = _MULTIPLE.fullmatch(text.strip())
    name = found[2] if found else text.strip()
    bare, power = (name[:-2], -1) if name.endswith("/h") else (name, 0)
    sizes = {quantity: named[bare] for quantity, named in SIZES.items() if bare in named}
    try:
        many = float(found[1]) if found else 1.0
    except ValueError:
        return None
    if not sizes or not 0 < many < float("inf") or (power and not sizes.keys() <= set(_OVER_H)):
        return None
    size = Fraction(str(many)) * Fraction(str(next(iter(sizes.values()))))
    return Unit(frozenset(sizes), size, power)


def ratio(unit: str, wanted: str, hubble: Any = None) -> Fraction | None:
    """Return what values in one unit are multiplied by to be in another; None where they do not convert."""
    if unit.strip() == wanted.strip():
        return ONE
    mine, theirs = parse(unit), parse(wanted)
    if mine is None or theirs is None or not mine.quantities & theirs.quantities:
        return None
    power = mine.power - theirs.power
    if power and not (isinstance(hubble, int | float | np.floating) and 0 < hubble < 10):
        return None
    return mine.size / theirs.size * (Fraction(str(float(hubble))) ** power if power else 1)


def converted(values: Any, by: Fraction) -> Any:
    """Return an array of any class times a ratio, rounded once where that or its inverse is whole and below 2**53.

    A float array keeps its type, others become float64; a ratio of 1 leaves the array itself.
    """
    if by == 1:
        return values
    values = values if values.dtype.kind == "f" else values.astype(np.float64)
    return values / float(by.denominator) if by.numerator == 1 else values * float(by)


def common(units: Mapping[Any, Any], hubble: Any = None) -> tuple[str | None, dict[Any, Fraction]]:
    """Return the unit of variables that are measured together, the first one's, and what turns each into it."""
    given = {name: str(unit) for name, unit in units.items() if unit is not None}
    if not given:
        return None, dict.fromkeys(units, ONE)
    found = [_known(name, unit) for name, unit in given.items()]
    first, wanted = next(iter(given.items()))
    missing = ", ".join(str(name) for name in units if name not in given)
    if missing:
        all_of_them = ",".join(f"{name}={given.get(name, wanted)}" for name in units)
        raise ValueError(
            f"{first} has the unit {wanted!r}, and {missing} has none, so that they cannot be measured "
            f"together; name the unit of each in its attrs['units'] ({all_of_them}), or remove that of {first}"
        )
    ratios, shared = {}, found[0].quantities
    for (name, unit), each in zip(given.items(), found, strict=True):
        by, shared = ratio(unit, wanted, hubble), shared & each.quantities
        if by is None or not shared:
            h = " without h, which attrs['hubble'] of the Dataset may tell" if each.power != found[0].power else ""
            raise ValueError(
                f"{first} has the unit {wanted!r} and {name} {unit!r}, which cannot be converted into each other"
                f"{h}; scale one to the unit of the other, and name it in its attrs['units']"
            )
        ratios[name] = by
    return wanted, ratios


def in_unit(name: str, values: Any, unit: Any, wanted: str | None) -> Any:
    """Return values in the unit that is wanted, those without a unit as they are."""
    if unit is None or (wanted is not None and str(unit).strip() == wanted):
        return values
    _known(name, str(unit))
    by = None if wanted is None else ratio(str(unit), wanted)
    if by is None:
        problem = "is compared with values that have none" if wanted is None else f"cannot be converted to {wanted!r}"
        raise ValueError(f"{name} has the unit {str(unit)!r}, which {problem}; name the right one in attrs['units']")
    return converted(values, by)


def threshold_in(name: str, values: Any, unit: Any, wanted: str | None) -> Any:
    """Return one threshold for each point in the unit of the data: as `in_unit`; a plain number is in it already."""
    return in_unit(name, values, None if str(unit).strip() in _PLAIN else unit, wanted)


def hit_column(variable: Any, name: str) -> Any:
    """Return a DataArray of Timepix hits in the unit of `HITS`."""
    values = in_unit(name, variable.data, variable.attrs.get("units"), HITS[name])
    return variable if values is variable.data else variable.copy(data=values).assign_attrs(units=HITS[name])


def check(name: str, unit: str, usual: str, source: str, *, exact: bool = False) -> None:
    """Refuse what is no unit of a variable."""
    quantities = _known(name, usual).quantities
    allowed = quantities if exact else quantities.union(*[_INSTEAD.get(quantity, ()) for quantity in quantities])
    remedy = f", or give the right one with units={{{name!r}: ...}}"
    mine = _known(f"variable {name!r} of {source}", unit, allowed, remedy)
    if exact or not mine.quantities & allowed:
        raise ValueError(
            f"variable {name!r} of {source} has the unit {unit!r}, which cannot be converted to {usual!r}; "
            f"convert its values first, or give their unit with units={{{name!r}: ...}}"
        )


def words(unit: Any) -> str:
    """Return a unit as it stands behind a number, empty for a plain number."""
    return "" if unit is None or str(unit).strip() in _PLAIN else f" {unit}"


def known(quantities: Iterable[str] = SIZES) -> str:
    """Return the names of the units of some quantities in one line."""
    names = dict.fromkeys(name for quantity, sizes in SIZES.items() if quantity in quantities for name in sizes if name)
    return f"{', '.join(names)} (with /h behind lengths and masses, and multiples such as '25 ns')"


def _known(name: Any, unit: str, quantities: Iterable[str] = SIZES, remedy: str = "") -> Unit:
    """Return a unit that is known, or raise and name those of some quantities."""
    found = parse(unit)
    if found is None:
        raise ValueError(f"{name} has the unit {unit!r}, which is not known; known: {known(quantities)}{remedy}")
    return found
