"""Cells in files: rows of one matrix, read at once or by dask's blocks, and the data set that they become."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.quote import listed, meant, quoted
from daskclust.core.space.partition import block_sizes
from daskclust.io.lazy import MOST_ROWS

Matrix = npt.NDArray[Any]

FIELD = "cytometry"
VARIABLES = {"apriori": "apriori cluster", "population": "true population", "label": "cluster number, noise -1"}
"""What a cell has beside its channels, all whole numbers."""

# Bytes of rows that are read at a time where all are wanted: they are in memory several times.
_BLOCK_BYTES = 1 << 23


class Rows(Protocol):
    """A matrix of cells in a file. Implementations are frozen dataclasses, which dask can send and name."""

    @property
    def path(self) -> str:
        """The file."""

    @property
    def rows(self) -> int:
        """Number of cells."""

    @property
    def width(self) -> int:
        """Number of columns."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values that `load` gives."""

    def load(self, start: int, stop: int) -> Matrix:
        """Return rows start to stop, of shape (stop - start, width)."""


@dataclass(frozen=True, slots=True)
class WholeNumbers:
    """One column of a matrix, as the whole numbers that it must be.

    Parameters
    ----------
    rows_of : Rows
        The matrix.
    column : int
        Which column.
    name : str
        What it is, for messages.
    """

    rows_of: Rows
    column: int
    name: str

    @property
    def path(self) -> str:
        """The file."""
        return self.rows_of.path

    @property
    def rows(self) -> int:
        """Number of cells."""
        return self.rows_of.rows

    @property
    def width(self) -> int:
        """Number of columns."""
        return 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return np.dtype(np.int64)

    def load(self, start: int, stop: int) -> Matrix:
        """Return rows start to stop."""
        values = self.rows_of.load(start, stop)[:, self.column]
        return whole_numbers(values, self.name, self.path, start)[:, None]


def whole_numbers(values: Matrix, name: str, source: str, first_row: int = 0) -> npt.NDArray[np.int64]:
    """Return values as int64, if they are whole numbers that a float64 tells apart."""
    if values.dtype.kind in "fu":
        good = np.abs(values) < (2.0**53 if values.dtype.kind == "f" else 2**63)  # NaN compares false
        good[good] = values[good] == np.floor(values[good])
        if not good.all():
            k = int(np.argmin(good))
            raise ValueError(
                f"column {quoted(name)} of {source} must hold whole numbers, got {values[k]!s} in row {first_row + k} "
                "(counted from 0); choose columns without it with channels="
            )
    return values.astype(np.int64)


def check_chunks(chunks: Any) -> int | None:
    """Return the cells of a chunk, None for all at once."""
    if chunks is None:
        return None
    if isinstance(chunks, bool) or not isinstance(chunks, int | np.integer) or chunks < 1:
        raise ValueError(f"chunks must be a positive number of cells or None, got {chunks!r}")
    return min(int(chunks), MOST_ROWS)


def matrix_of(file: Rows, chunks: int | None) -> Any:
    """Return all rows as an array of shape (rows, width): of numpy, or of dask, whose blocks read their own rows."""
    if chunks is None:
        out = np.empty((file.rows, file.width), file.dtype)
        step = max(1, _BLOCK_BYTES // (8 * file.width))
        for start in range(0, file.rows, step):
            stop = min(start + step, file.rows)
            out[start:stop] = file.load(start, stop)
        return out
    import dask.array as da
    from dask.base import tokenize

    there = _at(file, os.path.abspath(file.path))
    state = os.stat(there.path)
    # The time of writing is in the name, so that a file written anew is not taken from a cluster's memory.
    token = tokenize(there, state.st_mtime_ns, state.st_size, chunks)
    return da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
        _load_block,
        file=there,
        chunks=(block_sizes(file.rows, chunks), (file.width,)),
        dtype=file.dtype,
        meta=np.empty((0, 0), file.dtype),
        name=f"daskclust-io-read-{token}",
    )


def column_of(file: Rows, chunks: int | None) -> Any:
    """Return the only column, of shape (rows,)."""
    return matrix_of(file, chunks)[:, 0]


R = TypeVar("R")


def _at(file: R, path: str) -> R:
    """Return the same rows under another path."""
    if isinstance(file, WholeNumbers):
        return replace(file, rows_of=_at(file.rows_of, path))
    moved: R = replace(file, path=path)  # type: ignore[type-var]
    return moved


def _load_block(*, file: Rows, block_info: Mapping[Any, Any] | None = None) -> Matrix:
    """Read the rows of one block; dask tells which ones."""
    if block_info is None:
        raise ValueError("block_info is missing: this function is for dask.array.map_blocks")
    start, stop = block_info[None]["array-location"][0]
    return file.load(start, stop)


def read_exactly(path: str, dtype: np.dtype[Any], count: int, offset: int) -> Matrix:
    """Return `count` values of a file that had them when it was opened."""
    values: Matrix = np.fromfile(path, dtype, count, offset=offset)
    if len(values) != count:
        raise ValueError(
            f"{path} has {len(values)} of the {count} rows or values from byte {offset}: the file has changed since it "
            "was opened; open it again"
        )
    return values


def check_patterns(value: Any, name: str) -> tuple[str, ...]:
    """Return names or patterns as a tuple; `value` may be one of them."""
    given = (value,) if isinstance(value, str) else value
    if not isinstance(given, Sequence) or not all(isinstance(entry, str) and entry for entry in given):
        raise ValueError(f"{name} must be a name or pattern such as 'CD*', or a list of these, got {quoted(value)}")
    return tuple(given)


def matching(pattern: str, names: Sequence[Sequence[str]]) -> list[int]:
    """Return which channels have a name that is the pattern, or else that it matches as ``*``, ``?`` and ``[]`` do."""
    exact = [k for k, own in enumerate(names) if pattern in own]
    return exact or [k for k, own in enumerate(names) if any(fnmatchcase(name, pattern) for name in own)]


def choose_channels(patterns: Any, names: Sequence[Sequence[str]], source: str) -> list[int]:
    """Return the chosen channels in the order in which they are asked for.

    Parameters
    ----------
    patterns : str, sequence of str, or None
        Names or patterns; None for all channels.
    names : sequence of sequence of str
        All names of each channel.
    source : str
        The file, for messages.

    Returns
    -------
    list of int
        Each channel once.

    Raises
    ------
    ValueError
        For a pattern that no channel matches, and for none at all.
    """
    if patterns is None:
        return list(range(len(names)))
    chosen: dict[int, None] = {}
    for pattern in check_patterns(patterns, "channels"):
        found = matching(pattern, names)
        if not found:
            known = [own[0] for own in names]
            raise ValueError(
                f"{source} has no channel {quoted(pattern)}{meant(pattern, known)}; it has {listed(known)}"
            )
        chosen.update(dict.fromkeys(found))
    if not chosen:
        raise ValueError(f"channels chooses none of {source}, got {quoted(patterns)}; leave it out for all of them")
    return list(chosen)


def cells_dataset(
    X: Any,
    channels: Sequence[str],
    attrs: Mapping[str, Any],
    variables: Mapping[str, Any] | None = None,
    detectors: Sequence[str] | None = None,
) -> xr.Dataset:
    """Return the data set of cells.

    Parameters
    ----------
    X : array, shape (n, d)
        Values, numpy or dask.
    channels : sequence of str
        Names of the d channels.
    attrs : mapping of str to object
        Its attributes, of which ``transform`` and ``cofactor`` name the values.
    variables : mapping of str to array, each of shape (n,), optional
        What cells have beside channels.
    detectors : sequence of str, optional
        Second names of the channels.

    Returns
    -------
    xarray.Dataset
        With ``X`` along ``cell`` and ``channel``.
    """
    coords: dict[str, Any] = {"channel": list(channels)}
    if detectors is not None:
        coords["detector"] = ("channel", list(detectors))
    columns = {
        name: ("cell", values, {"units": "1", "long_name": VARIABLES.get(name, name)})
        for name, values in (variables or {}).items()
    }
    about = {"units": "1", "long_name": long_name(attrs)}
    return xr.Dataset({"X": (("cell", "channel"), X, about), **columns}, coords=coords, attrs=dict(attrs))


def long_name(attrs: Mapping[str, Any]) -> str:
    """Return what the values are, by the attributes of their data set."""
    if attrs.get("transform") != "arcsinh":
        return "intensity"
    return f"intensity, arcsinh(x / {attrs['cofactor']:g})" if "cofactor" in attrs else "intensity, arcsinh"
