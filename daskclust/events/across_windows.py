"""What chunks of a sequence send up, and how it is merged: sets are numbered in the order of their first elements."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.merge.labels import NOISE
from daskclust.core.merge.sets import Ids, smallest_connected


class WindowClusters(NamedTuple):
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


class WindowSlice(NamedTuple):
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


def merge_windows(windows: list[WindowClusters], min_size: int) -> list[WindowSlice]:
    """Return each chunk's numbers of sets, which go by their first elements.

    Parameters
    ----------
    windows : list of WindowClusters
        Those of all chunks, in their order.
    min_size : int
        Sets of fewer elements are noise.

    Returns
    -------
    list of WindowSlice
        One for each chunk.
    """
    shared = np.concatenate([p.shared for p in windows])
    edges = np.concatenate([p.edges for p in windows])
    chunk = np.repeat(np.arange(len(windows)), [len(p.shared) for p in windows])
    place = np.argsort(shared)
    ends = place[np.searchsorted(shared, edges, sorter=place)] if len(edges) else np.empty((0, 2), np.int64)
    head = smallest_connected(ends, len(shared))  # the first of the shared sets that are one
    sizes = np.zeros(len(shared), np.int64)
    np.add.at(sizes, head, np.concatenate([p.sizes for p in windows]))
    is_counted = (head == np.arange(len(shared))) & (sizes >= min_size)
    counted_before = np.cumsum(is_counted) - is_counted
    private = np.array([p.n_private for p in windows])
    private_before = np.cumsum(private) - private
    numbers = private_before[chunk] + np.concatenate([p.private_before for p in windows]) + counted_before
    numbers = np.where(is_counted[head], numbers[head], NOISE)
    begin = np.searchsorted(chunk, np.arange(len(windows) + 1))
    total = int(private.sum() + is_counted.sum())
    firsts = private_before + np.concatenate([counted_before, [is_counted.sum()]])[begin[:-1]]
    return [
        WindowSlice(int(first), numbers[a:b], is_counted[a:b], total)
        for first, a, b in zip(firsts, begin[:-1], begin[1:], strict=True)
    ]
