"""Clusters that stay the same from one step of time to the next. Public as `daskclust.metrics.match_clusters`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ._agreement import checked_sides, shared_members


class Descendants(NamedTuple):
    """What becomes of each cluster.

    Attributes
    ----------
    cluster : array of int64, shape (p,)
        Clusters of the earlier step, ascending.
    size : array of int64, shape (p,)
        Their members.
    descendant : array of int64, shape (p,)
        The cluster of the later step with most of these members, the smallest of equal ones; -1 where none is in one.
    shared : array of int64, shape (p,)
        Members that are in both.
    is_main : array of bool, shape (p,)
        Whether no cluster gives its descendant more members; of equal ones the smallest cluster is the main one.
    """

    cluster: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    descendant: npt.NDArray[np.int64]
    shared: npt.NDArray[np.int64]
    is_main: npt.NDArray[np.bool_]


def match_clusters(
    labels_before: npt.ArrayLike,
    labels_after: npt.ArrayLike,
    ids_before: npt.ArrayLike | None = None,
    ids_after: npt.ArrayLike | None = None,
) -> Descendants:
    """Return which cluster of a later step has most members of each cluster: the first step of a merger tree.

    Parameters
    ----------
    labels_before, labels_after : array_like of int, shape (n,) and (m,)
        Clusters of two steps, -1 noise.
    ids_before, ids_after : array_like of int, shape (n,) and (m,), optional
        Which points these are, each at most once in a step, in any order. Default: the same points in both steps.

    Returns
    -------
    Descendants
        Arrays with an element for each cluster of the earlier step. O((n + m) log(n + m)) time.

    Raises
    ------
    ValueError
        For unequal lengths, ids of one step alone or that are there twice, and labels that are no integers.

    Examples
    --------
    >>> found = match_clusters([0, 0, 0, 1, 1, 2], [5, 5, 4, 5, 5, -1])
    >>> found.descendant.tolist(), found.shared.tolist(), found.is_main.tolist()
    ([5, 5, -1], [2, 2, 0], [True, False, False])
    """
    if (ids_before is None) != (ids_after is None):
        raise ValueError("ids are needed of both steps or of none; give ids_before and ids_after")
    if ids_before is None or ids_after is None:
        before, after = checked_sides("ignore", labels_before=labels_before, labels_after=labels_after)
        common_before, common_after = before, after
    else:
        (before,) = checked_sides("ignore", labels_before=labels_before)
        (after,) = checked_sides("ignore", labels_after=labels_after)
        ids = _ids("before", ids_before, len(before)), _ids("after", ids_after, len(after))
        _, in_before, in_after = np.intersect1d(*ids, assume_unique=True, return_indices=True)
        common_before, common_after = before[in_before], after[in_after]
    cluster, size = np.unique(before[before >= 0], return_counts=True)
    stays = (common_before >= 0) & (common_after >= 0)
    ones = np.ones(stays.sum(), np.int64)
    first_ids, last_ids, table = shared_members(common_before[stays], common_after[stays], ones)
    pairs = table.tocoo()
    # those with most members first, of equal ones the smallest clusters
    order = np.lexsort((pairs.coords[1], pairs.coords[0], -pairs.data))
    first, last, shared = first_ids[pairs.coords[0]][order], last_ids[pairs.coords[1]][order], pairs.data[order]
    _, best = np.unique(first, return_index=True)  # of each earlier cluster
    _, main = np.unique(last, return_index=True)  # of each later one
    place = np.searchsorted(cluster, first[best])
    descendant, most = np.full(len(cluster), -1, np.int64), np.zeros(len(cluster), np.int64)
    descendant[place], most[place] = last[best], shared[best]
    is_main = np.zeros(len(cluster), np.bool_)
    is_main[place] = np.isin(best, main)
    return Descendants(cluster, size, descendant, most, is_main)


def _ids(step: str, ids: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
    """Return the ids of a step, in one type of both: a float64 would hold only smaller ones of int64 and uint64."""
    array = np.asarray(ids)
    if array.shape != (count,) or array.dtype.kind not in "iu":
        raise ValueError(f"ids_{step} must be {count} integers, as many as labels, got {array.dtype} {array.shape}")
    values, counts = np.unique(array, return_counts=True)
    if len(values) < count:
        raise ValueError(f"ids_{step} has {values[counts > 1][0]} several times; give each point an id of its own")
    return array.astype(np.int64)
