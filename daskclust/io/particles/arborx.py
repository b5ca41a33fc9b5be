"""ArborX's files: one array of coordinates."""

from __future__ import annotations

import os
from functools import partial

import numpy as np

from daskclust.io.rows import Stored, fixed_rows
from daskclust.io.schema import Naming, Table
from daskclust.io.tables.binary import unnamed

_START = 8  # bytes of the numbers of points and dimensions


def read_arborx(path: str, naming: Naming, chunks: int | None) -> Table:
    """Read the coordinates of an ArborX file, whose size must be what the numbers at its beginning say."""
    size = os.path.getsize(path)
    n, d = np.fromfile(path, "<i4", 2).tolist() if size >= _START else (0, 0)
    expected = _START + 4 * n * d
    if n < 0 or d < 1 or size != expected:
        raise ValueError(
            f"{path} has {size} bytes; as an ArborX file (int32 n, int32 d, float32 coordinates) it begins with n = "
            f"{n} and d = {d}, which makes {expected}: it is cut, or has another format"
        )
    if d > 3 and naming.columns is None:
        raise ValueError(f"{path} has {d} coordinates for each point; name them with columns=[...], 'x' first")
    here = os.path.abspath(path)
    read = partial(fixed_rows, here, "<f4", d, _START)
    return unnamed(Stored(read, (here,), "ArborX", (n, d), np.dtype(np.float32)), naming, chunks)
