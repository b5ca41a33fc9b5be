"""Planes that divide points into blocks with as many points each, from a sample of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.core.space.grid import wrap_positions


def balanced_cuts(
    sample: NDArray[Any], blocks: tuple[int, ...], period: tuple[float, ...], count: int | None = None
) -> tuple[Any, ...]:
    """Return planes for `Partition` that cut points into blocks of as many each, fewer where some are equal.

    Parameters
    ----------
    sample : numpy.ndarray, shape (m, d)
        Points, or some of them.
    blocks : tuple of int
        Into how many parts the first axis is cut, each of these across the second axis, and so on.
    period : tuple of float
        Period of each axis, 0 where it is open.
    count : int, optional
        Number of all blocks, where that is less than the product of `blocks`: some parts are then cut into one less.

    Returns
    -------
    tuple
    """
    parts = [(wrap_positions(sample, period).astype(np.float64), math.prod(blocks) if count is None else count)]
    cuts: list[Any] = []
    for axis, most in enumerate(blocks):
        rows, divided = [], []
        for x, wanted in parts:
            along = wanted if axis == len(blocks) - 1 else min(most, wanted)
            of_each = wanted // along + (np.arange(along) < wanted % along)
            shares = np.cumsum(of_each)[:-1] / wanted
            planes = np.unique(np.quantile(x[:, axis], shares)) if len(x) and along > 1 else np.empty(0)
            part = np.searchsorted(planes, x[:, axis], side="right")
            divided += [(x[part == k], int(of_each[k])) for k in range(len(planes) + 1)]
            rows.append(planes)
        cuts.append(rows[0] if axis == 0 else rows)
        parts = divided
    return tuple(cuts)
