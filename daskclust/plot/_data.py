"""What pictures draw: whatever a user gives as variables in memory, channels of cells, and dimensions with units."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.accessor._results import lengths_of
from daskclust.accessor._results import results_of as estimator_results
from daskclust.core.data.columns import column, coordinate, label_numbers, native, plain
from daskclust.core.data.datasets import dataset_of
from daskclust.core.data.inputs import check_one_dimension, stack, table_of
from daskclust.core.data.units import hit_column
from daskclust.core.device.arrays import is_dask, to_host
from daskclust.core.merge.labels import NOISE
from daskclust.plot._look import Array, Ids, hv
from daskclust.systems import SYSTEMS

Channel = str | int

TIMES = ("toa", "tot", "tof")
"""Of Timepix hits."""

_TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))  # in ns


# ----------------------------------------------------------------------------------------------------- what users give
def opened(
    data: Any,
    needed: Sequence[str],
    wanted: Sequence[str | None] = (),
    *,
    labels: Any = None,
    dim: str = "point",
    axes: Sequence[str] = ("x", "y", "z"),
) -> xr.Dataset:
    """Return a Dataset, DataFrame, mapping, array (n, d) or fitted estimator as a Dataset.

    Columns of an array are `axes`; rows are along `dim` where nothing else is known. `labels`, an array, the name of a
    column or a fitted estimator, replace the results that `data` has.
    """
    ds = _as_dataset(data, {*needed, *wanted, *[labels] * isinstance(labels, str)}, dim, axes)
    results = {} if labels is None else _results(ds, data, labels)
    if missing := [name for name in needed if name not in results and name not in ds.variables]:
        raise ValueError(_missing(data, ds.variables, missing[0]))
    if len(there := [name for name in needed if name in ds.variables]) > 1:
        check_one_dimension({name: ds[name].dims for name in there}, there)
    if labels is None:
        return ds
    dims, shape = ds[needed[0]].dims, results["label"].shape
    if shape != ds[needed[0]].shape:
        raise ValueError(f"labels have shape {shape}, the {dims[0]}s {ds[needed[0]].shape}; give one for each")
    ds = ds.drop_vars([name for name in RESULTS if name != "label"], errors="ignore")
    return ds.assign({name: (dims, values.data, values.attrs) for name, values in results.items()})


def _as_dataset(data: Any, names: set[Any], dim: str, axes: Sequence[str]) -> xr.Dataset:
    """Return columns as a Dataset: of a table those of the given names."""
    if _is_estimator(data):
        return results_of(data)
    table = table_of(data)
    if table is None:
        X = plain("points", data)
        if X.ndim != 2 or X.dtype.kind not in "fiub":
            raise TypeError(
                "points must be a Dataset, a DataFrame, a mapping, an array of shape (n, d) or a fitted estimator, got "
                f"{type(data).__name__} of shape {X.shape}"
            )
        return xr.Dataset({axes[k] if k < len(axes) else f"x{k}": (dim, X[:, k]) for k in range(X.shape[1])})
    index = getattr(getattr(data, "index", None), "name", None)
    dim = index if isinstance(index, str) else "cluster" if "cluster" in table else dim
    ds: xr.Dataset = dataset_of(data, names, dim)
    return ds.assign_attrs(getattr(data, "attrs", {}))


def _results(ds: xr.Dataset, data: Any, labels: Any) -> dict[str, xr.DataArray]:
    """Return labels by the name "label", and of an estimator all its results."""
    if _is_estimator(labels):
        return {str(name): values for name, values in results_of(labels).items()}
    if not isinstance(labels, str):
        return {"label": xr.DataArray(plain("labels", labels))}
    if labels not in ds.variables:
        raise ValueError(_missing(data, ds.variables, labels))
    return {"label": ds[labels]}


def _missing(data: Any, known: Iterable[Any], name: str) -> str:
    """Return an error message for a variable that does not exist, with the names of those that do."""
    if _is_estimator(data):
        return (
            f"{type(data).__name__} keeps its results ({', '.join(map(str, known))}) and not its points, so that there "
            f"is no {name!r}; give the points, or the table of clusters, and the estimator as labels= where the "
            "picture has clusters"
        )
    table = table_of(data)
    columns = ", ".join(map(str, known if table is None else table)) or "none"
    what = "Dataset has no variable" if isinstance(data, xr.Dataset) else f"{type(data).__name__} has no column"
    remedy = "; cluster the points first, or give labels=" if name == "label" else ""
    return f"the {what} {name!r}, which the picture needs; it has {columns}{remedy}"


RESULTS = ("density", "delta", "nearest_higher", "is_seed", "is_outlier", "is_core", "label")


def results_of(estimator: Any) -> xr.Dataset:
    """Return the results of a fitted estimator, those of CLUE with its thresholds, as ``ds.clust`` does."""
    if not hasattr(estimator, "labels_"):
        raise ValueError(
            f"{estimator!r} has no labels_ to draw; fit it first, as in {type(estimator).__name__}(...).fit(X)"
        )
    names = [name for name in RESULTS if name == "label" or hasattr(estimator, f"{name}_")]
    ds = xr.Dataset({name: ("point", values) for name, values in estimator_results(estimator, names).items()})
    if "delta" in ds:
        lengths = lengths_of(estimator)
        ds["delta"].attrs |= {name: lengths[name] for name in ("delta_c", "delta_o") if name in lengths}
        if np.ndim(estimator.rhoc) == 0 and not isinstance(estimator.rhoc, str):
            ds["density"].attrs["rhoc"] = float(estimator.rhoc)
    return ds


def labels_of(columns: Any, labels: Any) -> Array:
    """Return labels on the host: an array, the name of a column, or those of a fitted estimator."""
    given = results_of(labels)["label"] if _is_estimator(labels) else labels
    return on_host(columns[given] if isinstance(given, str) else given, "labels")


def sizes_of(table: Any) -> Array:
    """Return the number of points of each cluster: a column of the table, or counted among an estimator's labels."""
    if _is_estimator(table):
        labels = labels_of(None, table)
        return np.bincount(labels[labels != NOISE])
    return np.asarray(in_memory(table, ("size",), dim="cluster")["size"].values)


def linkage_of(data: Any) -> Array:
    """Return SciPy's linkage: an array as it is, that of a fitted estimator, or of a Dataset of ``ds.clust.hca``."""
    if isinstance(data, xr.Dataset):
        return on_host(opened(data, ("linkage",))["linkage"])
    if _is_estimator(data) and not hasattr(data, "linkage_"):
        raise ValueError(f"{data!r} has no linkage_ to draw; give a fitted MahalanobisHCA, or a linkage")
    return on_host(getattr(data, "linkage_", data))


def _is_estimator(thing: Any) -> bool:
    return hasattr(thing, "get_params") and hasattr(thing, "fit")


def in_memory(data: Any, needed: Sequence[str], wanted: Sequence[str | None] = (), **how: Any) -> xr.Dataset:
    """Return variables of what `opened` takes as numpy arrays, the `wanted` ones where they exist."""
    ds = opened(data, needed, wanted, **how)
    results = ("label", "is_seed") if how.get("labels") is not None else ()
    names = dict.fromkeys([*needed, *(name for name in (*wanted, *results) if name in ds.variables)])
    loaded = ds[list(names)].reset_coords().compute()
    return loaded.map(lambda array: array.copy(data=on_host(array.data, str(array.name))))


def hits_in_memory(data: Any, needed: Sequence[str], wanted: Sequence[str] = (), **how: Any) -> xr.Dataset:
    """Return what `in_memory` does of hits, with times in ns, which those without a unit are in already."""
    loaded = in_memory(data, needed, wanted, dim="hit", axes=("x", "y", "toa", "chip"), **how)
    return loaded.assign({name: hit_column(loaded[name], name) for name in TIMES if name in loaded})


def on_host(values: Any, name: str = "values") -> Array:
    """Return numbers of any class as a numpy array, computed if they are lazy."""
    values = plain(name, values)
    values = values.compute() if is_dask(values) else values
    kind = {"label": label_numbers, "is_seed": native}.get(name, _drawable)
    return np.asarray(column(name, to_host(values), kind))


def _drawable(name: str, values: Any, first: int = 0) -> Any:
    """Return numbers as they are, False and True as 0 and 1; refuse integers that float64, which is drawn, lacks."""
    values = native(name, values, first)
    coordinate(name, values, first)
    return values.astype(np.float64) if values.dtype == bool else values


# ---------------------------------------------------------------------------------------------------------------- cells
class CellMatrix(NamedTuple):
    """A matrix (cell, channel) as the user gave it, names and unit of its channels, and labels on the host."""

    X: Any
    names: list[str]
    unit: str
    labels: Ids
    source: str

    def columns(self, places: Sequence[int]) -> Array:
        """Return channels (n, k) on the host."""
        return on_host((self.X.data if isinstance(self.X, xr.DataArray) else self.X)[:, list(places)])

    def place(self, channel: Channel) -> int:
        """Return the number of a channel."""
        if isinstance(channel, str):
            if channel not in self.names:
                raise ValueError(f"there is no channel {channel!r}; there are {', '.join(self.names)}")
            return self.names.index(channel)
        if not 0 <= channel < len(self.names):
            raise ValueError(f"channels must be names, or numbers from 0 to {len(self.names) - 1}, got {channel!r}")
        return int(channel)


def cells_of(data: Any, labels: Any) -> CellMatrix:
    """Return cells of a Dataset with ``X``, a table with a column for each channel, or an array; and their labels.

    Labels are an array, the name of a variable or column, or a fitted estimator; None is for ``label``.
    """
    labels = "label" if labels is None else labels
    columns: Any = opened(data, ("X",)) if isinstance(data, xr.Dataset) or _is_estimator(data) else table_of(data)
    if isinstance(labels, str) and (columns is None or labels not in columns):
        raise ValueError(_missing(data, () if columns is None else columns, labels))
    if columns is None:
        X, names = data if hasattr(data, "shape") else np.asarray(data), None
    elif "X" in columns and isinstance(columns, xr.Dataset):
        X = columns["X"]
        names = X[X.dims[1]].values.tolist() if len(X.dims) == 2 and X.dims[1] in X.coords else None
    else:
        others = {"label", "apriori", *[labels] * isinstance(labels, str)}
        names = [name for name in columns if name not in others]
        X = stack(names, [columns[name] for name in names])
    if len(X.shape) != 2:
        raise ValueError(f"X must have shape (cell, channel), got {tuple(X.shape)}")
    names = [f"channel {k}" for k in range(X.shape[1])] if names is None else [str(name) for name in names]
    numbers = labels_of(columns, labels)
    if numbers.shape != X.shape[:1] or numbers.dtype.kind not in "iu":
        raise ValueError(
            f"labels must be integers, one for each of the {X.shape[0]} cells, got shape {numbers.shape} of "
            f"{numbers.dtype}"
        )
    return CellMatrix(X, names, unit_of(X), np.maximum(numbers.astype(np.int64), NOISE), source_of(data, labels))


# ---------------------------------------------------------------------------------------------------- words and numbers
def finite(array: xr.DataArray, name: str) -> tuple[npt.NDArray[np.float64], str]:
    """Return values that are finite, and words on how many are not."""
    values = np.asarray(array.values, dtype=np.float64)
    there = values[np.isfinite(values)]
    return there, without(values.size - there.size, name)


def without(missing: int, name: str) -> str:
    """Return words for a title on how many have no `name`."""
    return f", {missing:,} without {name}" if missing else ""


def source_of(data: Any, labels: Any = None) -> str:
    """Return words for a title on the system and its first parameters, "" where they are not known."""
    estimator = next((each for each in (labels, data) if _is_estimator(each)), None)
    attrs = getattr(data, "attrs", {}) if labels is None or isinstance(labels, str) else {}
    known = [(system, attrs[name].split(", ")[:2]) for name, system in SYSTEMS.items() if name in attrs]
    words = [f"{system.estimator_at.split(':')[1]}({', '.join(first)})" for system, first in known][-1:]
    words = words if estimator is None else [repr(estimator)]
    return "".join(f"; {textwrap.shorten(each, 60, placeholder='...')}" for each in words)


def unit_of(array: Any) -> str:
    """Return the unit that an array's attributes name, "" where it has none."""
    unit = str(getattr(array, "attrs", {}).get("units", ""))
    return "" if unit == "1" else unit


def dimension(array: xr.DataArray, words: str) -> hv.Dimension:
    """Return the dimension for a variable, with its unit in the label."""
    return hv.Dimension(str(array.name), label=words, unit=unit_of(array) or None)


def in_time_units(times: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], str]:
    """Return times in ns in a unit that suits the longest one, and that unit: ns, µs, ms or s."""
    longest = float(np.abs(times).max(initial=0.0))
    size, unit = next(((size, unit) for size, unit in _TIME_UNITS if longest >= 2 * size), (1.0, "ns"))
    return times / size, unit


def counted(array: xr.DataArray) -> str:
    """Return what the values are of: "hits", "clusters", or as the dimension is called."""
    return f"{array.dims[0]}s" if array.ndim else "values"
