"""Spillover: the matrix that a file has, its channels, and its inverse."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from daskclust.core.data.quote import listed, quoted

Unmixing = tuple[tuple[int, ...], tuple[tuple[float, ...], ...]]
"""Which columns a matrix is of, and its inverse by rows."""

_COMPENSATED = re.compile(r"(?:fj[-_]?)?comp[-_](.+)|<(.+)>", re.IGNORECASE)  # names that FlowJo gives
_SUBTRACTED = re.compile(r"dfc\d+to\d+")


def unmixing_of(layout: Any) -> tuple[Unmixing | None, str]:
    """Return how the own matrix of a file compensates it, and ``"file"``; None, and ``"none"`` or ``"before"``.

    `layout` is an `FcsLayout`, whose module imports this one. ``"before"`` is where the file tells that its values are
    compensated. A matrix that cannot be used is an error.
    """
    key = next((key for key in ("spillover", "spill") if layout.text.get(key, "").strip(" ,0")), None)
    if key is None:
        return None, "before" if _is_subtracted(layout.text) else "none"
    labels, matrix = _matrix_of(layout.text[key], f"{layout.path} has keyword {key.upper()}")
    found = _channels(labels, layout.names, layout.detectors)
    present = [k for k, own in enumerate(found) if own]
    if any(_COMPENSATED.fullmatch(layout.detectors[found[k][0]]) for k in present):
        return None, "before"
    # Without its channel, a dye can be left out where it has no light in others.
    kept = [k for k, own in enumerate(found) if own or not present or matrix[k][present].any()]
    used = matrix[np.ix_(kept, kept)], [labels[k] for k in kept], [found[k] for k in kept]
    return _inverted(*used, layout.names, layout.path), "file"


def unmixing(spillover: Any, names: Sequence[Sequence[str]], default: Sequence[int], source: str) -> Unmixing:
    """Return how a matrix that is given compensates; one without names is of the channels `default`."""
    matrix = np.asarray(spillover, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"the spillover matrix for {source} must be square, got shape {matrix.shape}")
    labels = _labels(spillover)
    if labels is None and len(default) != len(matrix):
        raise ValueError(
            f"the spillover matrix has {len(matrix)} rows without names, and {source} has {len(default)} channels "
            "that are not linear; give a pandas.DataFrame with the names of channels as columns"
        )
    found = [[k] for k in default] if labels is None else _channels(labels, names, [own[-1] for own in names])
    try:
        return _inverted(matrix, labels or [names[k][0] for k in default], found, names, source)
    except ValueError as error:
        raise ValueError(f"{error}; give another matrix, or leave compensation out") from None


def _labels(spillover: Any) -> list[str] | None:
    """Return the names of the columns of a DataFrame or DataArray, None for a plain array."""
    if isinstance(spillover, xr.DataArray):
        last = spillover.dims[-1]
        return [str(name) for name in spillover[last].values] if last in spillover.coords else None
    columns = getattr(spillover, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def _channels(labels: Sequence[str], names: Sequence[Sequence[str]], detectors: Sequence[str]) -> list[list[int]]:
    """Return which channels each label of a matrix means: by detector, by name, or all labels by number from 1."""
    stages: list[tuple[Sequence[Sequence[str]], Callable[[str], str]]] = [
        ([(name,) for name in detectors], str),
        (names, str),
        (names, str.casefold),
        (names, _bare),
    ]
    ways = [
        [[k for k, own in enumerate(of) if same(label) in map(same, own)] for of, same in stages] for label in labels
    ]
    found = [next(filter(None, way), []) for way in ways]
    if any(found) or not all(label.isdecimal() and 0 < int(label) <= len(names) for label in labels):
        return found
    return [[int(label) - 1] for label in labels]


def _bare(name: str) -> str:
    """Return a name without case, and without what marks a compensated channel."""
    marked = _COMPENSATED.fullmatch(name)
    return (marked[1] or marked[2] if marked else name).casefold()


def _inverted(
    matrix: Any, labels: Sequence[str], found: Sequence[list[int]], names: Sequence[Sequence[str]], source: str
) -> Unmixing:
    """Return the columns and the inverse of a matrix, if each label means one channel and there is an inverse."""
    of = f"the spillover matrix for {source}"
    for k, (label, own) in enumerate(zip(labels, found, strict=True)):
        if len(own) != 1 or own in found[:k]:
            why = f"of which there are {len(own)}" if len(own) != 1 else "twice"
            raise ValueError(f"{of} names the channel {quoted(label)}, {why}; there are {listed(o[0] for o in names)}")
    if not np.isfinite(matrix).all() or np.linalg.matrix_rank(matrix) < len(matrix):
        raise ValueError(f"{of}, of {listed(names[own[0]][0] for own in found)}, has NaN or no inverse")
    return tuple(own[0] for own in found), tuple(map(tuple, np.linalg.inv(matrix).tolist()))


def _matrix_of(text: str, source: str) -> tuple[list[str], Any]:
    """Return the names and the matrix in a keyword: n, n names, n * n numbers.

    Some programs write quotes, a last comma, semicolons or tabs between them, or 1,000 for 1.000.
    """
    mark = next((mark for mark in ";\t" if mark in text), ",")
    line = " ".join(text.splitlines()).rstrip(f"{mark} ")
    count, *fields = (each.strip(" '") for each in next(csv.reader([line], delimiter=mark, skipinitialspace=True)))
    try:
        n = int(count)
        labels, numbers = fields[:n], fields[n:]
        if mark == "," and len(numbers) == 2 * n * n:
            numbers = [f"{whole}.{part}" for whole, part in zip(numbers[::2], numbers[1::2], strict=True)]
        if n < 1 or len(numbers) != n * n:
            raise ValueError
        return labels, np.array([number.replace(",", ".") for number in numbers], np.float64).reshape(n, n)
    except ValueError:
        raise ValueError(
            f"{source} {quoted(text)}, expected a number n, n names of channels and n * n numbers, and found "
            f"{len(fields) + 1} fields"
        ) from None


def _is_subtracted(text: Mapping[str, str]) -> bool:
    """Return whether keywords tell that light of other dyes was subtracted before values were written.

    $COMP of FCS 3.0, n and n * n numbers, and $DFCmTOn of FCS 2.0 are percentages that the cytometer subtracted.
    """
    numbers = text.get("comp", "").split(",")[1:]
    others = [number for k, number in enumerate(numbers) if k % (math.isqrt(len(numbers)) + 1)]  # off the diagonal
    others += [value for key, value in text.items() if _SUBTRACTED.fullmatch(key)]
    return any(number.strip(" 0.%+-") for number in others)
