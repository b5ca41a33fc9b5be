"""One look at all coordinates, or groups, before anything is allocated: extent, what is no number, gaps of groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.core.data.checks import raise_not_finite, raise_not_finite_value
from daskclust.core.device.arrays import HOST, Cuda, Host, device_of, fill
from daskclust.core.device.kernels import kernel
from daskclust.core.device.operations import atomic_load, atomic_max, atomic_min
from daskclust.core.space.partition import Chunk

_ROWS = 256
_THREADS = 1 << 17  # on CUDA, each of which looks at many values and then once at what the others found


def extent_of(chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and highest coordinates of a chunk's points; refuse one that is not finite, by its id."""
    device = device_of(chunk.columns["X"])
    X = chunk.columns["X"]
    low, high, bad = survey(device, X)
    if bad < len(X):
        raise_not_finite(device.to_host(X[bad : bad + 1])[0], chunk.ids_on_host()[bad])
    return low, high


def check_values(chunk: Chunk, column: str, name: str) -> None:
    """Refuse a value of a chunk's column that is not finite, by its id."""
    device = device_of(chunk.columns[column])
    values = chunk.columns[column]
    *_, bad = survey(device, values.reshape(len(values), 1))
    if bad < len(values):
        raise_not_finite_value(name, device.to_host(values[bad : bad + 1])[0], chunk.ids_on_host()[bad])


def survey(device: Host | Cuda, X: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the lowest and highest coordinate of every axis, float64, and the first row with one that is not finite.

    That row is n where all are finite. `X` is (n, d) on `device`. Of no points the coordinates are 0.
    """
    n, d = X.shape
    if n == 0:
        return np.zeros(d), np.zeros(d), 0
    if device is HOST:
        low, high = _extreme(np.min, X), _extreme(np.max, X)
        finite = np.isfinite(low).all() and np.isfinite(high).all()  # NaN goes through
        return low, high, n if finite else int(np.isfinite(X).all(axis=1).argmin())
    ends = device.from_host(np.array([np.inf] * d + [-np.inf] * d + [n]))
    threads = d * min(n, max(1, _THREADS // d))
    device.run(_survey_in_strides, threads, threads // d, X, ends)
    found = device.to_host(ends)
    return found[:d], found[d:-1], int(found[-1])


def group_range(device: Host | Cuda, group: Any) -> tuple[int, int]:
    """Return the lowest and highest group number in ``group`` (n,), 0 and 0 where it is empty."""
    if len(group) == 0:
        return 0, 0
    if device is HOST:
        return int(group.min()), int(group.max())
    ends = device.from_host(np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min]))
    threads = min(len(group), _THREADS)
    device.run(_group_in_strides, threads, threads, group, ends)
    low, high = device.to_host(ends)
    return int(low), int(high)


def _extreme(choose: Callable[..., Any], X: Any) -> NDArray[np.float64]:
    """Return the lowest or highest of each column, float64: many rows are taken as one, for NumPy's SIMD."""
    whole, d = len(X) - len(X) % _ROWS, X.shape[1]
    parts = [X[whole:]]
    if whole:
        parts.append(choose(X[:whole].reshape(-1, _ROWS * d), axis=0).reshape(_ROWS, d))
    return choose(np.concatenate(parts), axis=0).astype(np.float64)


@kernel
def _survey_in_strides(t, stride, X, ends):
    """Find the extremes of one axis in every so-many-th row, neighbouring threads side by side, then tell them once."""
    n, d = X.shape
    i = np.uint32(np.uint32(t) // np.uint32(d))  # 32 bits: an unrolled loop divides by its step
    k = t - i * d
    least, most, bad = np.inf, -np.inf, np.float64(n)
    while i < n:
        x = np.float64(X[i, k])
        if x - x == 0.0:  # false for infinities and NaN
            least = x if x < least else least
            most = x if x > most else most
        elif i < bad:
            bad = np.float64(i)
        i = np.uint32(i + np.uint32(stride))
    if least < atomic_load(ends, k):
        atomic_min(ends, k, least)
    if most > atomic_load(ends, d + k):
        atomic_max(ends, d + k, most)
    if bad < n:
        atomic_min(ends, 2 * d, bad)


@kernel
def _group_in_strides(t, stride, group, ends):
    """Find the extremes of every so-many-th number, then tell them once."""
    least = most = np.int64(group[t])
    i = np.uint32(t)
    while i < len(group):
        number = np.int64(group[i])
        least, most = min(least, number), max(most, number)
        i = np.uint32(i + np.uint32(stride))
    if least < atomic_load(ends, 0):
        atomic_min(ends, 0, least)
    if most > atomic_load(ends, 1):
        atomic_max(ends, 1, most)


def without_gaps(device: Host | Cuda, group: Any) -> tuple[Any, int, int]:
    """Return groups (n,) as numbers in the same order, the first of them, and how many there are from it to the last.

    They are the user's own unless these go over more than twice as many as there are groups: a chunk may have every
    eighth layer only, and would have cells for all.
    """
    if len(group) == 0:  # no groups are given: all points are of one
        return group, 0, 1
    first, last = group_range(device, group)
    span = last - first + 1
    if span > 4 * len(group) + 1024:  # so far apart that they are not looked up in a table
        distinct, number = np.unique(device.to_host(group), return_inverse=True)
        return device.from_host(number.astype(np.int32)), 0, len(distinct)
    up_to = device.scratch(span, np.int32)
    device.run(fill, span, up_to, np.int32(0))
    device.run(_mark, len(group), group, first, up_to)
    device.running_sum(up_to, up_to)
    count = int(device.to_host(up_to[span - 1 :])[0])
    if span <= 2 * count:
        return group, first, span
    number = device.scratch(len(group), np.int32)
    device.run(_number, len(group), group, first, up_to, number)
    return number, 0, count


@kernel
def _mark(i, group, first, is_group):
    is_group[np.uint64(np.int64(group[i]) - first)] = 1


@kernel
def _number(i, group, first, up_to, number):
    number[i] = up_to[np.int64(group[i]) - first] - 1
