"""The estimator of friends-of-friends in redshift space."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, ClusterMixin

from daskclust.core.data.checks import check_distance, check_whole
from daskclust.core.data.inputs import read_points
from daskclust.core.run.engine import run
from daskclust.core.space.partition import Partition

from .plan import RedshiftPlan


class RedshiftFriends(ClusterMixin, BaseEstimator):
    """Groups of galaxies in redshift space: points linked within a cylinder along the line of sight [1]_ [2]_.

    Two points are friends where they are at most `across` apart in the plane of the sky and at most `along` apart on
    the line of sight, the third axis (a distant observer). Velocities stretch groups along it, so `along` is several
    times `across`.

    Parameters
    ----------
    across, along : float
        Linking lengths, inclusive, in the unit of the coordinates: b_perp and b_par times the mean separation of
        galaxies.
    min_members : int, default 2
        Groups with fewer members are noise.

    Attributes
    ----------
    labels_ : array of int64, shape (n,)
        Group of each point, numbered by the smallest index of a member; -1 outside of groups.
    n_clusters_ : int
        Number of groups; a zero-dimensional dask array where `X` is a dask array.

    References
    ----------
    .. [1] J. P. Huchra, M. J. Geller, Groups of galaxies. I. Nearby groups, Astrophys. J. 257 (1982) 423,
       https://ui.adsabs.harvard.edu/abs/1982ApJ...257..423H
    .. [2] A. A. Berlind et al., Percolation galaxy groups and clusters in the SDSS redshift survey, Astrophys. J.
       Suppl. 167 (2006) 1, https://doi.org/10.1086/508170
    """

    def __init__(self, across: float, along: float, *, min_members: int = 2) -> None:
        self.across = across
        self.along = along
        self.min_members = min_members

    def fit(self, X: Any, y: None = None, *, partition: str | Partition = "auto") -> RedshiftFriends:
        """Find groups: a numpy, cupy or dask array of shape (n, 3), a DataFrame, or an xarray.Dataset."""
        X = read_points(self, X).X
        if X.shape[1] != 3:
            raise ValueError(f"X must have 3 axes, the last along the line of sight, got {X.shape[1]}")
        lengths = [check_distance(name, getattr(self, name), X.dtype) for name in ("across", "along")]
        plan = RedshiftPlan(*lengths, check_whole("min_members", self.min_members, 1, clamp=True))
        results = run(plan, {"X": X}, partition)
        self.labels_, self.n_clusters_ = results["labels"], results["n_clusters"]
        return self
