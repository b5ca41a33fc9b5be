"""Labels of points: cluster numbers from 0, noise -1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskclust.core.data.lazy import of_blocks

NOISE = -1


def same_partition(a: ArrayLike, b: ArrayLike) -> bool:
    """Return True where two labellings are equal up to the names of clusters; noise is noise in both.

    Parameters
    ----------
    a, b : array_like of int, shape (n,)
        Labels; negative ones are noise.

    Returns
    -------
    bool
        False also for arrays of different shapes.

    Examples
    --------
    >>> same_partition([0, 0, 1, -1], [5, 5, 2, -1])
    True
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or ((a < 0) != (b < 0)).any():
        return False
    pairs = np.unique(np.stack([a, b])[:, a >= 0], axis=1)
    return bool(len(np.unique(pairs[0])) == len(np.unique(pairs[1])) == pairs.shape[1])


def count_clusters(labels: Any) -> tuple[int, int]:
    """Return how many clusters there are, numbered from 0, and how many points are noise; lazy labels are computed."""
    found = of_blocks(_counts, labels, 2)
    return int(found[:, 0].max(initial=0)), int(found[:, 1].sum())


def count_true(values: Any) -> int:
    """Return how many of an array (n,) are true; those of a lazy one are computed."""
    return int(of_blocks(np.count_nonzero, values).sum())


def _counts(labels: NDArray[np.int64]) -> tuple[int, int]:
    return int(labels.max(initial=NOISE)) + 1, int(np.count_nonzero(labels < 0))


def without_small(labels: NDArray[np.int64], min_size: int) -> NDArray[np.int64]:
    """Return labels in which clusters of fewer than `min_size` points are noise; the others keep their order."""
    is_kept = np.bincount(labels[labels >= 0]) >= min_size
    number = np.append(np.where(is_kept, np.cumsum(is_kept) - 1, NOISE), NOISE)  # noise, -1, takes the last
    return number[labels].astype(np.int64, copy=False)
