"""Answers by brute force: every pair of points, straight from the papers and `design.md` section 7.

Nothing of daskclust is used here. Distances are computed in the precision of the input, as the definition says "at most
dc" and a test of equality must round as the program does: differences along each axis, their squares added in the order
of the axes, one square root. Sums of weights are made in float64.

How equality is judged: weights that are whole numbers or fractions like 1/4 add up without rounding, whatever the
order, so densities are equal exactly; other sums agree to the rounding of the input's precision (`density_tolerance`).
Nearest highers, seeds and labels depend on which of two densities is larger, so they are found from the densities of
the program under test, and are then equal exactly.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


class Answer(NamedTuple):
    """CLUE's results in the order of the points."""

    labels: np.ndarray
    density: np.ndarray
    delta: np.ndarray
    nearest_higher: np.ndarray
    is_seed: np.ndarray
    is_outlier: np.ndarray


def within_period(x: np.ndarray, period: float) -> np.ndarray:
    """Return coordinates moved by whole periods into [0, period)."""
    wide = x.astype(np.float64)
    moved = (wide - period * np.floor(wide / period)).astype(x.dtype)
    return np.where((moved >= 0) & (moved.astype(np.float64) < period), moved, 0).astype(x.dtype)


def distances2(X: np.ndarray, wrap: dict[int, float] | None = None, dtype: Any = None) -> np.ndarray:
    """Return the squared distance of every pair of points, to the nearest image where an axis is periodic."""
    real = np.dtype(dtype or X.dtype).type
    total = np.zeros((len(X), len(X)), real)
    for axis, x in enumerate(X.T):
        cycle = (wrap or {}).get(axis)
        x = (within_period(x, cycle) if cycle else x).astype(real)
        step = np.abs(x[:, None] - x[None, :])
        if cycle:
            step = np.minimum(step, real(cycle) - step)
        total = total + step * step
    return total


def together(n: int, *groups: np.ndarray | None) -> np.ndarray:
    """Return which pairs of points share layer and event."""
    same = np.ones((n, n), bool)
    for group in groups:
        if group is not None:
            same &= np.asarray(group)[:, None] == np.asarray(group)[None, :]
    return same


def chi(kernel: Any, distance: np.ndarray, dc: float, scale: float | None = None) -> np.ndarray:
    """Return a density kernel of the distance, float64."""
    distance = distance.astype(np.float64)
    if callable(kernel):
        return np.vectorize(kernel, otypes=[float])(distance)
    if kernel == "gaussian":
        return np.exp(-(distance**2) / (2 * (scale or dc / math.sqrt(2)) ** 2))
    if kernel == "exponential":
        return np.exp(-distance / (scale or dc))
    return np.ones_like(distance)


def clue_density(
    X: np.ndarray,
    dc: Any,
    *,
    weight: np.ndarray | None = None,
    layer: np.ndarray | None = None,
    event: np.ndarray | None = None,
    kernel: Any = "flat",
    scale: float | None = None,
    neighbor_weight: float = 1.0,
    wrap: dict[int, float] | None = None,
) -> np.ndarray:
    """Return the density of every point (equation 2.3), float64; `dc` is one number, or that of each point."""
    n = len(X)
    weight = np.ones(n) if weight is None else np.asarray(weight, X.dtype).astype(np.float64)
    distance = np.sqrt(distances2(X, wrap))
    factor = neighbor_weight * chi(kernel, distance, dc, scale)
    np.fill_diagonal(factor, 1.0)
    near = (distance <= np.asarray(dc, X.dtype).reshape(-1, 1)) & together(n, layer, event)
    return np.where(near, factor * weight[None, :], 0.0).sum(axis=1)


def density_tolerance(density: np.ndarray, dtype: Any) -> np.ndarray:
    """Return how far a sum in `dtype` may be from the oracle's: some units in the last place for each addition."""
    return 4 * (len(density) + 8) * np.finfo(dtype).eps * (np.abs(density) + 1e-30)


def clue_from_density(
    X: np.ndarray,
    density: np.ndarray,
    dc: Any,
    rhoc: Any,
    *,
    delta_c: Any = None,
    delta_o: Any = None,
    layer: np.ndarray | None = None,
    event: np.ndarray | None = None,
    wrap: dict[int, float] | None = None,
) -> Answer:
    """Return nearest highers (equation 2.4), seeds and labels that follow from the given densities."""
    n = len(X)
    delta_c = np.broadcast_to(np.asarray(dc if delta_c is None else delta_c, X.dtype), n)
    delta_o = delta_c if delta_o is None else np.broadcast_to(np.asarray(delta_o, X.dtype), n)
    rhoc = np.broadcast_to(np.asarray(rhoc, X.dtype), n)
    squared = distances2(X, wrap)
    index = np.arange(n)
    higher = (density[None, :] > density[:, None]) | (
        (density[None, :] == density[:, None]) & (index[None, :] > index[:, None])
    )
    allowed = higher & together(n, layer, event) & (np.sqrt(squared) <= np.maximum(delta_c, delta_o)[:, None])

    delta, nearest = np.full(n, np.inf, X.dtype), np.full(n, -1, np.int64)
    for i in range(n):
        candidates = np.flatnonzero(allowed[i])
        if len(candidates):
            nearest[i] = candidates[np.argmin(squared[i, candidates])]  # the first of the closest
            delta[i] = np.sqrt(squared[i, nearest[i]])
    seed = (density >= rhoc) & (delta > delta_c)
    outlier = (density < rhoc) & (delta > delta_o)
    number = np.cumsum(seed) - 1
    labels = np.full(n, -1, np.int64)
    for i in range(n):
        at = i
        while not seed[at] and not outlier[at]:
            at = nearest[at]
        labels[i] = number[at] if seed[at] else -1
    return Answer(labels, density, delta, nearest, seed, outlier)


def clue_labels_of_new(
    X: np.ndarray,
    new: np.ndarray,
    density: np.ndarray,
    labels: np.ndarray,
    weight: np.ndarray,
    neighbor_weight: float,
    groups: list[np.ndarray],
    wrap: dict[int, float] | None,
    *,
    dc: np.ndarray,
    delta_c: np.ndarray,
    delta_o: np.ndarray,
) -> np.ndarray:
    """Return the labels of new points without weight, flat kernel; groups are those of all, lengths of new points."""
    n = len(X)
    squared = distances2(np.concatenate([X, new]), wrap)[n:, :n]
    distance, near = np.sqrt(squared), together(n + len(new), *groups)[n:, :n]
    within = near & (distance <= dc.astype(X.dtype)[:, None])
    own = neighbor_weight * np.where(within, weight.astype(X.dtype).astype(np.float64), 0.0).sum(axis=1)
    higher = near & ((density >= own.astype(X.dtype)[:, None]) | (squared == 0))
    higher &= distance <= np.maximum(delta_c, delta_o).astype(X.dtype)[:, None]
    squared = np.where(higher, squared, np.inf)
    return np.where(higher.any(axis=1), labels[squared.argmin(axis=1)], -1)


def groups_of(edges: np.ndarray, n: int) -> np.ndarray:
    """Return the smallest member of the connected component of each of `n` nodes."""
    root = np.arange(n)
    changed = True
    while changed:
        before = root.copy()
        for a, b in edges:
            root[a] = root[b] = min(root[a], root[b])
        root = root[root]
        changed = not np.array_equal(root, before)
    return root


# --------------------------------------------------------------------------------------- DBSCAN and friends-of-friends
class Groups(NamedTuple):
    """DBSCAN's results in the order of the points."""

    labels: np.ndarray
    is_core: np.ndarray


def pairs_within(X: np.ndarray, eps: float, period: tuple[float, ...] = ()) -> np.ndarray:
    """Return which pairs of points are within `eps`, in float64 whatever the precision of X."""
    wrap = {axis: cycle for axis, cycle in enumerate(period) if cycle}
    return distances2(X, wrap, np.float64) <= eps * eps


def dbscan(
    X: np.ndarray,
    eps: float,
    min_samples: int,
    *,
    weight: np.ndarray | None = None,
    period: tuple[float, ...] = (),
    least: int = 1,
    event: np.ndarray | None = None,
) -> Groups:
    """Return labels by the definition: core points, what is reached from each, and the smallest label for borders.

    Weights are added without rounding and their sum is rounded once. Clusters of fewer than `least` core points are
    noise, and points of different events no neighbours.
    """
    near = pairs_within(X, eps, period)
    if event is not None:
        near = near & (event[:, None] == event)
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, np.float64)
    is_core = np.array([math.fsum(weight[row]) >= min_samples for row in near], bool)
    labels = np.full(len(X), -1, np.int64)
    seen, number = np.zeros(len(X), bool), 0
    for first in np.flatnonzero(is_core):
        if seen[first]:
            continue
        members = newest = np.arange(len(X)) == first
        while newest.any():
            newest = near[newest].any(axis=0) & is_core & ~members
            members = members | newest
        seen |= members
        if members.sum() >= least:
            labels[members] = number
            number += 1
    cores = is_core & (labels >= 0)
    for i in np.flatnonzero(~cores):
        reached = labels[near[i] & cores]
        if len(reached):
            labels[i] = reached.min()
    return Groups(labels, cores)


# ------------------------------------------------------------------------------------------------------ event building
def in_time(hits: dict[str, np.ndarray]) -> np.ndarray:
    """Return the order (toa, input order)."""
    return np.lexsort((np.arange(len(hits["toa"])), hits["toa"]))


def touches(hits: dict[str, np.ndarray], i: Any, j: Any, connectivity: int) -> Any:
    """Return whether the pixels of hits i and j are the same or touch; of one chip, where there is a chip."""
    dx, dy = (np.abs(hits[name][i].astype(float) - hits[name][j].astype(float)) for name in ("x", "y"))
    near = (dx + dy <= 1) if connectivity == 4 else (np.maximum(dx, dy) <= 1)
    return near & (hits["chip"][i] == hits["chip"][j]) if "chip" in hits else near


def neighbours(hits: dict[str, np.ndarray], dt_max: float, connectivity: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of neighbours, of hits in the order of time: pairs k apart, for every k that can hold one."""
    n, toa = len(hits["toa"]), hits["toa"]
    first, second = [np.empty(0, int)], [np.empty(0, int)]
    for k in range(1, n):
        i = np.flatnonzero(toa[k:] - toa[:-k] <= dt_max)
        if len(i) == 0:
            break  # times ascend: those farther apart are no nearer in time
        i = i[touches(hits, i, i + k, connectivity)]
        first.append(i)
        second.append(i + k)
    return np.concatenate(first), np.concatenate(second)


def local_clusters(hits: dict[str, np.ndarray], dt_max: float, connectivity: int) -> np.ndarray:
    """Return the connected component of each hit, hits in the order of time."""
    n = len(hits["toa"])
    a, b = neighbours(hits, dt_max, connectivity)
    return connected_components(coo_array((np.ones(len(a), np.int8), (a, b)), shape=(n, n)), directed=False)[1]


def simulated_clusters(hits: dict[str, np.ndarray], dt_max: float, connectivity: int, variant: str) -> np.ndarray:
    """Return each hit's cluster by "global" or "static": hits come one by one, a cluster keeps all of its."""
    columns = [hits[name].tolist() for name in ("x", "y")] + [
        hits["chip"].tolist() if "chip" in hits else [0] * len(hits["toa"])
    ]
    x, y, chip = columns
    toa = hits["toa"].tolist()
    decides = max if variant == "global" else min

    def touch(i: int, j: int) -> bool:
        dx, dy = abs(x[i] - x[j]), abs(y[i] - y[j])
        near = dx + dy <= 1 if connectivity == 4 else max(dx, dy) <= 1
        return near and chip[i] == chip[j]

    closed: list[list[int]] = []
    clusters: list[list[int]] = []
    for i, time in enumerate(toa):
        still_open = [c for c in clusters if time - decides(toa[j] for j in c) <= dt_max]
        closed += [c for c in clusters if c not in still_open]
        joined = [c for c in still_open if any(touch(i, j) for j in c)]
        clusters = [c for c in still_open if c not in joined] + [sorted(itertools.chain([i], *joined))]
    labels = np.empty(len(toa), np.int64)
    for number, cluster in enumerate(closed + clusters):
        labels[cluster] = number
    return labels


def canonical(groups: np.ndarray, min_hits: int) -> np.ndarray:
    """Return groups numbered by their first hit, -1 for those of fewer than `min_hits`; hits in the order of time."""
    _, firsts, which, sizes = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    numbers, number = np.full(len(firsts), -1, np.int64), 0
    for group in np.argsort(firsts):
        if sizes[group] >= min_hits:
            numbers[group], number = number, number + 1
    return numbers[which]


def events(
    hits: dict[str, np.ndarray], dt_max: float, variant: str = "local", connectivity: int = 8, min_hits: int = 1
) -> np.ndarray:
    """Return the labels of hits in any order, int64."""
    order = in_time(hits)
    hits = {name: values[order] for name, values in hits.items()}
    if variant == "local":
        groups = local_clusters(hits, dt_max, connectivity)
    else:
        groups = simulated_clusters(hits, dt_max, connectivity, variant)
    labels = np.empty(len(order), np.int64)
    labels[order] = canonical(groups, min_hits)
    return labels
