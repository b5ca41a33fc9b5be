"""Minimum spanning trees by brute force: every pair of points, in one sorted order of edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskclust.core.space.grid import wrap_positions


def squared_distances(X: Any, period: tuple[float, ...] = ()) -> Any:
    """Return the squared distances (n, n) of all pairs, axis after axis, around periods."""
    X = wrap_positions(X, period).astype(np.float64)
    total = np.zeros((len(X), len(X)))
    for k in range(X.shape[1]):
        step = abs(X[:, k][:, None] - X[:, k])
        if period and period[k]:
            step = np.minimum(step, period[k] - step)
        total = total + step * step
    return total


def brute_force(
    X: Any, min_samples: int = 1, period: tuple[float, ...] = (), alpha: float = 1.0
) -> tuple[Any, Any, Any]:
    """Return the edges, squared weights and squared core distances that `spanning_tree` is to return."""
    length = squared_distances(X, period)
    core = np.sort(length, axis=1)[:, min_samples - 1] if min_samples > 1 else np.zeros(len(X))
    first, second = np.triu_indices(len(X), 1)
    long = length[first, second]
    weight = np.maximum(long / (alpha * alpha), np.maximum(core[first], core[second]))
    parent = np.arange(len(X))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    chosen = []
    for edge in np.lexsort((second, first, long, weight)):
        a, b = root(first[edge]), root(second[edge])
        if a != b:
            parent[a] = b
            chosen.append(edge)
    return np.column_stack([first[chosen], second[chosen]]), weight[chosen], core
