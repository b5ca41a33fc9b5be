"""``ds.clust``: clustering as a method of `xarray.Dataset`.

It is there for whatever daskclust's readers and generators return. For a Dataset of your own, import this module::

    import daskclust.accessor

``import daskclust`` alone does not import xarray.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

import daskclust.core.registration  # noqa: F401 (gives the class its name there)
from daskclust.core.inputs import EVENT, LAYER, WEIGHT, Points, is_dask, split_points

if TYPE_CHECKING:
    from daskclust.clue.estimator import CLUE
    from daskclust.core.partition import Partition

Name = str | None | EllipsisType

# Name of the variable: attribute of the estimator, long_name.
_RESULTS = {
    "label": ("labels_", "cluster number, noise -1"),
    "density": ("density_", "local density"),
    "delta": ("delta_", "distance to the nearest higher point"),
    "nearest_higher": ("nearest_higher_", "index of the nearest higher point, none -1"),
    "is_seed": ("is_seed_", "whether the point is the seed of a cluster"),
}


class ClustAccessor:
    """Clustering of the points of a Dataset, as ``ds.clust``.

    Parameters
    ----------
    ds : xarray.Dataset
        Points along one dimension.

    Examples
    --------
    >>> import daskclust.accessor
    >>> ds = xr.Dataset({"x": ("hit", [0.0, 0.1, 5.0]), "y": ("hit", [0.0, 0.0, 5.0])})
    >>> ds.clust.clue(1.0, 2.0)["label"].values
    array([ 0,  0, -1])
    """

    def __init__(self, ds: xr.Dataset) -> None:
        self._ds = ds

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
            As of `daskclust.CLUE`; `rhoc` may be the name of a variable.
        wrap : mapping, optional
            Period of periodic coordinates by name, e.g. ``{"phi": 2 * np.pi}``.
        coordinates : sequence of str, optional
            Variables that are coordinates. Default: ``x``, ``y``, and ``z`` where there is no ``layer``.
        layer, event : str or None, optional
            Variables of whole numbers: points of different layers, or events, are never neighbours. Default: ``layer``
            and ``event`` where the Dataset has them and they are no coordinates; None: not used.
        weight : str or None, optional
            Variable with the weight of each point. Default: ``energy`` or else ``weight`` where the Dataset has them;
            None: 1 for each.
        partition : {"auto", "layers", "space", "chunks"} or Partition, default "auto"
            How a Dataset of dask arrays is divided for the work, see `daskclust.CLUE.fit`; the result is the same.

        Returns
        -------
        xarray.Dataset
            The same variables, coordinates, attributes and chunks, and along the point dimension ``label`` (int64,
            noise -1), ``density`` (unit of the weight), ``delta`` (unit of the coordinates; inf where there is no
            higher point within reach), ``nearest_higher`` (int64 index, none -1) and ``is_seed`` (bool), lazy where the
            coordinates are. Variables of these names are replaced. Parameters are in ``attrs["clue"]``, and as numbers
            in attributes of ``density`` (``dc``, ``rhoc``) and ``delta`` (``delta_c``, ``delta_o``, ``axes``,
            ``periods``).

        Raises
        ------
        ValueError
            For unknown names, and as `daskclust.CLUE.fit`. Unlike there, a Dataset without points is no error.

        Examples
        --------
        >>> from daskclust.datasets import calorimeter
        >>> ds = calorimeter(2, 100, rng=0)
        >>> int(ds.clust.clue(20.0, 8.0)["label"].max()) + 1
        17
        """
        from daskclust.clue.estimator import CLUE

        points = self._points(coordinates)
        used = {
            "layer": self._name("layer", layer, LAYER, points),
            "event": self._name("event", event, EVENT, points),
            "weight": self._name("weight", weight, WEIGHT, points),
        }
        if isinstance(rhoc, str):
            self._name("rhoc", rhoc, (), points)
        estimator = CLUE(
            dc,
            points.columns[rhoc] if isinstance(rhoc, str) else rhoc,
            delta_c=delta_c,
            delta_o=delta_o,
            kernel=kernel,
            neighbor_weight=neighbor_weight,
            wrap=_by_number(wrap, points.axes),
        )
        columns = {name: None if column is None else points.columns[column] for name, column in used.items()}
        X = _like_columns(points.X, columns.values())
        if len(X) == 0:
            results = _of_nothing(estimator, X)
        else:
            estimator.fit(
                X, layer=columns["layer"], event=columns["event"], sample_weight=columns["weight"], partition=partition
            )
            results = {name: getattr(estimator, attribute) for name, (attribute, _) in _RESULTS.items()}
        return self._with(results, estimator, points, used, rhoc)

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
            As of `daskclust.EventBuilder`; `dt_max` in the unit of ``toa`` (ns).
        partition : {"auto", "chunks", "windows"} or Partition, default "auto"
            How a Dataset of dask arrays is divided for the work, see `daskclust.EventBuilder.fit`.

        Returns
        -------
        xarray.Dataset
            The same variables, coordinates, attributes and chunks, and ``label`` (int64, noise -1) along the hits, lazy
            where ``toa`` is. Parameters are in ``attrs["events"]``.

        Raises
        ------
        ValueError
            As `daskclust.EventBuilder.fit`.

        Examples
        --------
        >>> from daskclust.datasets import timepix
        >>> ds = timepix(1000, rng=0)
        >>> bool((ds.clust.events(200.0)["label"] >= 0).all())
        True
        """
        from daskclust.events.estimator import EventBuilder

        builder = EventBuilder(dt_max, variant=variant, connectivity=connectivity, min_hits=min_hits)
        labels = builder.fit(self._ds, partition=partition).labels_
        attrs = {"long_name": _RESULTS["label"][1], "units": "1"}
        words = f"dt_max={dt_max:g}, variant={variant}, connectivity={connectivity}, min_hits={min_hits}"
        ds = self._ds.assign(label=(self._ds["toa"].dims, labels, attrs))
        return ds.assign_attrs(events=words)

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
        points = self._points(coordinates)
        if not hasattr(estimator, "labels_"):
            raise ValueError(f"{estimator!r} is not fitted; call its fit method first")
        results = {name: getattr(estimator, attribute) for name, (attribute, _) in _RESULTS.items()}
        if len(results["label"]) != len(points.X):
            raise ValueError(
                f"the estimator was fitted on {len(results['label'])} points, the Dataset has {len(points.X)}; "
                "fit it on this Dataset"
            )
        used = {"weight": self._name("weight", weight, WEIGHT, points)}
        return self._with(results, estimator, points, used, estimator.rhoc)

    def _points(self, coordinates: Sequence[str] | None) -> Points:
        """Return coordinates and all other variables along their dimension."""
        if isinstance(coordinates, str):
            raise ValueError(f"coordinates must be a sequence of names, got {coordinates!r}; write ({coordinates!r},)")
        if coordinates is None and "x" not in self._ds.variables:
            names = ", ".join(map(str, self._ds.variables)) or "no variables"
            raise ValueError(f'the Dataset has no variable x, but {names}; name the positions: coordinates=("...",)')
        wanted = ("x", "y", "z") if coordinates is None else coordinates
        dims = {name: self._ds[name].dims for name in wanted if name in self._ds.variables}
        if len(set(dims.values())) > 1 or any(len(each) != 1 for each in dims.values()):
            raise ValueError(f"coordinates must have one common dimension, got {dims}; see xarray.Dataset.stack")
        return split_points(self._ds, (*LAYER, *EVENT, *WEIGHT), coordinates)

    def _name(self, role: str, name: Name, usual: tuple[str, ...], points: Points) -> str | None:
        """Return the variable for a role, None for none."""
        if isinstance(name, EllipsisType):
            return next((each for each in usual if each in points.columns), None)
        if name is not None and name not in points.columns:
            raise ValueError(
                f"{role} names the variable {name!r}, which is not along the points or is a coordinate; "
                f"there are {sorted(points.columns)}"
            )
        return name

    def _with(
        self, results: Mapping[str, Any], estimator: CLUE, points: Points, used: Mapping[str, str | None], rhoc: Any
    ) -> xr.Dataset:
        """Return the Dataset with results as variables."""
        dim = self._ds[points.axes[0]].dims[0]
        attrs = self._attrs(estimator, points.axes, used["weight"], rhoc)
        ds = self._ds.assign({name: (dim, values, attrs[name]) for name, values in results.items()})
        return ds.assign_attrs(clue=_description(estimator, points.axes, used, rhoc))

    def _attrs(
        self, estimator: CLUE, axes: tuple[Hashable, ...], weight: str | None, rhoc: Any
    ) -> dict[str, dict[str, Any]]:
        """Return attributes of each result; nothing that a netCDF file could not hold."""
        attrs: dict[str, dict[str, Any]] = {name: {"long_name": words} for name, (_, words) in _RESULTS.items()}
        for name in ("label", "nearest_higher", "is_seed"):
            attrs[name]["units"] = "1"
        density_unit = "1" if weight is None else self._ds[weight].attrs.get("units")
        if density_unit is not None:
            attrs["density"]["units"] = density_unit
        units = {self._ds[axis].attrs.get("units") for axis in axes}
        if len(units) == 1 and None not in units:
            attrs["delta"]["units"] = units.pop()
        attrs["density"]["dc"] = float(estimator.dc)
        if isinstance(rhoc, str):
            attrs["density"]["rhoc_variable"] = rhoc
        elif np.ndim(rhoc) == 0:
            attrs["density"]["rhoc"] = float(rhoc)
        delta_c, delta_o = _deltas(estimator)
        periods = _by_number(estimator.wrap, axes) or {}
        attrs["delta"] |= {"delta_c": delta_c, "delta_o": delta_o, "axes": " ".join(map(str, axes))}
        attrs["delta"]["periods"] = [float(periods.get(k, 0.0)) for k in range(len(axes))]
        return attrs


def _deltas(estimator: CLUE) -> tuple[float, float]:
    delta_c = float(estimator.dc if estimator.delta_c is None else estimator.delta_c)
    return delta_c, delta_c if estimator.delta_o is None else float(estimator.delta_o)


def _by_number(wrap: Mapping[Any, float] | None, axes: Sequence[Hashable]) -> dict[int, float] | None:
    """Return periods by the number of the axis."""
    if wrap is None:
        return None
    unknown = [axis for axis in wrap if axis not in axes and not isinstance(axis, int | np.integer)]
    if unknown:
        raise ValueError(f"wrap names the axis {unknown[0]!r}; the coordinates are {list(axes)}")
    return {list(axes).index(axis) if axis in axes else int(axis): period for axis, period in wrap.items()}


def _like_columns(X: Any, columns: Any) -> Any:
    """Return X as a dask array where any column is one."""
    chunks = [column.chunks[0] for column in columns if is_dask(column)]
    if is_dask(X) or not chunks:
        return X
    return xr.Variable(("point", "axis"), X).chunk({"point": chunks[0]}).data


def _of_nothing(estimator: CLUE, X: Any) -> dict[str, Any]:
    """Return results for no points, of X's class; parameters are checked by clustering one point."""
    one = estimator.rhoc if np.ndim(estimator.rhoc) == 0 else 0.0
    real = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    checked = type(estimator)(**{**estimator.get_params(), "rhoc": one}).fit(np.zeros((1, X.shape[1]), real))
    dtypes = {name: getattr(checked, attribute).dtype for name, (attribute, _) in _RESULTS.items()}
    return {name: X[:, 0].astype(dtype) for name, dtype in dtypes.items()}


def _description(estimator: CLUE, axes: Sequence[Hashable], used: Mapping[str, str | None], rhoc: Any) -> str:
    """Return all parameters in words."""
    delta_c, delta_o = _deltas(estimator)
    kernel = getattr(estimator.kernel, "__name__", None) or repr(estimator.kernel)
    periods = _by_number(estimator.wrap, axes)
    wrap = None if periods is None else {str(axes[axis]): float(period) for axis, period in periods.items()}
    threshold = "one for each point" if np.ndim(rhoc) else repr(rhoc) if isinstance(rhoc, str) else f"{float(rhoc):g}"
    roles = ", ".join(f"{role}={name!r}" for role, name in used.items())
    return (
        f"dc={estimator.dc:g}, rhoc={threshold}, delta_c={delta_c:g}, delta_o={delta_o:g}, kernel={kernel}, "
        f"neighbor_weight={estimator.neighbor_weight:g}, wrap={wrap}, coordinates={tuple(map(str, axes))}, {roles}"
    )
