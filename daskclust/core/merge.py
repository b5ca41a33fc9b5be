"""Merge what chunks found: edges between global ids, connected components, one lookup table.

Chunks send up edges and roots, never points. Ids are global, so nothing is counted over chunks before.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.labels import NOISE

Ids = NDArray[np.int64]


class Frontier(NamedTuple):
    """What one chunk sends up.

    Attributes
    ----------
    roots : numpy.ndarray of int64, shape (k,)
        Ids that stand for its clusters, ascending.
    edges : numpy.ndarray of int64, shape (m, 2)
        Pairs of ids that belong together.
    asked : numpy.ndarray of int64, shape (q,)
        Ids whose cluster the chunk needs to know.
    groups : numpy.ndarray of int64, shape (g,)
        Groups that no other chunk may have a part of.
    """

    roots: Ids
    edges: Ids
    asked: Ids
    groups: Ids


class Slice(NamedTuple):
    """A chunk's part of the merge table.

    Attributes
    ----------
    numbers : numpy.ndarray of int64, shape (k,)
        Cluster number of each of its roots, or sets; -1 for a set that is too small.
    answers : numpy.ndarray of int64, shape (q,)
        Cluster number of each id it asked for, -1 where there is none.
    n_clusters : int
        Number of clusters of all chunks.
    """

    numbers: Ids
    answers: Ids
    n_clusters: int


def components(edges: Ids) -> tuple[Ids, Ids]:
    """Return the distinct ids in `edges` (m, 2), ascending, and the number of the connected component of each."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ids, compact = np.unique(edges, return_inverse=True)
    compact = compact.reshape(edges.shape)
    ones = np.ones(len(edges), np.int8)
    graph = coo_array((ones, (compact[:, 0], compact[:, 1])), shape=(len(ids), len(ids)))
    _, label = connected_components(graph, directed=False)
    return ids, label.astype(np.int64)


def merge_trees(frontiers: list[Frontier]) -> list[Slice]:
    """Return the number of each root, by ascending id, and of the root that each asked id is connected to.

    Each connected component holds one root, or none: then it is noise.

    Parameters
    ----------
    frontiers : list of Frontier
        Those of all chunks.

    Returns
    -------
    list of Slice
        One for each chunk.

    Raises
    ------
    ValueError
        For chunks that share a group though each should hold all of it.
    """
    _check_groups(frontiers)
    roots = np.sort(np.concatenate([f.roots for f in frontiers]))
    edges = np.concatenate([f.edges for f in frontiers])
    ids, label = components(edges)
    number_of = np.full(label.max(initial=-1) + 1, NOISE, np.int64)
    place = np.searchsorted(ids, roots)
    linked = place < len(ids)
    linked[linked] = ids[place[linked]] == roots[linked]
    number_of[label[place[linked]]] = np.flatnonzero(linked)
    return [
        Slice(np.searchsorted(roots, f.roots), number_of[label[np.searchsorted(ids, f.asked)]], len(roots))
        for f in frontiers
    ]


class Fragments(NamedTuple):
    """What one chunk sends up of sets whose elements other chunks may have as well.

    Attributes
    ----------
    firsts : numpy.ndarray of int64, shape (k,)
        The smallest id of each set, as far as the chunk knows.
    sizes : numpy.ndarray of int64, shape (k,)
        Number of its elements that the chunk owns.
    members : numpy.ndarray of int64, shape (q,)
        Ids of elements that other chunks may have as well.
    member_of : numpy.ndarray of int64, shape (q,)
        The set of each of them.
    """

    firsts: Ids
    sizes: Ids
    members: Ids
    member_of: Ids


def merge_fragments(fragments: list[Fragments], least: int) -> list[Slice]:
    """Return the number of each set: those that share a member are one.

    Clusters are numbered by their smallest id.

    Parameters
    ----------
    fragments : list of Fragments
        Those of all chunks.
    least : int
        Clusters of fewer elements are noise.

    Returns
    -------
    list of Slice
        One for each chunk.
    """
    counts = [len(f.firsts) for f in fragments]
    begin = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    firsts, sizes = (np.concatenate([f[k] for f in fragments]) for k in range(2))
    members = np.concatenate([f.members for f in fragments])
    owner = np.concatenate([f.member_of + a for f, a in zip(fragments, begin, strict=False)])
    order = np.argsort(members, kind="stable")
    same = members[order[1:]] == members[order[:-1]]
    joined, component = components(np.stack([owner[order[1:]][same], owner[order[:-1]][same]], axis=1))
    root = np.arange(begin[-1])
    head = np.full(component.max(initial=-1) + 1, begin[-1])
    np.minimum.at(head, component, joined)
    root[joined] = head[component]
    np.minimum.at(firsts, root, firsts)
    total = np.zeros(begin[-1], np.int64)
    np.add.at(total, root, sizes)
    clusters = np.flatnonzero((root == np.arange(begin[-1])) & (total >= least))
    numbers = np.full(begin[-1], NOISE, np.int64)
    numbers[clusters[np.argsort(firsts[clusters])]] = np.arange(len(clusters))
    numbers = numbers[root]
    nothing = np.empty(0, np.int64)
    return [Slice(numbers[a:b], nothing, len(clusters)) for a, b in itertools.pairwise(begin)]


def _check_groups(frontiers: list[Frontier]) -> None:
    """Refuse chunks that share a group though each should hold all of it."""
    groups = np.sort(np.concatenate([f.groups for f in frontiers]))
    twice = groups[1:][groups[1:] == groups[:-1]]
    if len(twice):
        raise ValueError(
            f"{group_name(int(twice[0]))} is in several chunks, so these cannot be taken as they are; "
            'partition="layers" or "space" divides them anew'
        )


def group_number(event: Any, layer: Any) -> Any:
    """Return one int64 number for an event and a layer.

    Raises
    ------
    ValueError
        For numbers that 32 bits do not hold.
    """
    for name, values in (("event", event), ("layer", layer)):
        if len(values) and not (values.min() >= -(2**31) and values.max() < 2**31):
            raise ValueError(
                f"event and layer must lie within 32 bits where both are given, got {name} {values.min()} to "
                f"{values.max()}; number them anew, e.g. by np.unique(..., return_inverse=True)"
            )
    return event.astype(np.int64) * 2**32 + (layer.astype(np.int64) + 2**31)


def group_name(group: int) -> str:
    """Return what a group is called: a layer, or one of an event."""
    if -(2**31) <= group < 2**31:
        return f"layer {group}"
    return f"layer {group % 2**32 - 2**31} of event {group // 2**32}"


# ------------------------------------------------------------------------------------------ chunks that follow in order
class Passage(NamedTuple):
    """What one chunk of a sequence sends up: how many sets it has for itself, and those that others may have part of.

    Sets are in the order of their first elements, over all chunks.

    Attributes
    ----------
    n_private : int
        Number of sets that are its own and large enough.
    shared : numpy.ndarray of int64, shape (k,)
        Id of the first own element of each shared set.
    private_before : numpy.ndarray of int64, shape (k,)
        How many of the private sets come before each.
    sizes : numpy.ndarray of int64, shape (k,)
        Number of own elements of each.
    edges : numpy.ndarray of int64, shape (m, 2)
        Ids of shared sets, here or in chunks before, that are one.
    """

    n_private: int
    shared: Ids
    private_before: Ids
    sizes: Ids
    edges: Ids


class PassageSlice(NamedTuple):
    """A chunk's part of the merged numbering.

    Attributes
    ----------
    first : int
        Number of the first set that begins here.
    numbers : numpy.ndarray of int64, shape (k,)
        Number of each shared set, -1 for what is too small.
    is_counted : numpy.ndarray of bool, shape (k,)
        Whether a shared set begins here, and so counts among those numbered here.
    n_clusters : int
        Number of clusters of all chunks.
    """

    first: int
    numbers: Ids
    is_counted: NDArray[np.bool_]
    n_clusters: int


def merge_passages(passages: list[Passage], least: int) -> list[PassageSlice]:
    """Return each chunk's numbers of sets, which go by their first elements.

    Parameters
    ----------
    passages : list of Passage
        Those of all chunks, in their order.
    least : int
        Sets of fewer elements are noise.

    Returns
    -------
    list of PassageSlice
        One for each chunk.
    """
    shared = np.concatenate([p.shared for p in passages])
    edges = np.concatenate([p.edges for p in passages])
    chunk = np.repeat(np.arange(len(passages)), [len(p.shared) for p in passages])
    place = np.argsort(shared)
    ends = place[np.searchsorted(shared, edges, sorter=place)] if len(edges) else np.empty((0, 2), np.int64)
    joined, component = components(ends)
    head = np.arange(len(shared))  # the first of the shared sets that are one
    smallest = np.full(component.max(initial=-1) + 1, len(shared), np.int64)
    np.minimum.at(smallest, component, joined)
    head[joined] = smallest[component]
    sizes = np.zeros(len(shared), np.int64)
    np.add.at(sizes, head, np.concatenate([p.sizes for p in passages]))
    is_counted = (head == np.arange(len(shared))) & (sizes >= least)
    counted_before = np.cumsum(is_counted) - is_counted
    private = np.array([p.n_private for p in passages])
    private_before = np.cumsum(private) - private
    numbers = private_before[chunk] + np.concatenate([p.private_before for p in passages]) + counted_before
    numbers = np.where(is_counted[head], numbers[head], NOISE)
    begin = np.searchsorted(chunk, np.arange(len(passages) + 1))
    total = int(private.sum() + is_counted.sum())
    firsts = private_before + np.concatenate([counted_before, [is_counted.sum()]])[begin[:-1]]
    return [
        PassageSlice(int(first), numbers[a:b], is_counted[a:b], total)
        for first, a, b in zip(firsts, begin[:-1], begin[1:], strict=True)
    ]
