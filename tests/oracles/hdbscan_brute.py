"""HDBSCAN* by its definition, from the root down: components of all pairs of at most a height, without any tree."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Cluster:
    """A cluster, the heights at which it loses points, and those born at its end."""

    points: list[int]
    birth: float
    above: Cluster | None = None
    steps: list[tuple[float, list[int]]] = field(default_factory=list)
    children: list[Cluster] = field(default_factory=list)

    @property
    def stability(self) -> float:
        born, total, there = density(self.birth), 0.0, len(self.points)
        for height, rest in self.steps:
            total += (there - len(rest)) * (density(height) - born)
            there = len(rest)
        return total

    @property
    def death(self) -> float:
        return density(self.steps[-1][0]) if self.steps else 0.0

    def below(self) -> list[Cluster]:
        return [self, *(each for child in self.children for each in child.below())]


def density(height: float) -> float:
    return 1 / height if height else np.inf


def mutual_reachability(X: np.ndarray, min_samples: int, alpha: float = 1.0) -> np.ndarray:
    squares = sum((X[:, None, k] - X[None, :, k]) ** 2 for k in range(X.shape[1]))
    core = np.sort(squares, axis=1)[:, min_samples - 1]
    return np.sqrt(np.maximum(np.maximum(core[:, None], core[None, :]), squares / alpha**2))


def parts(points: list[int], heights: np.ndarray, below: float, inclusive: bool) -> list[list[int]]:
    """Return the components of pairs below a height, or of at most that height."""
    left, found = set(points), []
    while left:
        part, ask = set(), {min(left)}
        while ask:
            point = ask.pop()
            part.add(point)
            left.discard(point)
            near = heights[point] <= below if inclusive else heights[point] < below
            ask |= {other for other in left if near[other]}
        found.append(sorted(part))
    return found


def grow(cluster: Cluster, heights: np.ndarray, least: int) -> Cluster:
    """Follow a cluster from its birth to its end, and those born there."""
    points = cluster.points
    while len(points) > 1:
        values = np.unique(heights[np.ix_(points, points)])
        step = next(height for height in values if len(parts(points, heights, height, inclusive=True)) == 1)
        pieces = parts(points, heights, step, inclusive=False)
        large = [piece for piece in pieces if len(piece) >= least]
        points = large[0] if len(large) == 1 else []
        cluster.steps.append((step, points))
        if len(large) > 1:
            cluster.children = [grow(Cluster(piece, step, cluster), heights, least) for piece in large]
    return cluster


def select(
    root: Cluster, method: str = "eom", epsilon: float = 0.0, most: float = np.inf, single: bool = False
) -> list[Cluster]:
    def most_stable(cluster: Cluster) -> tuple[list[Cluster], float]:
        below = [most_stable(child) for child in cluster.children]
        total = 0.0
        for stability in sorted(stability for _, stability in below):
            total += stability
        if cluster.stability >= total and len(cluster.points) <= most and (single or cluster is not root):
            return [cluster], cluster.stability
        return [each for chosen, _ in below for each in chosen], total

    leaves = [each for each in root.below() if not each.children and (single or each is not root)]
    chosen = most_stable(root)[0] if method == "eom" else leaves
    found: list[Cluster] = []
    for cluster in chosen:
        while cluster.birth < epsilon and cluster.above and (single or cluster.above is not root):
            cluster = cluster.above
        found.append(cluster)
    return [one for one in found if not any(one is not other and one in other.below() for other in found)]


def hdbscan(heights: np.ndarray, least: int, **how: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, probabilities and outlier scores for distances by mutual reachability."""
    n = len(heights)
    root = grow(Cluster(list(range(n)), np.inf), heights, least)
    epsilon = float(how.get("epsilon", 0.0))  # type: ignore[arg-type]
    left, score = np.zeros(n), np.zeros(n)
    for cluster in root.below():
        deepest, there = max(each.death for each in cluster.below()), set(cluster.points)
        later = {point for child in cluster.children for point in child.points}
        for height, rest in cluster.steps:
            for point in there - set(rest) - later:
                left[point] = density(height)
                score[point] = 0.0 if left[point] == deepest else 1.0
                if deepest < np.inf:
                    score[point] = (deepest - left[point]) / deepest
            there = set(rest)
    labels, probability = np.full(n, -1), np.zeros(n)
    for label, cluster in enumerate(sorted({id(c): c for c in select(root, **how)}.values(), key=lambda c: c.points)):  # type: ignore[arg-type]
        since = 0.0 if cluster is not root else density(epsilon) if epsilon else root.death
        for point in cluster.points:
            if left[point] >= since:
                labels[point] = label
                probability[point] = 1.0 if left[point] >= cluster.death else left[point] / cluster.death
    return labels, probability, score
