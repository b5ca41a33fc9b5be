"""The merges of the levels below the last, and the order in which they are listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.hca.clusters import LevelClusters
from daskclust.hca.kernels.sets import rank_merges
from daskclust.hca.levels import TreeLevel


class History(NamedTuple):
    """Merges of levels below the last, in any order."""

    refs: NDArray[np.int64]  # (k, 2): points, or -1 - j for the union of merge j of this history
    heights: NDArray[np.float64]  # (k,)
    level: NDArray[np.int64]  # (k,)
    label: NDArray[np.int64]  # (k,): of the apriori cluster
    turn: NDArray[np.int64]  # (k,): how many merges of that cluster were before
    rank: NDArray[np.float64]  # (k,): height by which it is put among those of other clusters


_EMPTY = np.empty(0, np.int64)
NOTHING = History(np.empty((0, 2), np.int64), np.empty(0), _EMPTY, _EMPTY, _EMPTY, np.empty(0))


def history_of(
    found: TreeLevel,
    begin: NDArray[np.int64],
    ref: NDArray[np.int64],
    before: int,
    level: int,
    label: NDArray[np.int64],
) -> History:
    """Return the merges of some sets; their clusters are `ref`, merges up to `before` are known."""
    sets = np.arange(len(begin) - 1)
    of_merge = np.repeat(sets, np.diff(begin) - 1)
    size = np.diff(begin)[of_merge][:, None]
    is_known = found.pairs < size
    cluster = ref[begin[of_merge][:, None] + np.where(is_known, found.pairs, 0)]
    union = -1 - (before + (begin[:-1] - sets)[of_merge][:, None] + found.pairs - size)
    rank, turn = np.empty(len(of_merge)), np.empty(len(of_merge), np.int64)
    rank_merges.run(len(sets), begin, found.heights, rank, turn, grain=64)
    levels = np.full(len(of_merge), level)
    return History(np.where(is_known, cluster, union), found.heights, levels, label[of_merge], turn, rank)


def joined_histories(parts: Sequence[History]) -> History:
    """Return the merges of several histories; their references must be to one numbering."""
    return History(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def in_order(history: History, by_groups: bool) -> NDArray[np.int64]:
    """Return the order of merges: by level, then by height or by label, those of a cluster as they came."""
    ranks = () if by_groups else (history.rank,)
    return np.lexsort((history.turn, history.label, *ranks, history.level))


def idents(refs: NDArray[np.int64], ident: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ids of points and of unions, given those of the unions."""
    if not len(ident):
        return refs
    return np.where(refs < 0, ident[np.where(refs < 0, -1 - refs, 0)], refs)


def by_age(clusters: LevelClusters, history: History, by_groups: bool) -> NDArray[np.int64]:
    """Return the order of clusters by id: points, then unions as their merges are ordered."""
    is_union = clusters.ref < 0
    level, label, rank = np.full(len(is_union), -1), clusters.ref.copy(), np.zeros(len(is_union))
    merge = -1 - clusters.ref[is_union]
    level[is_union], label[is_union] = history.level[merge], history.label[merge]
    if not by_groups:
        rank[is_union] = history.rank[merge]
    return np.lexsort((label, rank, level))
