"""Extent of the pixels that are hit, and the table that event building looks neighbours up in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from daskclust.core.data.checks import raise_not_finite_value
from daskclust.events.kernels.pixels import FARTHEST, Hits, Matrix
from daskclust.events.kernels.rules import HIGH, LOW

MOST_CELLS = 1 << 26  # 256 MiB of last hits, of all threads
_FEW_CELLS, _CELLS_PER_HIT = 1 << 20, 128  # a table of fewer is quicker than a hash table


def refuse(hits: Hits, ids: Sequence[int] | NDArray[np.int64]) -> None:
    """Refuse hits on the host with a time that is not finite, by its id, or coordinates that are too far apart."""
    rows = np.flatnonzero(~np.isfinite(hits.toa))
    if len(rows):
        raise_not_finite_value("toa", hits.toa[rows[0]], int(ids[rows[0]]))
    check_extent(hits, extent_of(hits))


def check_extent(hits: Hits, facts: NDArray[np.int64]) -> None:
    """Refuse coordinates whose differences 64 bits do not hold; for hits on the host."""
    for k, name in enumerate(("x", "y", "chip")):
        low, high = int(facts[LOW + k]), int(facts[HIGH + k])
        values = hits[k]
        wrapped = values.dtype.kind == "u" and min(low, high) < 0  # above 63 bits
        if wrapped or low <= -FARTHEST or high >= FARTHEST:
            got = f"{values.min()} to {values.max()}"
            raise ValueError(f"{name} must lie between -2**62 and 2**62, got {got}; number the pixels again from 0")


def extent_of(hits: Hits) -> NDArray[np.int64]:
    """Return the smallest x, y and chip of hits on the host, then the largest."""
    columns = [hits.x, hits.y, hits.chip if len(hits.chip) else np.zeros(1, np.int64)]
    return np.array([column.min() for column in columns] + [column.max() for column in columns], np.int64)


def make_matrix(facts: NDArray[np.int64], touching: int, n: int) -> tuple[Matrix, int]:
    """Return the matrix of pixels and the length of a table of them, 0 where a hash table of `n` hits is to be used."""
    x, y, chip = (int(number) for number in facts[LOW : LOW + 3])
    width, height, chips = (
        int(most) - least + 1 for most, least in zip(facts[HIGH : HIGH + 3], (x, y, chip), strict=True)
    )
    stride = width + 2
    plane = stride * (height + 2)
    cells = plane * chips + 4  # rows are read four pixels at a time
    if cells > min(max(_FEW_CELLS, _CELLS_PER_HIT * n), MOST_CELLS):
        return Matrix(0, 0, 0, 0, 0, touching), 0
    return Matrix(x, y, chip, stride, plane, touching), cells
