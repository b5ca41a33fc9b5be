"""The minimum spanning tree of points by mutual reachability."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class SpanningTree(NamedTuple):
    """Edges of a minimum spanning tree in the order of (weight, squared length, smaller id, larger id)."""

    edges: npt.NDArray[np.int64]  # (n - 1, 2) smaller id first
    weight: npt.NDArray[np.float64]  # (n - 1,) squared mutual reachability, ascending
    core: npt.NDArray[np.float64]  # (n,) squared distance to the min_samples-th point, itself counted


def spanning_tree(
    X: npt.NDArray[Any], min_samples: int = 1, period: tuple[float, ...] = (), alpha: float = 1.0
) -> SpanningTree:
    """Return the minimum spanning tree of points, squared distances divided by the square of `alpha`."""
    X = X.astype(np.float64)
    n, everything = len(X), np.arange(len(X))
    core = np.array([np.partition(_squares(X, i, period), min_samples - 1)[min_samples - 1] for i in range(n)])
    best = np.full((n, 4), np.inf)
    done, added, edges = np.zeros(n, bool), 0, []
    for _ in range(n - 1):
        done[added] = True
        squares = _squares(X, added, period)
        weight = np.maximum(np.maximum(core, core[added]), squares / alpha**2)
        keys = np.column_stack([weight, squares, np.minimum(everything, added), np.maximum(everything, added)])
        differ = keys != best
        at = np.argmax(differ, axis=1)
        is_better = (keys[everything, at] < best[everything, at]) & ~done
        best[is_better] = keys[is_better]
        rest = np.flatnonzero(~done)
        added = rest[np.lexsort(best[rest].T[::-1])[0]]
        edges.append(best[added])
    found = np.array(edges).reshape(-1, 4)
    found = found[np.lexsort(found.T[::-1])]
    return SpanningTree(found[:, 2:].astype(np.int64), found[:, 0].copy(), core)


def _squares(X: npt.NDArray[np.float64], i: int, period: tuple[float, ...]) -> npt.NDArray[np.float64]:
    """Return the squared distances of all points to one."""
    total = np.zeros(len(X))
    for axis, side in enumerate(period or (0.0,) * X.shape[1]):
        values = np.mod(X[:, axis], side) if side else X[:, axis]
        step = np.abs(values - values[i])
        step = np.minimum(step, side - step) if side else step
        total += step * step
    return total
