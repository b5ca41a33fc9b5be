"""The estimator MahalanobisHCA."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from daskclust.core import hierarchy
from daskclust.core.data.checks import check_whole
from daskclust.core.data.inputs import Points, points_of_cells, read_new_points, read_points, split_points, table_of
from daskclust.core.data.lazy import along_points, map_rows, whole
from daskclust.core.data.nested import nest, without_lists
from daskclust.core.device.arrays import is_dask, keeping_device, library, on_device_of, to_host
from daskclust.core.run.division import divide_groups
from daskclust.core.run.engine import gather
from daskclust.core.space.partition import Division
from daskclust.estimator import Estimator
from daskclust.hca.apriori import given_labels, kmeans
from daskclust.hca.plan import LAST, RULES, HcaPlan, cost_of_points, rule_of
from daskclust.hca.shapes_of_cut import predicted

_NEARLY_ALL = 0.95  # of the points, in one cluster
_FAR = 1000  # times another spread

RuleName = Literal["thesis", "mahal", "mahal0", "euclid", "euclid_mahal"]


class MahalanobisHCA(Estimator):
    """Hierarchical clustering with distances that follow the shape of clusters: Mahalanobis HCA [1]_ [2]_.

    The two closest clusters are merged until one is left. A large cluster measures distances by its covariance, so
    elongated populations, such as those of cells in cytometry, stay whole. The answer depends on neither chunks,
    workers, threads nor the device.

    Parameters
    ----------
    threshold : float or int, default 0.5
        Size from which on a cluster's shape counts in full: a float in (0, 1] is a fraction of all points, an int a
        number of points. One that is larger than the data is never reached.
    rule : {"thesis", "mahal", "mahal0", "euclid", "euclid_mahal"}, default "thesis"
        What smaller clusters measure. ``"thesis"``: Euclidean distances; larger ones Mahalanobis distances with the
        covariance 1/n ([1]_, definition 11; the program gmhclust). The others are of the R package mhca [2]_, with the
        covariance 1/(n - 1), and shapes of determinant 1 until all clusters have reached the threshold.
        ``"mahal"``: covariances drawn towards a sphere of the same volume, the more the smaller the cluster;
        ``"mahal0"``: towards a sphere of radius 1; ``"euclid_mahal"``: Euclidean below the threshold; ``"euclid"``:
        Euclidean for all clusters until all have reached the threshold.
    distance : {"centroid", "full"}, default "centroid"
        Distance from one cluster to another: that of the centroid (CMD, definition 9), or the mean of all members
        (FMD, definition 8). Of two clusters it is the mean of both directions.
    normalize : bool, default False
        Whether shapes keep determinant 1 when all clusters have reached the threshold, so that size never counts.
        Without effect on ``"thesis"``.
    order : {"height", "groups"}, default "height"
        How merges within apriori clusters are listed: by height, each cluster's own in their order (mhca), or one
        cluster after the other in the order of labels (gmhclust).
    noise_label : int, default -1
        Label in `apriori` of points that belong to no apriori cluster.
    n_clusters : int, default 2
        Clusters in `labels_`. `labels` gives other cuts without another fit.

    Attributes
    ----------
    linkage_ : array of float64, shape (n - 1, 4)
        The merges as SciPy's linkage: ids of the two clusters, distance, number of points. Points are 0 to n - 1, the
        union of row s is n + s. On the host; a dask array where `X` is one.
    is_monotone_ : bool
        Whether no merge is lower than one below it. Heights may invert, as in centroid linkage; they are kept.
    n_apriori_merges_ : int
        Number of rows of `linkage_` that are within apriori clusters; they come first.
    apriori_ : array, shape (n,) or (n, levels), or None
        The apriori clusters that were used: those given, or int64.
    apriori_source_ : {"given", "MiniBatchKMeans"} or None
        Where they are from.
    labels_ : array of int64, shape (n,)
        ``labels(n_clusters=n_clusters)``.
    point_heights_ : array of float64, shape (n,)
        For each point the sum of the heights of all merges above it ([1]_, definition 20).
    n_features_in_ : int
        Number of coordinates.

    See Also
    --------
    daskclust.metrics.point_height_correlation : How alike two hierarchies are.
    daskclust.plot.dendrogram : The top of the hierarchy.

    Notes
    -----
    Exact: each merge is that of the closest pair, equal distances go to the smallest ids; equal points are merged
    first, in O(n). Memory is O(n d), and d^2 for each cluster past the threshold (with ``"mahal"`` and ``"mahal0"`` for
    each of three or more points). A covariance counts as singular, and distances from that cluster as Euclidean, where
    it has no more than d points or a channel has no variance of its own beyond rounding. With apriori clusters, each is
    clustered on its own down to one; then their roots are, and the points in none. Without them all points of a dask
    array go to one worker.

    SciPy's ``dendrogram``, ``cophenet`` and ``fcluster`` take `linkage_`; where heights invert, ``fcluster`` by
    ``"maxclust"`` gives fewer clusters than asked for, ``labels(n_clusters=...)`` exactly as many.

    References
    ----------
    .. [1] A. Smelko, Mahalanobis based hierarchical clustering accelerated on GPU, thesis, Charles University, 2020
    .. [2] K. Fiser et al., Detection and monitoring of normal and leukemic cell populations with hierarchical
       clustering of flow cytometry data, Cytometry A 81 (2012) 25, https://doi.org/10.1002/cyto.a.21148

    Examples
    --------
    >>> from daskclust import MahalanobisHCA
    >>> X = [[0, 0], [1, 0.1], [2, 0], [0, 5], [1, 5.2], [2, 5]]
    >>> hca = MahalanobisHCA(threshold=0.5).fit(X)
    >>> hca.labels(n_clusters=2)
    array([0, 0, 0, 1, 1, 1])
    """

    def __init__(
        self,
        threshold: float | int = 0.5,
        *,
        rule: RuleName = "thesis",
        distance: Literal["centroid", "full"] = "centroid",
        normalize: bool = False,
        order: Literal["height", "groups"] = "height",
        noise_label: int = -1,
        n_clusters: int = 2,
    ) -> None:
        self.threshold = threshold
        self.rule = rule
        self.distance = distance
        self.normalize = normalize
        self.order = order
        self.noise_label = noise_label
        self.n_clusters = n_clusters

    def fit(self, X: Any, y: None = None, *, apriori: Any = ..., partition: str = "auto") -> MahalanobisHCA:
        """Cluster points.

        Parameters
        ----------
        X : array of shape (n, d), DataFrame, xarray.Dataset, AnnData, or awkward.Array
            Coordinates: a numpy, cupy or dask array, a DataFrame or awkward records whose columns are coordinates, or a
            Dataset with the variable ``X`` (cell, channel). Awkward records must be flat, as there is one hierarchy;
            results for points are awkward arrays then.
        y : None
            Ignored.
        apriori : array of int, shape (n,) or (n, levels), int, "kmeans" or None, optional
            Apriori cluster of each point; with several levels, the finest first, each within one of the next. A number
            asks scikit-learn's MiniBatchKMeans for so many, ``"kmeans"`` for the square root of n. By default the
            column or variable ``apriori`` if X has one.
        partition : {"auto", "chunks"}, default "auto"
            How a dask array is divided; the result is the same. ``"auto"``: into packs of apriori clusters, of about
            half a second's work each; one pass over `apriori` counts their sizes. ``"chunks"``: as it is; all points of
            an apriori cluster must be in one chunk.

        Returns
        -------
        MahalanobisHCA
            Itself. On dask nothing is computed yet, but for the pass that counts, and the sample for k-means.

        Raises
        ------
        ValueError, TypeError
            For parameters out of range, for coordinates that are not finite, above 1e150, sparse or of unknown chunk
            sizes, and for labels that are not whole, of the wrong length or not nested.
        """
        points = read_points(self, _cells(X), ("apriori",))
        without_lists(points.nesting, "MahalanobisHCA")
        X, self._nesting = points.X, points.nesting
        n = X.shape[0]
        plan = self._plan(n)
        self.apriori_source_, labels = self._apriori(X, points.columns.get("apriori") if apriori is ... else apriori)
        self.apriori_ = labels
        columns = {"X": X}
        if labels is not None:
            levels, noise = labels if labels.ndim == 2 else labels[:, None], int(self.noise_label)
            columns["apriori"] = map_rows(_as_levels, levels, noise) if is_dask(X) else _as_levels(levels, noise)
        self._far = _far_spreads(X, points.axes) if isinstance(X, np.ndarray) else ""
        self._X = X  # for the class and the chunks of results, and for `predict`
        columns, division = _divided(columns, partition)
        self._rule = plan.rule  # for `predict`
        results = gather(plan, columns, division, {"Z": ((n - 1, 4), np.float64), "n_apriori": ((), np.int64)})
        self.linkage_, self.n_apriori_merges_ = results["Z"], results["n_apriori"]
        return self

    def labels(self, *, n_clusters: int | None = None, height: float | None = None, min_size: int | float = 1) -> Any:
        """Return the clusters of a cut through the hierarchy.

        Parameters
        ----------
        n_clusters : int, optional
            Undo the last ``n_clusters - 1`` merges of two clusters that both have at least `min_size` points, and what
            comes after the first of them.
        height : float, optional
            Clusters are the largest within which no merge is higher. Give this or `n_clusters`.
        min_size : int or float, default 1
            Smaller clusters are noise, -1: Mahalanobis distances leave small clusters of noise to the last merges. A
            float between 0 and 1 is a fraction of all points.

        Returns
        -------
        array of int64, shape (n,)
            Clusters numbered by their smallest point; in X's class, with its chunks.

        Raises
        ------
        ValueError
            For both or neither of `n_clusters` and `height`, and where the hierarchy has fewer such clusters.
        """
        labels = self._of_points(hierarchy.cut, np.int64, n_clusters=n_clusters, height=height, min_size=min_size)
        if self._far and self._nesting is None:
            most = np.bincount(labels + 1)[1:].max(initial=0) / len(labels)
            if _NEARLY_ALL < most < 1:
                warnings.warn(f"one cluster has {most:.1%} of the points: {self._far}", stacklevel=2)
        return labels

    def predict(
        self, X: Any, *, n_clusters: int | None = None, height: float | None = None, min_size: int | float = 1
    ) -> Any:
        """Return the nearest cluster of new points.

        That is the cluster of a cut with the smallest distance from its centroid, by its own covariance and `rule`: the
        Mahalanobis distance from a cluster that has a shape, the Euclidean distance from a smaller one and where the
        covariance is singular. Of equal distances the smallest label counts.

        Parameters
        ----------
        X : array of shape (n, d), DataFrame, xarray.Dataset, AnnData, or awkward.Array
            Points, as `fit` takes them, with the same coordinates in the same order.
        n_clusters, height, min_size
            The cut, as `labels` takes it; by default that of `labels_`.

        Returns
        -------
        array of int64, shape (n,)
            Labels, as `labels` numbers them; none is noise. In X's class, with its chunks; lazy where `X` or the points
            of `fit` are a dask array.

        Raises
        ------
        ValueError
            As of `labels` and `fit`, for other coordinates, and for a cut that has only noise.

        Notes
        -----
        Points of `fit` may get another label than that of `labels`. Time is O(n k d^2) with k clusters, in memory for a
        chunk and k d^2. The points of `fit` are kept, not copied: what changes in them changes the clusters. If they
        are a dask array, they come to one worker once, to make the shapes.

        Examples
        --------
        >>> X = [[0, 0], [1, 0.1], [2, 0], [0, 5], [1, 5.2], [2, 5]]
        >>> MahalanobisHCA(threshold=0.5).fit(X).predict([[9, 0], [1, 3]])
        array([0, 1])
        """
        self._check_is_fitted("linkage_")
        if n_clusters is None and height is None:
            n_clusters = self.n_clusters
        points = read_new_points(self, _cells(X), ("apriori",))
        n = self._X.shape[0]
        read = functools.partial(hierarchy.cut, n_clusters=n_clusters, height=height, min_size=min_size)
        labels = whole(self.linkage_, read, (n,), np.int64) if is_dask(self.linkage_) else read(self.linkage_)
        return nest(predicted(points.X, self._X, labels, self._rule), points.nesting)

    @property
    def labels_(self) -> Any:
        """Cluster of each point, of `n_clusters`."""
        return self.labels(n_clusters=self.n_clusters)

    @property
    def point_heights_(self) -> Any:
        """Sum of the heights of the merges above each point."""
        return self._of_points(hierarchy.point_heights, np.float64)

    @property
    def is_monotone_(self) -> Any:
        """Whether no merge is lower than one below it."""
        self._check_is_fitted("linkage_")
        if is_dask(self.linkage_):
            return whole(self.linkage_, hierarchy.is_monotone, (), np.bool_)
        return hierarchy.is_monotone(self.linkage_)

    @keeping_device()
    def _of_points(self, function: Any, dtype: Any, **options: Any) -> Any:
        """Return values for each point, read from the hierarchy, in X's class and chunks."""
        self._check_is_fitted("linkage_")
        read = functools.partial(function, **options)
        if is_dask(self.linkage_):
            return along_points(whole(self.linkage_, read, (self._X.shape[0],), dtype), self._X)
        return nest(on_device_of(self._X, read(self.linkage_)), self._nesting)

    def _plan(self, n: int) -> HcaPlan:
        for name, value, known in (
            ("rule", self.rule, tuple(RULES)),
            ("distance", self.distance, ("centroid", "full")),
            ("order", self.order, ("height", "groups")),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
        check_whole("n_clusters", self.n_clusters, 1)
        check_whole("noise_label", self.noise_label, -(2**63))
        threshold = _members(self.threshold, n)
        rule = rule_of(self.rule, threshold, self.distance, bool(self.normalize))
        return HcaPlan(rule, self.order == "groups")

    def _apriori(self, X: Any, asked: Any) -> tuple[str | None, Any]:
        """Return where the apriori clusters are from, and their labels."""
        n = X.shape[0]
        if asked is None:
            return None, None
        if isinstance(asked, str):
            if asked != "kmeans":
                raise ValueError(f'apriori must be labels, a number of clusters, "kmeans" or None, got {asked!r}')
            asked = max(1, round(math.sqrt(n)))
        if np.ndim(asked) == 0:
            count = check_whole("apriori", asked, 1)
            if count > n:
                raise ValueError(f"apriori must be at most the number of points, {n}, got {count}")
            return "MiniBatchKMeans", kmeans(X, count)
        return "given", given_labels(X, asked)


def _cells(data: Any) -> Any:
    """Return the coordinates (n, d) of data with a variable ``X``, and its other columns; other data as they are."""
    table = None if isinstance(data, Points) else table_of(data)
    if table is None or "X" not in table:
        return data
    if table["X"].ndim == 1:  # one coordinate, beside others such as Y
        return data
    if library(data) != "xarray":
        return split_points(table["X"], ())._replace(columns=table)
    return points_of_cells(data)._replace(columns=table)


def _far_spreads(X: Any, axes: Sequence[Any]) -> str:
    """Return in words which spread of a coordinate is far above another one's, by a sample; "" where none is."""
    with np.errstate(over="ignore", invalid="ignore"):
        spread = X[:: 1 + len(X) // 10_000].std(axis=0, dtype=np.float64)
    order = [k for k in np.argsort(spread) if 0 < spread[k] < np.inf]
    if not order or spread[order[-1]] <= _FAR * spread[order[0]]:
        return ""
    large, small = axes[order[-1]], axes[order[0]]
    ratio = f"{spread[order[-1]] / spread[order[0]]:,.0f}"
    return f"the spread of channel {large!r} is {ratio} times that of {small!r}; choose channels= of one scale"


def _members(threshold: Any, n: int) -> float:
    if isinstance(threshold, bool | np.bool_) or not isinstance(threshold, int | float | np.integer | np.floating):
        raise TypeError(f"threshold must be a number, got {threshold!r}")
    if isinstance(threshold, float | np.floating):
        if not 0 < threshold <= 1:
            raise ValueError(
                f"threshold must be a fraction of the points in (0, 1], got {threshold!r}; a number of points is an int"
            )
        return float(threshold) * n
    return float(check_whole("threshold", threshold, 1, 10**308))


def _as_levels(labels: Any, noise: int) -> Any:
    """Return labels (n, levels) on the host, points in no apriori cluster labelled `LAST`."""
    values = to_host(labels)
    is_label = (values < LAST) | (values == noise)
    if not is_label.all():
        raise ValueError(f"apriori must be whole numbers below 2**63 - 1, got {values[~is_label][0]}")
    levels = values.astype(np.int64)
    return np.where(levels == noise, LAST, levels)


def _divided(columns: dict[str, Any], partition: str) -> tuple[dict[str, Any], Division]:
    """Return columns, and how dask arrays are divided so that apriori clusters are whole."""
    if partition not in ("auto", "chunks"):
        raise ValueError(f'partition must be "auto" or "chunks", got {partition!r}')
    X = columns["X"]
    if not is_dask(X) or partition == "chunks" or X.numblocks[0] == 1 or "apriori" not in columns:
        return columns, Division(None)
    cost = functools.partial(cost_of_points, d=X.shape[1])
    return divide_groups(columns, columns["apriori"][:, -1], LAST, HcaPlan.group, cost)
