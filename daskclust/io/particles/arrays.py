"""Arrays in files, row after row over one file or several: columns of them, read at once or by dask's blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.space.partition import block_sizes

Array = npt.NDArray[Any]
ReadRows = Callable[[str, str, int, int], Array]
"""Reads rows start to stop of one array of one file: (path, member, start, stop)."""

# Rows read at a time where all are wanted: they are in memory twice.
_BLOCK_ROWS = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of an array that one file has.

    Parameters
    ----------
    path : str
        The file.
    member : str
        Name of the array in it; "" where the file is the array.
    rows : int
        How many there are.
    """

    path: str
    member: str
    rows: int


@dataclass(frozen=True, slots=True)
class Stored:
    """An array in files.

    Parameters
    ----------
    read : callable
        A function of a module, so that workers find it.
    parts : tuple of Part
        In the order of the rows.
    width : int or None
        Number of columns; None for an array of shape (n,).
    dtype : numpy.dtype
        Type of the values as they are given, in native byte order.
    factor : float, default 1.0
        Values of the files are multiplied by it.
    """

    read: ReadRows
    parts: tuple[Part, ...]
    width: int | None
    dtype: np.dtype[Any]
    factor: float = 1.0

    @property
    def rows(self) -> int:
        """Rows of all files together."""
        return sum(part.rows for part in self.parts)

    def load(self, start: int, stop: int) -> Array:
        """Return rows start to stop, from the files that have them."""
        tail = () if self.width is None else (self.width,)
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
        """Return all columns, each of shape (n,).

        Parameters
        ----------
        chunks : int or None
            Rows of a block of dask arrays; None reads at once.

        Returns
        -------
        list of numpy.ndarray or dask.array.Array
            An array of shape (n,) is one column. The columns of a block are read together.
        """
        if chunks is None:
            out = np.empty((self.width or 1, self.rows), self.dtype)
            for start in range(0, self.rows, _BLOCK_ROWS):
                stop = min(start + _BLOCK_ROWS, self.rows)
                out[:, start:stop] = self.load(start, stop).reshape(stop - start, -1).T
            return list(out)
        array = self._lazy(chunks)
        return [array] if self.width is None else [array[:, k] for k in range(self.width)]

    def _lazy(self, chunks: int) -> Any:
        """Return a dask array, whose blocks read their own rows."""
        import dask.array as da
        from dask.base import tokenize

        parts = tuple(Part(os.path.abspath(part.path), part.member, part.rows) for part in self.parts)
        there = Stored(self.read, parts, self.width, self.dtype, self.factor)
        # The time of writing is in the name, so that files written anew are not taken from a cluster's memory.
        states = [(part.path, part.member, part.rows, *_state(part.path, part.member)) for part in parts]
        token = tokenize(states, self.width, self.dtype, self.factor, chunks)
        tail = () if self.width is None else (self.width,)
        return da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
            _load_block,
            stored=there,
            chunks=(block_sizes(self.rows, chunks), *((length,) for length in tail)),
            dtype=self.dtype,
            meta=np.empty((0, *(0 for _ in tail)), self.dtype),
            name=f"daskclust-io-read-{token}",
        )


def _state(path: str, member: str) -> tuple[int, ...]:
    """Return what changes when a file is written, or one of those in the folder of a zarr store's array."""
    if not os.path.isdir(path):
        state = os.stat(path)
        return state.st_mtime_ns, state.st_size
    folder = os.path.join(path, member.strip("/"))
    states = [os.stat(os.path.join(place, name)) for place, _, names in os.walk(folder) for name in names]
    return len(states), max((state.st_mtime_ns for state in states), default=0), sum(state.st_size for state in states)


def scalable(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype that holds multiples of numbers of `dtype`, which may be whole."""
    return dtype if dtype.kind == "f" else np.result_type(dtype, np.float32)


def _load_block(*, stored: Stored, block_info: Mapping[Any, Any] | None = None) -> Array:
    """Read the rows of one block; dask tells which ones."""
    if block_info is None:
        raise ValueError("block_info is missing: this function is for dask.array.map_blocks")
    start, stop = block_info[None]["array-location"][0]
    return stored.load(start, stop)


def constant(value: float, rows: int, chunks: int | None) -> Any:
    """Return a column (n,) of one value, in float64."""
    if chunks is None:
        return np.full(rows, value)
    import dask.array as da

    return da.full(
        rows, value, chunks=(block_sizes(rows, chunks),), name=f"daskclust-io-constant-{value!r}-{rows}-{chunks}"
    )


def check_numbers(shape: Sequence[int] | None, dtype: np.dtype[Any], what: str, remedy: str) -> int | None:
    """Return the number of columns of an array of numbers, None for one of shape (n,).

    Raises
    ------
    ValueError
        For other shapes and types.
    """
    if shape is None or len(shape) not in (1, 2) or dtype.kind not in "fiub" or 0 in shape[1:]:
        raise ValueError(
            f"{what} has shape {None if shape is None else tuple(shape)} and dtype {dtype}, expected numbers of shape "
            f"(n,) or (n, columns); {remedy}"
        )
    return None if len(shape) == 1 else int(shape[1])
