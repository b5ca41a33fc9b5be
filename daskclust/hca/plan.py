"""Mahalanobis hierarchical clustering as a plan: apriori clusters on workers, their roots on one.

A worker merges the points of each apriori cluster down to one. What goes up is the merges and each root's size, sum of
coordinates and scatter; the last level starts from those. Where there are several levels of apriori clusters, a worker
has all points of a cluster of the coarsest and does the finer levels too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.data.checks import check_spread
from daskclust.core.device.arrays import Cuda, Host, device_of, to_host
from daskclust.core.run.plan import Cost, WholePlan
from daskclust.core.space.extent import extent_of
from daskclust.core.space.partition import Chunk
from daskclust.hca.clusters import LevelClusters, clusters_of_points, joined, moved, take, together, without_members
from daskclust.hca.history import NOTHING, History, by_age, history_of, idents, in_order, joined_histories
from daskclust.hca.kernels.sets import count_members
from daskclust.hca.kernels.shapes import Rule
from daskclust.hca.levels import link_level

RULES = {
    "thesis": {"scales": 0, "missing": 0, "smallest": 1},
    "mahal": {"mixes": 1},
    "mahal0": {"mixes": 1, "unit_sphere": 1},
    "euclid": {"waits": 1},
    "euclid_mahal": {},
}
LARGEST = 1e150  # coordinate
LAST = np.iinfo(np.int64).max  # label of the points that are in no apriori cluster


def rule_of(name: str, threshold: float, distance: str, normalize: bool) -> Rule:
    """Return the rule of a name, for clusters of `threshold` members and more."""
    usual = {"mixes": 0, "unit_sphere": 0, "waits": 0, "scales": 1, "missing": 1, "smallest": 3}
    return Rule(threshold=threshold, normalize=int(normalize), full=int(distance == "full"), **{**usual, **RULES[name]})


class Frontier(NamedTuple):
    """What a worker sends up: what is left of its points, and how that came about."""

    clusters: LevelClusters
    history: History
    groups: tuple[NDArray[np.int64], ...] = ()  # of each level, the labels of apriori clusters


class Linkage(NamedTuple):
    """The whole hierarchy."""

    Z: NDArray[np.float64]  # (n - 1, 4)
    n_apriori: np.int64  # merges within apriori clusters, which come first


@dataclass(frozen=True)
class HcaPlan(WholePlan):
    """The plan of Mahalanobis hierarchical clustering; nothing is known of a chunk before its apriori clusters are."""

    rule: Rule
    by_groups: bool = False  # whether merges of apriori clusters come one cluster after the other, not by height
    name: str = "hca"
    kernels = 9
    group = "pack"

    def local(self, measures: Chunk, before: None = None) -> tuple[None, Frontier]:
        """Merge the points of each apriori cluster, level by level."""
        X, apriori = measures.columns["X"], measures.columns.get("apriori")
        device = device_of(X)
        ids = measures.ids_on_host()
        _check_coordinates(measures)
        points = device.cast(X, np.float64)
        clusters, history = clusters_of_points(ids, points, device), NOTHING
        if apriori is None:
            return None, Frontier(clusters, history)
        labels = to_host(apriori)
        _check_nested(labels)
        groups = tuple(np.setdiff1d(column, [LAST]) for column in labels.T)
        for level in range(labels.shape[1]):
            clusters, history, labels = self._merge_groups(clusters, history, labels, level, device)
        clusters = clusters if self.rule.full else without_members(clusters)
        return None, Frontier(moved(clusters, device), history, groups)

    def _merge_groups(
        self, clusters: LevelClusters, history: History, labels: NDArray[np.int64], level: int, device: Host | Cuda
    ) -> tuple[LevelClusters, History, NDArray[np.int64]]:
        """Merge the clusters of each apriori cluster of a level; return the clusters left, and the labels of each."""
        label = labels[:, level]
        order = np.argsort(label, kind="stable")
        is_first = np.ones(len(label), np.bool_)
        is_first[1:] = label[order][1:] != label[order][:-1]
        starts = np.flatnonzero(is_first)
        sizes = np.diff(starts, append=len(label))
        taken = (sizes > 1) & (label[order][starts] != LAST)
        is_taken = np.repeat(taken, sizes)
        chosen, left = order[is_taken], np.sort(order[~is_taken])
        if not len(chosen):
            return clusters, history, labels
        begin = np.concatenate([[0], np.cumsum(sizes[taken])])
        members = take(clusters, chosen)
        found = link_level(members, begin, self.rule, device)
        mine = history_of(found, begin, members.ref, len(history.heights), level, label[chosen][begin[:-1]])
        # clusters stay in the order of their ids, by which ties break: first those that were there, then the new roots
        last = begin[1:] - np.arange(1, len(begin)) - 1
        roots = np.lexsort((mine.label[last], 0 * last if self.by_groups else mine.rank[last]))
        new = LevelClusters(
            -1 - len(history.heights) - last, np.add.reduceat(members.size, begin[:-1]), found.total, found.scatter,
            found.first, found.last, clusters.follower, clusters.points,
        )  # fmt: skip
        clusters = joined([take(clusters, left), take(new, roots)])
        labels = np.concatenate([labels[left], labels[chosen][begin[:-1]][roots]])
        return clusters, joined_histories([history, mine]), labels

    def merge(self, frontiers: list[Frontier]) -> Linkage:
        """Merge what is left of all chunks, and put all merges in order."""
        _check_whole_groups([frontier.groups for frontier in frontiers])
        clusters, history = _together(frontiers)
        device = device_of(clusters.total)
        n, m = int(clusters.size.sum()), len(clusters.ref)
        clusters = take(clusters, by_age(clusters, history, self.by_groups))
        below, order = len(history.heights), in_order(history, self.by_groups)
        ident = np.empty(below, np.int64)
        ident[order] = n + np.arange(below)
        pairs, heights = [idents(history.refs[order], ident)], [history.heights[order]]
        if m > 1:
            last = link_level(clusters, np.array([0, m]), self.rule, device)
            own = np.concatenate([idents(clusters.ref, ident), n + below + np.arange(m - 1)])
            pairs.append(own[last.pairs])
            heights.append(last.heights)
        Z = np.empty((n - 1, 4))
        Z[:, :2] = np.sort(np.concatenate(pairs), axis=1)
        Z[:, 2] = np.concatenate(heights)
        count_members.run(1, Z)
        return Linkage(Z, np.int64(below))


def cost_of_points(sizes: NDArray[np.int64], d: int) -> Cost:
    """Return what a point of apriori clusters of these sizes costs a task; 1000 points in 20 axes were measured."""
    points = max(float(sizes.sum()), 1.0)
    seconds = 7e-6 * float((sizes * (sizes / 1000) ** 0.7).sum()) / points
    return Cost(max(seconds, 1e-6), 190.0 + 26.0 * d)


def _check_coordinates(chunk: Chunk) -> None:
    low, high = extent_of(chunk)
    farthest = max(abs(low).max(initial=0.0), abs(high).max(initial=0.0))
    if farthest > LARGEST:
        raise ValueError(f"X reaches {farthest:g}, whose square is too large for float64; divide X by a power of ten")
    check_spread(low, high)


def _check_nested(labels: NDArray[np.int64]) -> None:
    """Refuse levels (n, levels) where not each apriori cluster is within one of the next level."""
    for level in range(labels.shape[1] - 1):
        order = np.lexsort((labels[:, level + 1], labels[:, level]))
        fine, coarse = labels[order, level], labels[order, level + 1]
        is_outside = (fine != LAST) & (coarse == LAST)
        is_outside[1:] |= (fine[1:] == fine[:-1]) & (coarse[1:] != coarse[:-1]) & (fine[1:] != LAST)
        if is_outside.any():
            _raise_not_nested(int(fine[is_outside][0]), level)


def _raise_not_nested(label: int, level: int) -> None:
    raise ValueError(
        f"the levels of apriori are not nested: cluster {label} of level {level} is not within one cluster of level "
        f"{level + 1}; give the finest level first, and each cluster a label of its own"
    )


def _check_whole_groups(groups: list[tuple[NDArray[np.int64], ...]]) -> None:
    """Refuse apriori clusters with points in several chunks, given the labels of each level in each chunk."""
    for level in reversed(range(len(groups[0]))):
        values, counts = np.unique(np.concatenate([own[level] for own in groups]), return_counts=True)
        if (counts > 1).any():
            label = int(values[counts > 1][0])
            if level + 1 < len(groups[0]):
                _raise_not_nested(label, level)
            raise ValueError(
                f'apriori cluster {label} has points in several chunks; partition="auto" brings them together'
            )


def _together(frontiers: list[Frontier]) -> tuple[LevelClusters, History]:
    if len(frontiers) == 1:
        return frontiers[0].clusters, frontiers[0].history
    device = device_of(frontiers[0].clusters.total)
    clusters, histories, shift = [], [], 0
    for own, history, _ in frontiers:
        ref, refs = (np.where(array < 0, array - shift, array) for array in (own.ref, history.refs))
        clusters.append(own._replace(ref=ref))
        histories.append(history._replace(refs=refs))
        shift += len(history.heights)
    return moved(together(clusters), device), joined_histories(histories)
