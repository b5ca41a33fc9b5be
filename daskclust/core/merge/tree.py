"""The merge of many chunks in parts, for many workers: sets are joined in a tree, and numbered by ranges of ids.

A node of the tree has a group of chunks that lie together. It joins their sets, and hands up those that chunks outside
may have parts of; so what goes up is what reaches out of a region, and regions grow. Back down the tree goes what is
known of whole sets. Each chunk then tells, for ranges of ids, which ids its clusters go by; each range is sorted for
itself, and clusters are numbered over all.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

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
def borders_of(fragments: Fragments, partition: Partition, chunk: int) -> Borders:
    """Return the sets of a chunk that others may have parts of."""
    sets = border_sets(fragments)
    own = np.searchsorted(sets, fragments.member_of)
    assert fragments.places is not None
    seen = partition.seen_from(chunk, fragments.places)
    return Borders(fragments.firsts[sets], fragments.sizes[sets], fragments.members, own, seen)


def border_sets(fragments: Fragments) -> Ids:
    """Return the numbers of a chunk's sets that others may have parts of, ascending."""
    return np.unique(fragments.member_of)


def join_borders(parts: Sequence[Borders], begin: int, end: int, min_size: int) -> tuple[Node, Borders]:
    """Join the sets of the parts of a group; return what it keeps, and what goes up.

    The group's chunks are `begin` to `end - 1` along the partition's curve; clusters below `min_size` are noise.
    """
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


def hand_down(node: Node, values: Ids | None, from_above: Ids | None) -> list[Ids]:
    """Return a value for each set of each part.

    `values` are those of joined sets, None for the ids that they go by; those that go up are known above alone.
    """
    values = (node.firsts if values is None else values).copy()
    if from_above is not None:
        values[node.up] = from_above
    values = values[node.whole]
    return [values[a:b] for a, b in itertools.pairwise(node.begin)]


def numbers_within(node: Node, numbers: Sequence[Ids]) -> Ids:
    """Return the number of each joined set, from those of the parts' sets: -1 where no part knows it."""
    found = np.full(len(node.firsts), NOISE, np.int64)
    np.maximum.at(found, node.whole, np.concatenate(numbers))
    return found


def numbers_up(node: Node, numbers: Ids) -> Ids:
    """Return the numbers of sets that go up, from those of all joined sets."""
    return numbers[node.up]


# ----------------------------------------------------------------------------------------------------- ranges of ids
def report(fragments: Fragments, firsts: Ids | None, min_size: int, ranges: Ids) -> list[Ids]:
    """Return the ids of a chunk's elements that clusters go by, ascending, for each of some ranges (m, 2) of ids.

    `firsts` are the ids that its `border_sets` go by; None where there are none of these.
    """
    ids = fragments.firsts[_told(fragments, firsts, min_size)]
    ends = np.searchsorted(ids, ranges)
    if (ends[:, 1] - ends[:, 0]).sum() != len(ids):
        raise RuntimeError("clusters go by ids of points that the chunk does not have: please report this")
    return [ids[a:b] for a, b in ends]


def _told(fragments: Fragments, firsts: Ids | None, min_size: int) -> Ids:
    """Return the sets that go by the ids of clusters, ascending by these."""
    known = np.where(fragments.sizes >= min_size, fragments.firsts, NONE)
    if firsts is not None:
        known[border_sets(fragments)] = firsts
    sets = np.flatnonzero((known == fragments.firsts) & (known != NONE))
    return sets[np.argsort(known[sets])]


def rank(bundles: Sequence[Sequence[Ids]]) -> tuple[int, list[Ids]]:
    """Return how many ids there are in a range, each counted once, and the rank of those of each report."""
    reports = list(itertools.chain.from_iterable(bundles))
    ids = np.unique(np.concatenate([NOTHING, *reports]))
    return len(ids), [np.searchsorted(ids, each) for each in reports]


def first_ranks(counts: Sequence[int], groups: Sequence[Ids]) -> Ids:
    """Return how many ids are before each range, and in all; refuse groups that are in several chunks."""
    check_groups([NOTHING, *groups])
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def number(
    fragments: Fragments,
    firsts: Ids | None,
    min_size: int,
    bundles: Sequence[Sequence[Ids]],
    ranges: Ids,
    before: Ids,
) -> Ids:
    """Return the numbers of a chunk's sets: those of the ids that it told, -1 for others.

    `bundles` have the ranks of these ids in some ranges, and `before` how many ids are before each range.
    """
    numbers = np.full(len(fragments.firsts), NOISE, np.int64)
    told = [ranks + before[each] for ranks, each in zip(itertools.chain.from_iterable(bundles), ranges, strict=True)]
    numbers[_told(fragments, firsts, min_size)] = np.concatenate([NOTHING, *told])
    return numbers


def border_numbers(fragments: Fragments, numbers: Ids) -> Ids:
    """Return the numbers of `border_sets`, of those of all sets."""
    return numbers[border_sets(fragments)]


def slice_of(fragments: Fragments, numbers: Ids, of_borders: Ids | None, before: Ids) -> Slice:
    """Return a chunk's slice, from the numbers of its sets and those that came down the tree."""
    if of_borders is not None:
        numbers = numbers.copy()
        numbers[border_sets(fragments)] = of_borders
    return Slice(numbers, int(before[-1]))
