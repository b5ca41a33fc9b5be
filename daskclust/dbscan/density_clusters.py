"""What DBSCAN and friends-of-friends share as estimators: the run of a plan, and what follows from its labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskclust.core.data.boxes import Boxsize
from daskclust.core.data.columns import groups, narrowed, plain, reals
from daskclust.core.data.inputs import EVENT, Points, read_new_points
from daskclust.core.data.lazy import map_with
from daskclust.core.data.nested import nest
from daskclust.core.run.engine import run
from daskclust.core.space import near
from daskclust.core.space.partition import Partition
from daskclust.dbscan.plan import DbscanPlan
from daskclust.dbscan.sphere import SPHERE, chord, on_sphere
from daskclust.estimator import Estimator


class DensityClusters(Estimator):
    """What DBSCAN and friends-of-friends share: the run of a plan, and the results that follow from labels."""

    metric: Any
    boxsize: Boxsize
    units: Any

    def _searched(self, points: Points, name: str, length: float) -> tuple[Any, float]:
        """Return the points and the distance of neighbours that are searched: on a sphere unit vectors and a chord."""
        self._angles = self.units if self.metric == SPHERE else None
        if self._angles is None:
            return points.X, length
        return on_sphere(points, self.units, points.box(self.boxsize)), chord(name, length, self.units)

    def _run(
        self, points: Points, X: Any, plan: DbscanPlan, event: Any, sample_weight: Any, partition: str | Partition
    ) -> None:
        columns = {"X": X}
        if event is not None:
            columns[plan.group] = narrowed(points.aligned("event", event, groups))
        if sample_weight is not None:
            columns["weight"] = points.aligned("sample_weight", sample_weight, reals, np.float64)
        results = run(plan, columns, partition)
        self._X, self._searched_X, self._plan, self._has_events = points.X, X, plan, event is not None
        self.labels_, self.is_core_ = (nest(results[name], points.nesting) for name in ("labels", "is_core"))
        self.n_clusters_ = results["n_clusters"]

    def predict(self, X: Any) -> Any:
        """Return the cluster of the nearest core point of new points.

        Parameters
        ----------
        X : array of shape (n, d), DataFrame, or xarray.Dataset
            Coordinates, as of `fit`, in the same unit and, where both have names, with those in the same order.

        Returns
        -------
        array of int64, shape (n,)
            Label of the nearest core point (member of a group) within the distance of `fit`, of equally near ones the
            smallest; -1 without one. Clusters do not grow or merge. A border point of the fit may be nearer to another
            cluster. Lazy where this or the fit's `X` is a dask array: core points are then gathered once, on a worker.

        Raises
        ------
        ValueError, TypeError
            For points that `fit` would refuse, of other dimensions, names or units, and after a fit of events.
        """
        self._check_is_fitted("is_core_")
        points = read_new_points(self, X, EVENT)
        if self._has_events or points.has_lists:
            raise TypeError("predict takes points of one set, got events; fit and predict each event by itself")
        X = points.X if self._angles is None else on_sphere(points, self._angles, None)
        is_core = plain("is_core", self.is_core_)
        given = self._searched_X[is_core], self._plan.period, plain("labels", self.labels_)[is_core]
        found = map_with(near.nearest_label, X, near.plant, given, np.nextafter(self._plan.eps**2, np.inf))
        return nest(found, points.nesting)

    @property
    def core_sample_indices_(self) -> Any:
        """Indices of the core points, ascending."""
        self._check_is_fitted("is_core_")
        return plain("is_core", self.is_core_).nonzero()[0]

    @property
    def components_(self) -> Any:
        """Coordinates of the core points."""
        self._check_is_fitted("is_core_")
        return self._X[plain("is_core", self.is_core_)]
