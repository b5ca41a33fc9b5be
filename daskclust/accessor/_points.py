"""What the methods of ``ds.clust`` take from a Dataset: coordinates, and variables with a role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import EllipsisType
from typing import Any

import numpy as np
import xarray as xr

from daskclust.core.data.columns import plain
from daskclust.core.data.inputs import EVENT, LAYER, WEIGHT, Points, split_points
from daskclust.core.device.arrays import is_dask

Name = str | None | EllipsisType

LABEL = {"long_name": "cluster number, noise -1", "units": "1"}
"""Attributes of labels."""


def points_of(ds: xr.Dataset, coordinates: Sequence[str] | None) -> Points:
    """Return coordinates and all other variables along their dimension."""
    if isinstance(coordinates, str):
        raise ValueError(f"coordinates must be a sequence of names, got {coordinates!r}; write ({coordinates!r},)")
    if coordinates is None and "x" not in ds.variables:
        names = ", ".join(map(str, ds.variables)) or "no variables"
        raise ValueError(f'the Dataset has no variable x, but {names}; name the positions: coordinates=("...",)')
    return split_points(ds, (*LAYER, *EVENT, *WEIGHT), coordinates)


def name_of(role: str, name: Name, usual: tuple[str, ...], points: Points) -> str | None:
    """Return the variable for a role, None for none."""
    if isinstance(name, EllipsisType):
        return next((each for each in usual if each in points.columns), None)
    if name is not None and name not in points.columns:
        raise ValueError(
            f"{role} names the variable {name!r}, which is not along the points or is a coordinate; "
            f"there are {sorted(points.columns)}"
        )
    return name


def like_columns(X: Any, columns: Iterable[Any]) -> Any:
    """Return X as a dask array where any column is one."""
    chunks = [column.chunks[0] for column in columns if is_dask(column)]
    if is_dask(X) or not chunks:
        return X
    return xr.Variable(("point", "axis"), X).chunk({"point": chunks[0]}).data


def dim_of(ds: xr.Dataset, points: Points) -> Any:
    """Return the dimension of the points."""
    return ds[points.axes[0]].dims[0]


def fit_points(estimator: Any, X: Any, attributes: Mapping[str, str], **options: Any) -> dict[str, Any]:
    """Return results by the names of variables; those of no points, too, which estimators refuse, in X's class."""
    if len(X):
        estimator.fit(X, **options)
        return {name: plain(name, getattr(estimator, attribute)) for name, attribute in attributes.items()}
    from sklearn.base import clone

    if np.ndim(getattr(estimator, "rhoc", 0)):
        estimator = clone(estimator).set_params(rhoc=0.0)
    real = X.dtype if X.dtype == np.float32 else np.float64
    estimator.fit(np.zeros((1, X.shape[1]), real))  # checks the parameters
    return {name: X[:, 0].astype(getattr(estimator, attribute).dtype) for name, attribute in attributes.items()}


def described(parameters: Mapping[str, Any]) -> str:
    """Return parameters in words."""
    return ", ".join(f"{name}={value}" for name, value in parameters.items())
