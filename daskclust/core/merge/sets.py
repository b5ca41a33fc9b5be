"""Merge what chunks found: sets that share an element are one, and clusters are numbered over all of the data.

Chunks send up sets and ids, never points. Ids are global, so nothing is counted over chunks before.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.data.columns import group_name
from daskclust.core.device.unionfind import flatten, unite_edges
from daskclust.core.merge.labels import NOISE

Ids = NDArray[np.int64]

NOTHING = np.empty(0, np.int64)
NONE = np.iinfo(np.int64).max  # no id: larger than all


class Slice(NamedTuple):
    """A chunk's part of the merge table.

    Attributes
    ----------
    numbers : numpy.ndarray of int64, shape (k,)
        Cluster number of each of its sets; -1 for a set that is noise.
    n_clusters : int
        Number of clusters of all chunks.
    """

    numbers: Ids
    n_clusters: int


def smallest_connected(edges: Ids, count: int) -> Ids:
    """Return the smallest of the numbers that each of 0 to `count` - 1 is connected to by edges (m, 2)."""
    smallest = np.arange(count)
    unite_edges.run(len(edges), *np.ascontiguousarray(edges.T), smallest)
    flatten.run(count, smallest)
    return smallest


class Fragments(NamedTuple):
    """What one chunk sends up of sets that other chunks may have parts of as well.

    Attributes
    ----------
    firsts : numpy.ndarray of int64, shape (k,)
        The id that each set goes by, as far as the chunk knows, `NONE` where it does not: the smallest one of its
        elements, or its seed's.
    sizes : numpy.ndarray of int64, shape (k,)
        Number of its elements that the chunk owns.
    members : numpy.ndarray of int64, shape (q,)
        Ids of elements that other chunks may have as well.
    member_of : numpy.ndarray of int64, shape (q,)
        The set of each of them.
    places : numpy.ndarray of float, shape (q, axes), or None
        Where they are along the axes that the partition cuts, in the dtype of the points; None where chunks are so few
        that one step merges all.
    groups : numpy.ndarray of int64, shape (g,)
        Groups that no other chunk may have a part of.
    """

    firsts: Ids
    sizes: Ids
    members: Ids
    member_of: Ids
    places: NDArray[Any] | None = None
    groups: Ids = NOTHING


def one_set_each(members: Ids, member_of: Ids, count: int) -> Ids:
    """Return the smallest one of the sets that each of `count` sets is one with: those that share a member are one."""
    order = np.argsort(members, kind="stable")
    same = members[order[1:]] == members[order[:-1]]
    owner = member_of[order]
    return smallest_connected(np.stack([owner[1:][same], owner[:-1][same]], axis=1), count)


def merge_fragments(fragments: Sequence[Fragments], min_size: int) -> list[Slice]:
    """Return the numbers of sets: those that share a member are one cluster; clusters are numbered by their first ids.

    Parameters
    ----------
    fragments : sequence of Fragments
        Those of all chunks.
    min_size : int
        Clusters of fewer elements, 1 or more, are noise.

    Returns
    -------
    list of Slice
        One for each chunk.

    Raises
    ------
    ValueError
        For chunks that share a group though each should hold all of it.
    """
    check_groups([f.groups for f in fragments])
    begin = np.concatenate([[0], np.cumsum([len(f.firsts) for f in fragments])]).astype(np.int64)
    firsts, sizes, members = (np.concatenate([f[k] for f in fragments]) for k in range(3))
    member_of = np.concatenate([f.member_of + a for f, a in zip(fragments, begin, strict=False)])
    root = one_set_each(members, member_of, int(begin[-1]))
    np.minimum.at(firsts, root, firsts)
    total = np.zeros(begin[-1], np.int64)
    np.add.at(total, root, sizes)
    clusters = np.flatnonzero((root == np.arange(begin[-1])) & (total >= min_size))
    numbers = np.full(begin[-1], NOISE, np.int64)
    numbers[clusters[np.argsort(firsts[clusters])]] = np.arange(len(clusters))
    numbers = numbers[root]
    return [Slice(numbers[a:b], len(clusters)) for a, b in itertools.pairwise(begin)]


def check_groups(groups: Sequence[Ids]) -> None:
    """Refuse chunks that share a group, of those that each should hold all of."""
    together = np.sort(np.concatenate(groups))
    twice = together[1:][together[1:] == together[:-1]]
    if len(twice):
        raise ValueError(
            f"{group_name(int(twice[0]))} is in several chunks, so these cannot be taken as they are; "
            'partition="layers" or "space" divides them again'
        )
