"""Rows of files: read at once, when they are sliced, or as dask arrays whose blocks read their own rows."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.data.lazy import chunk_rows, with_first_rows
from daskclust.core.device.arrays import is_dask
from daskclust.core.space.partition import block_sizes
from daskclust.io.files import reading

MOST_ROWS = 2**62  # of a chunk: more are all rows, too

_AT_ONCE = 1 << 20  # values of a matrix that are read at a time: they are in memory twice

ReadRows = Callable[[int, int], npt.NDArray[Any]]
"""Reads rows start to stop. Workers must be able to unpickle it, so its paths are absolute."""

Rows = int | tuple[int, ...] | None
"""Rows of each block, those of all blocks, or None for an array in memory."""


class About(int):
    """About how many points a chunk has, where it may have whole chunks of the file; a plain int is taken as it is."""


class OnDemand(About):
    """About how many points are to be read at a time, of arrays that are read when they are sliced, without Dask."""


class Steps(tuple[int, ...]):
    """Rows that are to be read at a time, in the place of those of blocks."""


def rows_of_chunk(chunks: Any, about: int, points: str = "hits") -> int | None:
    """Return what a reader's `chunks` asks for: a number of points, `about` so many for ``"auto"``, or None."""
    if chunks is None or isinstance(chunks, About):
        return chunks
    if isinstance(chunks, str) and chunks == "auto":
        return About(about)
    return check_hits_per_chunk(chunks, also=", 'auto' or None", points=points)


def chunk_sizes(chunks: int, parts: Iterable[tuple[int, int | None]]) -> tuple[int, ...]:
    """Return the rows of each chunk of a file, whose parts have so many rows and so many in each chunk of their own.

    Where they are to be `About` so long, they are whole chunks of the file, so that none is read twice; but those that
    are more than twice as long are divided.
    """
    parts = list(parts)
    if not isinstance(chunks, About):
        return block_sizes(sum(rows for rows, _ in parts), chunks)
    about, sizes = int(chunks), [0]
    for rows, own in parts:
        step = own * max(1, round(about / own)) if own and own <= 2 * about else about
        for size in block_sizes(rows, step):
            if 0 in (sizes[-1], size) or sizes[-1] + size <= about:
                sizes[-1] += size
            else:
                sizes.append(size)
    return Steps(sizes) if isinstance(chunks, OnDemand) else tuple(sizes)


def check_hits_per_chunk(value: Any, name: str = "chunks", also: str = "", points: str = "hits") -> int:
    """Return `value` if it is a number of points for a chunk; `also` says for the message what else would do."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a positive number of {points}{also}, got {value!r}")
    return min(int(value), MOST_ROWS)


class Stored(NamedTuple):
    """An array of a file, or of several one after the other, that is read by rows; of shape (n,) or (n, columns)."""

    read: ReadRows
    files: tuple[str, ...]  # absolute paths, or folders
    kind: str  # of the files, for messages
    shape: tuple[int, ...]
    dtype: np.dtype[Any]  # in which it is read
    own: int | None = None  # rows of a chunk of the file
    units: str | None = None
    what: str = ""  # which array of the file, for messages
    fault: str = ""  # why it is no column of numbers; a remedy is to follow
    arrow: Any = None  # the type that Parquet has, where NumPy has none for it
    steps: Steps | None = None  # where it is read on demand

    def array(self, chunks: Rows, order: Any = "C") -> Any:
        """Return the array, in memory in an order of NumPy's, or lazy with `chunks` rows in each block.

        For `Steps` it stays stored.
        """
        if isinstance(chunks, Steps):
            return self._replace(steps=chunks)
        if chunks is not None:
            return self._lazy(chunks)
        out, step = np.empty(self.shape, self.dtype, order), max(1, _AT_ONCE // max(1, math.prod(self.shape[1:])))
        for start in range(0, self.shape[0], step):
            stop = min(start + step, self.shape[0])
            out[start:stop] = self.rows(start, stop)
        return out

    def rows(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Read rows, and raise if their shape is not what it was."""
        files, shape = ", ".join(self.files), (stop - start, *self.shape[1:])
        with reading(files, self.kind, f"rows {start} to {stop - 1}{self.what}, counted from 0"):
            found = self.read(start, stop)
        if found.shape != shape:
            raise ValueError(
                f"rows {start} to {stop - 1} of {files} have shape {found.shape}, expected {shape}: the file has "
                "changed since it was opened; open it again"
            )
        return found.astype(self.dtype, copy=False)

    def only(self, wanted: Sequence[int]) -> Stored:
        """Return some columns alone, as an array of the file."""
        if len(self.shape) == 1 or len(wanted) == self.shape[1]:
            return self
        return self._replace(read=partial(_columns_of, self.read, wanted), shape=(self.shape[0], len(wanted)))

    def column(self, number: int) -> Stored:
        """Return one column as an array (n,) of the file."""
        if len(self.shape) == 1:
            return self
        return self._replace(read=partial(_columns_of, self.read, number), shape=self.shape[:1])

    def columns(self, chunks: Rows) -> list[Any]:
        """Return the columns of the array, each contiguous in memory, or lazy."""
        array = self.array(chunks, "F")
        numbers = range(self.shape[1]) if len(self.shape) > 1 else ()
        if isinstance(array, Stored):
            return [array.column(k) for k in numbers] or [array]
        if not is_dask(array):
            return [array[:, k] for k in numbers] or [array]
        import dask.array as da

        kind = {"dtype": self.dtype, "meta": np.empty(0, self.dtype), "token": "daskclust-io-column"}
        kind |= {"concatenate": False, "align_arrays": False}
        return [da.blockwise(_column_of_block, "a", array, "ab", number=k, **kind) for k in numbers] or [array]

    def _lazy(self, chunks: int | tuple[int, ...]) -> Any:
        import dask.array as da
        from dask.base import tokenize

        sizes = chunks if isinstance(chunks, tuple) else block_sizes(self.shape[0], int(chunks))
        # The time of writing is in the name, so that a file written anew is not taken from a cluster's memory.
        token = tokenize(self.read, [(file, *_state(file)) for file in self.files], self.shape, self.dtype, sizes)
        axes, meta = "ab"[: len(self.shape)], np.empty((0,) * len(self.shape), self.dtype)
        kind = {"dtype": self.dtype, "meta": meta, "new_axes": dict(zip(axes[1:], self.shape[1:], strict=True))}
        kind |= {"stored": self, "name": f"daskclust-io-read-{token}", "align_arrays": False}
        return da.blockwise(_read_block, axes, chunk_rows(sizes), "a", **kind)


def _column_of_block(blocks: Sequence[npt.NDArray[Any]], number: int) -> npt.NDArray[Any]:
    return blocks[0][:, number]


def _columns_of(read: ReadRows, wanted: int | Sequence[int], start: int, stop: int) -> npt.NDArray[Any]:
    return read(start, stop)[:, wanted]


def rows_of_parts(parts: Iterable[tuple[ReadRows, int]], start: int, stop: int) -> list[npt.NDArray[Any]]:
    """Return rows start to stop of arrays that follow each other, each with its reader and number of rows."""
    found, begin = [], 0
    for read, rows in parts:
        low, high = max(start - begin, 0), min(stop - begin, rows)
        if low < high:
            found.append(read(low, high))
        begin += rows
    return found


def fixed_rows(path: str, value: str, width: int, begin: int, start: int, stop: int) -> npt.NDArray[Any]:
    """Return rows start to stop of a file that has `width` numbers in each, one row after the other from a byte on."""
    row = np.dtype((value, (width,)))
    return np.fromfile(path, row, stop - start, offset=begin + start * row.itemsize)


def by_blocks(
    function: Callable[..., Any],
    array: Any,
    dtype: Any,
    step: str,
    sizes: tuple[int, ...] | None = None,
    **options: Any,
) -> Any:
    """Return ``function(values, first_row, **options)`` of an array, or of each block of a dask array.

    What it returns is as long as the values, or as `sizes` say for the blocks. It is called on what is read of a stored
    array.
    """
    if isinstance(array, Stored):
        return array._replace(read=partial(_read_and_do, array.rows, function, options), dtype=np.dtype(dtype))
    if not is_dask(array):
        return function(array, 0, **options)
    from dask.base import tokenize

    name = f"daskclust-io-{step}-{tokenize(function.__name__, array.name, dtype, sizes, options)}"
    meta = np.empty((0,) * array.ndim, dtype)
    return with_first_rows(partial(function, **options), array, sizes=sizes, dtype=dtype, meta=meta, name=name)


def _read_and_do(
    read: ReadRows, function: Callable[..., Any], options: Mapping[str, Any], start: int, stop: int
) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = function(read(start, stop), start, **options)
    return values


def _state(path: str) -> tuple[int, ...]:
    """Return what changes when a file is written, or one of those in a folder."""
    files = [path]
    if os.path.isdir(path):
        files = [os.path.join(place, name) for place, _, names in os.walk(path) for name in names]
    states = [os.stat(file) for file in files]
    return len(states), max((state.st_mtime_ns for state in states), default=0), sum(state.st_size for state in states)


def _read_block(rows: tuple[slice], stored: Stored) -> npt.NDArray[Any]:
    return stored.rows(rows[0].start, rows[0].stop)
