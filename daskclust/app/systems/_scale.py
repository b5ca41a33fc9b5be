"""How far apart points are: what ranges of parameters are derived from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_MOST_POINTS = 100_000  # of which neighbours are looked for
_MOST_ASKED = 2_000
_NEIGHBOURS = 8
_SAMPLE = 10_000  # points of which pairs are counted


def lengths(X: npt.NDArray[Any], group: npt.NDArray[Any] | None = None) -> tuple[float, float]:
    """Return a small and the usual distance to the eighth neighbour: 1st and 50th percentile of the largest group.

    Of more than 100 000 points, those around the middle one are taken, so this is quick for any number.
    """
    from scipy.spatial import cKDTree

    if group is not None and len(group):
        values, counts = np.unique(group, return_counts=True)
        X = X[group == values[counts.argmax()]]
    X = np.asarray(X[np.isfinite(X).all(axis=1)], np.float64)
    if len(X) > _MOST_POINTS:
        sides = np.ptp(X, axis=0)
        away = np.abs((X - X[len(X) // 2]) / np.where(sides > 0, sides, 1.0)).max(axis=1)
        X = X[np.argpartition(away, _MOST_POINTS)[:_MOST_POINTS]]
    asked = X[:: max(1, -(-len(X) // _MOST_ASKED))]
    found = cKDTree(X).query(asked, k=min(len(X), _NEIGHBOURS + 1))[0][:, -1] if len(X) > 1 else np.empty(0)
    positive = found[found > 0]
    small, usual = np.quantile(positive, [0.01, 0.5]).tolist() if positive.size else (0.1, 1.0)
    return small, usual


class ScalePairs:
    """Number of pairs of points of one group within a radius, estimated on a sample."""

    def __init__(self, X: npt.NDArray[Any], group: npt.NDArray[Any] | None = None) -> None:
        self._n = len(X)
        few = np.random.default_rng(0).choice(self._n, min(self._n, _SAMPLE), replace=False)
        self._X = np.asarray(X[few], np.float64)
        self._group = None if group is None else np.unique(group[few], return_inverse=True)[1]

    def within(self, radius: float) -> float:
        """Return the number of ordered pairs, each point with itself among them."""
        from scipy.spatial import cKDTree

        X, m = self._X, len(self._X)
        if self._group is not None:
            X = np.column_stack([X, 4 * radius * self._group])  # groups are out of reach of each other
        tree = cKDTree(X)
        found = int(tree.count_neighbors(tree, radius)) - m
        return self._n + found * (self._n * (self._n - 1.0)) / max(m * (m - 1), 1)
