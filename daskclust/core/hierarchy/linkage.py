"""What is read from a linkage: whether it is one, heights of points, order of leaves, members, labels of merges."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from daskclust.core.data.checks import check_whole
from daskclust.core.hierarchy import kernels
from daskclust.core.merge.labels import NOISE

Ids = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]


def check_linkage(Z: npt.ArrayLike) -> Float:
    """Return a linkage as a float64 array in C order, if it is one: all functions here ask it first.

    Parameters
    ----------
    Z : array_like, shape (n - 1, 4)
        SciPy's linkage; no row stands for one point.

    Returns
    -------
    numpy.ndarray of float64, shape (n - 1, 4)
        `Z` itself if it is such an array.

    Raises
    ------
    ValueError
        With the first wrong row, for clusters that do not exist yet or were merged before, wrong sizes, and heights
        that are negative or not finite. Heights may invert.
    """
    Z = np.ascontiguousarray(Z, dtype=np.float64)
    if Z.ndim != 2 or Z.shape[1] != 4:
        raise ValueError(f"Z must be a linkage of shape (n - 1, 4), got shape {Z.shape}")
    n, pair, heights = len(Z) + 1, Z[:, :2], Z[:, 2]
    _refuse(~(np.isfinite(heights) & (heights >= 0)), Z, "its height must be finite and not negative")
    exists = (pair >= 0) & (pair < (n + np.arange(n - 1))[:, None]) & (pair == np.floor(pair))
    _refuse(~exists.all(axis=1), Z, f"its clusters must be points, 0 to {n - 1}, or {n} + an earlier row")
    children = pair.astype(np.int64)
    again = np.bincount(children.ravel(), minlength=2 * n - 1)[children] > 1
    _refuse(again.any(axis=1), Z, "one of its clusters is merged in another row, too, or twice")
    sizes = np.concatenate([np.ones(n), Z[:, 3]])
    sums = sizes[children]
    _refuse(Z[:, 3] != sums[:, 0] + sums[:, 1], Z, "its size must be the sum of the sizes of its clusters")
    return Z


def single_linkage(edges: npt.ArrayLike, heights: npt.ArrayLike) -> Float:
    """Return the linkage of a minimum spanning tree: that of single linkage, if heights are lengths of its edges.

    Parameters
    ----------
    edges : array_like of int, shape (n - 1, 2)
        Ends of the edges of a tree of n points, in the order of their heights.
    heights : array_like, shape (n - 1,)
        Height of each edge, ascending.

    Returns
    -------
    numpy.ndarray of float64, shape (n - 1, 4)
        SciPy's linkage: row s joins the clusters that edge s connects, that of the smaller id first.

    Examples
    --------
    >>> single_linkage([[1, 2], [0, 2], [2, 3]], [1.0, 2.0, 5.0])
    array([[1., 2., 1., 2.],
           [0., 4., 2., 3.],
           [3., 5., 5., 4.]])
    """
    ends = np.ascontiguousarray(edges, dtype=np.int64).reshape(-1, 2)
    n = len(ends) + 1
    Z = np.empty((n - 1, 4))
    Z[:, 2] = heights
    kernels.join_edges.run(1, ends, np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32), Z)
    return Z


def is_monotone(Z: npt.ArrayLike) -> bool:
    """Return whether no merge is lower than a merge below it in the tree.

    Parameters
    ----------
    Z : array_like, shape (n - 1, 4)
        SciPy's linkage.

    Returns
    -------
    bool
        Also True where only merges of independent branches descend, unlike `scipy.cluster.hierarchy.is_monotonic`.

    Examples
    --------
    >>> is_monotone([[0, 1, 0.5, 2], [2, 3, 0.4, 3]])
    False
    """
    Z = check_linkage(Z)
    n, children = len(Z) + 1, children_of(Z)
    heights = np.concatenate([np.zeros(n), Z[:, 2]])
    return bool((heights[children] <= Z[:, 2:3]).all())


def point_heights(Z: npt.ArrayLike) -> Float:
    """Return the height of each point: the sum of the heights of all merges whose union holds it.

    Parameters
    ----------
    Z : array_like, shape (n - 1, 4)
        SciPy's linkage.

    Returns
    -------
    numpy.ndarray of float64, shape (n,)
        In the unit of the heights of `Z`; sums run from the root down.

    Raises
    ------
    ValueError
        For what is no linkage.

    References
    ----------
    Smelko, "Mahalanobis based hierarchical clustering accelerated on GPU", Charles University (2020), definition 20.

    Examples
    --------
    >>> point_heights([[0, 1, 1.0, 2], [2, 3, 3.0, 3]])
    array([4., 4., 3.])
    """
    Z = check_linkage(Z)
    n = len(Z) + 1
    total = np.zeros(2 * n - 1)
    kernels.add_heights.run(1, children_of(Z), Z[:, 2].copy(), total)
    return total[:n].copy()


def leaf_order(Z: npt.ArrayLike) -> Ids:
    """Return the points from left to right in a dendrogram, the first cluster of each merge on the left.

    Parameters
    ----------
    Z : array_like, shape (n - 1, 4)
        SciPy's linkage.

    Returns
    -------
    numpy.ndarray of int64, shape (n,)
        As of `scipy.cluster.hierarchy.leaves_list`.

    Raises
    ------
    ValueError
        For what is no linkage.

    Examples
    --------
    >>> leaf_order([[1, 2, 1.0, 2], [0, 4, 2.0, 3], [3, 5, 5.0, 4]])
    array([3, 0, 1, 2])
    """
    Z = check_linkage(Z)
    return np.argsort(_places(Z)[: len(Z) + 1])


def members(Z: npt.ArrayLike, node: int) -> Ids:
    """Return the points of a cluster.

    Parameters
    ----------
    Z : array_like, shape (n - 1, 4)
        SciPy's linkage.
    node : int
        A point, or n + s for the cluster of row s.

    Returns
    -------
    numpy.ndarray of int64
        Ascending.

    Raises
    ------
    ValueError
        For what is no linkage, and where there is no such cluster.

    Examples
    --------
    >>> members([[1, 2, 1.0, 2], [0, 4, 2.0, 3], [3, 5, 5.0, 4]], 5)
    array([0, 1, 2])
    """
    Z = check_linkage(Z)
    n = len(Z) + 1
    node = check_whole("node", node, 0)
    if node >= 2 * n - 1:
        raise ValueError(f"node must be at most {2 * n - 2}, the root of {n} points, got {node}")
    place = _places(Z)
    since = place[:n] - place[node]
    return np.flatnonzero((since >= 0) & (since < sizes_of(Z)[node]))


def node_labels(Z: npt.ArrayLike, labels: npt.ArrayLike) -> Ids:
    """Return the label of each point and each merge: that of its points, without those that are noise.

    Parameters
    ----------
    Z : array_like, shape (n - 1, 4)
        SciPy's linkage.
    labels : array_like of int, shape (n,)
        Labels of the points, -1 noise.

    Returns
    -------
    numpy.ndarray of int64, shape (2 n - 1,)
        -1 where all points are noise, `SEVERAL` where there are several labels.

    Raises
    ------
    ValueError
        For what is no linkage, and labels that are no integers or not one for each point.

    Examples
    --------
    >>> node_labels([[1, 2, 1.0, 2], [0, 4, 2.0, 3], [3, 5, 5.0, 4]], [-1, 0, 0, 1])
    array([-1,  0,  0,  1,  0,  0, -2])
    """
    Z = check_linkage(Z)
    given = np.asarray(labels)
    n = len(Z) + 1
    if given.shape != (n,) or given.dtype.kind not in "iu":
        raise ValueError(
            f"labels must be integers, one for each of the {n} points of Z, got shape {given.shape} of {given.dtype}"
        )
    found = np.full(2 * n - 1, NOISE, np.int64)
    found[:n] = np.maximum(given.astype(np.int64), NOISE)
    kernels.carry_labels.run(1, children_of(Z), n, found)
    return found


def _places(Z: Float) -> Ids:
    """Return the place of the leftmost leaf of each point and each merge, from the left of a dendrogram."""
    place = np.zeros(2 * len(Z) + 1, np.int64)
    kernels.place_leaves.run(1, children_of(Z), sizes_of(Z), place)
    return place


def children_of(Z: Float) -> Ids:
    """Return the ids of the two clusters of each merge."""
    return Z[:, :2].astype(np.int64)


def sizes_of(Z: Float) -> Ids:
    """Return the number of points of each point and each merge."""
    return np.concatenate([np.ones(len(Z) + 1, np.int64), Z[:, 3].astype(np.int64)])


def _refuse(is_wrong: npt.ArrayLike, Z: Float, why: str) -> None:
    """Raise for the first row that is wrong."""
    if np.any(is_wrong):
        row = int(np.argmax(is_wrong))
        raise ValueError(f"Z is not a linkage: row {row} is {Z[row].tolist()}; {why}")
