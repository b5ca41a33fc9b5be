"""The table of pixels that event building looks neighbours up in, and where pixels stand in it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.core.arrays import Cuda, Host
from daskclust.events.kernels import HIGH, LOW, Hits, Matrix

_FARTHEST = 1 << 62
MOST_CELLS = 1 << 26  # 256 MiB of last hits, of all threads


def check_extent(device: Host | Cuda, hits: Hits, facts: NDArray[np.int64]) -> None:
    """Refuse coordinates whose differences 64 bits do not hold."""
    for k, name in enumerate(("x", "y", "chip")):
        low, high = int(facts[LOW + k]), int(facts[HIGH + k])
        values = hits[k]
        wrapped = values.dtype.kind == "u" and min(low, high) < 0  # above 63 bits
        if wrapped or low <= -_FARTHEST or high >= _FARTHEST:
            host = device.to_host(values)
            raise ValueError(
                f"{name} must lie between -2**62 and 2**62, got {host.min()} to {host.max()}; number the pixels anew"
            )


def extent_of(hits: Hits) -> NDArray[np.int64]:
    """Return the smallest x, y and chip of hits on the host, then the largest."""
    columns = [hits.x, hits.y, hits.chip if len(hits.chip) else np.zeros(1, np.int64)]
    return np.array([column.min() for column in columns] + [column.max() for column in columns], np.int64)


def make_matrix(hits: Hits, facts: NDArray[np.int64], touching: int) -> tuple[Hits, Matrix, int]:
    """Return hits on the host, the matrix of their pixels, and the length of a table for it.

    Where few of very many pixels are hit, x, y and chip are numbered anew without the gaps.
    """
    matrix, cells = _layout(facts, touching)
    if cells > MOST_CELLS:
        hits = compact_pixels(hits)
        matrix, cells = _layout(extent_of(hits), touching)
        if cells > MOST_CELLS:
            raise ValueError(
                f"the hits are on {cells} pixels after gaps between them are left out, more than the {MOST_CELLS} "
                "that fit a table; are x and y pixel numbers? Cluster parts of the detector one by one otherwise"
            )
    return hits, matrix, cells


def _layout(facts: NDArray[np.int64], touching: int) -> tuple[Matrix, int]:
    x, y, chip = (int(number) for number in facts[LOW : LOW + 3])
    width, height, chips = (
        int(most) - least + 1 for most, least in zip(facts[HIGH : HIGH + 3], (x, y, chip), strict=True)
    )
    stride = width + 2
    plane = stride * (height + 2)
    return Matrix(x, y, chip, stride, plane, touching), plane * chips + 4  # rows are read four pixels at a time


def compact_pixels(hits: Hits) -> Hits:
    """Return hits whose x, y and chip are counted over those that occur; what touched still does, and nothing else."""
    chip = np.unique(hits.chip, return_inverse=True)[1] if len(hits.chip) else hits.chip
    return Hits(_compact(hits.x), _compact(hits.y), chip, hits.toa)


def _compact(values: Any) -> NDArray[np.int64]:
    distinct, place = np.unique(values, return_inverse=True)
    steps = np.minimum(np.diff(distinct.astype(np.int64)), 2)
    return np.asarray(np.concatenate([[0], np.cumsum(steps)])[place])
