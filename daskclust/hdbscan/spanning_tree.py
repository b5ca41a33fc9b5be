"""The minimum spanning tree of points by mutual-reachability distances: all pairs, one point after the other (Prim)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.space.grid import wrap_positions


class SpanningTree(NamedTuple):
    """Edges in the order of weight, squared length, smaller id and larger id."""

    edges: NDArray[np.int64]  # (n - 1, 2) the smaller id first
    weight: NDArray[np.float64]  # (n - 1,) squared mutual-reachability lengths
    core: NDArray[np.float64]  # (n,) squared distance to the min_samples-th point, itself counted


def spanning_tree(
    X: Any,
    min_samples: int = 1,
    period: tuple[float, ...] = (),
    alpha: float = 1.0,
    core: Any = None,
    most: float = np.inf,
) -> SpanningTree:
    """Return the minimum spanning tree of points (n, d); `core` may be known, edges above `most` are left out."""
    points, n = _wrapped(X, period), len(X)
    if core is None:
        core = np.zeros(n)
        for i in range(n if min_samples > 1 else 0):
            core[i] = np.partition(_from(points, i, period), min_samples - 1)[min_samples - 1]
    inside = np.zeros(n, np.bool_)
    best = np.full((4, n), np.inf)  # weight, squared length, smaller and larger id of the first edge to each point
    found, new = [], 0
    for _ in range(n - 1):
        inside[new] = True
        length = _from(points, new, period)
        ids = np.arange(n)
        weight = np.maximum(np.maximum(core, core[new]), length / (alpha * alpha))
        edge = np.stack([weight, length, np.minimum(ids, new), np.maximum(ids, new)])
        is_less, is_same = np.zeros(n, np.bool_), np.ones(n, np.bool_)
        for a, b in zip(edge, best, strict=True):
            is_less |= is_same & (a < b)
            is_same &= a == b
        best = np.where(is_less, edge, best)
        new = int(np.lexsort((*best[::-1], inside))[0])
        found.append(best[:, new])
    edges = np.array(found).reshape(-1, 4).T
    edges = edges[:, np.lexsort(edges[::-1])]
    edges = edges[:, edges[0] <= most]
    return SpanningTree(edges[2:].T.astype(np.int64), edges[0], core)


def _wrapped(X: Any, period: tuple[float, ...]) -> NDArray[np.float64]:
    return wrap_positions(X, period).astype(np.float64)


def _from(points: Any, i: int, period: tuple[float, ...]) -> NDArray[np.float64]:
    """Return the squared distances from one point."""
    total = np.zeros(len(points))
    for axis, cycle in enumerate(period or (0.0,) * points.shape[1]):
        step = abs(points[:, axis] - points[i, axis])
        if cycle:
            step = np.minimum(step, cycle - step)
        total += step * step
    return total
