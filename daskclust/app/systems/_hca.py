"""Mahalanobis hierarchical clustering: another cut needs no new hierarchy."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from daskclust.app.parameters import Parameter
from daskclust.app.systems._base import System, Values, coordinates, is_timepix

_MOST_CELLS = 100_000  # beyond, even one hierarchy of k-means clusters is no matter of seconds
_MOST_AT_ONCE = 4_000  # more cells than this are first divided


class Hca(System):
    """Hierarchy of cells, or of other points, and cuts of it."""

    name = "hca"
    title = "Mahalanobis HCA"
    needs = f"X (cell, channel), or x and y of at most {_MOST_CELLS:,} points"

    def __init__(self, ds: xr.Dataset) -> None:
        super().__init__(ds)
        self._columns = as_columns(ds)
        names = [str(name) for name in self._columns.data_vars] if "X" in ds.variables else coordinates(ds)
        self._names = [name for name in names if name != "apriori"]
        n = len(self._columns[self._names[0]])
        sources = ["none", "kmeans"]
        if "apriori" in ds.variables:
            sources.insert(0, "given")
        source = sources[0] if sources[0] == "given" or n <= _MOST_AT_ONCE else "kmeans"
        rules = ("thesis", "mahal", "mahal0", "euclid_mahal", "euclid")
        self.parameters = (
            Parameter("n_clusters", "whole", min(8, n), 1, min(50, n), doc="clusters of the cut"),
            Parameter("min_size", "whole", max(1, n // 200), 1, max(2, n // 10), doc="smaller ones are noise"),
            Parameter("threshold", "log", 0.02 if n > 200 else 0.5, 0.001, 1.0, doc="size of full shapes, as share"),
            Parameter("rule", "choice", "thesis", choices=rules, doc="distances below the threshold"),
            Parameter("distance", "choice", "centroid", choices=("centroid", "full"), doc="from cluster to cluster"),
            Parameter("apriori", "choice", source, choices=tuple(sources), doc="clusters to begin with"),
        )
        self.axes = (self._names[0], self._names[min(1, len(self._names) - 1)])
        self.side_axes = (self._names[2], self._names[3]) if len(self._names) > 3 else None
        self._kept: tuple[Any, Any] = (None, None)

    @staticmethod
    def suits(ds: xr.Dataset) -> bool:
        """Return whether a data set has what the system needs."""
        if "X" in ds.variables and ds["X"].ndim == 2:
            return ds["X"].shape[1] > 1 and ds["X"].shape[0] <= _MOST_CELLS
        plain = {"x", "y"} <= set(ds.variables) and not is_timepix(ds) and "layer" not in ds.variables
        return plain and "boxsize" not in ds.attrs and ds["x"].size <= _MOST_CELLS

    def fit(self, values: Values) -> Any:
        """Return the fitted estimator: its hierarchy is kept for other cuts."""
        from daskclust.hca.estimator import MahalanobisHCA

        how = {name: values[name] for name in ("threshold", "rule", "distance")}
        key = (*how.values(), values["apriori"])
        if self._kept[0] != key:
            X = self.ds["X"].values if "X" in self.ds.variables else self._columns[self._names].to_array().values.T
            apriori: Any = {"given": None, "none": None, "kmeans": "kmeans"}[values["apriori"]]
            apriori = self.ds["apriori"].values if values["apriori"] == "given" else apriori
            self._kept = (key, MahalanobisHCA(**how).fit(np.ascontiguousarray(X), apriori=apriori))
        return self._kept[1]

    def run(self, values: Values) -> xr.Dataset:
        """Return the cells with a variable for each channel, and labels."""
        fit = self.fit(values)
        label = fit.labels(n_clusters=values["n_clusters"], min_size=values["min_size"])
        dims = self._columns[self._names[0]].dims
        return self._columns.assign(label=(dims, label, {"long_name": "cluster number, noise -1", "units": "1"}))

    def lines(self, values: Values) -> list[str]:
        """Return the Python lines that make ``result`` from ``ds``."""
        how = ", ".join(f"{name}={values[name]!r}" for name in ("threshold", "rule", "distance"))
        given = {"given": "ds['apriori'].values", "none": "None", "kmeans": "'kmeans'"}[values["apriori"]]
        cut = ", ".join(f"{name}={values[name]!r}" for name in ("n_clusters", "min_size"))
        if "X" in self.ds.variables:
            X = "ds['X'].values"
            columns = "ds['X'].to_dataset('channel')" if "channel" in self.ds.coords else "None"
        else:
            X, columns = f"ds[{self._names!r}].to_array().values.T.copy()", "ds"
        lines = [f"hca = MahalanobisHCA({how}).fit({X}, apriori={given})", f"labels = hca.labels({cut})"]
        if columns == "None":
            names = f"{{f'channel_{{k}}': (ds['X'].dims[0], column) for k, column in enumerate({X}.T)}}"
            columns = f"xr.Dataset({names})"
        dim = self._columns[self._names[0]].dims[0]
        return [*lines, f"result = {columns}.assign(label=({dim!r}, labels))"]

    def table(self, result: xr.Dataset) -> xr.Dataset:
        """Return a row for each cluster."""
        from daskclust.properties import cluster_table

        return cluster_table(result, weight=None, coords=self._names)

    def table_lines(self) -> list[str]:
        """Return the Python lines that make ``table`` from ``result``."""
        return [f"table = properties.cluster_table(result, weight=None, coords={self._names!r})"]


def as_columns(ds: xr.Dataset) -> xr.Dataset:
    """Return a data set with a variable for each channel of its X, or itself where it has none."""
    if "X" not in ds.variables:
        return ds
    X = ds["X"]
    dim, channel = X.dims
    unit = {"units": X.attrs["units"]} if "units" in X.attrs else {}
    names = [str(name) for name in X[channel].values] if channel in X.coords else _numbered(X.shape[1])
    columns = {name: (dim, X.values[:, k], unit) for k, name in enumerate(names)}
    return xr.Dataset(columns, attrs=X.attrs)


def _numbered(count: int) -> list[str]:
    return [f"channel_{k}" for k in range(count)]
