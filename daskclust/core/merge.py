"""Merge what chunks found: edges between global ids, connected components, one lookup table.

Chunks send up edges and roots, never points. Ids are global, so nothing is counted over chunks before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.labels import NOISE

Ids = NDArray[np.int64]


class Frontier(NamedTuple):
    """What one chunk sends up."""

    roots: Ids  # (k,) ascending ids that stand for its clusters
    edges: Ids  # (m, 2) pairs of ids that belong together
    asked: Ids  # (q,) ids whose cluster the chunk needs to know


class Slice(NamedTuple):
    """A chunk's part of the merge table."""

    numbers: Ids  # (k,) cluster number of each of its roots
    answers: Ids  # (q,) cluster number of each id it asked for, `NOISE` where there is none
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
    """
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
