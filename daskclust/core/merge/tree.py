"""The merge of many chunks in parts, for many workers: sets are joined in a tree, and numbered by ranges of ids.

A node of the tree has a group of chunks that lie together. It joins their sets, and hands up those that chunks outside
may have parts of; so what goes up is what reaches out of a region, and regions grow. Back down the tree go the ids that
whole sets go by. Each chunk then tells these for ranges of ids; each range is sorted for itself, and clusters are
numbered over all.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.merge.labels import NOISE
from daskclust.core.merge.sets import NONE, NOTHING, Fragments, Ids, Slice, check_groups, one_set_each
from daskclust.core.space.partition import Partition


class Borders(NamedTuple):
    """Sets of a chunk, or of a group of them, that others may have parts of."""

    firsts: Ids  # as of `Fragments`
    sizes: Ids  # as of `Fragments`
    members: Ids  # as of `Fragments`
    member_of: Ids  # as of `Fragments`
    seen: Ids  # (q, 2) the first and the last chunk, along the partition's curve, that may have each member


class Node(NamedTuple):
    """What a group of chunks, or of groups, knows of the sets of its parts."""

    begin: Ids  # (parts + 1,) where the sets of each part begin
    whole: Ids  # (k,) the joined set of each of them
    firsts: Ids  # (m,) the id that each joined set goes by; `NONE` for what is too small, if no more comes from outside
    up: Ids  # (u,) joined sets that go up, ascending


# -------------------------------------------------------------------------------------------------------- up and down
def borders_of(found: tuple[Any, Fragments], partition: Partition, chunk: int) -> Borders:
    """Return the sets of a chunk, of its local result and its frontier, that others may have parts of."""
    _, fragments = found
    sets = border_sets(fragments)
    own = np.searchsorted(sets, fragments.member_of)
    assert fragments.places is not None
    seen = partition.seen_from(chunk, fragments.places)
    return Borders(fragments.firsts[sets], fragments.sizes[sets], fragments.members, own, seen)


def border_sets(fragments: Fragments) -> Ids:
    """Return the numbers of a chunk's sets that others may have parts of, ascending."""
    return np.unique(fragments.member_of)


def join_borders(min_size: int, size: int, parts: Sequence[Borders], group: int) -> tuple[Node, Borders]:
    """Join the sets of the parts of a group; return what it keeps, and what goes up.

    Groups are of `size` chunks each, or less at the end; clusters below `min_size` are noise.
    """
    begin, end = group * size, (group + 1) * size
    starts = np.concatenate([[0], np.cumsum([len(part.firsts) for part in parts])]).astype(np.int64)
    member_of = np.concatenate([part.member_of + a for part, a in zip(parts, starts, strict=False)])
    members = np.concatenate([part.members for part in parts])
    roots, whole = np.unique(one_set_each(members, member_of, int(starts[-1])), return_inverse=True)
    firsts, sizes = np.full(len(roots), NONE), np.zeros(len(roots), np.int64)
    np.minimum.at(firsts, whole, np.concatenate([part.firsts for part in parts]))
    np.add.at(sizes, whole, np.concatenate([part.sizes for part in parts]))

    seen = np.concatenate([part.seen for part in parts])
    outside = np.flatnonzero((seen[:, 0] < begin) | (seen[:, 1] >= end))
    members, once = np.unique(members[outside], return_index=True)
    outside = outside[once]
    up, member_of = np.unique(whole[member_of[outside]], return_inverse=True)
    node = Node(starts, whole, np.where(sizes >= min_size, firsts, NONE), up)
    return node, Borders(firsts[up], sizes[up], members, member_of, seen[outside])


def hand_down(joined: tuple[Node, Borders], from_above: Ids | None = None) -> list[Ids]:
    """Return the id that each set of each part goes by; of sets that went up it is known above alone."""
    node, _ = joined
    firsts = node.firsts
    if from_above is not None:
        firsts = firsts.copy()
        firsts[node.up] = from_above
    firsts = firsts[node.whole]
    return [firsts[a:b] for a, b in itertools.pairwise(node.begin)]


# ----------------------------------------------------------------------------------------------------- ranges of ids
def report(min_size: int, ranges: Ids, found: tuple[Any, Fragments], firsts: Ids | None = None) -> list[Ids]:
    """Return the ids that a chunk's clusters go by, ascending, for each of some ranges of ids.

    `ranges` are where these begin, and the end of the last; `firsts` the ids that its `border_sets` go by.
    """
    ids = np.unique(_known(found[1], firsts, min_size))
    ends = np.searchsorted(ids, ranges)
    return [ids[a:b] for a, b in itertools.pairwise(ends)]


def _known(fragments: Fragments, firsts: Ids | None, min_size: int) -> Ids:
    """Return the ids that a chunk's sets go by, `NONE` for noise, which is no id of a range."""
    known = np.where(fragments.sizes >= min_size, fragments.firsts, NONE)
    if firsts is not None:
        known[border_sets(fragments)] = firsts
    return known


def rank(reports: Sequence[Ids]) -> tuple[int, list[Ids]]:
    """Return how many ids there are in a range, each counted once, and the rank of those of each report."""
    ids = np.unique(np.concatenate([NOTHING, *reports]))
    return len(ids), [np.searchsorted(ids, each) for each in reports]


def first_ranks(counts: Sequence[int]) -> Ids:
    """Return how many ids are before each range, and in all."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def slice_of(
    min_size: int, ranks: Sequence[Ids], before: Ids, found: tuple[Any, Fragments], firsts: Ids | None = None
) -> Slice:
    """Return a chunk's slice.

    `ranks` are those of the ids that it reported, in each range, and `before` how many ids are before each range.
    """
    known = _known(found[1], firsts, min_size)
    _, place = np.unique(known, return_inverse=True)
    numbers = np.concatenate([NOTHING, *(own + start for own, start in zip(ranks, before, strict=False))])
    return Slice(np.append(numbers, NOISE)[place], int(before[-1]))


# --------------------------------------------------------------------------------------- chunks that follow each other
def count_own(min_size: int, found: tuple[Any, Fragments]) -> tuple[int, Ids]:
    """Return how many clusters a chunk has that shares none with others, and its groups."""
    _, fragments = found
    return int((fragments.sizes >= min_size).sum()), fragments.groups


def own_before(counted: Sequence[tuple[int, Ids]]) -> Ids:
    """Return how many clusters are before each chunk, and in all; refuse groups that are in several chunks."""
    check_groups([NOTHING, *(groups for _, groups in counted)])
    return first_ranks([count for count, _ in counted])


def slice_of_own(min_size: int, found: tuple[Any, Fragments], before: Ids, chunk: int) -> Slice:
    """Return the slice of a chunk that shares no clusters with others."""
    _, fragments = found
    is_cluster = fragments.sizes >= min_size
    numbers = np.full(len(is_cluster), NOISE, np.int64)
    clusters = np.flatnonzero(is_cluster)
    numbers[clusters[np.argsort(fragments.firsts[clusters])]] = before[chunk] + np.arange(len(clusters))
    return Slice(numbers, int(before[-1]))
