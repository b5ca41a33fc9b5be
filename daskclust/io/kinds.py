"""Values in the types that variables have, with nothing lost on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.columns import reals
from daskclust.core.data.fields import Variable

# A float64 holds every whole number below this one, and not every one above.
_EXACT_FLOAT = 2**53


def conform(values: npt.ArrayLike, first_row: int, variable: Variable, source: str = "the values") -> npt.NDArray[Any]:
    """Return numbers (n,) in native byte order, in a type that a variable may have; name the row of one that has none.

    Floats keep float32 or float64 (float16 becomes float32, others float64), integers keep their type; whole floats
    become ``variable.dtype`` where an integer is due. A fixed variable always has ``variable.dtype``.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"variable {variable.name!r} must be numeric, got dtype {array.dtype} in {source}")
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


def target_dtype(dtype: npt.DTypeLike, variable: Variable | None) -> np.dtype[Any]:
    """Return the type that `conform` gives to values of a type; without a variable they keep theirs."""
    if variable is None:
        return np.dtype(dtype).newbyteorder("=")
    return conform(np.empty(0, dtype=dtype), 0, variable).dtype
