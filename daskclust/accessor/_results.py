"""What all methods of ``ds.clust`` do: take points from a Dataset, fit an estimator, put its results beside them."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from types import EllipsisType
from typing import Any

import numpy as np
import xarray as xr

from daskclust.core.data.columns import plain
from daskclust.core.data.inputs import EVENT, LAYER, WEIGHT, Points, split_points
from daskclust.core.data.lazy import lazy_along
from daskclust.core.data.units import words
from daskclust.core.device.arrays import is_dask

Name = str | None | EllipsisType
Roles = dict[str, tuple[Name, tuple[str, ...]]]  # of each role the name that the user gives, and the usual ones for ...

NAMES = {
    "label": "cluster number, noise -1",
    "density": "local density",
    "delta": "distance to the nearest higher point",
    "nearest_higher": "index of the nearest higher point, none -1",
    "is_seed": "whether the point is the seed of a cluster",
    "is_core": "whether the point is a core point",
    "point_height": "sum of the heights of the merges above the cell",
    "linkage": "merges: ids of the two clusters, height, number of cells",
    "is_apriori": "whether the merge is within an apriori cluster",
}
"""Variables that methods add, and what they are."""


def points_of(ds: xr.Dataset, coordinates: Sequence[str] | None) -> Points:
    """Return coordinates and all other variables along their dimension."""
    if isinstance(coordinates, str):
        raise ValueError(f"coordinates must be a sequence of names, got {coordinates!r}; write ({coordinates!r},)")
    if coordinates is None and "x" not in ds.variables:
        names = ", ".join(map(str, ds.variables)) or "no variables"
        raise ValueError(f'the Dataset has no variable x, but {names}; name the positions: coordinates=("...",)')
    return split_points(ds, (*LAYER, *EVENT, *WEIGHT), coordinates)


def in_roles(points: Points, roles: Roles) -> tuple[Points, dict[str, str | None]]:
    """Return points whose columns are called as their roles are, and the variables' names: None for none.

    Points are lazy where one of the columns is.
    """
    used: dict[str, str | None] = {}
    for role, (name, usual) in roles.items():
        if isinstance(name, EllipsisType):
            name = next((each for each in usual if each in points.columns), None)
        elif name is not None and name not in points.columns:
            raise ValueError(
                f"{role} names the variable {name!r}, which is not along the points or is a coordinate; "
                f"there are {sorted(points.columns)}"
            )
        used[role] = name
    columns = {role: points.columns[name] for role, name in used.items() if name is not None}
    units = {role: points.units[name] for role, name in used.items() if name in points.units}
    axes = {axis: points.units[axis] for axis in points.axes if axis in points.units}
    X = like_columns(points.X, columns.values())
    return points._replace(X=X, columns=columns, units=axes | units), used


def like_columns(X: Any, columns: Iterable[Any]) -> Any:
    """Return X as a dask array where any column is one."""
    chunks = next((column.chunks[0] for column in columns if is_dask(column)), None)
    return X if chunks is None or is_dask(X) else lazy_along(X, chunks)


def found_by(estimator: Any, points: Points, names: Sequence[str], **options: Any) -> dict[str, Any]:
    """Fit an estimator and return its results by the names of variables; of no points, which it refuses, empty ones."""
    if len(points.X):
        return results_of(estimator.fit(points, **options), names)
    estimator = copy.copy(estimator)
    if hasattr(estimator, "rhoc"):
        estimator.rhoc = 0.0  # it may be one for each point
    one = np.zeros((1, points.X.shape[1]), points.X.dtype)
    estimator.fit(points._replace(X=one, columns={}))  # checks the parameters
    return {name: points.X[:, 0].astype(values.dtype) for name, values in results_of(estimator, names).items()}


def results_of(estimator: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return results of a fitted estimator by the names of variables."""
    return {name: plain(name, getattr(estimator, "labels_" if name == "label" else f"{name}_")) for name in names}


def separations(estimator: Any) -> tuple[float, float]:
    """Return the distances beyond which CLUE's points are seeds, and outliers."""
    delta_c = float(estimator.dc if estimator.delta_c is None else estimator.delta_c)
    return delta_c, delta_c if estimator.delta_o is None else float(estimator.delta_o)


def with_results(
    ds: xr.Dataset,
    method: str,
    found: Mapping[str, tuple[Any, Any]],
    parameters: Mapping[str, Any],
    units: Mapping[str, str | None],
    attrs: Mapping[str, Mapping[str, Any]],
) -> xr.Dataset:
    """Return the Dataset with results, of which there are dimensions and values, and parameters, in words.

    `units` are those of parameters, `attrs` more attributes of results: what a netCDF file can hold, None for none.
    """
    variables = {}
    for name, (dims, values) in found.items():
        about = {"long_name": NAMES[name], "units": "1", **attrs.get(name, {})}
        variables[name] = dims, values, {key: value for key, value in about.items() if value is not None}
    told = ", ".join(f"{name}={_words(value, units.get(name))}" for name, value in parameters.items())
    return ds.assign(variables).assign_attrs({method: told})


def _words(value: Any, unit: str | None = None) -> str:
    """Return a parameter in words: a number, several, or what has a name."""
    if value is None or isinstance(value, str):
        return str(value)
    if callable(value):
        return getattr(value, "__name__", None) or repr(value)
    if np.ndim(value):
        return f"({', '.join(map(_words, value))}){words(unit)}"
    return (f"{value:g}" if isinstance(value, float | np.floating) else str(value)) + words(unit)
