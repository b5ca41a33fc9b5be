"""The estimator HDBSCAN."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from daskclust.core.data.boxes import Boxsize
from daskclust.core.data.checks import check_distance, check_positive, check_whole
from daskclust.core.data.lazy import along_points, whole
from daskclust.core.data.nested import nest
from daskclust.core.device.arrays import is_dask, on_device_of
from daskclust.core.hierarchy.cuts import label_kept
from daskclust.core.merge.labels import NOISE, without_small
from daskclust.core.space.partition import Partition
from daskclust.estimator import Estimator
from daskclust.hdbscan.condensed import ROW, Selection, as_table, condensed_tree, labels_of, walk_down
from daskclust.hdbscan.forest import lazy_linkage, linkage_of, read_forest
from daskclust.hdbscan.plan import LazyTree
from daskclust.hdbscan.spanning_tree import SpanningTree

_MOST = 2**31 - 1
_MOST_ALPHA = 1e100


class HDBSCAN(Estimator):
    """Density-based clusters of all densities at once [1]_, [2]_, by the parameters of scikit-learn.

    Points are connected by the minimum spanning tree of their mutual reachability: of the distance of two points and of
    both of their core distances, the largest. Where longer and longer edges are taken away, from the longest on, the
    tree falls into clusters of at least `min_cluster_size` points, and those are the result that last over the
    largest range of densities, or the leaves. **Edges of one length are taken away together**: labels, probabilities
    and outlier scores are the same for any order of points and any minimum spanning tree (see Notes).

    Parameters
    ----------
    min_cluster_size : int, default 5
        Least number of points of a cluster, 2 or more.
    min_samples : int, optional
        The core distance of a point is that of the `min_samples`-th point, itself counted: 1 and 2 leave distances as
        they are. Default: `min_cluster_size`. Of fewer points than that all are noise.
    cluster_selection_method : {"eom", "leaf"}, default "eom"
        Excess of mass: a cluster is selected unless those below it are more stable together. Or the leaves.
    cluster_selection_epsilon : float, default 0.0
        Clusters born at a distance below this are not told apart: the one above that is born at this distance, or at
        a larger one, is selected instead of them [3]_.
    max_cluster_size : int, optional
        Larger clusters are not selected by excess of mass.
    alpha : float, default 1.0
        Distances, but not core distances, are divided by this.
    allow_single_cluster : bool, default False
        Whether the root, all points together, may be selected; then those that stay to its end are the cluster, or
        those that stay until `cluster_selection_epsilon`.
    boxsize : float, sequence of float or None, or "auto", default "auto"
        Period of all axes, or of each; None: open. Points outside a periodic box are moved into it by whole periods.
        ``"auto"``: ``attrs["boxsize"]`` of a Dataset for ``x``, ``y`` and ``z`` where it is there, in the unit of
        ``attrs["boxsize_units"]`` or of ``x``; else all axes are open.

    Attributes
    ----------
    labels_ : array of int64, shape (n,)
        Cluster of each point, numbered by their smallest members; noise is -1.
    probabilities_ : array of float64, shape (n,)
        Density at which the point leaves its cluster, as a fraction of that at which the cluster ends; noise has 0.
    outlier_scores_ : array of float64, shape (n,)
        GLOSH: 1 - the density at which the point leaves its last cluster, as a fraction of the largest one below it.
    n_clusters_ : int
        Number of clusters.
    core_distances_ : array of float64, shape (n,)
        Distance to the `min_samples`-th point; infinite where there are fewer.
    minimum_spanning_tree_ : array of float64, shape (n - 1, 3)
        Two points and their mutual reachability, ascending. Those of different events are connected at infinity.
    single_linkage_tree_ : array of float64, shape (n - 1, 4)
        The same as SciPy's linkage.
    condensed_tree_ : structured array
        Rows of ``parent``, ``child``, ``lambda_val`` (1 / distance) and ``child_size``; points are 0 to n - 1, the root
        is n. ``hdbscan.plots.CondensedTree(condensed_tree_, labels_).plot()`` draws it. Where more than two clusters
        are born at once there are others between them and their parent, which end where they are born.
    n_features_in_ : int
        Number of coordinates.

    See Also
    --------
    EMST : The minimum spanning tree of distances alone.
    DBSCAN : Clusters of one density.

    Notes
    -----
    With `min_samples` above 2 equal edges are the rule: all at a point that are shorter than its core distance weigh
    exactly that. Programs that take merges one by one cut such clusters by the order in which the edges come.
    Here, as in [1]_, tied edges are removed at once: of the parts into which a cluster falls, those of at least
    `min_cluster_size` points count. If there are two or more, each is a cluster, if there is one, the cluster goes on
    as that part, if there is none, it ends. Without ties, labels are those of the packages hdbscan and scikit-learn.

    Of CuPy arrays the spanning tree is found on the GPU, and clusters of it on the host; trees are NumPy arrays. No
    points have weights. Time from sorted edges on is O(n), and `rethreshold` takes no more than that.

    References
    ----------
    .. [1] R. J. G. B. Campello, D. Moulavi and J. Sander, Density-based clustering based on hierarchical density
       estimates, PAKDD 2013, 160-172, https://doi.org/10.1007/978-3-642-37456-2_14
    .. [2] L. McInnes, J. Healy and S. Astels, hdbscan: Hierarchical density based clustering, J. Open Source Softw. 2
       (2017) 205, https://doi.org/10.21105/joss.00205
    .. [3] C. Malzer and M. Baum, A hybrid approach to hierarchical density-based cluster selection, MFI 2020, 223-228,
       https://doi.org/10.1109/MFI49285.2020.9235263

    Examples
    --------
    >>> from daskclust import HDBSCAN
    >>> X = [[1, 2], [2, 2], [2, 3], [8, 7], [8, 8], [7, 7], [25, 80]]
    >>> hdbscan = HDBSCAN(min_cluster_size=3, min_samples=2).fit(X)
    >>> hdbscan.labels_
    array([ 0,  0,  0,  1,  1,  1, -1])
    >>> hdbscan.rethreshold(min_cluster_size=4, allow_single_cluster=True).n_clusters_
    1

    Where edges are equal, other programs have other answers: of these points hdbscan 0.8.44 makes 4 clusters,
    fast_hdbscan 0.3.4 makes 8, and scikit-learn 1.9.1 makes 7.

    >>> import numpy as np
    >>> X = np.random.default_rng(15).normal(size=(100, 2))
    >>> HDBSCAN(3, min_samples=4).fit(X).n_clusters_, HDBSCAN(3, min_samples=4).fit(X[::-1]).n_clusters_
    (3, 3)
    """

    def __init__(
        self,
        min_cluster_size: int = 5,
        *,
        min_samples: int | None = None,
        cluster_selection_method: Literal["eom", "leaf"] = "eom",
        cluster_selection_epsilon: float = 0.0,
        max_cluster_size: int | None = None,
        alpha: float = 1.0,
        allow_single_cluster: bool = False,
        boxsize: Boxsize = "auto",
    ) -> None:
        self.min_cluster_size = min_cluster_size
        self.min_samples = min_samples
        self.cluster_selection_method = cluster_selection_method
        self.cluster_selection_epsilon = cluster_selection_epsilon
        self.max_cluster_size = max_cluster_size
        self.alpha = alpha
        self.allow_single_cluster = allow_single_cluster
        self.boxsize = boxsize

    def fit(self, X: Any, y: None = None, *, event: Any = None, partition: str | Partition = "auto") -> HDBSCAN:
        """Cluster points.

        Parameters
        ----------
        X : array of shape (n, d), DataFrame, xarray.Dataset, AnnData, or awkward.Array
            Coordinates, as of `DBSCAN.fit`, and a column ``event`` if that is not given. Each list of awkward records,
            ``events * var * {x, y, ...}``, is an event, and results are nested like it.
        y : None
            Ignored.
        event : array of int, shape (n,), optional
            Points of each event are clustered by themselves. Clusters are numbered through all events.
        partition : {"auto", "space", "layers"} or Partition, default "auto"
            How a dask array is divided into blocks of space; the result is the same. By default a sample of X finds
            them, and how wide their halos are. Chunks of events (``"layers"``) have whole ones.

        Returns
        -------
        HDBSCAN
            Itself. On dask nothing is computed yet, but for that sample.

        Raises
        ------
        ValueError, TypeError
            For parameters out of range, and for coordinates that are not finite, sparse, of the wrong shape, or of
            units that cannot be converted.
        """
        least, how = self._selection()
        samples = self.min_cluster_size if self.min_samples is None else self.min_samples
        samples = check_whole("min_samples", samples, 1, _MOST, clamp=True)
        alpha = check_distance("alpha", self.alpha)
        if not 1 / _MOST_ALPHA <= alpha <= _MOST_ALPHA:
            raise ValueError(f"alpha must be from {1 / _MOST_ALPHA:g} to {_MOST_ALPHA:g}, got {self.alpha!r}")
        points, self._tree = read_forest(self, X, event, samples, alpha, partition)
        if isinstance(self._tree, SpanningTree):
            self._tree = self._tree.on_host()
        self._like, self._nesting, self._samples = points.X, points.nesting, samples
        if isinstance(self._tree, LazyTree):
            self.single_linkage_tree_ = lazy_linkage(self._tree)
            self.core_distances_ = np.sqrt(self._tree.core)
        else:
            self._like = points.X[:0]  # not all of X, or it would be kept
            self.single_linkage_tree_ = linkage_of(self._tree)
            self._walk = walk_down(self.single_linkage_tree_)
            self.core_distances_ = self._of_points(np.sqrt(self._tree.core))
        self._select(least, how)
        return self

    def rethreshold(
        self,
        *,
        min_cluster_size: int | None = None,
        cluster_selection_method: Literal["eom", "leaf"] | None = None,
        cluster_selection_epsilon: float | None = None,
        max_cluster_size: int | None = None,
        allow_single_cluster: bool | None = None,
    ) -> HDBSCAN:
        """Select other clusters from the same spanning tree, which takes most of the time of a fit.

        Parameters
        ----------
        min_cluster_size, cluster_selection_method, cluster_selection_epsilon, max_cluster_size, allow_single_cluster
            New parameters; None keeps the present one. `min_samples` stays what it was in the fit.

        Returns
        -------
        HDBSCAN
            A new fitted estimator.

        Raises
        ------
        ValueError, TypeError
            For parameters out of range.
        """
        given = {name: value for name, value in locals().items() if name != "self" and value is not None}
        self._check_is_fitted("labels_")
        other = copy.copy(self).set_params(min_samples=self._samples, **given)
        other._select(*other._selection())
        return other

    def dbscan_clustering(self, eps: float, min_cluster_size: int = 5) -> Any:
        """Return the clusters of one density: the core points of `DBSCAN` with `eps` and the `min_samples` of the fit.

        Parameters
        ----------
        eps : float
            Largest distance between neighbours, in the unit of the coordinates, inclusive.
        min_cluster_size : int, default 5
            Clusters of fewer points are noise. With 1 labels are those that `DBSCAN` gives to core points.

        Returns
        -------
        array of int64, shape (n,)
            Clusters numbered by their smallest members; noise is -1, and there are no border points.

        Raises
        ------
        ValueError, TypeError
            For parameters out of range.
        """
        self._check_is_fitted("labels_")
        square = check_distance("eps", eps) ** 2
        least = check_whole("min_cluster_size", min_cluster_size, 1, clamp=True)
        cut = partial(_cut, square=square, least=least)
        if not isinstance(self._tree, LazyTree):
            labels = np.where(self._tree.core <= square, cut(self._tree)["labels"], NOISE)
            return self._of_points(without_small(labels, 1))
        n = len(self._like)
        labels = self._of_points(self._tree.results(cut, {"labels": ((n,), np.int64)})["labels"])
        labels = np.where(self._tree.core <= square, labels, NOISE)
        return self._of_points(whole(labels, partial(without_small, min_size=1), (n,), np.int64))

    @property
    def condensed_tree_(self) -> Any:
        """Rows of the condensed tree."""
        self._check_is_fitted("labels_")
        if isinstance(self._tree, LazyTree):
            table = partial(_table, least=self._selection()[0])
            return self._tree.results(table, {"table": ((np.nan,), ROW)})["table"]
        return as_table(self._condensed)

    @property
    def minimum_spanning_tree_(self) -> Any:
        """Edges of the tree and their lengths."""
        self._check_is_fitted("labels_")
        return np.concatenate([self._tree.edges, np.sqrt(self._tree.weight)[:, None]], axis=1)

    def _selection(self) -> tuple[int, Selection]:
        """Check the parameters that `rethreshold` changes."""
        method = self.cluster_selection_method
        if method not in ("eom", "leaf"):
            raise ValueError(f"cluster_selection_method must be 'eom' or 'leaf', got {method!r}")
        epsilon = check_positive("cluster_selection_epsilon", self.cluster_selection_epsilon, zero=True)
        most = self.max_cluster_size
        size = np.inf if most is None else check_whole("max_cluster_size", most, 1, _MOST, clamp=True)
        least = check_whole("min_cluster_size", self.min_cluster_size, 2, _MOST, clamp=True)
        return least, Selection(method == "eom", epsilon, size, bool(self.allow_single_cluster))

    def _select(self, least: int, how: Selection) -> None:
        if isinstance(self._tree, LazyTree):
            n = (len(self._like),)
            kinds = {"labels": (n, np.int64), "probability": (n, np.float64), "outlier_score": (n, np.float64)}
            select = partial(_select, least=least, how=how)
            results = self._tree.results(select, kinds | {"n_clusters": ((), np.int64)})
        else:
            self._condensed = condensed_tree(self._walk, least)
            results = labels_of(self._condensed, how)
        self.n_clusters_ = results.pop("n_clusters")
        each = (self._of_points(results[name]) for name in ("labels", "probability", "outlier_score"))
        self.labels_, self.probabilities_, self.outlier_scores_ = each

    def _of_points(self, values: npt.NDArray[Any]) -> Any:
        """Return values of points in X's class and chunks, nested like it."""
        if is_dask(values):
            return along_points(values, self._like)
        return nest(on_device_of(self._like, values), self._nesting)


# ---------------------------------------------------------------------------------------- of a tree, on one worker too
def _select(tree: SpanningTree, least: int, how: Selection) -> dict[str, Any]:
    return labels_of(condensed_tree(walk_down(linkage_of(tree)), least), how)


def _table(tree: SpanningTree, least: int) -> dict[str, Any]:
    return {"table": as_table(condensed_tree(walk_down(linkage_of(tree)), least))}


def _cut(tree: SpanningTree, square: float, least: int) -> dict[str, Any]:
    return {"labels": label_kept(linkage_of(tree), tree.weight <= square, least)[0]}
