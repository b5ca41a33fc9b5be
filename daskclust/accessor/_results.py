"""What all methods of ``ds.clust`` do: take points from a Dataset, fit an estimator, add its results as variables."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Mapping, Sequence
from types import EllipsisType
from typing import Any

import numpy as np
import xarray as xr

from daskclust.clue.lengths import given_lengths, is_one
from daskclust.core.data.checks import axis_periods
from daskclust.core.data.columns import plain
from daskclust.core.data.datasets import variable_of
from daskclust.core.data.inputs import Points, cells_of, has_cells, split_points
from daskclust.core.data.lazy import lazy_along
from daskclust.core.data.units import words
from daskclust.core.device.arrays import is_dask
from daskclust.systems import SYSTEMS

Name = str | None | EllipsisType
Roles = dict[str, tuple[Name, tuple[str, ...]]]  # of each role the name that the user gives, and the usual ones for ...
Attributes = dict[str, dict[str, Any]]  # of variables

RESULTS = {
    "clue": ("label", "density", "delta", "nearest_higher", "is_seed", "is_outlier"),
    "showers": ("label", "density", "delta", "nearest_higher", "is_seed"),
    "events": ("label",),
    "dbscan": ("label", "is_core"),
    "fof": ("label",),
    "hdbscan": ("label", "probability", "outlier_score"),
    "hca": ("label", "point_height", "linkage", "is_apriori"),
}
"""Variables that each method adds."""

LONG_NAMES = {
    "label": "cluster number, noise -1",
    "density": "local density",
    "delta": "distance to the nearest higher point",
    "nearest_higher": "index of the nearest higher point, none -1",
    "is_seed": "whether the point is the seed of a cluster",
    "is_outlier": "whether the point is an outlier, of low density and far from a denser one",
    "is_core": "whether the point is a core point",
    "probability": "density at which the point leaves its cluster, by that at which the cluster ends",
    "outlier_score": "GLOSH outlier score",
    "point_height": "sum of the heights of the merges above the cell",
    "linkage": "merges: ids of the two clusters, height, number of cells",
    "is_apriori": "whether the merge is within an apriori cluster",
}

WITHOUT_EFFECT = ("metric_params", "algorithm", "leaf_size", "p", "n_jobs")  # scikit-learn's, of DBSCAN
_ATTRIBUTES = {"label": "labels_", "point_height": "point_heights_", "probability": "probabilities_"}
_ATTRIBUTES |= {"outlier_score": "outlier_scores_"}  # of estimators; others have the names of variables
_DIMS = {"linkage": ("merge", "linkage_column"), "is_apriori": ("merge",)}  # of results that are not along the points


# --------------------------------------------------------------------------------------------------------------- points
def points_of(ds: xr.Dataset, coordinates: Sequence[str] | None) -> Points:
    """Return coordinates and all other variables along their dimension."""
    if isinstance(coordinates, str):
        raise ValueError(f"coordinates must be a sequence of names, got {coordinates!r}; write ({coordinates!r},)")
    if coordinates is None and "x" not in ds.variables and not has_cells(ds):
        names = ", ".join(map(str, ds.variables)) or "no variables"
        raise ValueError(f'the Dataset has no variable x, but {names}; name the positions: coordinates=("...",)')
    return split_points(ds, (), coordinates)


def dims_of(ds: xr.Dataset, points: Points) -> tuple[Any, ...]:
    """Return the dimension of the points in a Dataset, in a tuple."""
    is_matrix = points.dataset is None and "X" in ds.variables
    dims: tuple[Any, ...] = cells_of(ds).dims[:1] if is_matrix else ds[points.axes[0]].dims
    return dims


def in_roles(points: Points, roles: Roles) -> tuple[Points, dict[str, str | None]]:
    """Return points whose columns are called as their roles are, and the variables' names: None for none.

    Points are lazy where one of the columns is.
    """
    used: dict[str, str | None] = {}
    for role, (name, usual) in roles.items():
        if isinstance(name, EllipsisType):
            name = next((each for each in usual if each in points.columns), None)
            there = {} if name is not None or points.dataset is None else points.dataset.variables
            other = next((each for each in usual if each in there and each not in points.axes and there[each].ndim), "")
            if other:
                raise ValueError(
                    f"{role} would be the variable {other!r}, which is not along the points, but along "
                    f"{', '.join(map(str, there[other].dims))}; name another one, or give {role}=None"
                )
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


# ------------------------------------------------------------------------------------------------------------ estimator
def system_of(estimator: Any) -> str:
    """Return the name of the system whose estimator this is."""
    kinds = [f"{kind.__module__}:{kind.__name__}" for kind in type(estimator).__mro__]
    name = next((name for name, system in SYSTEMS.items() if system.estimator_at in kinds), None)
    if name is None:
        known = ", ".join(system.estimator_at.partition(":")[2] for system in SYSTEMS.values())
        raise TypeError(f"estimator must be one of daskclust's {known}, got {estimator!r}")
    return name


def fit(estimator: Any, points: Points, **options: Any) -> Any:
    """Fit an estimator; where there are no points, on a single one, which checks its parameters and gives dtypes."""
    if len(points.X):
        return estimator.fit(points, **options)
    parameters, estimator = estimator.get_params(), copy.copy(estimator)
    if "rhoc" in parameters:
        estimator.rhoc = 0.0  # it may be one for each point, as lengths may
        vars(estimator).update({name: 1.0 for name, value in given_lengths(estimator).items() if not is_one(value)})
    one = np.ones((1, points.X.shape[1]), points.X.dtype)
    return estimator.fit(points._replace(X=one, columns={})).set_params(**parameters)


def results_of(estimator: Any, names: Iterable[str], cut: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return results of a fitted estimator by the names of variables; labels are those of a cut, if one is given."""
    found: dict[str, Any] = {}
    for name in names:
        if name == "label" and cut is not None:
            values = estimator.labels(**cut)
        elif name == "is_apriori":
            values = np.arange(len(estimator.linkage_)) < estimator.n_apriori_merges_
        else:
            values = getattr(estimator, _ATTRIBUTES.get(name, f"{name}_"))
        found[name] = plain(name, values)
    return found


def lengths_of(estimator: Any) -> dict[str, float]:
    """Return those of CLUE's distances dc, delta_c and delta_o that are the same for all points."""
    return {name: float(value) for name, value in given_lengths(estimator).items() if is_one(value)}


# -------------------------------------------------------------------------------------------------------------- Dataset
def with_results(
    ds: xr.Dataset,
    estimator: Any,
    points: Points,
    dims: tuple[Any, ...],
    used: Mapping[str, Any],
    cut: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Return the Dataset with the results of an estimator that was fitted on its points.

    `used` is what else took part, by name: variables in their roles, apriori clusters. `cut` is that of a hierarchy.
    """
    method, n = system_of(estimator), len(points.X)
    found = results_of(estimator, RESULTS[method], cut if n else cut and {"n_clusters": 1})
    if n == 0:  # it was fitted on one
        found |= {name: points.X[:, 0].astype(found[name].dtype) for name in found if name not in _DIMS}
    elif len(found["label"]) != n:
        raise ValueError(
            f"the estimator was fitted on {len(found['label'])} points, the Dataset has {n}; fit it on this Dataset"
        )
    names = [name for name in inspect.signature(type(estimator)).parameters if name not in WITHOUT_EFFECT]
    parameters = {name: plain_number(getattr(estimator, name)) for name in names}
    unit = points.unit
    if method == "clue":
        parameters, units, attrs = _of_clue(estimator, parameters, points, unit, used)
    elif method == "showers":
        across = "cm" if estimator.use_absolute_projective_scale and unit else "1"
        units, attrs = {}, {"density": {"units": points.units.get("energy")}, "delta": {"units": across}}
    elif method == "events":
        units, attrs = {"dt_max": unit}, {}
    elif method == "hca":
        parameters.pop("n_clusters")
        hierarchy = {"units": None, **parameters, "normalize": int(parameters["normalize"])}
        units, attrs = {}, {"label": dict(cut or {}), "point_height": {"units": None}, "linkage": hierarchy}
        parameters |= used
    elif method == "hdbscan":
        parameters |= {"boxsize": points.box(estimator.boxsize), "coordinates": repr(tuple(points.axes)), **used}
        units, attrs = dict.fromkeys(("cluster_selection_epsilon", "boxsize"), unit), {}
        attrs["label"] = {"min_cluster_size": min(parameters["min_cluster_size"], 2**63 - 1)}
    else:
        parameters, units, attrs = _of_density(estimator, parameters, points, unit, used)
    variables = {}
    for name, values in found.items():
        about = {"long_name": LONG_NAMES[name], "units": "1", **attrs.get(name, {})}
        about = {key: value for key, value in about.items() if value is not None}  # what a netCDF file can hold
        variables[name] = variable_of(_DIMS.get(name, dims), values, about)
    text = ", ".join(f"{name}={_in_words(value, units.get(name))}" for name, value in parameters.items())
    result = ds.assign(variables).assign_attrs({method: text})
    return result.assign_coords(linkage_column=["id1", "id2", "height", "size"]) if "linkage" in found else result


def without_hierarchy(ds: xr.Dataset) -> xr.Dataset:
    """Return a Dataset without an earlier hierarchy."""
    return without_earlier(ds, (*_DIMS, "linkage_column"), _DIMS["linkage"])


def without_earlier(ds: xr.Dataset, names: Sequence[str], dims: Sequence[str]) -> xr.Dataset:
    """Return a Dataset without earlier results that are along dimensions of their own, which nothing else may have."""
    ds = ds.drop_vars([name for name in names if name in ds.variables])
    for dim in dims:
        if dim in ds.dims:
            raise ValueError(f"results have a dimension {dim!r}, and so has the Dataset; ds.rename({dim}=...) first")
    return ds


def _of_clue(
    estimator: Any, parameters: dict[str, Any], points: Points, unit: str | None, used: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str | None], Attributes]:
    """Return CLUE's parameters for the text, their units, and attributes of its results."""
    axes, lengths = tuple(map(str, points.axes)), lengths_of(estimator)
    density = "1" if used["weight"] is None else points.units.get("weight")
    periods = axis_periods(estimator.wrap, points.axes)
    variable = used.get("rhoc", estimator.rhoc if isinstance(estimator.rhoc, str) else None)
    one = float(estimator.rhoc) if variable is None and np.ndim(estimator.rhoc) == 0 else None
    parameters |= {name: _own_in_words(value, used.get(name)) for name, value in given_lengths(estimator).items()}
    parameters |= lengths | {
        "rhoc": one if one is not None else "one for each point" if variable is None else repr(variable),
        "kernel": repr(estimator.kernel) if isinstance(estimator.kernel, str) else estimator.kernel,
        "neighbor_weight": float(estimator.neighbor_weight),
        "wrap": {axis: period for axis, period in zip(axes, periods, strict=True) if period} or None,
        "coordinates": repr(axes),
        **{role: repr(name) for role, name in used.items() if role not in parameters},
    }
    units = dict.fromkeys(("dc", "delta_c", "delta_o", "wrap"), unit)
    attrs: Attributes = {
        "density": {
            "units": density,
            "dc": lengths.pop("dc", None),
            "dc_units": unit,
            "rhoc": one,
            "rhoc_variable": variable,
        },
        "delta": {"units": unit, **lengths, "axes": " ".join(axes)},
    }
    attrs["delta"]["periods"] = list(periods)
    return parameters, units | ({} if one is None else {"rhoc": density}), attrs


def _own_in_words(value: Any, name: str | None) -> Any:
    """Return a distance that is not one number: the variable, the lengths of sections, or that each point has one."""
    if name is not None or isinstance(value, str):
        return repr(name or value)
    if isinstance(value, Mapping):
        return f"({', '.join(f'{section}: {length:g}' for section, length in value.items())})"
    return "one for each point"


def _of_density(
    estimator: Any, parameters: dict[str, Any], points: Points, unit: str | None, used: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str | None], Attributes]:
    """Return the same of DBSCAN and friends-of-friends."""
    length, least = ("eps", "min_samples") if "eps" in parameters else ("linking_length", "min_members")
    metric, units = parameters.pop("metric"), parameters.pop("units")
    if metric == "haversine":
        unit, parameters["metric"] = {"degrees": "degree", "radians": "rad"}[units], metric
    if length == "linking_length":
        b = parameters["b"]
        if b is None:
            parameters.pop("b")
        else:  # of no points there is no separation
            parameters[length] = estimator.linking_length_ if len(points.X) else b
    # an attribute of a file holds whole numbers of 64 bits
    label = {length: float(parameters[length]), f"{length}_units": unit, least: min(parameters[least], 2**63 - 1)}
    parameters |= {"boxsize": points.box(estimator.boxsize), "coordinates": repr(tuple(points.axes))}
    parameters |= {"weight": repr(used["weight"])} if "weight" in used else {}
    parameters |= {"event": repr(used["event"])} if used.get("event") else {}
    return parameters, {length: unit, "boxsize": unit}, {"label": label}


def plain_number(value: Any) -> Any:
    """Return a number of NumPy's as one of Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _in_words(value: Any, unit: str | None = None) -> str:
    """Return a parameter in words: a number, several, or what has a name."""
    if value is None or isinstance(value, str):
        return str(value)
    if callable(value):
        return getattr(value, "__name__", None) or repr(value)
    if np.ndim(value):
        return f"({', '.join(map(_in_words, value))}){words(unit)}"
    return (f"{value:g}" if isinstance(value, float | np.floating) else str(value)) + words(unit)
