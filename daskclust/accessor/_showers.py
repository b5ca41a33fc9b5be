"""Showers as a method of ``ds.clust``: of layer clusters, and of the hits that these are made of."""

from __future__ import annotations

import inspect
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from daskclust.core.data.columns import column, label_numbers
from daskclust.core.data.datasets import variable_of
from daskclust.core.data.inputs import EVENT, LAYER, WEIGHT, Points
from daskclust.core.device.arrays import is_dask, on_device_of, to_host
from daskclust.systems import SYSTEMS

from ._results import Name, like_columns, points_of, with_results

if TYPE_CHECKING:
    from daskclust.core.space.partition import Partition

SHOWER_AXES = ("x", "y", "z")


def showers(self: Any, *, label: Name = ..., partition: str | Partition = "auto", **parameters: Any) -> xr.Dataset:
    """Find the showers of layer clusters: one call to `daskclust.CLUE3D`.

    Parameters
    ----------
    label : str or None, optional
        Variable with the layer cluster of each hit, -1 for none: `daskclust.properties.cluster_table` of it is
        clustered, which on dask computes how many there are. None: points are layer clusters, with ``x``, ``y``, ``z``,
        ``layer`` and ``energy``. Default: ``label`` where the Dataset has it, and not along ``cluster``.
    partition
        See the class.

    Returns
    -------
    xarray.Dataset
        Of hits with ``shower`` (int64, noise -1). Of layer clusters with ``label`` (int64, noise -1), ``density``
        (GeV), ``delta`` (cm, or of eta and phi; inf where there is no higher one within reach), ``nearest_higher``
        (int64 index, none -1) and ``is_seed`` (bool).

    Examples
    --------
    >>> from daskclust.datasets import hgcal_event
    >>> hits = hgcal_event(3, hadronic=0.0, n_noise=0, rng=0)
    >>> found = hits.clust.clue(1.5, 0.05, delta_o=3.0).clust.showers()
    >>> int(found["label"].max()) + 1, int(found["shower"].max()) + 1
    (110, 3)
    """
    ds: xr.Dataset = self._ds
    if isinstance(label, EllipsisType):
        label = "label" if "label" in ds.variables and ds["label"].dims != ("cluster",) else None
    estimator = SYSTEMS["showers"].estimator(**parameters)
    if label is not None:
        return _with_showers(ds, label, estimator, partition)
    points = points_of(ds, SHOWER_AXES)
    return with_results(ds, _fit(estimator, points, partition), points, ds["x"].dims, {})


def check_hits(ds: xr.Dataset, label: str = "x") -> None:
    """Refuse hits of which no showers can be found."""
    missing = [name for name in (*SHOWER_AXES, "layer", "energy", label) if name not in ds.variables]
    if missing:
        raise ValueError(f"showers need {missing[0]} of each hit; there are {', '.join(map(str, ds.variables))}")


def _fit(estimator: Any, points: Points, partition: Any) -> Any:
    """Fit CLUE3D to layer clusters; where there are none, to a single one, which checks its parameters."""
    if not len(points.X):
        one = points._replace(X=np.ones((1, points.X.shape[1]), points.X.dtype), columns={})
        return estimator.fit(one, layer=np.zeros(1, np.int64), sample_weight=np.ones(1))
    there = [points.columns[name] for name in (*LAYER, *EVENT, *WEIGHT) if name in points.columns]
    return estimator.fit(points._replace(X=like_columns(points.X, there)), partition=partition)


def _with_showers(ds: xr.Dataset, label: str, estimator: Any, partition: Any) -> xr.Dataset:
    """Return hits with the shower of each, that of its layer cluster."""
    from daskclust.properties import cluster_table

    check_hits(ds, label)
    table = cluster_table(ds, label, coords=SHOWER_AXES)
    fitted = _fit(estimator, points_of(table, SHOWER_AXES), partition)
    labels = column(label, ds[label], label_numbers)
    numbers = fitted.labels_ if table.sizes["cluster"] else np.empty(0, np.int64)
    if is_dask(labels) or is_dask(numbers):
        import dask.array as da

        labels, numbers = da.asarray(labels), da.asarray(numbers).rechunk(-1)
        kind = {"dtype": np.int64, "meta": labels._meta.astype(np.int64), "token": "daskclust-shower"}
        shower = da.blockwise(_of_hits, "i", labels, "i", numbers, "j", concatenate=True, align_arrays=False, **kind)
    else:
        shower = _of_hits(labels, numbers)
    about = {"long_name": "number of the shower, noise -1", "units": "1"}
    names = inspect.signature(type(estimator)).parameters
    text = ", ".join(f"{name}={getattr(estimator, name)}" for name in names)
    return ds.assign(shower=variable_of(ds[label].dims, shower, about)).assign_attrs(showers=text)


def _of_hits(labels: Any, numbers: Any) -> Any:
    """Return the shower of each hit by its layer cluster; -1, the last one, of noise."""
    return on_device_of(labels, np.append(to_host(numbers), -1))[labels]
