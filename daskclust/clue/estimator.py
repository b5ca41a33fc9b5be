"""The CLUE estimator."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from daskclust.clue.at_once import fit_at_once
from daskclust.clue.columns import groups_of, in_unit_of_weights, sections_of, thresholds_of, weights_of
from daskclust.clue.densities import Densities
from daskclust.clue.kernels.density import choose_kernel
from daskclust.clue.lengths import Lengths, check_lengths, check_of_all, given_lengths, is_one, read_lengths
from daskclust.clue.plan import CluePlan
from daskclust.core.data.checks import axis_periods, check_positive
from daskclust.core.data.columns import plain, reals
from daskclust.core.data.inputs import EVENT, LAYER, WEIGHT, Points, aligned_column, read_new_points, read_points
from daskclust.core.data.lazy import map_points, map_with
from daskclust.core.data.nested import nest
from daskclust.core.device.arrays import is_cuda, on_device_of
from daskclust.core.run.engine import lazily, run_in_memory
from daskclust.core.space.partition import Chunk, Partition
from daskclust.estimator import Estimator


class CLUE(Estimator):
    """Density clustering of calorimeter hits [1]_.

    The local density of a point is the weight within `dc`, its nearest higher the closest point of higher density.
    Dense points far from any denser one are seeds of clusters, sparse points far from any denser one are outliers;
    every other point belongs where its nearest higher does. Each of `dc`, `delta_c` and `delta_o` may differ from point
    to point: a point is then compared with others by its own, as in CMS software. The answer depends on the order of
    the points where densities or distances are equal, and on nothing else: not on chunks, workers, threads or the
    device.

    Parameters
    ----------
    dc : float, mapping, array of shape (n,) or str
        Radius within which weights count towards the density, in the unit of the coordinates: one for all points, one
        for each section, ``{120: 1.3, 300: 1.8}`` (see `fit`), one for each point, or the name of a column of `X`.
    rhoc : float, array of shape (n,) or str
        Density from which a point may be a seed and below which it may be an outlier: one value, one for each point
        (as CMS does: a multiple of the noise of each cell), or the name of a column of `X`.
    delta_c : float, mapping, array of shape (n,) or str, optional
        A seed is farther than this from its nearest higher. Default: `dc`.
    delta_o : float, mapping, array of shape (n,) or str, optional
        An outlier is farther than this from its nearest higher. Default: `delta_c`.
    kernel : {"flat", "gaussian", "exponential"}, GaussianKernel, ExponentialKernel or function, default "flat"
        Weight of a neighbour by its distance; a function takes the distance and is one that numba compiles.
    neighbor_weight : float, default 1.0
        Factor for the weights of all points but the point itself: 1 in the paper, 0.5 in CMS software.
    wrap : mapping, optional
        Period of periodic axes by number or column name, e.g. ``{"phi": 2 * np.pi}``.

    Attributes
    ----------
    labels_ : array of int64, shape (n,)
        Cluster of each point, numbered by the smallest index of a seed; noise is -1.
    density_ : array, shape (n,)
        Local density, equation 2.3 with d <= dc as in the authors' program, in the precision of `X`.
    delta_ : array, shape (n,)
        Distance to the nearest higher, equation 2.4 with ties by index, so that of equally dense points one is the
        seed; inf where there is none within max(delta_c, delta_o) of the point.
    nearest_higher_ : array of int64, shape (n,)
        Index of the nearest higher, -1 where there is none; of awkward lists, counted through all events.
    is_seed_ : array of bool, shape (n,)
        Whether the point is the seed of a cluster.
    is_outlier_ : array of bool, shape (n,)
        Whether the point is an outlier: sparse, and far from any denser one. Noise is outliers and their followers.
    n_clusters_ : int
        Number of clusters; a zero-dimensional dask array where `X` is a dask array.
    n_features_in_ : int
        Number of coordinates.

    See Also
    --------
    daskclust.properties.cluster_table : Energy, position and size of each cluster.
    daskclust.plot.decision : The decision plot, from which thresholds are read.

    Notes
    -----
    Time and memory are near linear in the number of points where few distinct points lie within `dc` of each; `delta_c`
    and `delta_o` may be far larger. Axes beyond the fourth are not cut into cells. Of two points with equal density the
    one that comes later is the higher, of two equally near the one that comes first is taken.

    References
    ----------
    .. [1] M. Rovere et al., CLUE: A Fast Parallel Clustering Algorithm for High Granularity Calorimeters in High
       Energy Physics, Front. Big Data 3 (2020) 591315, https://doi.org/10.3389/fdata.2020.591315

    Examples
    --------
    >>> import numpy as np
    >>> from daskclust import CLUE
    >>> X = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1], [5.0, 5.0], [5.1, 5.0], [9.0, 0.0]])
    >>> clue = CLUE(dc=1.0, rhoc=2.0).fit(X)
    >>> clue.labels_
    array([ 0,  0,  0,  1,  1, -1])
    >>> clue.density_
    array([3., 3., 3., 2., 2., 1.])
    """

    def __init__(
        self,
        dc: Any,
        rhoc: Any,
        *,
        delta_c: Any = None,
        delta_o: Any = None,
        kernel: Any = "flat",
        neighbor_weight: float = 1.0,
        wrap: Mapping[Any, float] | None = None,
    ) -> None:
        self.dc = dc
        self.rhoc = rhoc
        self.delta_c = delta_c
        self.delta_o = delta_o
        self.kernel = kernel
        self.neighbor_weight = neighbor_weight
        self.wrap = wrap

    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        layer: Any = None,
        event: Any = None,
        section: Any = None,
        sample_weight: Any = None,
        partition: str | Partition = "auto",
    ) -> CLUE:
        """Cluster points.

        Parameters
        ----------
        X : array of shape (n, d), DataFrame, xarray.Dataset, AnnData, or awkward.Array
            Coordinates: a numpy, cupy or dask array; or a pandas or dask DataFrame, a Dataset (converted to the unit of
            its first coordinate) or awkward records with variables ``x``, ``y`` (``z`` where there is no ``layer``),
            and ``event``, ``layer``, ``energy`` (or ``weight``) if those are not given. Each list of awkward records,
            ``events * var * {x, y, ...}``, is an event, and results are awkward arrays, nested like it.
        y : None
            Ignored.
        layer : array of int, shape (n,), optional
            Points of different layers are never neighbours. Where both it and ``z`` are columns of `X` (a Dataset, a
            DataFrame or records), nor are those of one layer whose signs of z differ, which are those of two endcaps;
            z = 0 counts as positive.
        event : array of int, shape (n,), optional
            Points of different events are never neighbours: a batch of events is clustered at once. Instead of the
            lists, if `X` has any.
        section : array of int, shape (n,), optional
            Section of the detector of each point, by which `dc`, `delta_c` and `delta_o` may differ: an array or the
            name of a column. Default: the column ``section`` of `X`, else the layer.
        sample_weight : array, shape (n,), optional
            Weights, e.g. energies in GeV. Default: 1.
        partition : {"auto", "layers", "space", "chunks"} or Partition, default "auto"
            How a dask array is divided into tasks of about half a second; the result is the same. ``"layers"``: groups
            of layers (events, where given). ``"space"``: blocks; a sample of X finds them. ``"chunks"``: as it is,
            every layer within one chunk. ``"auto"``: layers if there are any, else space.

        Returns
        -------
        CLUE
            Itself. On dask nothing is computed yet, but for that pass, and one over each array of lengths.

        Raises
        ------
        ValueError, TypeError
            For parameters out of range, and for coordinates or columns that are not finite, of the wrong shape, of
            unknown chunk sizes, or of units that cannot be converted.
        """
        points = read_points(self, X, EVENT + LAYER + WEIGHT)
        self._nesting, lengths = points.nesting, given_lengths(self)
        wanted = section is not None or not all(map(is_one, lengths.values()))
        self._sections = sections_of(points, section, layer) if wanted else None
        self._lengths = read_lengths(lengths, points, self._sections)
        plan = self._plan(points.axes, points.X.dtype, self._lengths)
        weights, self._weight_unit = weights_of(points, sample_weight)
        group, grouping = groups_of(points, layer, event)
        columns = {"X": points.X, **group, **weights, **self._lengths.columns}
        self._fitted: Any = plan, grouping, {name: columns.get(name) for name in ("X", "layer", "weight", "dc")}
        self._rhoc_of: Any = plan.rhoc
        if plan.rhoc is None:
            columns["rhoc"] = self._rhoc_of = thresholds_of(points, self.rhoc, sample_weight is None, self._weight_unit)
        self._lazy = lazily(plan, columns, partition)  # other thresholds may come
        if self._lazy is not None:
            self._keep(self._lazy.run(plan))
        else:
            at_once = fit_at_once(plan, columns) if is_cuda(points.X) else None
            self._keep(at_once or run_in_memory(plan, columns))
        return self

    def rethreshold(self, *, rhoc: Any = None, delta_c: Any = None, delta_o: Any = None) -> CLUE:
        """Cluster the same points with other thresholds, without computing densities again; on dask, `persist` first.

        Parameters
        ----------
        rhoc, delta_c, delta_o : optional
            New thresholds, numbers where `X` is a dask array; None keeps the present one.

        Returns
        -------
        CLUE
            A new fitted estimator.

        Raises
        ------
        ValueError
            Where max(delta_c, delta_o) grows: nearest highers so far away were not looked for.
        """
        self._check_is_fitted("density_")
        changed = {"rhoc": rhoc, "delta_c": delta_c, "delta_o": delta_o}
        given = {name: value for name, value in changed.items() if value is not None}
        other = copy.copy(self).set_params(**given)
        density = plain("density", self.density_)
        own = next((name for name, value in given.items() if not is_one(value)), None)
        if self._lazy is not None and own is not None:
            raise ValueError(f"{own} must be one number to rethreshold a dask array; fit again with one for each point")
        unit = {} if self._unit is None else dict.fromkeys(self._axes[:1], self._unit)
        points = Points(density[:, None], self._axes, {}, nesting=self._nesting, units=unit)
        other._lengths = read_lengths(given_lengths(other), points, self._sections, self._lengths)
        if given.keys() - {"rhoc"} and bool(np.any(other._lengths.farthest() > self._lengths.farthest())):
            new, old = (float(np.max(each._lengths.farthest())) for each in (other, self))
            raise ValueError(
                f"max(delta_c, delta_o) = {new:g} is larger than the {old:g} of the fit; fit again with it"
            )
        plan = other._plan(self._axes, density.dtype, other._lengths)
        other._rhoc_of = other._rhoc_of if plan.rhoc is None else plan.rhoc
        if self._lazy is not None:
            other._keep(self._lazy.run(plan))
            return other
        if plan.rhoc is None and rhoc is not None:
            other._rhoc_of = aligned_column(
                density, "rhoc", in_unit_of_weights(rhoc, self._weight_unit, self._nesting), reals, density.dtype
            )
        columns = other._lengths.columns | ({"rhoc": other._rhoc_of} if plan.rhoc is None else {})
        delta, nearest_higher = plain("delta", self.delta_), plain("nearest_higher", self.nearest_higher_)
        other._keep(_from_densities(plan, columns, density, delta, nearest_higher))
        return other

    def predict(self, X: Any, *, layer: Any = None, event: Any = None, section: Any = None) -> Any:
        """Return the cluster of the nearest higher among the points of the fit, for new points.

        The density at a new point is that of a point without weight there, so new points do not count for each other,
        and no cluster grows. Points of the fit that are as dense or denser are its higher ones; of equally near ones
        the first is taken. At the very place of a point of the fit it takes the label of that, whatever its density:
        points of the fit keep their labels.

        Parameters
        ----------
        X : array of shape (n, d), DataFrame, xarray.Dataset, or awkward.Array
            Coordinates, as of `fit`, in the same unit and, where both have names, with those in the same order. They
            are taken in the precision of those of the fit. Weights do not count.
        layer, event, section : array, shape (n,), optional
            As of `fit`: needed where the points of the fit have them.

        Returns
        -------
        array of int64, shape (n,)
            Label of the nearest higher, if it is within max(delta_c, delta_o) of the new point, which is -1 for an
            outlier and what follows one; else -1. Lazy where this or the fit's `X` is a dask array: points of the fit
            are then gathered once, on a worker.

        Raises
        ------
        ValueError, TypeError
            For points that `fit` would refuse, of other dimensions, names, units or columns, and where a length is an
            array of one for each point of the fit: lengths by section, or in a column, new points have as well.

        Notes
        -----
        The points of the fit are kept, not copied: what changes in them changes densities at new points.

        Examples
        --------
        >>> clue = CLUE(dc=1.0, rhoc=2.0).fit([[0.0], [0.5], [1.0], [6.0]])
        >>> clue.predict([[1.5], [6.5], [9.0]])
        array([ 0, -1, -1])
        """
        self._check_is_fitted("density_")
        plan, grouping, known = self._fitted
        points = read_new_points(self, X, EVENT + LAYER + WEIGHT)
        points = points._replace(X=points.X.astype(known["X"].dtype, copy=False))
        check_of_all(self._lengths.given)
        lengths = read_lengths(self._lengths.given, points, sections_of(points, section, layer))
        group = groups_of(points, layer, event, grouping)[0].get("layer")
        dc, delta_c, delta_o = lengths.largest.values()
        own = replace(plan, dc=dc, delta_c=delta_c, delta_o=delta_o, own=frozenset(lengths.columns))
        given = known["X"], plain("density", self.density_), plain("labels", self.labels_), *list(known.values())[1:]
        of_points = [lengths.columns.get(name) for name in lengths.largest]
        return nest(map_with(own.labels_of, points.X, plan.fitted, given, group, *of_points), points.nesting)

    @property
    def is_outlier_(self) -> Any:
        """Which points are outliers."""
        self._check_is_fitted("density_")
        density, delta = plain("density", self.density_), plain("delta", self.delta_)
        number = density.dtype.type
        rhoc = number(self._rhoc_of) if is_one(self._rhoc_of) else self._rhoc_of
        delta_o = self._lengths.columns.get("delta_o", number(self._lengths.largest["delta_o"]))
        return nest(map_points(_outliers, density, delta, rhoc, delta_o, dtype=np.bool_), self._nesting)

    def persist(self) -> CLUE:
        """Compute densities and nearest highers of dask input now and keep them on the workers.

        Returns
        -------
        CLUE
            Itself; results stay lazy, and come from what is kept. Nothing is done for input in memory.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        """
        self._check_is_fitted("density_")
        if self._lazy is not None:
            plan = self._plan(self._axes, self.density_.dtype, self._lengths)
            self._lazy.persist(plan)
            self._keep(self._lazy.run(plan))
        return self

    def _keep(self, results: dict[str, Any]) -> None:
        self.n_clusters_ = results.pop("n_clusters")
        results = {name: nest(values, self._nesting) for name, values in results.items()}
        self.labels_, self.is_seed_ = results["labels"], results["is_seed"]
        self.density_, self.delta_ = results["density"], results["delta"]
        self.nearest_higher_ = results["nearest_higher"]

    def _plan(self, axes: tuple[Any, ...], dtype: Any = np.float64, lengths: Lengths | None = None) -> CluePlan:
        """Check the parameters and return the plan; without `lengths` those that need no data."""
        dc, delta_c, delta_o = (lengths or check_lengths(given_lengths(self), dtype)).largest.values()
        periods = axis_periods(self.wrap, axes, dtype)
        has_one = is_one(self.rhoc) or isinstance(self.rhoc, Mapping)  # which is refused
        farthest = 2.0**45 * max(dc, delta_c, delta_o)
        if max(periods) > farthest:
            raise ValueError(
                f"periods in wrap must be at most 2**45 times the largest of dc and delta, {farthest:g}, got "
                f"{max(periods):g}; enlarge these, or leave the axis out of wrap"
            )
        return CluePlan(
            dc,
            check_positive("rhoc", self.rhoc, zero=True, dtype=dtype) if has_one else None,
            delta_c,
            delta_o,
            *choose_kernel(self.kernel, dc if is_one(self.dc) else None, dtype),
            check_positive("neighbor_weight", self.neighbor_weight, zero=True, dtype=dtype),
            periods,
            frozenset(() if lengths is None else lengths.columns),
        )


def _outliers(density: Any, delta: Any, rhoc: Any, delta_o: Any) -> Any:
    return (density < rhoc) & (delta > delta_o)


def _from_densities(
    plan: CluePlan, columns: dict[str, Any], density: Any, delta: Any, nearest_higher: Any
) -> dict[str, Any]:
    """Return the results that follow from densities and nearest highers in input order."""
    nearest = on_device_of(density, nearest_higher, np.int32)
    chunk = Chunk({"X": density, **columns})  # the coordinates are not needed again, but what class they are of
    measured = plan.before_merge(Densities(chunk, density, delta, nearest))[1]
    return plan.one_chunk(Densities(chunk, *measured.values()))
