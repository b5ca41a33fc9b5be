"""Cells, apriori clusters and cuts: what ``ds.clust.hca`` takes from a Dataset."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence
from types import EllipsisType
from typing import Any

import numpy as np
import xarray as xr

from daskclust.core import hierarchy as tree
from daskclust.core.data.checks import check_number, check_whole
from daskclust.core.data.columns import plain
from daskclust.core.data.inputs import NOT_CLUSTERED, Points, points_of_cells
from daskclust.core.data.lazy import along_points, lazy_along, map_points, whole
from daskclust.core.device.arrays import is_dask, on_device_of, to_host
from daskclust.core.hierarchy.cuts import check_count

from ._results import dims_of, fit, like_columns, plain_number, points_of, with_results, without_hierarchy

NOT_SAMPLED = -2  # label of such cells, before they are given one


def cluster_cells(
    ds: xr.Dataset,
    estimator: Any,
    coordinates: Sequence[str] | None,
    apriori: Any,
    cut: Mapping[str, Any],
    partition: str,
    sample: int | None,
    rng: Any,
) -> xr.Dataset:
    """Return a Dataset with the hierarchy of its cells, or of a sample of them, and labels of all."""
    ds = without_hierarchy(ds)
    points, dim, left_out = cells_in(ds, coordinates)
    labels, source = apriori_of(ds, apriori, dim)
    n, every = len(points.X), points
    chosen: Any = slice(None)
    if sample is not None:
        count = min(check_whole("sample", sample, 1), n)
        chosen = np.sort(np.random.default_rng(rng).choice(n, count, replace=False, shuffle=False))
        points = points._replace(X=_computed(points.X, chosen), columns={})
        labels = labels if labels is None or np.ndim(labels) == 0 else _computed(plain("apriori", labels), chosen)
    cut = cut_of(**cut, n=len(points.X))
    points = points._replace(X=like_columns(points.X, [labels]))
    fitted = fit(estimator, points, apriori=labels, partition=partition)
    used = {"apriori": source, **cut, **left_out}
    if sample is not None:
        used |= {"sample": len(points.X), "rng": plain_number(rng) if np.ndim(rng) == 0 else "given"}
    found = with_results(ds.isel({dim: chosen}), fitted, points, (dim,), used, cut)
    if sample is None or not n:
        return found
    nearest = fitted.predict(every, **cut)
    for name, labels in (("label", nearest), ("point_height", None)):
        values = _on_all(found[name].data, chosen, every.X, labels)
        ds = ds.drop_vars(name, errors="ignore").assign({name: ((dim,), values, found[name].attrs)})
    return ds.merge(found[["linkage", "is_apriori"]]).assign_attrs(found.attrs)


def with_hierarchy(ds: xr.Dataset, estimator: Any, coordinates: Sequence[str] | None) -> xr.Dataset:
    """Return a Dataset with the results of an estimator that was fitted on its cells."""
    ds = without_hierarchy(ds)
    points, dim, left_out = cells_in(ds, coordinates)
    cut = {"n_clusters": estimator.n_clusters, "min_size": 1}
    used = {"apriori": repr(estimator.apriori_source_), **cut, **left_out}
    return with_results(ds, estimator, points, (dim,), used, cut)


def _computed(values: Any, chosen: Any) -> Any:
    """Return some rows; of a dask array they are computed now, or each chunk would stay until they are clustered."""
    if not is_dask(values):
        return values[chosen]
    rows = values[chosen].compute()
    return lazy_along(rows, (len(rows),))


def _on_all(values: Any, chosen: Any, X: Any, labels: Any) -> Any:
    """Return values of the sample along all points; the others have `labels`, or NaN where these are None."""
    fill = functools.partial(_filled, chosen=chosen, n=len(X))
    if not is_dask(values):
        found = fill(to_host(values))
        return on_device_of(X, found if labels is None else _choose(found, to_host(labels)))
    X = X if is_dask(X) else lazy_along(X, (len(X),))
    found = along_points(whole(values, fill, (len(X),), values.dtype), X)
    return found if labels is None else map_points(_choose, found, labels)


def _filled(values: Any, chosen: Any, n: int) -> Any:
    found = np.full(n, np.nan if values.dtype.kind == "f" else NOT_SAMPLED, values.dtype)
    found[chosen] = to_host(values)
    return found


def _choose(found: Any, labels: Any) -> Any:
    is_other = found == NOT_SAMPLED
    found = found.copy()
    found[is_other] = labels[is_other]
    return found


def cells_in(ds: xr.Dataset, coordinates: Sequence[str] | None) -> tuple[Points, Hashable, dict[str, Any]]:
    """Return the coordinates of all cells, their dimension, and the channels that are left out."""
    if coordinates is not None or "X" not in ds.variables:
        points = points_of(ds, coordinates)
        return points, dims_of(ds, points)[0], {}
    points = points_of_cells(ds)
    left_out = {NOT_CLUSTERED: str(ds.attrs[NOT_CLUSTERED])} if points.X.size < ds["X"].size else {}
    return points, dims_of(ds, points)[0], left_out


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
    """Return how the hierarchy of n cells, 0 if not known, is cut, checked before it is there."""
    if n_clusters is not None and height is not None:
        raise ValueError(f"got n_clusters={n_clusters!r} and height={height!r}; give one of them")
    tree.least_size(min_size, n)
    size = {"min_size": plain_number(min_size)}
    if height is not None:
        return {"height": check_number("height", height), **size}
    n_clusters = min(2, max(1, n)) if n_clusters is None else check_whole("n_clusters", n_clusters, 1)
    if n:
        check_count(n_clusters, min_size, n, n)
    return {"n_clusters": n_clusters, **size}
