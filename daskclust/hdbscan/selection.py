"""Which clusters of a condensed tree are the result, and what follows for points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.merge.labels import NOISE
from daskclust.hdbscan.condensed import CondensedTree
from daskclust.hdbscan.kernels import condense as kernels


class Selection(NamedTuple):
    """How clusters are selected: parameters of the same names of `HDBSCAN`."""

    eom: bool = True  # else leaves
    epsilon: float = 0.0
    most: float = np.inf  # points of a cluster that excess of mass may select
    single: bool = False


def labels_of(tree: CondensedTree, how: Selection) -> dict[str, Any]:
    """Return labels, probabilities and outlier scores of points, and the number of clusters."""
    n = len(tree.cluster)
    owner, since = _owners(tree, how), np.zeros(len(tree.parent))
    is_root = np.isinf(tree.birth)  # those that leave a root early are noise
    since[is_root] = 1 / how.epsilon if how.epsilon > 0 else tree.death[is_root]
    deepest = tree.death.copy()
    kernels.carry_largest.run(1, tree.parent, deepest)
    number = np.full(len(tree.parent), NOISE, np.int64)
    labels, probability, score = np.empty(n, np.int64), np.empty(n), np.empty(n)
    results = labels, probability, score
    kernels.label_points.run(1, tree.cluster, tree.left, owner, since, tree.death, deepest, number, *results)
    n_clusters = int(number.max()) + 1
    return {"labels": labels, "probability": probability, "outlier_score": score, "n_clusters": n_clusters}


def _owners(tree: CondensedTree, how: Selection) -> npt.NDArray[np.int32]:
    """Return the selected cluster around each cluster, -1 where there is none."""
    k = len(tree.parent)
    allowed = (how.single | np.isfinite(tree.birth)) & (tree.death > 0)  # not of several trees together
    first = np.zeros(k + 1, np.int64)
    np.cumsum(np.bincount(tree.parent[1:], minlength=k), out=first[1:])
    chosen = allowed & (first[1:] == first[:-1])
    if how.eom:
        allowed &= tree.size <= how.most
        below, filled = np.empty(k), np.zeros(k, np.int32)
        kernels.choose_stable.run(1, tree.parent, first, allowed, tree.stability, below, filled, chosen)
    if how.epsilon > 0:
        wide = np.arange(k, dtype=np.int32)
        kernels.find_wide.run(1, tree.parent, tree.birth, how.epsilon, how.single, wide)
        wide, chosen = wide[chosen], np.zeros(k, np.bool_)
        chosen[wide] = True
    owner = np.empty(k, np.int32)
    kernels.find_owners.run(1, tree.parent, chosen, owner)
    return owner
