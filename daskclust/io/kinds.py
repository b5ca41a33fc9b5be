"""Values in the types and units that variables have, with nothing lost on the way."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.columns import reals, remedy_of
from daskclust.core.data.fields import Variable
from daskclust.core.data.quote import quoted
from daskclust.core.data.units import ONE, check, converted, parse, ratio
from daskclust.core.device.arrays import is_dask
from daskclust.io.rows import Stored, by_blocks

# A float64 holds every whole number below this one, and not every one above.
_EXACT_FLOAT = 2**53


def conform(values: npt.ArrayLike, first_row: int, variable: Variable, source: str) -> npt.NDArray[Any]:
    """Return numbers (n,) in native byte order, in a type that a variable may have; name the row of one that has none.

    Floats keep float32 or float64 (float16 becomes float32, others float64), integers keep their type; whole floats
    become ``variable.dtype`` where an integer is due. A fixed variable always has ``variable.dtype``.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        remedy = remedy_of(array.dtype.kind)
        raise ValueError(f"variable {variable.name!r} must be numeric, got dtype {array.dtype} in {source}{remedy}")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if variable.fixed and array.dtype == variable.dtype:
        return array
    if variable.kind == "float":
        if not variable.fixed and array.dtype.kind == "f" and array.dtype.itemsize <= 8:
            return array.astype(np.float32, copy=False) if array.dtype.itemsize < 4 else array
        with np.errstate(over="ignore"):  # beyond the largest float32 is infinity
            floats: npt.NDArray[Any] = reals(f"{variable.name} of {source}", array, first_row)
            return floats.astype(variable.dtype)
    if variable.kind == "bool":
        return array if array.dtype.kind == "b" else _whole(array, variable, 0, 1, first_row, source).astype(bool)
    if array.dtype.kind in "iu" and not variable.fixed:
        return array
    bounds = np.iinfo(variable.dtype)
    low, high = max(bounds.min, 1 - _EXACT_FLOAT), min(bounds.max, _EXACT_FLOAT - 1)
    return _whole(array, variable, low, high, first_row, source).astype(variable.dtype)


def _whole(
    array: npt.NDArray[Any], variable: Variable, low: int, high: int, first_row: int, source: str
) -> npt.NDArray[Any]:
    """Return the array if it has whole numbers from low to high only, else name the first row that has not."""
    if array.dtype.kind == "b":
        return array
    # In float64, as a smaller type would round the bounds; and so written that NaN, which compares false, is wrong.
    bounds = np.array([[low], [high]], dtype=np.float64)
    good = (array >= bounds[0]) & (array <= bounds[1])
    if array.dtype.kind == "f":
        good &= array == np.floor(array, where=good, out=np.zeros_like(array))
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(
            f"variable {variable.name!r} must hold whole numbers from {low} to {high}, got {array[row]!s} in row "
            f"{first_row + row} (counted from 0) of {source}; correct it, or keep the column under another name with "
            "columns="
        )
    return array


def in_field_unit(
    values: Any, variable: Variable | None, name: str, unit: str | None, source: str
) -> tuple[Any, dict[str, str]]:
    """Return checked values in the field's unit, and their attributes."""
    array: Any = values if is_dask(values) or isinstance(values, Stored) else np.asarray(values)
    if len(array.shape) != 1:
        raise ValueError(f"variable {quoted(name)} must have one dimension, got shape {array.shape}")
    if variable is None:
        return array, {} if unit is None else {"units": unit}
    by = _ratio_of(variable, unit, source)
    wanted = conform(np.empty(0, array.dtype), 0, variable, source).dtype
    if wanted != array.dtype:
        array = by_blocks(conform, array, wanted, str(wanted), variable=variable, source=source)
    told = unit if by is None else variable.unit
    if by is not None and by != 1:
        array = by_blocks(_converted, array, converted(np.empty(0, array.dtype), by).dtype, "unit", by=by)
    return array, {**({"units": told} if told else {}), "long_name": variable.doc}


def _converted(values: Any, _: int, *, by: Fraction) -> Any:
    return converted(values, by)


def _ratio_of(variable: Variable, unit: str | None, source: str) -> Fraction | None:
    """Return what turns values into the variable's unit, None where they stay in theirs."""
    if unit is None or (variable.unit == "1" and variable.kind != "float" and parse(unit) is None):  # such as "id"
        return ONE
    if not variable.unit:
        return None
    by = ratio(unit, variable.unit)
    if by is None or (by != 1 and variable.kind != "float"):
        check(variable.name, unit, variable.unit, source, exact=variable.fixed or by is not None)
        return None
    return by
