"""The condensed tree of HDBSCAN*: clusters of a least size by density, which is 1 / height.

A step at height h is a component of the edges of at most h that is none of the shorter edges alone. Its parts are the
components of shorter edges in it, single points included. From the root down, of the parts with at least
`min_cluster_size` points

- there are none: the cluster ends, and all its points leave it at 1 / h;
- there is one: the cluster goes on as that part, the points of the others leave it;
- there are more: each is born as a cluster, the points of the others leave the old one, which ends.

So merges of equal height are one step, as tied edges are removed at once in Campello et al. (2013), and the clusters
depend neither on the order of points nor on which of several minimum spanning trees there is. Where h is 0 all parts
are points, so nothing is born. Where it is infinite, trees that have nothing to do with each other are joined: each is
a root, whatever its size.

`labels_of` tells which of the clusters are the result, and what follows for points.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.merge.labels import NOISE
from daskclust.hdbscan.kernels import condense as kernels

Float = npt.NDArray[np.float64]

ROW = np.dtype([("parent", np.intp), ("child", np.intp), ("lambda_val", np.float64), ("child_size", np.intp)])
"""A row of a condensed tree as the package hdbscan has it."""


class CondensedTree(NamedTuple):
    """Clusters, each after its parent, and where points leave them; density is 1 / height."""

    cluster: npt.NDArray[np.int32]  # (n,) last cluster of each point
    left: Float  # (n,) density at which the point leaves it
    parent: npt.NDArray[np.int32]  # (k,) -1 of the first, which has all points
    birth: Float  # (k,) height at which the cluster is born, infinite for roots
    death: Float  # (k,) density at which it ends
    size: npt.NDArray[np.int64]  # (k,) points at birth
    stability: Float  # (k,) sum over its points of the density at which they leave, less that of birth


class Walk(NamedTuple):
    """Merges of a linkage in preorder: as one walks down from the last one, into the larger part first.

    That is found once. A part of m points has m - 1 merges there that follow each other, so those that are too small
    for a cluster are passed over.
    """

    height: Float  # (n - 1,)
    size: npt.NDArray[np.int32]  # (n - 1,) points of the merge
    larger: npt.NDArray[np.int32]  # (n - 1,) points of its larger part
    place: npt.NDArray[np.int32]  # (n,) position of each point


def walk_down(Z: Float) -> Walk:
    """Return the merges of a linkage in that order."""
    m = len(Z)
    size, larger = np.empty((2, m), np.int32)
    walk = Walk(np.empty(m), size, larger, np.empty(m + 1, np.int32))
    kernels.arrange.run(1, Z, np.empty((m, 2), np.int32), *walk)
    return walk


def condensed_tree(walk: Walk, min_cluster_size: int, at_once: bool = True) -> CondensedTree:
    """Return the condensed tree of a linkage; with `at_once` False equal merges are taken one by one, as others do."""
    *merges, place = walk
    n = len(place)
    step, own, first = np.arange(n - 1, dtype=np.int32), np.full(n - 1, -1, np.int32), np.empty(n - 1, np.int32)
    large, rest = np.zeros((2, n - 1), np.int32)
    kernels.count_parts.run(1, *merges, min_cluster_size, at_once, step, large, rest)
    most = 2 * (n // min_cluster_size) + 2 + np.count_nonzero(np.isinf(walk.height))
    cluster, left = np.empty(n, np.int32), np.empty(n)
    parent, size = np.empty(most, np.int32), np.empty(most, np.int64)
    birth, (death, stability) = np.empty(most), np.zeros((2, most))
    found = np.empty(1, np.int64)
    steps, clusters = (step, large, rest), (parent, birth, death, size, stability)
    kernels.condense.run(1, *merges, min_cluster_size, at_once, *steps, own, first, cluster, left, *clusters, found)
    results: list[npt.NDArray[Any]] = [each[: found[0]].copy() for each in clusters]
    return CondensedTree(cluster[place], left[place], *results)


def as_table(tree: CondensedTree) -> npt.NDArray[np.void]:
    """Return the tree as rows of parent, child, lambda_val and child_size, with points 0 to n - 1 and the root n.

    Clusters are numbered by height of birth and smallest point. Where m > 2 are born at once there are m - 2 clusters
    between them and their parent that end where they are born, because others read pairs only.
    """
    n, k = len(tree.cluster), len(tree.parent)
    first = np.full(k, -float(n))  # as the kernel has it for densities
    np.maximum.at(first, tree.cluster, -np.arange(n))
    kernels.carry_largest.run(1, tree.parent, first)
    by = np.lexsort((-first[1:], -first[tree.parent[1:]], -tree.birth[1:])) + 1
    parent = tree.parent[by]
    starts = np.flatnonzero(np.append(True, parent[1:] != parent[:-1])[: k - 1])
    family = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, k - 1)))
    ends = np.append(starts[1:], k - 1)[family]
    position = np.arange(k - 1)
    has_between = position < ends - 2
    ids = np.full(k, n)
    ids[by] = n + 1 + position + np.cumsum(has_between) - has_between
    above = np.minimum(position, ends - 2) - 1  # in whose place a cluster between is the parent
    above_ids = np.where(above >= starts[family], ids[by][np.maximum(above, 0)] + 1, ids[parent])
    remaining = np.append(np.cumsum(tree.size[by][::-1])[::-1], 0)
    remaining -= np.append(remaining[ends], 0)
    lam = 1 / tree.birth[by]
    blocks = [
        (ids[tree.cluster], np.arange(n), tree.left, np.ones(n, np.intp)),
        (above_ids, ids[by], lam, tree.size[by]),
        tuple(each[has_between] for each in (above_ids, ids[by] + 1, lam, remaining[1:])),
    ]
    rows = np.empty(sum(len(block[0]) for block in blocks), ROW)
    for name, *parts in zip(ROW.names or (), *blocks, strict=True):
        rows[name] = np.concatenate(parts)
    return rows[np.argsort(rows["parent"], kind="stable")]


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
