"""Files of gmhclust: a matrix of points after its shape, binary or as text, and apriori assignments beside it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.files import check_file, replacing
from daskclust.core.data.quote import quoted
from daskclust.io.blocks import in_memory
from daskclust.io.cytometry.rows import FIELD, cells_dataset, check_chunks, matrix_of, read_exactly
from daskclust.io.host import check_on_host

Layout = Literal["uint32-float32", "uint64-float64", "uint64-float32", "text"]

_BINARY: dict[str, tuple[np.dtype[Any], np.dtype[Any]]] = {
    "uint32-float32": (np.dtype("<u4"), np.dtype("<f4")),
    "uint64-float64": (np.dtype("<u8"), np.dtype("<f8")),
    "uint64-float32": (np.dtype("<u8"), np.dtype("<f4")),
}
_PIECE = 1 << 20  # characters of a text that are divided at a time
_LONGEST = 4096  # of one number
_NUMBER = r"[+-]?(nan|inf|infinity|([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?)"
_MOST_ASSIGNMENT = (1 << 32) - 1
_BLOCK_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class PointRows:
    """The points of a binary file.

    Parameters
    ----------
    path : str
        The file.
    rows : int
        Number of points.
    width : int
        Number of dimensions.
    layout : str
        One of the binary layouts.
    """

    path: str
    rows: int
    width: int
    layout: str

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return _BINARY[self.layout][1].newbyteorder("=")

    def load(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return rows start to stop."""
        count, value = _BINARY[self.layout]
        offset = 2 * count.itemsize + start * self.width * value.itemsize
        found = read_exactly(self.path, value, (stop - start) * self.width, offset)
        return found.reshape(stop - start, self.width).astype(self.dtype, copy=False)


def read_gmhc(
    path: str | os.PathLike[str],
    assignments: str | os.PathLike[str] | None = None,
    *,
    chunks: int | None = None,
) -> xr.Dataset:
    """Read points as the program gmhclust does.

    Parameters
    ----------
    path : str or path
        The file, little-endian: number of dimensions D, number of points N, and the points one after another. Its exact
        size tells which of the program's versions it is for: both numbers uint32 and values float32, as its manual
        says; both uint64 and values float64 or float32, as its repository has them; or all of it as text with white
        space between the numbers.
    assignments : str or path, optional
        A text file with one unsigned whole number for each point, white space between them: points with equal ones
        are in one apriori cluster.
    chunks : int, optional
        Cells per chunk of a Dataset of dask arrays. By default all are read into memory.

    Returns
    -------
    xarray.Dataset
        ``X`` (cell, channel), float32 or float64 as in the file, text as float64; ``apriori`` (cell), int64, if
        `assignments` are given. Channels are ``channel_1``, ``channel_2`` ...; ``attrs["layout"]`` is
        ``"uint32-float32"``, ``"uint64-float64"``, ``"uint64-float32"`` or ``"text"``.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        Where a path is no file.
    ValueError
        For a size that no layout has, with all of them; for text that is no number, points without dimensions, and
        assignments of another number than points; and for `chunks` that is not positive.

    Notes
    -----
    With `chunks` binary points are read when they are used, each chunk its own rows. Text and assignments are read at
    once. Values are not searched for NaN: estimators do so.

    References
    ----------
    Smelko, "GPU accelerated Mahalanobis-average hierarchical clustering analysis", Charles University (2020).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "points")
    >>> _ = file.write_bytes(np.uint32([2, 3]).tobytes() + np.arange(6, dtype=np.float32).tobytes())
    >>> ds = read_gmhc(file)
    >>> dict(ds.sizes), ds["X"].values[2], ds.attrs["layout"]
    ({'cell': 3, 'channel': 2}, array([4., 5.], dtype=float32), 'uint32-float32')
    >>> folder.cleanup()
    """
    name, wanted = os.fspath(path), check_chunks(chunks)
    check_file(name)
    found = _binary_rows(name)
    if found is not None:
        X, layout = matrix_of(found, wanted), found.layout
    else:
        X, layout = _text_points(name), "text"
    rows, width = X.shape
    variables = {} if assignments is None else {"apriori": _read_assignments(os.fspath(assignments), rows, name)}
    attrs = {"layout": layout, "transform": "none", "field": FIELD, "source": name}
    ds = cells_dataset(X, numbered(width), attrs, variables)
    return ds if wanted is None else ds.chunk({"cell": wanted, "channel": -1}, name_prefix="daskclust-io-")


def numbered(count: int) -> list[str]:
    """Return names of channels that have none."""
    return [f"channel_{k + 1}" for k in range(count)]


def _sizes(path: str) -> dict[str, tuple[int, int, int]]:
    """Return dimensions, points and bytes that the file would have in each binary layout."""
    with open(path, "rb") as stream:
        head = stream.read(16)
    sizes = {}
    for layout, (count, value) in _BINARY.items():
        if len(head) >= 2 * count.itemsize:
            d, n = (int(number) for number in np.frombuffer(head, count, 2))
            sizes[layout] = (d, n, 2 * count.itemsize + d * n * value.itemsize)
    return sizes


def _binary_rows(path: str) -> PointRows | None:
    """Return the points of a binary file, None for a text.

    The layouts exclude each other: a number of 8 bytes, read as two of 4, has 0 for the second, so that no points
    would follow; and values of 4 and 8 bytes make different sizes.
    """
    sizes, actual = _sizes(path), os.path.getsize(path)
    for layout, (d, n, size) in sizes.items():
        if size == actual:
            if not d:
                raise ValueError(f"{path} has {n} points of 0 dimensions; points have at least one")
            return PointRows(path, n, d, layout)
    with open(path, "rb") as stream:
        if re.match(rb"\s*[0-9]+\s+[0-9]+(\s|$)", stream.read(64)):
            return None
    expected = "; ".join(
        f"{layout}: {n} points of {d} dimensions, {size} bytes" for layout, (d, n, size) in sizes.items()
    )
    raise ValueError(
        f"{path} has {actual} bytes, which no layout of gmhclust explains ({expected or 'too few for any'}), nor is it "
        "text: it is cut, or has another format"
    )


def _words(path: str) -> Iterator[list[str]]:
    """Yield what is between white space, piece by piece."""
    rest = ""
    try:
        with open(path, encoding="ascii") as stream:
            while piece := stream.read(_PIECE):
                words = (rest + piece).split()
                rest = words.pop() if words and not piece[-1].isspace() else ""
                if len(rest) > _LONGEST:
                    raise ValueError(f"{path} has a number of more than {_LONGEST} characters; it is damaged")
                yield words
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text of numbers: {error}") from error
    if rest:
        yield [rest]


def _text_points(path: str) -> npt.NDArray[np.float64]:
    """Return the points of a text."""
    parts: list[npt.NDArray[np.float64]] = []
    shape: list[int] = []
    count = 0
    for words in _words(path):
        while words and len(shape) < 2:
            word = words.pop(0)
            if not re.fullmatch("[0-9]{1,18}", word):
                raise ValueError(f"{path} begins with {quoted(word)}, expected the numbers of dimensions and points")
            shape.append(int(word))
        wrong = next((word for word in words if "_" in word), None)
        if wrong is None:
            try:
                parts.append(np.array(words, np.float64))
            except ValueError:
                wrong = next(word for word in words if not re.fullmatch(_NUMBER, word, re.IGNORECASE))
        if wrong is not None:
            raise ValueError(f"{path} has {quoted(wrong)} among its values, expected a number")
        count += len(words)
    d, n = (*shape, 0, 0)[:2]
    if not d:
        raise ValueError(f"{path} has {n} points of 0 dimensions; points have at least one")
    if len(shape) < 2 or count != d * n:
        raise ValueError(
            f"{path} begins with {d} dimensions and {n} points, which makes {d * n} values, and has {count}; it is "
            "cut, or has another format"
        )
    return np.concatenate([*parts, np.empty(0)]).reshape(n, d)


def _read_assignments(path: str, count: int, points: str) -> npt.NDArray[np.int64]:
    """Return apriori clusters of all points."""
    parts = [np.empty(0, np.int64)]
    found = 0
    if count:
        check_file(path)
    for words in _words(path):
        wrong = next((word for word in words if not re.fullmatch("[0-9]{1,10}", word)), None)
        if wrong is None:
            parts.append(np.array(words, np.int64))
            wrong = next((str(k) for k in parts[-1] if k > _MOST_ASSIGNMENT), None)
        if wrong is not None:
            raise ValueError(
                f"{path} has {quoted(wrong)} among its assignments, expected whole numbers from 0 to {_MOST_ASSIGNMENT}"
            )
        found += len(words)
    if found != count:
        raise ValueError(f"{path} has {found} assignments, and {points} has {count} points; give one for each point")
    return np.concatenate(parts)


def write_gmhc(
    ds: xr.Dataset,
    path: str | os.PathLike[str],
    assignments: str | os.PathLike[str] | None = None,
    *,
    layout: Layout = "uint32-float32",
) -> None:
    """Write points as the program gmhclust reads them, completely or not at all.

    Parameters
    ----------
    ds : xarray.Dataset
        Cells with ``X`` (cell, channel), numpy or dask; names of channels are not kept.
    path : str or path
        The file. One that exists is replaced.
    assignments : str or path, optional
        A second file, for ``apriori``: whole numbers from 0.
    layout : {"uint32-float32", "uint64-float64", "uint64-float32", "text"}, default "uint32-float32"
        Types of the two numbers in front and of the values: that of the manual by default.

    Raises
    ------
    TypeError
        For arrays on a GPU.
    ValueError
        For other layouts, a Dataset without ``X``, or without ``apriori`` where `assignments` is given, apriori
        clusters that are negative, and numbers that the types do not hold.
    OSError
        Where the folder does not exist or cannot be written to.

    Notes
    -----
    Each file is written under a temporary name in the same folder and renamed at the end: assignments first, so that
    after an error the points are the old ones. Dask arrays are computed chunk by chunk. Text keeps all digits; float32
    rounds values of float64.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "points")
    >>> write_gmhc(xr.Dataset({"X": (("cell", "channel"), np.eye(3))}), file)
    >>> file.stat().st_size, read_gmhc(file)["X"].values[1]
    (44, array([0., 1., 0.], dtype=float32))
    >>> folder.cleanup()
    """
    if layout not in get_args(Layout):
        raise ValueError(f"layout must be one of {', '.join(get_args(Layout))}, got {layout!r}")
    if "X" not in ds or ds["X"].ndim != 2 or ds["X"].dtype.kind not in "fiu" or not ds["X"].shape[1]:
        found = f"shape {ds['X'].shape} and dtype {ds['X'].dtype}" if "X" in ds else "no such variable"
        raise ValueError(f"write_gmhc needs numbers X of shape (n, d); the Dataset has {found}")
    check_on_host("write_gmhc", {name: ds[name].data for name in ("X", "apriori") if name in ds})
    n, d = ds["X"].shape
    count = np.iinfo(_BINARY.get(layout, _BINARY["uint64-float64"])[0])
    if max(n, d) > count.max:
        raise ValueError(f"layout {layout} counts to {count.max}, got {n} points of {d} dimensions; give another one")
    if assignments is not None:
        _write_assignments(ds, Path(assignments), n)
    with replacing(Path(path)) as stream:
        if layout == "text":
            stream.write(f"{d} {n}\n".encode())
        else:
            stream.write(np.array([d, n], _BINARY[layout][0]).tobytes())
        for block in _blocks(ds["X"], n):
            _write_points(stream, block, layout)


def _blocks(array: xr.DataArray, n: int) -> Iterator[npt.NDArray[Any]]:
    """Yield the rows block by block."""
    chunks = array.chunksizes.get(array.dims[0]) or (_BLOCK_ROWS,) * math.ceil(n / _BLOCK_ROWS)
    stop = 0
    for size in chunks:
        start, stop = stop, min(stop + size, n)
        yield in_memory(array[start:stop]).values


def _write_points(stream: BinaryIO, X: npt.NDArray[Any], layout: str) -> None:
    """Write the points of a block."""
    if layout != "text":
        with np.errstate(over="ignore"):
            values = np.ascontiguousarray(X, _BINARY[layout][1])
        if np.isinf(values).sum() > np.isinf(X).sum():
            raise ValueError(f"layout {layout} holds values to 3.4e38, got {np.abs(X).max()}; give uint64-float64")
        stream.write(values.tobytes())
        return
    # repr of a Python float has the fewest digits that give the same float64, and float32 is one of these
    stream.write("".join(" ".join(map(repr, row)) + "\n" for row in X.astype(np.float64).tolist()).encode())


def _write_assignments(ds: xr.Dataset, path: Path, n: int) -> None:
    """Write apriori clusters, one in a line."""
    if "apriori" not in ds or ds["apriori"].shape != (n,) or ds["apriori"].dtype.kind not in "iu":
        raise ValueError("assignments needs whole numbers apriori, one for each point; the Dataset has none such")
    with replacing(path) as stream:
        for block in _blocks(ds["apriori"], n):
            if len(block) and not 0 <= block.min() <= block.max() <= _MOST_ASSIGNMENT:
                raise ValueError(
                    f"assignments must be from 0 to {_MOST_ASSIGNMENT}, got {block.min()} to {block.max()}; give "
                    "points without an apriori cluster a number of their own"
                )
            stream.write("".join(f"{number}\n" for number in block.tolist()).encode())
