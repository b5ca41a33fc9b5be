"""Checks of the user's input. Each error shows the value and says what to do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.core.data.quote import quoted
from daskclust.core.device.arrays import is_cuda, is_dask, library

_MOST_POINTS = 2**31 - 64
MOST_CELLS = 2**62
_FARTHEST_CELL = 2**52
_LEAST_EXTENT = 2.0**-511  # its square is the smallest normal float64


def check_number(name: str, value: Any) -> float:
    """Return `value` as a float, infinite where a float cannot be as large, if it is a number and not NaN."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        unit = hasattr(value, "unit") or hasattr(value, "units")
        remedy = "; give the number alone, in the unit of the data" if unit else ""
        raise TypeError(f"{name} must be a number, got {value!r}{remedy}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if math.isnan(number):
        raise ValueError(f"{name} must be a number, got {value!r}")
    return number


def check_positive(name: str, value: Any, *, zero: bool = False, dtype: Any = np.float64) -> float:
    """Return `value` as a float if it is a finite number above 0 (or 0, with `zero`) that `dtype` holds."""
    number = math.nan if isinstance(value, float | np.floating) and np.isnan(value) else check_number(name, value)
    if not math.isfinite(number) or number < 0 or (number == 0 and not zero):
        raise ValueError(f"{name} must be finite and {'not negative' if zero else 'positive'}, got {quoted(value)}")
    least, most = float(np.finfo(dtype).tiny), float(np.finfo(dtype).max)
    if dtype != np.float64 and number and not least <= number <= most:
        raise ValueError(
            f"{name} must lie between {least:g} and {most:g} for {np.dtype(dtype)} coordinates, got {quoted(value)}; "
            "give them in float64"
        )
    return number


def check_distance(name: str, value: Any, dtype: Any = np.float64) -> float:
    """Return `value` as a float if `dtype` holds its square: points are compared by squared distances."""
    number = check_positive(name, value)
    least, most = math.sqrt(np.finfo(dtype).tiny), math.sqrt(np.finfo(dtype).max) / 2
    if not least <= number <= most:
        raise ValueError(
            f"{name} must lie between {least:g} and {most:g}, whose squares {np.dtype(dtype)} coordinates hold, got "
            f"{quoted(value)}; give the coordinates and {name} in another unit"
        )
    return number


def check_whole(name: str, value: Any, least: int, most: int = 2**63 - 1, *, clamp: bool = False) -> int:
    """Return `value` as an int if it is a whole number from `least` to `most`; with `clamp` more than `most` is `most`.

    Clamp where `most` is beyond all that the number is compared with: then all larger ones mean the same.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be {least} or more, got {quoted(value)}")
    if value > most and not clamp:
        raise ValueError(f"{name} must be at most {quoted(most)}, got {quoted(value)}")
    return min(int(value), most)


def check_points(estimator: Any, points: Any, reset: bool = True) -> Any:
    """Return coordinates (n, d) in float32 or float64, checked in all that needs no pass over the data.

    `estimator` learns the number of the coordinates, and their names where they are those of a DataFrame; without
    `reset` both must be those that it has learnt.
    """
    X = points.X
    if reset and _is_usual(X) and not points.features:
        vars(estimator).pop("feature_names_in_", None)
        estimator.n_features_in_ = X.shape[1]
        return X.rechunk({1: -1}) if is_dask(X) else X if is_cuda(X) else np.ascontiguousarray(X)
    if (is_dask(X) or is_cuda(X)) and X.ndim != 2:
        raise ValueError(f"X must have shape (n, d), got {X.shape}; one coordinate: X[:, None]")
    # scikit-learn's own words on shapes, for arrays of any class: of these it is given one of the same shape
    like = np.broadcast_to(np.float64(0), X.shape) if is_dask(X) or is_cuda(X) else X
    from sklearn.utils.validation import check_array, validate_data

    has_names = points.features and all(isinstance(name, str) for name in points.axes)
    if reset:
        like = validate_data(estimator, like, dtype=[np.float64, np.float32], ensure_all_finite=False)
        if has_names:
            estimator.feature_names_in_ = np.array(points.axes, object)
    else:
        import pandas as pd

        like = check_array(like, dtype=[np.float64, np.float32], ensure_all_finite=False, estimator=estimator)
        named = pd.DataFrame(columns=list(points.axes)) if has_names else like
        validate_data(estimator, named, reset=False, skip_check_array=True)
    if is_dask(X):
        return X.rechunk({1: -1})
    return X if is_cuda(X) else np.ascontiguousarray(like)


def _is_usual(X: Any) -> bool:
    """Return True for an array that needs no further look at its shape and type, for which scikit-learn is imported."""
    is_known = type(X) is np.ndarray or is_dask(X) or library(X) == "cupy"
    return is_known and X.ndim == 2 and X.size > 0 and X.dtype in (np.float32, np.float64)


def check_count(n: int) -> None:
    """Refuse more points than one chunk's indices can number."""
    if n > _MOST_POINTS:
        raise ValueError(f"{n} points are more than one chunk holds ({_MOST_POINTS}); pass a dask array of more chunks")


def check_length(name: str, values: Any, n: int) -> None:
    """Refuse a column that does not have one value for each of `n` points."""
    if np.ndim(values) != 1 or len(values) != n:
        raise ValueError(f"{name} must have one value for each of the {n} points of X, got shape {np.shape(values)}")


def raise_not_finite(point: NDArray[Any], row: int) -> None:
    """Say which coordinate is NaN or infinite."""
    axis = int(np.flatnonzero(~np.isfinite(point))[0])
    what = "NaN" if np.isnan(point[axis]) else "infinity (inf)"
    raise ValueError(
        f"X contains {what}: X[{row}, {axis}] = {point[axis]}; remove such points first, e.g. "
        "X[np.isfinite(X).all(axis=1)]"
    )


def check_extent(low: NDArray[np.float64], high: NDArray[np.float64], tile: float | tuple[float, ...]) -> None:
    """Refuse coordinates so large that cells of width `tile`, or of one for each axis, cannot be told apart."""
    for axis, ends in enumerate(zip(low, high, np.broadcast_to(tile, len(low)), strict=True)):
        farthest, width = max(ends[:2], key=abs), ends[2]
        if abs(farthest) / width > _FARTHEST_CELL:
            raise ValueError(
                f"X reaches {farthest:g} along axis {axis}, over 2**52 times the distance {width:g} of neighbours; "
                "remove far outliers, or use larger distances"
            )


def check_spread(low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
    """Refuse different points that are so near to each other that squares of their distances are 0."""
    extent = float((high - low).max(initial=0.0))
    if 0 < extent < _LEAST_EXTENT:
        raise ValueError(
            f"X has an extent of {extent:g}, and squares of such distances are too small for float64; give it in a "
            "smaller unit"
        )


def check_cells(groups: int, shape: Sequence[int], n: int) -> None:
    """Refuse a grid with more cells than can be numbered."""
    if groups * math.prod(shape) >= MOST_CELLS:
        raise ValueError(
            f"the {n} points lie in {' x '.join(map(str, shape))} slabs of cells on {groups} layers, over 2**62 cells; "
            "use a larger dc or delta, or fewer points at a time"
        )


def raise_not_finite_value(name: str, value: Any, row: int) -> None:
    """Say which value of a column is NaN or infinite."""
    raise ValueError(f"{name} must be finite, got {name}[{row}] = {value}; remove such points first")


def sides_of_box(boxsize: Any, d: int) -> tuple[float, ...]:
    """Return the side of a box along each of `d` axes, 0 where it is open, of one number or one for each axis."""
    sizes = [boxsize] * d if boxsize is None or np.ndim(boxsize) == 0 else list(boxsize)
    if len(sizes) != d:
        raise ValueError(f"boxsize must be one number or one for each of the {d} axes of X, got {boxsize!r}")
    return tuple(0.0 if size is None else check_positive("boxsize", size) for size in sizes)


def axis_periods(wrap: Mapping[Any, float] | None, names: Sequence[Any], dtype: Any = np.float64) -> tuple[float, ...]:
    """Return the period of each axis, 0 where it is open."""
    periods = [0.0] * len(names)
    if wrap is not None and not isinstance(wrap, Mapping):
        raise TypeError(f"wrap must be a mapping from axes to periods, such as {{'phi': 6.28}}, or None, got {wrap!r}")
    for axis, period in (wrap or {}).items():
        if axis in names:
            k = list(names).index(axis)
        elif isinstance(axis, int | np.integer) and not isinstance(axis, bool) and -len(names) <= axis < len(names):
            k = int(axis)
        else:
            raise ValueError(f"wrap names the axis {axis!r}; the axes are {list(names)!r}")
        periods[k] = check_distance(f"wrap[{axis!r}]", period, dtype)
    return tuple(periods)
