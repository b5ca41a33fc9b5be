"""ArborX's files: one array of coordinates."""

from __future__ import annotations

import os
from functools import partial

import numpy as np
import numpy.typing as npt

from daskclust.io.rows import columns_in
from daskclust.io.schema import Naming, Table
from daskclust.io.tables.binary import unnamed

_ARBORX_HEADER = np.dtype("<i4")
_ARBORX_VALUE = np.dtype("<f4")
_ARBORX_START = 2 * _ARBORX_HEADER.itemsize


def read_arborx(path: str, naming: Naming, chunks: int | None) -> Table:
    """Read the coordinates of an ArborX file, whose size must be what the numbers at its beginning say."""
    size = os.path.getsize(path)
    n, d = np.fromfile(path, _ARBORX_HEADER, 2).tolist() if size >= _ARBORX_START else (0, 0)
    expected = _ARBORX_START + n * d * _ARBORX_VALUE.itemsize
    if n < 0 or d < 1 or size != expected:
        raise ValueError(
            f"{path} has {size} bytes; as an ArborX file (int32 n, int32 d, float32 coordinates) it begins with n = "
            f"{n} and d = {d}, which makes {expected}: it is cut, or has another format"
        )
    if d > 3 and naming.columns is None:
        raise ValueError(f"{path} has {d} coordinates for each point; name them with columns=[...], 'x' first")
    here = os.path.abspath(path)
    return unnamed(columns_in(partial(_arborx_rows, here, d), [here], (n, d), np.float32, chunks), naming)


def _arborx_rows(path: str, d: int, start: int, stop: int) -> npt.NDArray[np.float32]:
    """Return rows of an ArborX file."""
    row = np.dtype((_ARBORX_VALUE, (d,)))
    found = np.fromfile(path, row, stop - start, offset=_ARBORX_START + start * row.itemsize)
    return found.astype(np.float32, copy=False)
