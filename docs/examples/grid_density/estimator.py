"""The estimator of density on a grid."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, ClusterMixin

from daskclust.core.data.checks import check_positive, check_whole
from daskclust.core.data.inputs import read_points
from daskclust.core.run.engine import run

from .plan import GridPlan


class GridDensity(ClusterMixin, BaseEstimator):
    """Clusters of dense cells of a regular grid that touch.

    Parameters
    ----------
    width : float
        Side of the cells, in the unit of the coordinates. The origin is a corner of a cell.
    min_samples : int, default 5
        Points in a dense cell.
    corners : bool, default True
        Whether cells touch at their corners too, or at their sides only.

    Attributes
    ----------
    labels_ : array of int64, shape (n,)
        Cluster of each point, numbered by the smallest index of a point in a dense cell; points in other cells: -1.
    n_clusters_ : int
        Number of clusters; a zero-dimensional dask array where `X` is a dask array.
    """

    def __init__(self, width: float, *, min_samples: int = 5, corners: bool = True) -> None:
        self.width = width
        self.min_samples = min_samples
        self.corners = corners

    def fit(self, X: Any, y: None = None) -> GridDensity:
        """Cluster points: a numpy, cupy or dask array of shape (n, d), a DataFrame, or an xarray.Dataset."""
        width, least = check_positive("width", self.width), check_whole("min_samples", self.min_samples, 1)
        plan = GridPlan(width, least, bool(self.corners))
        results = run(plan, {"X": read_points(self, X).X})
        self.labels_, self.n_clusters_ = results["labels"], results["n_clusters"]
        return self
