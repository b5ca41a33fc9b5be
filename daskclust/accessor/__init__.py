"""``ds.clust``: clustering as a method of `xarray.Dataset`.

It is there after ``import daskclust``, which does not import xarray, in whatever order the two are imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import xarray as xr

from daskclust.core.data.columns import plain
from daskclust.core.data.inputs import EVENT, LAYER, WEIGHT

from . import _clue, _density, _hca
from ._points import LABEL, Name, fit_points, like_columns, name_of, points_of

if TYPE_CHECKING:
    from daskclust.clue.estimator import CLUE
    from daskclust.core.space.partition import Partition

Boxsize = float | Sequence[float | None] | EllipsisType | None


@xr.register_dataset_accessor("clust")
class ClustAccessor:
    """Clustering of the points of a Dataset, as ``ds.clust``.

    Every method is one call to an estimator, with its parameters and its errors; but a Dataset without points is no
    error. It returns a new Dataset: the same variables, coordinates, attributes and chunks, and results as variables
    along the point dimension, lazy where the coordinates are; they replace variables of these names. Parameters are in
    words in ``attrs`` under the name of the method, and as numbers in attributes of the results.

    Parameters
    ----------
    ds : xarray.Dataset
        Points along one dimension.

    Notes
    -----
    Lengths are in the unit of the coordinates. Two parameters are the same in all methods: `coordinates` names the
    variables that are coordinates, of which all are converted to the unit of the first one (default: ``x``, ``y``, and
    ``z`` where there is no ``layer``); `partition` is how a Dataset of dask arrays is divided for the work, see ``fit``
    of the estimators. DBSCAN and friends-of-friends take a sample of several chunks at once, unless it is a Partition.

    Examples
    --------
    >>> import daskclust
    >>> ds = xr.Dataset({"x": ("hit", [0.0, 0.1, 5.0]), "y": ("hit", [0.0, 0.0, 5.0])})
    >>> ds.clust.clue(1.0, 2.0)["label"].values
    array([ 0,  0, -1])
    """

    def __init__(self, ds: xr.Dataset) -> None:
        self._ds = ds

    def __repr__(self) -> str:
        """List the methods with their parameters."""
        methods = {name: method for name, method in vars(type(self)).items() if not name.startswith("_")}
        listed = [f"  .{name}{_parameters(method)}" for name, method in methods.items()]
        return "\n".join([f"ds.clust of a Dataset with {dict(self._ds.sizes)}; each returns a new Dataset:", *listed])

    def clue(
        self,
        dc: float,
        rhoc: Any,
        *,
        delta_c: float | None = None,
        delta_o: float | None = None,
        kernel: Any = "flat",
        neighbor_weight: float = 1.0,
        wrap: Mapping[Any, float] | None = None,
        coordinates: Sequence[str] | None = None,
        layer: Name = ...,
        event: Name = ...,
        weight: Name = ...,
        partition: str | Partition = "auto",
    ) -> xr.Dataset:
        """Cluster the points with CLUE: one call to `daskclust.CLUE`.

        Parameters
        ----------
        dc, rhoc, delta_c, delta_o, kernel, neighbor_weight
            As of `daskclust.CLUE`; `rhoc` in the unit of the weight, or the name of a variable.
        wrap : mapping, optional
            Period of periodic coordinates by name, e.g. ``{"phi": 2 * np.pi}``.
        layer, event : str or None, optional
            Variables of whole numbers: points of different layers, or events, are never neighbours. Default: ``layer``
            and ``event`` where the Dataset has them and they are no coordinates; None: not used.
        weight : str or None, optional
            Variable with the weight of each point. Default: ``energy`` or else ``weight`` where the Dataset has them;
            None: 1 for each.
        coordinates, partition
            See the class, which has an example, too.

        Returns
        -------
        xarray.Dataset
            With ``label`` (int64, noise -1), ``density`` (unit of the weight), ``delta`` (unit of the coordinates; inf
            where there is no higher point within reach), ``nearest_higher`` (int64 index, none -1) and ``is_seed``
            (bool).
        """
        from daskclust.clue.estimator import CLUE, threshold_of

        points = points_of(self._ds, coordinates)
        used = {
            "layer": name_of("layer", layer, LAYER, points),
            "event": name_of("event", event, EVENT, points),
            "weight": name_of("weight", weight, WEIGHT, points),
        }
        if isinstance(rhoc, str):
            name_of("rhoc", rhoc, (), points)
        estimator = CLUE(
            dc,
            threshold_of(points, rhoc, used["weight"]) if isinstance(rhoc, str) else rhoc,
            delta_c=delta_c,
            delta_o=delta_o,
            kernel=kernel,
            neighbor_weight=neighbor_weight,
            wrap=_clue.by_number(wrap, points.axes),
        )
        columns = {name: None if column is None else points.columns[column] for name, column in used.items()}
        X = like_columns(points.X, columns.values())
        options = {"layer": columns["layer"], "event": columns["event"], "sample_weight": columns["weight"]}
        results = fit_points(estimator, X, _clue.ATTRIBUTES, **options, partition=partition)
        return _clue.with_results(self._ds, results, estimator, points, used, rhoc)

    def events(
        self,
        dt_max: float,
        *,
        variant: str = "local",
        connectivity: int = 8,
        min_hits: int = 1,
        partition: str | Partition = "auto",
    ) -> xr.Dataset:
        """Cluster the pixel hits of a Timepix data set: one call to `daskclust.EventBuilder`.

        Parameters
        ----------
        dt_max, variant, connectivity, min_hits
            As of `daskclust.EventBuilder`; `dt_max` in ns, to which ``toa`` is converted.
        partition
            See the class.

        Returns
        -------
        xarray.Dataset
            With ``label`` (int64, noise -1).
        """
        from daskclust.events.estimator import EventBuilder

        builder = EventBuilder(dt_max, variant=variant, connectivity=connectivity, min_hits=min_hits)
        labels = builder.fit(self._ds, partition=partition).labels_
        unit = " ns" if "units" in self._ds["toa"].attrs else ""
        words = f"dt_max={dt_max:g}{unit}, variant={variant}, connectivity={connectivity}, min_hits={min_hits}"
        ds = self._ds.assign(label=(self._ds["toa"].dims, labels, LABEL))
        return ds.assign_attrs(events=words)

    def dbscan(
        self,
        eps: float,
        *,
        min_samples: int = 5,
        boxsize: Boxsize = ...,
        coordinates: Sequence[str] | None = None,
        weight: str | None = None,
        partition: str | Partition = "auto",
    ) -> xr.Dataset:
        """Cluster the points with DBSCAN: one call to `daskclust.DBSCAN`.

        Parameters
        ----------
        eps, min_samples
            As of `daskclust.DBSCAN`.
        boxsize : float or sequence of float or None, optional
            Period of all coordinates, or of each; None: open. Default: ``attrs["boxsize"]`` of the Dataset for ``x``,
            ``y`` and ``z`` where it is there, in the unit of ``attrs["boxsize_units"]`` or of ``x``; others are open.
        weight : str, optional
            Variable with weights, whose sum is compared with `min_samples`. Default: 1 for each point.
        coordinates, partition
            See the class.

        Returns
        -------
        xarray.Dataset
            With ``label`` (int64, noise -1) and ``is_core`` (bool).

        Examples
        --------
        >>> from daskclust.datasets import seed_spreader
        >>> ds = seed_spreader(2000, 2, n_clusters=3.0, rng=0)
        >>> found = ds.clust.dbscan(100.0, min_samples=10)
        >>> int(found["label"].max()) + 1, found.attrs["dbscan"]
        (4, "eps=100, min_samples=10, boxsize=None, coordinates=('x', 'y'), weight=None")
        """
        from daskclust.dbscan.estimator import DBSCAN

        points = points_of(self._ds, coordinates)
        box = _density.box_of(self._ds, boxsize, points)
        column = name_of("weight", weight, (), points)
        estimator = DBSCAN(eps, min_samples=min_samples, boxsize=box)
        weights = None if column is None else points.columns[column]
        X, attributes = like_columns(points.X, [weights]), {"label": "labels_", "is_core": "is_core_"}
        results = fit_points(estimator, X, attributes, sample_weight=weights, partition=partition)
        ds, told = _density.with_results(self._ds, results, points, box, ("eps", eps), ("min_samples", min_samples))
        return ds.assign_attrs(dbscan=f"{told}, weight={column!r}")

    def fof(
        self,
        linking_length: float | None = None,
        *,
        b: float | None = None,
        min_members: int = 2,
        boxsize: Boxsize = ...,
        coordinates: Sequence[str] | None = None,
        partition: str | Partition = "auto",
    ) -> xr.Dataset:
        """Find friends-of-friends groups: one call to `daskclust.FriendsOfFriends`.

        Parameters
        ----------
        linking_length : float, optional
            Largest distance between friends. Either this or `b` must be given.
        b : float, optional
            The same as a fraction of the mean separation of the points in their box, which must be known, see
            `daskclust.io.linking_length`; 0.2 and 0.168 are usual.
        min_members : int, default 2
            Groups with fewer members are noise. Catalogues of halos usually begin with 20.
        boxsize, coordinates, partition
            As of `dbscan`.

        Returns
        -------
        xarray.Dataset
            With ``label`` (int64, noise -1).

        Raises
        ------
        ValueError
            Unless exactly one of `linking_length` and `b` is given, and for `b` without a box.

        Examples
        --------
        >>> from daskclust.datasets import cosmology_box
        >>> ds = cosmology_box(1000, rng=0).clust.fof(b=0.2, min_members=20)
        >>> ds.attrs["fof"]
        "linking_length=0.2 Mpc/h, b=0.2, min_members=20, boxsize=10 Mpc/h, coordinates=('x', 'y', 'z')"
        """
        from daskclust.dbscan.estimator import FriendsOfFriends

        points = points_of(self._ds, coordinates)
        box = _density.box_of(self._ds, boxsize, points)
        length = _density.length_of(linking_length, b, points, box)
        estimator = FriendsOfFriends(length, min_members=min_members, boxsize=box)
        results = fit_points(estimator, points.X, {"label": "labels_"}, partition=partition)
        ds, told = _density.with_results(
            self._ds, results, points, box, ("linking_length", length), ("min_members", min_members), b=b
        )
        return ds.assign_attrs(fof=told)

    def hca(
        self,
        threshold: float | int = 0.5,
        *,
        rule: Any = "thesis",
        distance: Any = "centroid",
        normalize: bool = False,
        apriori: Any = ...,
        noise_label: int = -1,
        order: Any = "height",
        n_clusters: int | None = None,
        height: float | None = None,
        min_size: int | float = 1,
        coordinates: Sequence[str] | None = None,
        partition: str = "auto",
    ) -> xr.Dataset:
        """Cluster cells hierarchically by Mahalanobis distances: one call to `daskclust.MahalanobisHCA`.

        Parameters
        ----------
        threshold, rule, distance, normalize, noise_label, order
            As of `daskclust.MahalanobisHCA`.
        apriori : str, array, int, "kmeans" or None, optional
            Apriori clusters: the name of a variable of whole numbers along the cells (with several levels, the finest
            first, one of two dimensions), labels, or what `daskclust.MahalanobisHCA.fit` makes some of. Default: the
            variable ``apriori`` where the Dataset has it; None: none.
        n_clusters, height, min_size
            What ``label`` is cut by, as of `daskclust.MahalanobisHCA.labels`; by default 2 clusters.
        coordinates, partition
            See the class; by default coordinates are ``X`` (cell, channel) where the Dataset has it.

        Returns
        -------
        xarray.Dataset
            With ``label`` (int64, noise -1) and ``point_height`` (float64) along the cells; along ``merge`` the
            hierarchy as ``linkage`` (merge, linkage_column), which is SciPy's, with ``id1``, ``id2``, ``height`` and
            ``size`` along the second dimension, and ``is_apriori`` (bool), which merges are within apriori clusters.

        Raises
        ------
        ValueError
            For both `n_clusters` and `height`.

        Examples
        --------
        >>> from daskclust.datasets import cytometry
        >>> found = cytometry(500, 4, rng=0).clust.hca(0.1, n_clusters=3, min_size=0.05)
        >>> int(found["label"].max()) + 1, float(found["linkage"].sel(linkage_column="size")[-1])
        (3, 500.0)
        """
        from daskclust.hca.estimator import MahalanobisHCA

        X, dim, left_out = _hca.cells_in(self._ds, coordinates)
        labels, words = _hca.apriori_of(self._ds, apriori, dim)
        cut = _hca.cut_of(n_clusters, height, min_size, len(X))
        estimator = MahalanobisHCA(
            threshold, rule=rule, distance=distance, normalize=normalize, order=order, noise_label=noise_label
        )
        results = _hca.results_of(estimator, X, labels, cut, partition)
        return _hca.with_results(self._ds, results, estimator, dim, cut, words + left_out)

    def assign(self, estimator: CLUE, *, coordinates: Sequence[str] | None = None, weight: Name = ...) -> xr.Dataset:
        """Return the Dataset with the results of an estimator that was fitted on its points.

        Parameters
        ----------
        estimator : CLUE
            Fitted, e.g. by ``CLUE(...).fit(ds)`` or `daskclust.CLUE.rethreshold`.
        coordinates, weight
            What it was fitted with, for units: as of `clue`.

        Returns
        -------
        xarray.Dataset
            As of `clue`.

        Raises
        ------
        ValueError
            For an estimator that is not fitted, or on another number of points.

        Examples
        --------
        >>> from daskclust import CLUE
        >>> ds = xr.Dataset({"x": ("hit", [0.0, 0.1, 5.0]), "y": ("hit", [0.0, 0.0, 5.0])})
        >>> clue = CLUE(1.0, 2.0).fit(ds)
        >>> ds.clust.assign(clue.rethreshold(rhoc=1.0))["label"].values
        array([0, 0, 1])
        """
        points = points_of(self._ds, coordinates)
        if not hasattr(estimator, "labels_"):
            raise ValueError(f"{estimator!r} is not fitted; call its fit method first")
        results = {name: plain(name, getattr(estimator, attribute)) for name, attribute in _clue.ATTRIBUTES.items()}
        if len(results["label"]) != len(points.X):
            raise ValueError(
                f"the estimator was fitted on {len(results['label'])} points, the Dataset has {len(points.X)}; "
                "fit it on this Dataset"
            )
        used = {"weight": name_of("weight", weight, WEIGHT, points)}
        return _clue.with_results(self._ds, results, estimator, points, used, estimator.rhoc)


def _parameters(method: Any) -> str:
    """Return the names and defaults of a method's parameters."""
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(method).parameters.values()]
    return str(inspect.Signature(parameters[1:])).replace("Ellipsis", "...")
