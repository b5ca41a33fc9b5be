"""The estimators DBSCAN and FriendsOfFriends."""

from __future__ import annotations

from typing import Any, Literal

from daskclust.core.data.boxes import Boxsize, mean_separation
from daskclust.core.data.checks import check_distance, check_positive, check_whole, sides_of_box
from daskclust.core.data.inputs import EVENT, Points, read_points
from daskclust.core.space.partition import Partition
from daskclust.dbscan.density_clusters import DensityClusters
from daskclust.dbscan.plan import FINEST, MOST_NEIGHBOURS, DbscanPlan
from daskclust.dbscan.sphere import SPHERE

_NAMES = "euclidean", "l2", "minkowski"
_EUCLIDEAN = {
    "cosine": ("X / np.linalg.norm(X, axis=1, keepdims=True)", "np.sqrt(2 * eps)"),
    "sqeuclidean": ("X", "np.sqrt(eps)"),
}
"""Points and `eps` whose neighbours by Euclidean distance are those by another metric of scikit-learn."""


class DBSCAN(DensityClusters):
    """Density-based clustering [1]_ of points in any number of dimensions, made for few.

    Points with at least `min_samples` points within `eps`, themselves included, are core points. Core points within
    `eps` of each other are of one cluster; other points within `eps` of a core point are its border, the rest is noise.
    Labels are those of scikit-learn's DBSCAN, number for number, unless points are at a distance of exactly `eps` (see
    Notes), and depend on neither chunks, workers, threads nor the device.

    Parameters
    ----------
    eps : float, default 0.5
        Largest distance between neighbours, in the unit of the coordinates. Inclusive, as Notes say.
    min_samples : int, default 5
        Number of points, or sum of weights, within `eps` of a core point, itself included.
    metric : {"euclidean", "l2", "minkowski", "haversine"}, default "euclidean"
        The Euclidean distance by any of its names, or the angle between points of a sphere, whose two coordinates are
        (latitude, longitude), on the sky (dec, ra), in this order. Others are refused; neighbours by "cosine" are
        Euclidean ones of points on the unit sphere: the error says which, and what `eps` becomes.
    metric_params, algorithm, leaf_size, p, n_jobs
        Taken so that this class can stand in for scikit-learn's, without effect; the first must be None, `p` None or 2.
    boxsize : float, sequence of float or None, or "auto", default "auto"
        Period of all axes, or of each; None: open. Points outside a periodic box are moved into it by whole periods.
        ``"auto"``: ``attrs["boxsize"]`` of a Dataset for ``x``, ``y`` and ``z`` where it is there, in the unit of
        ``attrs["boxsize_units"]`` or of ``x``; else all axes are open.
    units : {"radians", "degrees"}, default "radians"
        Of coordinates and `eps`, where `metric` is "haversine"; without effect on others.

    Attributes
    ----------
    labels_ : array of int64, shape (n,)
        Cluster of each point, numbered by the smallest index of a core point; noise is -1. A border point takes the
        smallest of the labels that the core points around it have.
    is_core_ : array of bool, shape (n,)
        Whether the point is a core point.
    core_sample_indices_ : array of int64, shape (n_core,)
        Indices of the core points; of unknown length where `X` is a dask array.
    components_ : array, shape (n_core, d)
        Coordinates of the core points.
    n_clusters_ : int
        Number of clusters; a zero-dimensional dask array where `X` is a dask array.
    n_features_in_ : int
        Number of coordinates.

    See Also
    --------
    FriendsOfFriends : The same with links alone.
    daskclust.properties.cluster_table : Position and size of each cluster.

    Notes
    -----
    In up to three dimensions time is O(n log n) for any density, memory O(n). In more dimensions points go
    through the nodes of a k-d tree, and in many through nearly all other points, 16 at a time; on a CUDA device, in up
    to ten dimensions, through all of them.

    Points are neighbours where the sum of their squared differences, in float64, is at most ``eps**2`` in float64. This
    decides at a distance of exactly `eps`: ``np.sqrt(3) ** 2`` rounds to less than 3, so with ``eps=np.sqrt(3)`` the
    points (0, 0, 0) and (1, 1, 1) are no neighbours. There scikit-learn's answer depends on ``leaf_size``.

    Blocks of a dask array have halos of `eps` or, where `min_samples` is above 2 or weights are given, 2 `eps`.

    On a sphere points are searched as unit vectors in float64, with the chord ``2 * sin(eps / 2)``, whose rounding is
    1e-16 in radians. A Partition cuts these, along x (latitude and longitude 0), y (longitude 90 degrees) and z.

    References
    ----------
    .. [1] M. Ester et al., A density-based algorithm for discovering clusters in large spatial databases with noise,
       KDD 1996, 226-231
    .. [2] A. Prokopenko et al., Fast tree-based algorithms for DBSCAN for low-dimensional data on GPUs, ICPP 2023,
       https://doi.org/10.1145/3605573.3605594

    Examples
    --------
    >>> from daskclust import DBSCAN
    >>> X = [[1, 2], [2, 2], [2, 3], [8, 7], [8, 8], [25, 80]]
    >>> DBSCAN(eps=3, min_samples=2).fit(X).labels_
    array([ 0,  0,  0,  1,  1, -1])
    """

    def __init__(
        self,
        eps: float = 0.5,
        *,
        min_samples: int = 5,
        metric: str = "euclidean",
        metric_params: None = None,
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float | None = None,
        n_jobs: int | None = None,
        boxsize: Boxsize = "auto",
        units: Literal["radians", "degrees"] = "radians",
    ) -> None:
        self.eps = eps
        self.min_samples = min_samples
        self.metric = metric
        self.metric_params = metric_params
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.p = p
        self.n_jobs = n_jobs
        self.boxsize = boxsize
        self.units = units

    def fit(
        self,
        X: Any,
        y: None = None,
        sample_weight: Any = None,
        *,
        event: Any = None,
        partition: str | Partition = "auto",
    ) -> DBSCAN:
        """Cluster points.

        Parameters
        ----------
        X : array of shape (n, d), DataFrame, xarray.Dataset, AnnData, or awkward.Array
            Coordinates: a numpy, cupy or dask array; a DataFrame, a Dataset (converted to the unit of its first
            coordinate) or awkward records with variables ``x``, ``y``, ``z``, or a DataFrame or records without ``x``,
            all columns of which are coordinates; but for ``event``, which is used if that is not given. Each list of
            awkward records, ``events * var * {x, y, ...}``, is an event, and results are nested like it.
        y : None
            Ignored.
        sample_weight : array, shape (n,), optional
            Weights, whose sum within `eps` is compared with `min_samples`. They are added with 106 bits and rounded
            once: exact, and the same in any order, unless weights that cancel are over 2**50 times others. Default: 1.
        event : array of int, shape (n,), optional
            Points of different events are never neighbours: many small sets are clustered at once. Instead of the
            lists, if `X` has any. Clusters are numbered through all events, as ever by their smallest core points.
        partition : {"auto", "layers", "space", "chunks"} or Partition, default "auto"
            How a dask array is divided; the result is the same. ``"layers"``: groups of whole events. ``"space"``: into
            blocks, each a task of about half a second; a sample of X finds them. ``"chunks"``: as it is, which must be
            one chunk, or every event within one. ``"auto"``: layers if there are events, else space.

        Returns
        -------
        DBSCAN
            Itself. On dask nothing is computed yet, but for that pass.

        Raises
        ------
        ValueError, TypeError
            For parameters out of range, a box smaller than 2 `eps`, other metrics, and for coordinates or weights that
            are not finite, sparse, of the wrong shape, of unknown chunk sizes, or of units that cannot be converted.
        """
        self._check_metric()
        eps = check_distance("eps", self.eps)
        if sample_weight is None:
            min_samples = check_whole("min_samples", self.min_samples, 1, MOST_NEIGHBOURS, clamp=True)
        else:
            min_samples = check_whole("min_samples", self.min_samples, 1, 10**308)
        points = read_points(self, X, EVENT)
        X, eps = self._searched(points, "eps", eps)
        period = _periods(points.box(self.boxsize), X.shape[1], "eps", eps)
        least = 2 if min_samples == 2 and sample_weight is None else 1
        plan = DbscanPlan(eps, min_samples, least, period, sample_weight is not None)
        self._run(points, X, plan, points.event(event), sample_weight, partition)
        return self

    def _check_metric(self) -> None:
        if not isinstance(self.metric, str) or self.metric not in (*_NAMES, SPHERE):
            remedy = "for other distances and precomputed ones use sklearn.cluster.DBSCAN"
            if isinstance(self.metric, str) and self.metric in _EUCLIDEAN:
                remedy = "for the same neighbours cluster {} with eps={}".format(*_EUCLIDEAN[self.metric])
            raise ValueError(f"metric must be 'euclidean' or 'haversine', got {self.metric!r}; {remedy}")
        if self.metric_params is not None or self.p not in (None, 2):
            raise ValueError(
                f"distances are Euclidean, p=2, got p={self.p!r} and metric_params={self.metric_params!r}; for other "
                "ones use sklearn.cluster.DBSCAN"
            )


class FriendsOfFriends(DensityClusters):
    """Friends-of-friends groups [1]_: points linked by distances of at most the linking length.

    The answer depends on neither chunks, workers, threads nor the device.

    Parameters
    ----------
    linking_length : float, optional
        Largest distance between friends, in the unit of the coordinates, inclusive. Either this or `b` must be given.
    b : float, optional
        The same as a fraction of the mean separation of all points in their box, which must be known along each axis;
        0.2 and 0.168 are usual. Catalogues of halos usually begin with ``min_members=20``.
    min_members : int, default 2
        Groups with fewer members are noise.
    boxsize : float, sequence of float or None, or "auto", default "auto"
        Period of all axes, or of each; None: open. Points outside a periodic box are moved into it by whole periods.
        ``"auto"``: ``attrs["boxsize"]`` of a Dataset for ``x``, ``y`` and ``z`` where it is there, in the unit of
        ``attrs["boxsize_units"]`` or of ``x``; else all axes are open.
    metric : {"euclidean", "haversine"}, default "euclidean"
        With "haversine" coordinates are (latitude, longitude), on the sky (dec, ra), and `linking_length` an angle.
    units : {"radians", "degrees"}, default "radians"
        Of these, as of `DBSCAN`.

    Attributes
    ----------
    labels_ : array of int64, shape (n,)
        Group of each point, numbered by the smallest index of a member; -1 outside of groups.
    linking_length_ : float
        The linking length that was used: `linking_length`, or what `b` makes of the box and the number of points.
    is_core_ : array of bool, shape (n,)
        Whether the point is a member of a group.
    core_sample_indices_, components_, n_clusters_, n_features_in_
        Indices and coordinates of the members of groups, and numbers of groups and of coordinates, as of `DBSCAN`.

    See Also
    --------
    DBSCAN : Groups of points in dense places, with borders.
    daskclust.properties.halo_table : Mass, centre, velocity and spin of each group.

    Notes
    -----
    As `DBSCAN` with ``min_samples=2``; see there for time, memory and blocks.

    References
    ----------
    .. [1] M. Davis et al., The evolution of large-scale structure in a universe dominated by cold dark matter,
       Astrophys. J. 292 (1985) 371, https://doi.org/10.1086/163168

    Examples
    --------
    >>> from daskclust import FriendsOfFriends
    >>> FriendsOfFriends(0.2, boxsize=1.0).fit([[0.05], [0.95], [0.5]]).labels_
    array([ 0,  0, -1])
    >>> round(FriendsOfFriends(b=0.3, boxsize=1.0).fit([[0.05], [0.95], [0.5]]).linking_length_, 12)
    0.1
    """

    def __init__(
        self,
        linking_length: float | None = None,
        *,
        b: float | None = None,
        min_members: int = 2,
        boxsize: Boxsize = "auto",
        metric: Literal["euclidean", "haversine"] = "euclidean",
        units: Literal["radians", "degrees"] = "radians",
    ) -> None:
        self.linking_length = linking_length
        self.b = b
        self.min_members = min_members
        self.boxsize = boxsize
        self.metric = metric
        self.units = units

    def fit(
        self, X: Any, y: None = None, *, event: Any = None, partition: str | Partition = "auto"
    ) -> FriendsOfFriends:
        """Find groups.

        Parameters
        ----------
        X : array of shape (n, d), DataFrame, xarray.Dataset, AnnData, or awkward.Array
            As of `DBSCAN.fit`.
        y : None
            Ignored.
        event : array of int, shape (n,), optional
            Points of different events are never friends, as of `DBSCAN.fit`.
        partition : {"auto", "layers", "space", "chunks"} or Partition, default "auto"
            As of `DBSCAN.fit`: a sample of X may be taken.

        Returns
        -------
        FriendsOfFriends
            Itself. On dask nothing is computed yet, but for that pass. Errors are those of `DBSCAN.fit`.

        Raises
        ------
        ValueError, TypeError
            As `DBSCAN.fit`.
        """
        if (self.linking_length is None) == (self.b is None):
            given = f"got linking_length={self.linking_length!r} and b={self.b!r}"
            raise ValueError(f"give linking_length or b, and not both; {given}")
        if self.b is None:
            check_distance("linking_length", self.linking_length)
        else:
            check_positive("b", self.b)
        least = check_whole("min_members", self.min_members, 1, clamp=True)
        if not isinstance(self.metric, str) or self.metric not in ("euclidean", SPHERE):
            raise ValueError(f"metric must be 'euclidean' or 'haversine', got {self.metric!r}")
        points = read_points(self, X, EVENT)
        box, event = points.box(self.boxsize), points.event(event)
        self.linking_length_ = self._length(points, box, event is not None)
        X, length = self._searched(points, "linking_length", self.linking_length_)
        period = _periods(box, X.shape[1], "linking_length", length)
        plan = DbscanPlan(length, min(least, 2), least, period, name="fof")
        self._run(points, X, plan, event, None, partition)
        return self

    def _length(self, points: Points, box: Boxsize, has_events: bool) -> float:
        """Return the linking length, which is given or `b` times the mean separation."""
        if self.b is None:
            return float(self.linking_length)  # type: ignore[arg-type]
        sides, what = sides_of_box(box, points.X.shape[1]), f"b={self.b!r} is a fraction of the mean separation"
        if has_events:
            raise ValueError(f"{what} of all points, and these are of events; give linking_length, the same for each")
        if not all(sides):
            axes = ", ".join(map(str, points.axes))
            raise ValueError(
                f"{what}, which needs a box that is closed along each axis, got boxsize={box!r} of {axes}; "
                "give boxsize=, its side (or one for each axis), or a linking_length"
            )
        length = float(self.b) * mean_separation(sides, points.X.shape[0])
        if not 2 * length <= min(sides):  # here, where the error can name what the user gave
            raise ValueError(
                f"b must give a linking length of at most half of the box, got b={self.b!r}: {length:g} in a box of "
                f"{min(sides):g}"
            )
        return check_distance(f"the linking length of b={self.b!r}", length)


def _periods(boxsize: Boxsize, d: int, name: str, eps: float) -> tuple[float, ...]:
    """Return the period of each of `d` axes, 0 where it is open; refuse a box that is too small or too large."""
    periods = sides_of_box(boxsize, d)
    for period in periods:
        if 0.0 < period < 2 * eps:
            raise ValueError(
                f"boxsize must be at least 2 {name} = {2 * eps:g}, got {period:g}: in a smaller box a point has "
                f"several images within {name} = {eps:g} of another; give a smaller {name}, or boxsize=None"
            )
        if period > FINEST * eps:
            raise ValueError(
                f"boxsize must be at most 2**45 {name} = {FINEST * eps:g}, got {period:g}; enlarge {name}, or give "
                "boxsize=None"
            )
    return periods
