"""Arrays in files, row after row over one file or several: columns of them, read at once or by dask's blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.space.partition import block_sizes
from daskclust.io.lazy import lazy_rows

Array = npt.NDArray[Any]

# Rows read at a time where all are wanted: they are in memory twice.
_BLOCK_ROWS = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of an array that one file has."""

    path: str
    member: str  # name of the array in it; "" where the file is the array
    rows: int


@dataclass(frozen=True, slots=True)
class Stored:
    """An array in files."""

    read: Callable[[str, str, int, int], Array]  # reads rows start to stop: (path, member, start, stop)
    parts: tuple[Part, ...]  # in the order of the rows
    width: int | None  # number of columns; None for an array of shape (n,)
    dtype: np.dtype[Any]  # of the values as they are given, in native byte order
    factor: float = 1.0  # values of the files are multiplied by it

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows of all files together, and columns."""
        rows = sum(part.rows for part in self.parts)
        return (rows,) if self.width is None else (rows, self.width)

    def load(self, start: int, stop: int) -> Array:
        """Return rows start to stop, from the files that have them."""
        tail = self.shape[1:]
        out = np.empty((stop - start, *tail), self.dtype)
        first = 0
        for part in self.parts:
            low, high = max(start - first, 0), min(stop - first, part.rows)
            if low < high:
                found = self.read(part.path, part.member, low, high)
                if found.shape != (high - low, *tail):
                    raise ValueError(
                        f"{part.path} gave an array of shape {found.shape} for rows {low} to {high}, expected "
                        f"{(high - low, *tail)}: the file has changed since it was opened; open it again"
                    )
                out[first + low - start : first + high - start] = found
            first += part.rows
        if self.factor != 1:
            with np.errstate(over="ignore", invalid="ignore"):  # inf and NaN of a file stay such
                out *= out.dtype.type(self.factor)
        return out

    def columns(self, chunks: int | None) -> list[Any]:
        """Return all columns (n,), read at once, or lazy: those of a block of `chunks` rows are read together."""
        rows = self.shape[0]
        if chunks is None:
            out = np.empty((self.width or 1, rows), self.dtype)
            for start in range(0, rows, _BLOCK_ROWS):
                stop = min(start + _BLOCK_ROWS, rows)
                out[:, start:stop] = self.load(start, stop).reshape(stop - start, -1).T
            return list(out)
        there = replace(self, parts=tuple(replace(part, path=os.path.abspath(part.path)) for part in self.parts))
        # The array of a zarr store is a folder in it.
        folders = [os.path.join(p.path, p.member.strip("/")) for p in there.parts]
        files = [f if os.path.isdir(p.path) else p.path for f, p in zip(folders, there.parts, strict=True)]
        array = lazy_rows(there.load, files, self.shape, self.dtype, chunks)
        return [array] if self.width is None else [array[:, k] for k in range(self.width)]


def scalable(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype that holds multiples of numbers of `dtype`, which may be whole."""
    return dtype if dtype.kind == "f" else np.result_type(dtype, np.float32)


def constant(value: float, rows: int, chunks: int | None) -> Any:
    """Return a column (n,) of one value, in float64."""
    if chunks is None:
        return np.full(rows, value)
    import dask.array as da

    return da.full(
        rows, value, chunks=(block_sizes(rows, chunks),), name=f"daskclust-io-constant-{value!r}-{rows}-{chunks}"
    )


def check_numbers(shape: Sequence[int] | None, dtype: np.dtype[Any], what: str, remedy: str) -> int | None:
    """Return the columns of an array of numbers, None for one of shape (n,); refuse other shapes and types."""
    if shape is None or len(shape) not in (1, 2) or dtype.kind not in "fiub" or 0 in shape[1:]:
        raise ValueError(
            f"{what} has shape {None if shape is None else tuple(shape)} and dtype {dtype}, expected numbers of shape "
            f"(n,) or (n, columns); {remedy}"
        )
    return None if len(shape) == 1 else int(shape[1])
