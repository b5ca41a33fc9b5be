"""Files of gmhclust: a matrix of points after its shape, binary or as text, and apriori assignments beside it."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.io.cytometry.rows import AUTO_CELLS, FIELD, cells_dataset
from daskclust.io.files import check_file
from daskclust.io.rows import Stored, fixed_rows, rows_of_chunk
from daskclust.io.several import takes_several

_BINARY: dict[str, tuple[np.dtype[Any], np.dtype[Any]]] = {
    "uint32-float32": (np.dtype("<u4"), np.dtype("<f4")),
    "uint64-float64": (np.dtype("<u8"), np.dtype("<f8")),
    "uint64-float32": (np.dtype("<u8"), np.dtype("<f4")),
}
_MOST_ASSIGNMENT = (1 << 32) - 1


@takes_several(about=AUTO_CELLS)
def read_gmhc(
    path: str | os.PathLike[str],
    assignments: str | os.PathLike[str] | None = None,
    *,
    chunks: int | Literal["auto"] | None = None,
) -> xr.Dataset:
    """Read points as the program gmhclust does.

    Parameters
    ----------
    path : str or path, or list of these
        The file, or several, as of `read_hits`. Little-endian: number of dimensions D, number of points N, and the
        points one after another. Its size tells its layout: both numbers uint32 and values float32; both uint64 and
        values float64 or float32; or all of it as text.
    assignments : str or path, optional
        A text file with a whole number from 0 for each point: points with equal ones are in one apriori cluster.
    chunks : int or "auto", optional
        Points per chunk of a Dataset of dask arrays, each of which reads its own rows of a binary file; ``"auto"``
        means 100 000. By default all are in memory, as text and assignments always are.

    Returns
    -------
    xarray.Dataset
        ``X`` (cell, channel), float32 or float64 as in the file, text as float64; ``apriori`` (cell), int64, if
        `assignments` are given. Channels are ``channel_1``, ``channel_2`` ...; ``attrs["layout"]`` is
        ``"uint32-float32"``, ``"uint64-float64"``, ``"uint64-float32"`` or ``"text"``. NaN is kept.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        Where a path is no file.
    ValueError
        For a size that no layout has, text that is no number, assignments of another number than points, and `chunks`
        that is not positive.

    References
    ----------
    Smelko, "GPU accelerated Mahalanobis-average hierarchical clustering analysis", Charles University (2020).

    Examples
    --------
    >>> ds = read_gmhc("points", "assignments", chunks=1_000_000)  # doctest: +SKIP
    """
    name, wanted = os.fspath(path), rows_of_chunk(chunks, AUTO_CELLS, "cells")
    check_file(name)
    binary = _binary_layout(name)
    if binary is None:
        X, layout = _text_points(name), "text"
    else:
        layout, shape = binary
        (count, value), here = _BINARY[layout], os.path.abspath(name)
        read = partial(fixed_rows, here, value.str, shape[1], 2 * count.itemsize)
        X = Stored(read, (here,), "gmhclust", shape, value.newbyteorder("=")).array(wanted)
    rows, width = X.shape
    variables = {} if assignments is None else {"apriori": _read_assignments(os.fspath(assignments), rows, name)}
    attrs = {"layout": layout, "transform": "none", "field": FIELD, "source": name}
    ds = cells_dataset(X, numbered(width), attrs, variables)
    return ds if wanted is None else ds.chunk({"cell": int(wanted), "channel": -1}, name_prefix="daskclust-io-")


def numbered(count: int) -> list[str]:
    """Return names of channels that have none."""
    return [f"channel_{k + 1}" for k in range(count)]


def _binary_layout(path: str) -> tuple[str, tuple[int, int]] | None:
    """Return the layout of a binary file and the shape of its points, None for a text.

    The layouts exclude each other: a number of 8 bytes, read as two of 4, has 0 for the second, so that no points
    would follow; and values of 4 and 8 bytes make different sizes.
    """
    with open(path, "rb") as stream:
        head, actual, expected = stream.read(64), os.path.getsize(path), []
    for layout, (count, value) in _BINARY.items():
        if actual >= 2 * count.itemsize:
            d, n = (int(number) for number in np.frombuffer(head, count, 2))
            size = 2 * count.itemsize + d * n * value.itemsize
            expected.append(f"{layout}: {n} points of {d} dimensions, {size} bytes")
            if size == actual and not d:
                raise ValueError(f"{path} has {n} points of 0 dimensions; points have at least one")
            if size == actual:
                return layout, (n, d)
    if re.match(rb"\s*[0-9]{1,18}\s+[0-9]{1,18}(\s|$)", head):
        return None
    raise ValueError(
        f"{path} has {actual} bytes, which fits no layout of gmhclust "
        f"({'; '.join(expected) or 'too few for any'}), and is not text: it is truncated, or has another format"
    )


def _numbers(path: str, kind: Any) -> npt.NDArray[Any]:
    """Return the numbers of a text with white space between them."""
    try:
        return np.array(Path(path).read_text("ascii").split(), kind)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{path} is not a text file of numbers: {error}") from error


def _text_points(path: str) -> npt.NDArray[np.float64]:
    values = _numbers(path, np.float64)
    d, n = (int(number) for number in values[:2])
    if len(values) - 2 != d * n or not d:
        raise ValueError(
            f"{path} begins with {d} dimensions and {n} points, which makes {d * n} values, and has "
            f"{len(values) - 2}; it is cut, or has another format"
        )
    return values[2:].reshape(n, d)


def _read_assignments(path: str, count: int, points: str) -> npt.NDArray[np.int64]:
    if count:
        check_file(path)
    found: npt.NDArray[np.int64] = _numbers(path, np.int64)
    if len(found) != count:
        raise ValueError(
            f"{path} has {len(found)} assignments, and {points} has {count} points; give one for each point"
        )
    if len(found) and not 0 <= found.min() <= found.max() <= _MOST_ASSIGNMENT:
        raise ValueError(
            f"assignments of {path} must be from 0 to {_MOST_ASSIGNMENT}, got {found.min()} to {found.max()}; give "
            "points without an apriori cluster a number of their own"
        )
    return found
