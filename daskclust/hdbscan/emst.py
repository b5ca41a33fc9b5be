"""The estimator EMST."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskclust.core.data.boxes import Boxsize
from daskclust.core.data.nested import without_lists
from daskclust.core.device.arrays import on_device_of, to_host
from daskclust.core.hierarchy import single_linkage
from daskclust.core.space.partition import Partition
from daskclust.estimator import BaseEstimator
from daskclust.hdbscan.forest import lazy_linkage, read_forest
from daskclust.hdbscan.plan import LazyTree


class EMST(BaseEstimator):
    """The Euclidean minimum spanning tree of points: the shortest edges that connect all of them.

    Of edges of equal length those come first that have the smaller index, next the smaller other index: there is one
    tree. It has the groups of `FriendsOfFriends` for every linking length.

    Parameters
    ----------
    boxsize : float, sequence of float or None, or "auto", default "auto"
        Period of all axes, or of each; None: open. Points outside a periodic box are moved into it by whole periods.
        ``"auto"``: ``attrs["boxsize"]`` of a Dataset for ``x``, ``y`` and ``z`` where it is there, in the unit of
        ``attrs["boxsize_units"]`` or of ``x``; else all axes are open.

    Attributes
    ----------
    edges_ : array of int64, shape (n - 1, 2)
        Ends of each edge, the smaller index first, in the order of (length, smaller index, larger index).
    lengths_ : array of float64, shape (n - 1,)
        Their lengths, ascending, in the unit of the coordinates.
    graph_ : scipy.sparse.csr_array, shape (n, n)
        The tree as a graph: the length of each edge in the row of its smaller index. Lengths of 0 are stored, too.
    linkage_ : array of float64, shape (n - 1, 4)
        Single linkage, as SciPy has it. `daskclust.core.hierarchy.cut` makes clusters of it.
    n_features_in_ : int
        Number of coordinates.

    See Also
    --------
    HDBSCAN : Clusters of all densities, from such a tree.
    FriendsOfFriends : The groups at one linking length.

    Notes
    -----
    Squared distances are sums of squared differences in float64, so a length is that of SciPy up to rounding. Of CuPy
    arrays the tree is found on the GPU, and edges and lengths stay there; the graph is SciPy's, on the host.

    References
    ----------
    .. [1] W. B. March et al., Fast Euclidean minimum spanning tree: algorithm, analysis, and applications, KDD 2010,
       603-612, https://doi.org/10.1145/1835804.1835882

    Examples
    --------
    >>> from daskclust import EMST
    >>> from daskclust.core.hierarchy import cut
    >>> emst = EMST().fit([[0.0], [9.0], [1.0], [3.0]])
    >>> emst.edges_
    array([[0, 2],
           [2, 3],
           [1, 3]])
    >>> emst.lengths_
    array([1., 2., 6.])
    >>> cut(emst.linkage_, height=2.5)
    array([0, 1, 0, 0])
    """

    def __init__(self, boxsize: Boxsize = "auto") -> None:
        self.boxsize = boxsize

    def fit(self, X: Any, y: None = None, *, partition: str | Partition = "auto") -> EMST:
        """Find the tree.

        Parameters
        ----------
        X : array of shape (n, d), DataFrame, xarray.Dataset, or awkward.Array
            Coordinates, as of `DBSCAN.fit`.
        y : None
            Ignored.
        partition : {"auto", "space"} or Partition, default "auto"
            As of `HDBSCAN.fit`.

        Returns
        -------
        EMST
            Itself. On dask nothing is computed yet but a sample; edges and lengths have chunks of up to 4 million.

        Raises
        ------
        ValueError, TypeError
            For a wrong box, and for coordinates that are not finite, sparse, of the wrong shape, or of units that
            cannot be converted.
        """
        points, tree = read_forest(self, X, has_events=False, partition=partition)
        self._tree = tree if isinstance(tree, LazyTree) else None
        self.edges_, self.lengths_ = tree.edges, np.sqrt(tree.weight)
        without_lists(points.nesting, "EMST")
        return self

    @property
    def graph_(self) -> Any:
        """The tree as a sparse graph, computed where `X` was a dask array."""
        self._check_is_fitted("edges_")
        from scipy.sparse import csr_array

        n = len(self.edges_) + 1
        lengths, edges = (np.asarray(to_host(values)) for values in (self.lengths_, self.edges_))
        return csr_array((lengths, edges.T), shape=(n, n))

    @property
    def linkage_(self) -> Any:
        """Single linkage of the points."""
        self._check_is_fitted("edges_")
        if self._tree is not None:
            return lazy_linkage(self._tree)
        return on_device_of(self.edges_, single_linkage(to_host(self.edges_), to_host(self.lengths_)))
