"""``ds.clust``: clustering as a method of `xarray.Dataset`.

It is there after ``import daskclust``, which does not import xarray, in whatever order the two are imported.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import xarray as xr

from daskclust.core.data.inputs import EVENT, LAYER, SECTION, WEIGHT, Points
from daskclust.parameters import described
from daskclust.systems import SYSTEMS

from ._hca import cluster_cells, with_hierarchy
from ._results import (
    WITHOUT_EFFECT,
    Name,
    Roles,
    dims_of,
    fit,
    in_roles,
    points_of,
    system_of,
    with_results,
    without_earlier,
)
from ._showers import SHOWER_AXES, showers

if TYPE_CHECKING:
    from daskclust.core.space.partition import Partition


class _OfEstimator:
    """A method that has the parameters of the system's estimator, too: in its signature and its docstring.

    They are added when the method is first looked at: to import all estimators takes 0.13 s of CPU, xarray 0.45 s.
    """

    def __init__(self, method: Callable[..., xr.Dataset]) -> None:
        functools.update_wrapper(self, method)  # type: ignore[arg-type]
        self._method = method

    def __get__(self, accessor: Any, owner: type) -> Any:
        if not hasattr(self._method, "__signature__"):
            self._describe()
        return self._method.__get__(accessor, owner)

    def _describe(self) -> None:
        method: Any = self._method
        estimator = SYSTEMS[method.__name__].estimator
        own, theirs = inspect.signature(method), dict(inspect.signature(estimator).parameters)
        for name in (*own.parameters, *WITHOUT_EFFECT):
            theirs.pop(name, None)
        kept = {name: each for name, each in own.parameters.items() if name not in ("args", "parameters")}
        first, *others = kept.values()
        parameters = sorted([first, *theirs.values(), *others], key=lambda each: each.kind)
        texts = {name: f"{name} : {kind}\n{text}\n" for name, (kind, text) in described(estimator.__doc__).items()}
        before, title, after = inspect.cleandoc(method.__doc__).partition("Parameters\n----------\n")
        described_here = "".join(texts[name] for name in theirs).replace("]_", "]")  # no links to its references
        method.__doc__ = before + title + described_here + after
        method.__signature__ = own.replace(parameters=parameters)


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
    Lengths are in the unit of the coordinates. `coordinates` names the variables that are coordinates, all converted to
    the unit of the first (default: ``x``, ``y``, and ``z`` where there is no ``layer``; without ``x`` the channels of
    ``X`` (cell, channel)). `event` names the variable
    with events, each clustered by itself (default: ``event`` where it is no coordinate; None: not used).
    `partition` is how a Dataset of dask arrays is divided: see ``fit``. DBSCAN samples several chunks without events.

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
        lines = [f"ds.clust of a Dataset with {dict(self._ds.sizes)}; each returns a new Dataset:"]
        for name in (*SYSTEMS, "assign"):
            signature = inspect.signature(getattr(self, name))
            plain = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
            lines.append(f"  .{name}{inspect.Signature(plain)}".replace("Ellipsis", "..."))
        return "\n".join(lines)

    @_OfEstimator
    def clue(
        self,
        *args: Any,
        coordinates: Sequence[str] | None = None,
        layer: Name = ...,
        event: Name = ...,
        section: Name = ...,
        weight: Name = ...,
        partition: str | Partition = "auto",
        **parameters: Any,
    ) -> xr.Dataset:
        """Cluster the points with CLUE: one call to `daskclust.CLUE`.

        Parameters
        ----------
        layer, event, section, weight : str or None, optional
            Variables with the layer, the event, the section and the weight of each point. Default: ``layer``,
            ``event``, ``section``, and ``energy`` or else ``weight``, where the Dataset has them and they are no
            coordinates; None: not used. Of points with a layer and ``z`` those at z < 0 are kept apart from others.
        coordinates, partition
            See the class, which has an example, too.

        Returns
        -------
        xarray.Dataset
            With ``label`` (int64, noise -1), ``density`` (unit of the weight, as `rhoc` is), ``delta`` (unit of the
            coordinates; inf where there is no higher point within reach), ``nearest_higher`` (int64 index, none -1),
            ``is_seed`` and ``is_outlier`` (bool).
        """
        estimator = SYSTEMS["clue"].estimator(*args, **parameters)
        roles: Roles = {"layer": (layer, LAYER), "event": (event, EVENT), "weight": (weight, WEIGHT)}
        for name in ("dc", "rhoc", "delta_c", "delta_o"):
            if isinstance(variable := getattr(estimator, name), str):
                roles[name] = (variable, ())
                setattr(estimator, name, name)
            elif isinstance(variable, Mapping):
                roles["section"] = (section, SECTION)
        found = points_of(self._ds, coordinates)
        if "z" in found.columns and layer is not None:
            roles["z"] = ("z", ())
        points, used = in_roles(found, roles)
        return self._with(fit(estimator, points, partition=partition), points, used)

    @_OfEstimator
    def events(self, *args: Any, partition: str | Partition = "auto", **parameters: Any) -> xr.Dataset:
        """Cluster the pixel hits of a Timepix data set: one call to `daskclust.EventBuilder`.

        Parameters
        ----------
        partition : str or Partition, default "auto"
            See the class. ``toa`` is converted to ns, the unit of `dt_max`; without `dt_max`, ``frame`` is used.

        Returns
        -------
        xarray.Dataset
            With ``label`` (int64, noise -1).
        """
        builder = SYSTEMS["events"].estimator(*args, **parameters)
        return self._with(builder.fit(self._ds, partition=partition), self._hits(builder), {})

    @_OfEstimator
    def dbscan(
        self,
        *args: Any,
        coordinates: Sequence[str] | None = None,
        event: Name = ...,
        weight: str | None = None,
        partition: str | Partition = "auto",
        **parameters: Any,
    ) -> xr.Dataset:
        """Cluster the points with DBSCAN: one call to `daskclust.DBSCAN`.

        Parameters
        ----------
        weight : str, optional
            Variable with weights, whose sum is compared with `min_samples`. Default: 1 for each point.
        coordinates, event, partition
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
        points = points_of(self._ds, coordinates)
        estimator = SYSTEMS["dbscan"].estimator(*args, **parameters)
        points, used = in_roles(points, {"weight": (weight, ()), "event": (event, EVENT)})
        weights = points.columns.get("weight")
        return self._with(fit(estimator, points, sample_weight=weights, partition=partition), points, used)

    @_OfEstimator
    def fof(
        self,
        *args: Any,
        coordinates: Sequence[str] | None = None,
        event: Name = ...,
        partition: str | Partition = "auto",
        **parameters: Any,
    ) -> xr.Dataset:
        """Find friends-of-friends groups: one call to `daskclust.FriendsOfFriends`.

        Parameters
        ----------
        coordinates, event, partition
            See the class.

        Returns
        -------
        xarray.Dataset
            With ``label`` (int64, noise -1).

        Examples
        --------
        >>> from daskclust.datasets import cosmology_box
        >>> ds = cosmology_box(1000, rng=0).clust.fof(b=0.2, min_members=20)
        >>> ds.attrs["fof"]
        "linking_length=0.2 Mpc/h, b=0.2, min_members=20, boxsize=10 Mpc/h, coordinates=('x', 'y', 'z')"
        """
        points, used = in_roles(points_of(self._ds, coordinates), {"event": (event, EVENT)})
        estimator = SYSTEMS["fof"].estimator(*args, **parameters)
        return self._with(fit(estimator, points, partition=partition), points, used)

    @_OfEstimator
    def hdbscan(
        self,
        *args: Any,
        coordinates: Sequence[str] | None = None,
        event: Name = ...,
        partition: str | Partition = "auto",
        **parameters: Any,
    ) -> xr.Dataset:
        """Cluster the points with HDBSCAN*: one call to `daskclust.HDBSCAN`.

        Parameters
        ----------
        coordinates, event, partition
            See the class.

        Returns
        -------
        xarray.Dataset
            With ``label`` (int64, noise -1), ``probability`` and ``outlier_score`` (float64).

        Examples
        --------
        >>> from daskclust.datasets import seed_spreader
        >>> found = seed_spreader(500, 2, n_clusters=3.0, rng=0).clust.hdbscan(20)
        >>> int(found["label"].max()) + 1
        2
        """
        estimator = SYSTEMS["hdbscan"].estimator(*args, **parameters)
        points, used = in_roles(points_of(self._ds, coordinates), {"event": (event, EVENT)})
        fitted = fit(estimator, points, event=points.columns.get("event"), partition=partition)
        return self._with(fitted, points, {name: repr(value) for name, value in used.items()})

    showers = _OfEstimator(showers)

    def emst(
        self,
        *,
        boxsize: Any = "auto",
        coordinates: Sequence[str] | None = None,
        partition: str | Partition = "auto",
    ) -> xr.Dataset:
        """Find the minimum spanning tree of the points: one call to `daskclust.EMST`.

        Parameters
        ----------
        boxsize
            As of `daskclust.EMST`.
        coordinates, partition
            See the class.

        Returns
        -------
        xarray.Dataset
            With ``edge`` (link, end), the indices of two points (int64), and their distance ``length`` (link), in the
            unit of the coordinates, ascending.

        Examples
        --------
        >>> ds = xr.Dataset({"x": ("hit", [0.0, 9.0, 1.0, 3.0])}).clust.emst(coordinates=("x",))
        >>> ds["edge"].values.tolist(), ds["length"].values
        ([[0, 2], [2, 3], [1, 3]], array([1., 2., 6.]))
        """
        from daskclust.hdbscan.emst import EMST

        points, dims = points_of(self._ds, coordinates), ("link", "end")
        ds = without_earlier(self._ds, ("edge", "length"), dims)
        tree = EMST(boxsize).fit(points, partition=partition)
        unit = points.unit
        about = {"long_name": "length of the edge"} | ({} if unit is None else {"units": unit})
        edge = {"long_name": "indices of the two points of an edge of the minimum spanning tree", "units": "1"}
        return ds.assign(edge=(dims, tree.edges_, edge), length=("link", tree.lengths_, about)).assign_attrs(
            emst=f"boxsize={points.box(boxsize)}, coordinates={tuple(points.axes)!r}"
        )

    @_OfEstimator
    def hca(
        self,
        *args: Any,
        apriori: Any = ...,
        n_clusters: int | None = None,
        height: float | None = None,
        min_size: int | float = 1,
        sample: int | None = None,
        rng: Any = 0,
        coordinates: Sequence[str] | None = None,
        partition: str = "auto",
        **parameters: Any,
    ) -> xr.Dataset:
        """Cluster cells hierarchically by Mahalanobis distances: one call to `daskclust.MahalanobisHCA`.

        Parameters
        ----------
        apriori : str, array, int, "kmeans" or None, optional
            Apriori clusters: the name of a variable of whole numbers along the cells (with several levels, the finest
            first, one of two dimensions), labels, or what `daskclust.MahalanobisHCA.fit` makes some of. Default: the
            variable ``apriori`` where the Dataset has it; None: none.
        n_clusters, height, min_size
            What ``label`` is cut by, as of `daskclust.MahalanobisHCA.labels`; by default 2 clusters.
        sample, rng
            Cluster so many cells alone, each as likely as any other, by the seed or generator `rng`. All others get the
            label that `daskclust.MahalanobisHCA.predict` gives them, chunk by chunk; ``point_height`` is NaN for them.
            Ids below `sample` in ``linkage`` count cells of the sample. Of dask arrays the sample is computed now.
        coordinates, partition
            See the class; by default coordinates are ``X`` (cell, channel) where the Dataset has it.

        Returns
        -------
        xarray.Dataset
            With ``label`` (int64, noise -1) and ``point_height`` (float64) along the cells; along ``merge`` the
            hierarchy as ``linkage`` (merge, linkage_column), which is SciPy's, with ``id1``, ``id2``, ``height`` and
            ``size`` along the second dimension, and ``is_apriori`` (bool), which merges are within apriori clusters.

        Examples
        --------
        >>> from daskclust.datasets import cytometry
        >>> found = cytometry(500, 4, rng=0).clust.hca(0.1, n_clusters=3, min_size=0.05)
        >>> int(found["label"].max()) + 1, float(found["linkage"].sel(linkage_column="size")[-1])
        (3, 500.0)
        """
        estimator = SYSTEMS["hca"].estimator(*args, **parameters)
        cut = {"n_clusters": n_clusters, "height": height, "min_size": min_size}
        return cluster_cells(self._ds, estimator, coordinates, apriori, cut, partition, sample, rng)

    def assign(self, estimator: Any, *, coordinates: Sequence[str] | None = None, weight: Name = ...) -> xr.Dataset:
        """Return the Dataset with the results of an estimator that was fitted on its points.

        Parameters
        ----------
        estimator : CLUE, CLUE3D, EventBuilder, DBSCAN, FriendsOfFriends, HDBSCAN or MahalanobisHCA
            Fitted, e.g. by ``CLUE(...).fit(ds)`` or `daskclust.CLUE.rethreshold`. Of a hierarchy, ``label`` is its
            ``labels_``, of `n_clusters`.
        coordinates, weight
            What it was fitted with, for units: as of the method for it.

        Returns
        -------
        xarray.Dataset
            As of the method for it: `clue`, `showers`, `events`, `dbscan`, `fof`, `hdbscan` or `hca`.

        Examples
        --------
        >>> from daskclust import CLUE
        >>> ds = xr.Dataset({"x": ("hit", [0.0, 0.1, 5.0]), "y": ("hit", [0.0, 0.0, 5.0])})
        >>> clue = CLUE(1.0, 2.0).fit(ds)
        >>> ds.clust.assign(clue.rethreshold(rhoc=1.0))["label"].values
        array([0, 0, 1])
        """
        system = system_of(estimator)
        if not hasattr(estimator, "labels_"):
            raise ValueError(f"{estimator!r} is not fitted; call its fit method first")
        if system == "events":
            return self._with(estimator, self._hits(estimator), {})
        if system == "hca":
            return with_hierarchy(self._ds, estimator, coordinates)
        if system == "showers":
            return self._with(estimator, points_of(self._ds, SHOWER_AXES), {})
        weighed: Roles = {"weight": (weight, WEIGHT if system == "clue" else ())}
        roles = weighed if system in ("clue", "dbscan") else {}
        return self._with(estimator, *in_roles(points_of(self._ds, coordinates), roles))

    def _hits(self, builder: Any) -> Points:
        """Return the times of pixel hits, which are converted to ns where they have a unit, or their frames."""
        if builder.dt_max is None:
            return Points(self._ds["frame"].data[:, None], ("frame",), {}, dataset=self._ds)
        toa = self._ds["toa"]
        return Points(
            toa.data[:, None], ("toa",), {}, units={"toa": "ns"} if "units" in toa.attrs else {}, dataset=self._ds
        )

    def _with(self, estimator: Any, points: Points, used: dict[str, Any]) -> xr.Dataset:
        """Return the Dataset with the results along the dimension of the points."""
        return with_results(self._ds, estimator, points, dims_of(self._ds, points), used)
