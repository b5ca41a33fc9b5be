"""The results of Mahalanobis hierarchical clustering as variables of a Dataset."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from daskclust.core import hierarchy as tree
from daskclust.core.data.checks import check_number, check_whole
from daskclust.core.data.inputs import NOT_CLUSTERED, cells_of

from ._points import LABEL, dim_of, like_columns, points_of

if TYPE_CHECKING:
    from daskclust.hca.estimator import MahalanobisHCA

COLUMNS = ("id1", "id2", "height", "size")
_PARAMETERS = ("threshold", "rule", "distance", "normalize", "order", "noise_label")
_OF_LINKAGE = ("merge", "linkage_column")
_NAMES = {
    "label": LABEL["long_name"],
    "point_height": "sum of the heights of the merges above the cell",
    "linkage": "merges: ids of the two clusters, height, number of cells",
    "is_apriori": "whether the merge is within an apriori cluster",
}


def cells_in(ds: xr.Dataset, coordinates: Sequence[str] | None) -> tuple[xr.DataArray, Hashable, str]:
    """Return the coordinates (n, d) of all cells, their dimension, and in words the channels left out."""
    if coordinates is not None or "X" not in ds.variables:
        points = points_of(ds, coordinates)
        return xr.DataArray(points.X, {"channel": list(points.axes)}, ("cell", "channel")), dim_of(ds, points), ""
    X = cells_of(ds)
    left_out = f", {NOT_CLUSTERED}={ds.attrs[NOT_CLUSTERED]}" if X.size < ds["X"].size else ""
    return X, X.dims[0], left_out


def apriori_of(ds: xr.Dataset, apriori: Any, dim: Hashable) -> tuple[Any, str]:
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
    if apriori is None or isinstance(apriori, str) or np.ndim(apriori) == 0:
        return apriori, repr(_plain(apriori))
    return apriori.data if isinstance(apriori, xr.DataArray) else apriori, "given"


def cut_of(n_clusters: int | None, height: float | None, min_size: int | float, n: int) -> dict[str, Any]:
    """Return how the hierarchy of n cells is cut, checked before it is there."""
    if n_clusters is not None and height is not None:
        raise ValueError(
            f"got n_clusters={n_clusters!r} and height={height!r}; give one of them"
        )
    tree.least_size(min_size, n)
    if height is None:
        n_clusters = min(2, max(1, n)) if n_clusters is None else check_whole("n_clusters", n_clusters, 1)
        return {"n_clusters": n_clusters, "min_size": _plain(min_size)}
    return {"height": check_number("height", height), "min_size": _plain(min_size)}


def results_of(
    estimator: MahalanobisHCA, cells: xr.DataArray, apriori: Any, cut: dict[str, Any], partition: str
) -> dict[str, Any]:
    """Return labels, heights and merges; of no cells, too."""
    X = cells.data
    if len(X) == 0:
        estimator.fit(np.zeros((1, X.shape[1])))  # checks the parameters
        none = np.zeros(0, np.bool_)
        label, height = (X[:, 0].astype(dtype) for dtype in (np.int64, np.float64))
        return {"label": label, "point_height": height, "linkage": np.zeros((0, 4)), "is_apriori": none}
    labels = [apriori] if np.ndim(apriori) and hasattr(apriori, "dtype") else []
    given = cells.copy(data=like_columns(X, labels)).to_dataset(name="X")
    estimator.fit(given, apriori=apriori, partition=partition)
    return {
        "label": estimator.labels(**cut),
        "point_height": estimator.point_heights_,
        "linkage": estimator.linkage_,
        "is_apriori": np.arange(len(X) - 1) < estimator.n_apriori_merges_,
    }


def with_results(
    ds: xr.Dataset, results: dict[str, Any], estimator: MahalanobisHCA, dim: Hashable, cut: dict[str, Any], words: str
) -> xr.Dataset:
    """Return the Dataset with results as variables; nothing in attributes that a netCDF file could not hold."""
    used = {name: _plain(getattr(estimator, name)) for name in _PARAMETERS}
    attrs: dict[str, dict[str, Any]] = {name: {"long_name": meaning} for name, meaning in _NAMES.items()}
    attrs["label"] |= {"units": "1", **cut}
    attrs["is_apriori"]["units"] = "1"
    attrs["linkage"] |= {**used, "normalize": int(used["normalize"])}
    dims = {"linkage": _OF_LINKAGE, "is_apriori": _OF_LINKAGE[:1]}
    variables = {name: (dims.get(name, (dim,)), values, attrs[name]) for name, values in results.items()}
    told = ", ".join(f"{name}={value}" for name, value in (*used.items(), ("apriori", words), *cut.items()))
    ds = ds.drop_vars([name for name in ("linkage", "is_apriori", _OF_LINKAGE[1]) if name in ds.variables])
    return ds.assign(variables).assign_coords({_OF_LINKAGE[1]: list(COLUMNS)}).assign_attrs(hca=told)


def _plain(value: Any) -> Any:
    """Return a number of NumPy's as one of Python's."""
    return value.item() if isinstance(value, np.generic) else value
