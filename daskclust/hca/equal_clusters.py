"""Clusters at distance zero, such as equal rows: they are merged first, and then there is one cluster for each place.

The merges are those that the loop over all pairs would find: of the pairs at distance zero that with the smallest ids
comes first, and a union's id is the next larger one. So each place is a queue: the first two of it become one, which
goes to its end, and the place whose first id is the smallest is next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import Cuda, Host, put, to_host
from daskclust.core.space.equal_rows import RowPlaces, equal_rows
from daskclust.hca.clusters import LevelClusters, are_rows, centers, take
from daskclust.hca.kernels.sets import merge_equal
from daskclust.hca.kernels.shapes import Rule


class Merged(NamedTuple):
    """One cluster for each place of each set, and the merges that led there."""

    clusters: LevelClusters  # in the order of their ids; `ref` is below 0 for those with a scatter
    begin: NDArray[np.int64]  # (sets + 1,): where those of each set begin
    ident: NDArray[np.int64]  # (places,): ids within the set
    pairs: NDArray[np.int64]  # (merges, 2): ids within the set, one set after the other


def merge_equal_clusters(
    clusters: LevelClusters, begin: NDArray[np.int64], rule: Rule, device: Host | Cuda
) -> Merged | None:
    """Merge the clusters of each set whose centroids are equal; None if there are none."""
    sets, m = len(begin) - 1, len(clusters.ref)
    of_set, is_row = np.repeat(np.arange(sets), np.diff(begin)), are_rows(clusters.ref, clusters.scatter)
    rows = centers(clusters, is_row)
    places = equal_rows(rows, of_set if sets > 1 else None)
    if rule.full and (places.counts[places.of_row[~is_row]] > 1).any():
        if not rule.scales:
            return None  # members count in one direction alone, by size: what is at distance zero is no queue
        places = equal_rows(rows, np.where(is_row, of_set, -1 - np.arange(m)))  # other members are elsewhere
    if places.are_single:
        return None
    total = len(places.first)
    new_begin = np.concatenate([[0], np.cumsum(np.bincount(of_set[places.first], minlength=sets))])
    place, ident, pairs = np.empty(total, np.int64), np.empty(total, np.int64), np.empty((m - total, 2), np.int64)
    place_of, follower, last = np.empty(2 * m, np.int64), np.empty(2 * m, np.int64), np.full(total, -1)
    merge_equal.run(sets, begin, new_begin, places.of_row, place_of, follower, last, place, ident, pairs, grain=64)
    _chain(clusters, places, device)
    return Merged(_clusters_of(clusters, places, place, rows, rule), new_begin, ident, pairs)


def _chain(clusters: LevelClusters, places: RowPlaces, device: Host | Cuda) -> None:
    """Let the members of each place follow each other."""
    is_next = np.ones(len(places.members), np.bool_)
    is_next[places.begin[:-1]] = False
    at = np.flatnonzero(is_next)
    before, after = places.members[at - 1], places.members[at]
    ends = device.from_host(clusters.first[after]), device.from_host(clusters.last[before])
    device.run(put, len(at), *ends, 0, clusters.follower)


def _clusters_of(
    clusters: LevelClusters, places: RowPlaces, place: NDArray[np.int64], rows: NDArray[np.float64], rule: Rule
) -> LevelClusters:
    """Return a cluster for each place, in the order `place`."""
    first, is_many = places.first[place], places.counts[place] > 1
    found = take(clusters, first)
    size = np.add.reduceat(clusters.size[places.members], places.begin[:-1])[place]
    is_union = clusters.ref < 0
    has_union = np.bincount(places.of_row[is_union], minlength=len(place))[place] > 0
    has_row = has_union | (is_many & (size >= rule.smallest) & ((size >= rule.threshold) | bool(rule.mixes)))
    row = np.empty(len(place), np.int64)
    row[place] = np.cumsum(has_row) - 1
    scatter = np.zeros((np.count_nonzero(has_row), clusters.scatter.shape[1]))
    np.add.at(scatter, row[places.of_row[is_union]], clusters.scatter)
    total = to_host(found.total)
    total[is_many] = rows[first[is_many]] * size[is_many, None]
    last = clusters.last[places.members[places.begin[1:] - 1]][place]
    return found._replace(ref=np.where(has_row, -1, 0), size=size, total=total, scatter=scatter, last=last)


def with_equal(
    merged: Merged, begin: NDArray[np.int64], pairs: NDArray[np.int64], heights: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the merges of all clusters of each set, given those of its places."""
    sizes, places = np.diff(begin), np.diff(merged.begin)
    of_merge = np.repeat(np.arange(len(sizes)), places - 1)
    known, cluster = places[of_merge, None], merged.begin[of_merge][:, None] + pairs
    later = pairs - known + (2 * sizes - places)[of_merge][:, None]
    pairs = np.where(pairs < known, merged.ident[np.where(pairs < known, cluster, 0)], later)
    step = np.arange(len(merged.pairs) + len(pairs)) - np.repeat((begin - np.arange(len(begin)))[:-1], sizes - 1)
    is_equal = step < np.repeat(sizes - places, sizes - 1)
    all_pairs, all_heights = np.empty((len(step), 2), np.int64), np.zeros(len(step))
    all_pairs[is_equal], all_pairs[~is_equal], all_heights[~is_equal] = merged.pairs, pairs, heights
    return all_pairs, all_heights
