"""What snapshots tell of units: sizes in cgs, to 3 digits, and powers of the scale factor and of Hubble's constant."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from daskclust.core.data.units import SIZES
from daskclust.io.schema import KNOWN

_QUANTITIES = {"": "length", "v": "velocity", "mass": "mass"}  # by what arrays become

# The same three facts as attributes of an array by Gadget-4 and AREPO, SWIFT, and EAGLE.
_CGS = ("to_cgs", "Conversion factor to CGS (not including cosmological corrections)", "CGSConversionFactor")
_HUBBLE = ("h_scaling", "h-scale exponent", "h-scale-exponent")
SCALE = ("a_scaling", "a-scale exponent", "aexp-scale-exponent")


def number(value: Any) -> float | None:
    """Return an attribute as a float: a number, or a list of one; None for what is neither, and for NaN."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return float(value) if isinstance(value, int | float) and not math.isnan(value) else None


def first_number(attrs: Mapping[str, Any], names: tuple[str, ...]) -> float | None:
    """Return the first of some attributes that is a number."""
    return next((found for name in names if (found := number(attrs.get(name))) is not None), None)


def system_of(about: Mapping[str, Any]) -> dict[str, float]:
    """Return the sizes of the units of a snapshot in cgs, by quantity, by what its groups tell."""
    length = first_number(about, ("UnitLength_in_cm", "Unit length in cgs (U_L)"))
    mass = first_number(about, ("UnitMass_in_g", "Unit mass in cgs (U_M)"))
    time = first_number(about, ("Unit time in cgs (U_t)",))
    velocity = first_number(about, ("UnitVelocity_in_cm_per_s",))
    if velocity is None and length and time:
        velocity = length / time
    sizes = {"length": length, "velocity": velocity, "mass": mass}
    return {name: size for name, size in sizes.items() if size is not None}


def unit_of(member: str, attrs: Mapping[str, Any], system: Mapping[str, float], hubble: float) -> str | None:
    """Return the unit of an array of particles, such as ``"1e10 Msun/h"``; None where the file tells none.

    `hubble` is the power of h in lengths and masses where the attributes of the array tell none.
    """
    quantity = _QUANTITIES.get(KNOWN.get(member, "id"))
    if quantity is None:
        return None
    size = first_number(attrs, _CGS) or system.get(quantity)
    power = first_number(attrs, _HUBBLE)
    if power is None:
        power = 0.0 if quantity == "velocity" else hubble
    if size is None or not 0 < size < math.inf:
        return None
    return _named(size, quantity) + {0.0: "", -1.0: "/h"}.get(power, f" h^{power:g}")


def _named(size: float, quantity: str) -> str:
    """Return the name of a unit of some size in cgs: a usual one, a power of ten of it, or cgs itself."""
    plain = next(iter(SIZES[quantity]))
    powers = {name: math.log10(size / usual) for name, usual in SIZES[quantity].items()}
    near = {name: round(power) for name, power in powers.items() if abs(power - round(power)) < 1e-3}
    if not near:
        return f"{size:g} {plain}"
    name = min(near, key=lambda name: abs(near[name]))
    return f"1e{near[name]} {name}" if near[name] else name
