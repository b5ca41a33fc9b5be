"""Neighbours of points: how many within a distance, the nearest of another set, pairs below a distance.

Distances are those of `daskclust.DBSCAN` and `daskclust.FriendsOfFriends`: points are neighbours where the sum of their
squared differences, in float64, is at most the square of the distance; along a periodic axis to the nearest image.
Points go through a tree of boxes along a space-filling curve, as in ArborX [1]_: any density, any distance, any number
of dimensions, made for up to four.

References
----------
.. [1] A. Prokopenko, D. Arndt, D. Lebrun-Grandié and B. Turcksin, ArborX: A Performance Portable Geometric Search
   Library, ACM Trans. Math. Softw. 47 (2021) 2, https://doi.org/10.1145/3412558
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from daskclust.core.data.checks import check_distance, sides_of_box
from daskclust.core.data.columns import named_for_kernels
from daskclust.core.data.inputs import Points, check_alike, read_points, split_points
from daskclust.core.data.lazy import map_with
from daskclust.core.data.nested import nest
from daskclust.core.device.arrays import is_dask, keeping_device
from daskclust.core.run import steps as work
from daskclust.core.run.engine import lazily
from daskclust.core.run.plan import Plan
from daskclust.core.space import near
from daskclust.core.space.partition import Chunk, Partition
from daskclust.estimator import BaseEstimator

__all__ = ["Nearest", "count_within", "nearest", "pairs_within"]


class Nearest(NamedTuple):
    """Nearest points of another set.

    Attributes
    ----------
    index : array of int64, shape (n,)
        Row of the nearest point; -1 where there is none.
    distance : array of float64, shape (n,)
        How far it is, in the unit of the coordinates; inf where there is none.
    """

    index: Any
    distance: Any


@keeping_device()
def count_within(X: Any, eps: float, *, boxsize: Any = "auto", partition: str | Partition = "auto") -> Any:
    """Return how many points are within a distance of each point, the point itself included.

    Parameters
    ----------
    X : array of shape (n, d), DataFrame, or xarray.Dataset
        Coordinates, as of `daskclust.DBSCAN.fit`.
    eps : float
        Largest distance, in the unit of the coordinates, inclusive.
    boxsize : float, sequence of float or None, or "auto", default "auto"
        Period of all axes, or of each, as of `daskclust.FriendsOfFriends`.
    partition : {"auto", "space", "chunks"} or Partition, default "auto"
        How a dask array is divided, as of `daskclust.DBSCAN.fit`; blocks have halos of `eps`.

    Returns
    -------
    array of int64, shape (n,)
        Of the class of `X`: lazy where this is a dask array, with its chunks.

    Raises
    ------
    ValueError, TypeError
        For a distance or a box that is not positive, and for coordinates that `daskclust.DBSCAN.fit` refuses.

    Notes
    -----
    ``(count_within(X, eps).sum() - n) // 2`` is the number of pairs up to `eps`, of which correlation functions are
    made. A box of points that are all near is counted as a whole: time is about O(n log n), however dense they are.

    Examples
    --------
    >>> count_within([[0.0, 0.0], [3.0, 4.0], [9.0, 9.0]], 5.0)
    array([2, 2, 1])
    """
    points = _read(X)
    plan = CountPlan(check_distance("eps", eps), _periods(points, boxsize))
    lazy = lazily(plan, {"X": points.X}, partition)
    if lazy is None:
        return nest(plan.before_merge(Chunk(named_for_kernels({"X": points.X})))[1]["count"], points.nesting)
    steps, chunks = lazy.steps(plan.name, plan)
    counted = steps.each("count", partial(work.before_merge, plan), chunks)
    return lazy.of_points(steps, "count", work.part_of, (counted,), plan.results_before_merge)["count"]


@keeping_device()
def nearest(X: Any, of: Any, *, max_distance: float | None = None, boxsize: Any = "auto") -> Nearest:
    """Return the nearest point of another set for each point.

    Parameters
    ----------
    X : array of shape (n, d), DataFrame, or xarray.Dataset
        Coordinates, as of `daskclust.DBSCAN.fit`.
    of : array of shape (m, d), DataFrame, or xarray.Dataset
        The other set, in the same unit, and where both have names of coordinates, with those in the same order. It must
        fit the memory of a worker.
    max_distance : float, optional
        Largest distance, in the unit of the coordinates, inclusive. Default: any.
    boxsize : float, sequence of float or None, or "auto", default "auto"
        Period of all axes, or of each, as of `daskclust.FriendsOfFriends`; that of `X` where this is a Dataset.

    Returns
    -------
    Nearest
        Row in `of` and distance; of equally near points the first row. Lazy where `X` or `of` is a dask array.

    Raises
    ------
    ValueError, TypeError
        For a distance or a box that is not positive, sets of different dimensions, names or units, and for
        coordinates that `daskclust.DBSCAN.fit` refuses.

    Examples
    --------
    >>> nearest([[0.0], [9.9]], [[1.0], [4.0]], boxsize=10.0)
    Nearest(index=array([0, 0]), distance=array([1. , 1.1]))
    """
    points, others = _read(X), _read(of, "of")
    if points.X.shape[1] != others.X.shape[1]:
        raise ValueError(f"X and of must have as many coordinates, got {points.X.shape[1]} and {others.X.shape[1]}")
    check_alike("of", others, "X", points.axes, points.unit)
    beyond2 = np.inf
    if max_distance is not None:
        beyond2 = np.nextafter(check_distance("max_distance", max_distance) ** 2, np.inf)
    period = _periods(points, boxsize)
    found = map_with(_found, points.X, near.plant, (others.X, period), beyond2, dtype=np.float64, width=2)
    return Nearest(nest(found[:, 0].astype(np.int64), points.nesting), nest(found[:, 1], points.nesting))


@keeping_device()
def pairs_within(X: Any, eps: float, *, boxsize: Any = "auto") -> Any:
    """Return all pairs of points within a distance.

    Parameters
    ----------
    X : array of shape (n, d), DataFrame, or xarray.Dataset
        Coordinates, as of `daskclust.DBSCAN.fit`, in memory: how many pairs there are is not known before.
    eps : float
        Largest distance, in the unit of the coordinates, inclusive.
    boxsize : float, sequence of float or None, or "auto", default "auto"
        Period of all axes, or of each, as of `daskclust.FriendsOfFriends`.

    Returns
    -------
    array of int64, shape (m, 2)
        Rows ``i < j`` of each pair, ascending by the first, then by the second.

    Raises
    ------
    ValueError, TypeError
        As of `count_within`, and for a dask array.

    Examples
    --------
    >>> pairs_within([[0.0], [9.0], [2.0]], 2.0, boxsize=10.0)
    array([[0, 1],
           [0, 2]])
    """
    points = _read(X)
    if is_dask(points.X):
        raise TypeError("X must be in memory to list its pairs; call X.compute(), or count them: count_within(X, eps)")
    eps = check_distance("eps", eps)
    return near.pairs_within(near.plant(points.X, _periods(points, boxsize)), eps * eps)


@dataclass(frozen=True)
class CountPlan(Plan):
    """Counts of neighbours, for the engine to divide points for."""

    eps: float
    period: tuple[float, ...]

    name = "neighbors"
    results_before_merge: ClassVar = {"count": np.int64}
    reach_name = "eps"

    @property
    def reach(self) -> float:
        """How far from a point others count."""
        return self.eps

    def before_merge(self, chunk: Chunk) -> tuple[Any, dict[str, Any]]:
        """Return ids and counts of the chunk's own points."""
        X, ids = chunk.columns["X"], chunk.ids
        tree = near.plant(X, self.period)
        if chunk.owned is not None:
            X, ids = X[chunk.owned], ids[chunk.owned]
        return ids, {"count": near.count_within(tree, X, ids, self.eps * self.eps)}


def _read(X: Any, name: str = "X") -> Points:
    points = split_points(X, ())
    if points.X.shape[0] == 0:
        raise ValueError(f"{name} has no points; give one or more")
    points = read_points(BaseEstimator(), points)
    if points.has_lists:
        raise TypeError("points must be one set, got awkward lists; flatten them, or take one list after the other")
    return points


def _periods(points: Points, boxsize: Any) -> tuple[float, ...]:
    return sides_of_box(points.box(boxsize), points.X.shape[1])


def _found(X: Any, rows: Any, tree: Any, beyond2: float) -> Any:
    """Return rows, which float64 holds, and distances of what is nearest to each point, side by side."""
    return np.stack(near.nearest(tree, X, rows, beyond2), axis=1).astype(np.float64, copy=False)
