"""Cells, apriori clusters and cuts: what ``ds.clust.hca`` takes from a Dataset."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from types import EllipsisType
from typing import Any

import numpy as np
import xarray as xr

from daskclust.core import hierarchy as tree
from daskclust.core.data.checks import check_number, check_whole
from daskclust.core.data.columns import plain
from daskclust.core.data.inputs import NOT_CLUSTERED, Points, cells_of, split_points

from ._results import plain_number, points_of


def cells_in(ds: xr.Dataset, coordinates: Sequence[str] | None) -> tuple[Points, Hashable, dict[str, Any]]:
    """Return the coordinates of all cells, their dimension, and the channels that are left out."""
    if coordinates is not None or "X" not in ds.variables:
        points = points_of(ds, coordinates)
        return points, ds[points.axes[0]].dims[0], {}
    X = cells_of(ds)
    points = split_points(plain("X", X), ())
    if "channel" in X.coords:
        points = points._replace(axes=tuple(map(str, X["channel"].values)))
    left_out = {NOT_CLUSTERED: str(ds.attrs[NOT_CLUSTERED])} if X.size < ds["X"].size else {}
    return points, X.dims[0], left_out


def apriori_of(ds: xr.Dataset, apriori: Any, dim: Hashable) -> tuple[Any, Any]:
    """Return apriori clusters as the estimator takes them, and in words."""
    if isinstance(apriori, EllipsisType):
        apriori = "apriori" if "apriori" in ds.variables else None
    if isinstance(apriori, str) and apriori != "kmeans":
        if apriori not in ds.variables or ds[apriori].dims[:1] != (dim,):
            there = sorted(str(name) for name, values in ds.variables.items() if values.dims == (dim,))
            raise ValueError(
                f"apriori names the variable {apriori!r}, which is not along {dim}; there are {there}, and "
                '"kmeans" makes clusters'
            )
        return ds[apriori].data, repr(apriori)
    if apriori is None or np.ndim(apriori) == 0:
        return apriori, repr(plain_number(apriori))
    return (apriori.data if isinstance(apriori, xr.DataArray) else apriori), "given"


def cut_of(n_clusters: int | None, height: float | None, min_size: int | float, n: int) -> dict[str, Any]:
    """Return how the hierarchy of n cells is cut, checked before it is there."""
    if n_clusters is not None and height is not None:
        raise ValueError(f"got n_clusters={n_clusters!r} and height={height!r}; give one of them")
    tree.least_size(min_size, n)
    size = {"min_size": plain_number(min_size)}
    if height is not None:
        return {"height": check_number("height", height), **size}
    return {"n_clusters": min(2, max(1, n)) if n_clusters is None else check_whole("n_clusters", n_clusters, 1), **size}
