"""Cuts through a linkage: clusters by number or height, of a least size, and the top above them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.data.checks import check_number, check_whole
from daskclust.core.data.quote import quoted
from daskclust.core.hierarchy import kernels
from daskclust.core.hierarchy.kernels import UNSEEN
from daskclust.core.hierarchy.linkage import Float, Ids, check_linkage, children_of, sizes_of
from daskclust.core.merge.labels import NOISE


class Top(NamedTuple):
    """The top of a hierarchy: k clusters, its leaves, and their k - 1 merges, with ids from 0 to 2 k - 2.

    Attributes
    ----------
    linkage : numpy.ndarray of float64, shape (k - 1, 4)
        SciPy's linkage of the leaves: a merge's two are in the order of Z, and its size counts leaves.
    nodes : numpy.ndarray of int64, shape (2 k - 1,)
        Id in Z of each leaf, then of each merge.
    sizes : numpy.ndarray of int64, shape (2 k - 1,)
        Number of points of each.
    noise : numpy.ndarray of int64, shape (q,)
        Ids in Z of the small clusters left out.
    branch : numpy.ndarray of int64, shape (q,)
        Leaf or merge that each of these was merged with.
    noise_heights : numpy.ndarray of float64, shape (q,)
        Height of that merge.
    """

    linkage: Float
    nodes: Ids
    sizes: Ids
    noise: Ids
    branch: Ids
    noise_heights: Float


def cut(
    Z: npt.ArrayLike, *, n_clusters: int | None = None, height: float | None = None, min_size: int | float = 1
) -> Ids:
    """Return the clusters of a cut through the hierarchy.

    Parameters
    ----------
    Z : array_like, shape (n - 1, 4)
        SciPy's linkage.
    n_clusters : int, optional
        Number of clusters, without noise: the last merges, in the order of rows, of two clusters that both have
        `min_size` points are undone.
    height : float, optional
        Clusters are the largest subtrees in which no merge is higher. Give this or `n_clusters`.
    min_size : int or float, default 1
        Clusters of fewer points are noise. A float between 0 and 1 is a fraction of all points.

    Returns
    -------
    numpy.ndarray of int64, shape (n,)
        Labels: 0 to k - 1 by the smallest point of each cluster, -1 for noise.

    Raises
    ------
    ValueError
        For what is no linkage, and where the hierarchy has fewer clusters than `n_clusters`.

    Notes
    -----
    With `height` the partition is that of `scipy.cluster.hierarchy.fcluster` with ``criterion="distance"``. With
    `n_clusters` there are exactly so many, where `fcluster` gives fewer if heights are equal or invert. With `min_size`
    they are the leaves of `condense`: small clusters that joined a large one after the earliest of the undone merges
    are noise, and a large cluster is never taken to pieces that are all too small.

    Examples
    --------
    >>> Z = [[1, 2, 1.0, 2], [0, 4, 2.0, 3], [3, 5, 5.0, 4]]
    >>> cut(Z, n_clusters=2)
    array([0, 0, 0, 1])
    >>> cut(Z, height=1.5)
    array([0, 1, 1, 2])
    >>> cut(Z, height=1.5, min_size=2)
    array([-1,  0,  0, -1])
    """
    Z = check_linkage(Z)
    if (n_clusters is None) == (height is None):
        raise ValueError(f"give n_clusters or height, and not both: got n_clusters={n_clusters!r}, height={height!r}")
    least = least_size(min_size, len(Z) + 1)
    if height is None:
        n_clusters = check_whole("n_clusters", n_clusters, 1)
        forks, undone = _last_forks(Z, n_clusters, least)
        check_count(n_clusters, min_size, len(Z) + 1, len(forks) + 1)
        kept = ~undone
    else:
        height = check_number("height", height)
        highest = Z[:, 2].copy()
        kernels.carry_highest.run(1, children_of(Z), highest)
        kept = highest <= height
    return label_kept(Z, kept, least)[0]


def condense(Z: npt.ArrayLike, p: int, min_size: int | float = 1) -> Top:
    """Return the top of a hierarchy: its last merges, as a linkage whose leaves are clusters.

    Parameters
    ----------
    Z : array_like, shape (n - 1, 4)
        SciPy's linkage.
    p : int
        Most leaves.
    min_size : int or float, default 1
        As for `cut`: smaller clusters are left out, and a merge with one is no merge of the top.

    Returns
    -------
    Top
        The last p - 1 merges of clusters that both have `min_size` points, or all if there are fewer; their nodes in
        `Z`, and what is left out. Leaves are the clusters of ``cut(Z, n_clusters=p, min_size=min_size)``, numbered by
        their smallest points.

    Raises
    ------
    ValueError
        For what is no linkage, `p` below 1, and where not even all points are `min_size`.

    Examples
    --------
    >>> top = condense([[1, 2, 1.0, 2], [0, 4, 2.0, 3], [3, 5, 5.0, 4]], 2)
    >>> top.linkage
    array([[1., 0., 5., 2.]])
    >>> top.nodes, top.sizes
    (array([5, 3, 6]), array([3, 1, 4]))
    """
    Z = check_linkage(Z)
    n, children, sizes = len(Z) + 1, children_of(Z), sizes_of(Z)
    least, p = least_size(min_size, n), check_whole("p", p, 1, clamp=True)
    if least > n:
        raise ValueError(f"min_size must be at most the number of points, {n}, got {quoted(min_size)}")
    merges, is_undone = _last_forks(Z, p, least)
    number = label_kept(Z, ~is_undone, least)[1]
    leaves = np.flatnonzero(number >= 0)
    leaves = leaves[np.argsort(number[leaves])]
    kernels.fold.run(1, children, is_undone, len(leaves), number)
    sides = number[children]
    is_small = (sizes < least)[children]
    joins = np.flatnonzero(is_undone & is_small.any(axis=1))
    noise = children[joins][is_small[joins]]
    linkage = np.column_stack([sides[merges], Z[merges, 2], np.ones(len(merges))])
    counts = np.ones(len(leaves) + len(merges), np.int64)
    kernels.add_sizes.run(1, sides[merges], len(leaves), counts)
    linkage[:, 3] = counts[len(leaves) :]
    nodes = np.concatenate([leaves, n + merges])
    return Top(linkage, nodes, sizes[nodes], noise, sides[joins].max(axis=1), Z[joins, 2])


def check_count(n_clusters: int, min_size: int | float, n: int, most: int) -> None:
    """Refuse more clusters of n points than `most`, or than there can be of their least size."""
    least = least_size(min_size, n)
    if n_clusters > (most := min(most, n // least)):
        of_size, size = (
            (f" of at least {least} points", f" and min_size = {quoted(min_size)}") if least > 1 else ("", "")
        )
        raise ValueError(f"the {n} points have at most {most} clusters{of_size}, got n_clusters = {n_clusters}{size}")


def least_size(min_size: int | float, n: int) -> int:
    """Return the least number of points of a cluster for a number or a fraction of them.

    Parameters
    ----------
    min_size : int or float
        A number of points, or a fraction of all between 0 and 1.
    n : int
        Number of all points.

    Returns
    -------
    int
        The number, rounded up.

    Raises
    ------
    ValueError
        For a fraction that is not between 0 and 1, and a number below 1.

    Examples
    --------
    >>> least_size(0.07, 100), least_size(20, 100)
    (7, 20)
    """
    if isinstance(min_size, float | np.floating):
        if not 0 < min_size < 1:
            raise ValueError(f"min_size must be a whole number, or a fraction between 0 and 1, got {min_size!r}")
        return max(1, math.ceil(round(float(min_size) * n, 6)))  # 0.07 * 100 is a little more than 7
    return check_whole("min_size", min_size, 1, clamp=True)


def _last_forks(Z: Float, most: int, least: int) -> tuple[Ids, npt.NDArray[np.bool_]]:
    """Return the last `most` - 1 rows that merge two clusters of `least` points, and whether each row is undone.

    Those are, and from the earliest on merges of a large cluster with a small one, which is noise; merges of two small
    ones are not. What is undone is closed upward.
    """
    is_large = (sizes_of(Z) >= least)[children_of(Z)]
    rows = np.arange(len(Z))
    forks = np.flatnonzero(is_large.all(axis=1))
    forks = forks[max(0, len(forks) - (most - 1)) :]
    return forks, (rows >= forks.min(initial=len(Z))) & is_large.any(axis=1)


def label_kept(Z: Float, kept: npt.NDArray[np.bool_], least: int) -> tuple[Ids, Ids]:
    """Return the labels of points, and numbers by node, -1 for all that are no cluster; `kept` is closed downward."""
    n = len(Z) + 1
    top = np.arange(2 * n - 1)
    kernels.find_tops.run(1, children_of(Z), kept, top)
    number = np.where(sizes_of(Z) >= least, UNSEEN, NOISE)
    labels = np.empty(n, np.int64)
    kernels.number_tops.run(1, top, number, labels)
    return labels, np.maximum(number, NOISE)
