"""Mahalanobis hierarchical clustering: another cut needs no new hierarchy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.app.parameters import Parameter, rounded
from daskclust.app.selection import LINKAGE
from daskclust.app.systems._base import ExplorerSystem, Ground, Values, Workload, coordinates, is_plain
from daskclust.core import hierarchy as tree
from daskclust.core.data.inputs import NOT_CLUSTERED
from daskclust.core.data.quote import argument
from daskclust.io.cytometry.transform import aside

_MOST_CELLS = 100_000  # beyond, even one hierarchy of k-means clusters is no matter of seconds
_MOST_AT_ONCE = 4_000  # more cells than this are first divided
_RULES = ("thesis", "mahal", "mahal0", "euclid_mahal", "euclid")
_HOW = ("threshold", "rule", "distance", "apriori")  # options of a hierarchy, beside channels
_NUMBER, _HEIGHT = "number", "height"
_PAIR_SECONDS = {"centroid": 6e-10, "full": 9e-10}  # of cells that are merged; measured on two cores, 14 channels
_APRIORI = {"given": "apriori", "none": None, "kmeans": "kmeans"}  # what ``ds.clust.hca`` calls the choices


@dataclass(frozen=True, eq=False)
class Hierarchy(Ground):
    """SciPy's linkage of cells: what the dendrogram draws and what is cut."""

    linkage: npt.NDArray[np.float64]
    title: ClassVar[str] = "dendrogram"

    @property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        return {LINKAGE: self.linkage}

    def expressions(self, source: str) -> dict[str, str]:
        return {LINKAGE: f'{source}["linkage"].values'}

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest merge above 0; 0.5 and 1 where there is none."""
        height = self.linkage[:, 2]
        positive = height[height > 0]
        return (float(positive.min()), float(positive.max())) if positive.size else (0.5, 1.0)

    def height(self, n_clusters: int, min_size: int) -> float:
        """Return a height between the merges that a cut into `n_clusters` undoes, and the highest one that it keeps."""
        heights = np.sort(tree.condense(self.linkage, n_clusters + 1, min_size).linkage[:, 2])[::-1]
        if not len(heights):
            return 1.05 * self.ends[1]
        undone, kept = heights[: n_clusters - 1], heights[n_clusters - 1 :]
        above = float(undone[-1]) if len(undone) else 1.05 * self.ends[1]
        below = float(kept[0]) if len(kept) else 0.0
        return (above + below) / 2


class Hca(ExplorerSystem):
    """Hierarchy of cells, or of other points, and cuts of it."""

    name = "hca"
    _hierarchy: Hierarchy
    title = "Mahalanobis HCA"
    needs = f"X (cell, channel), or x and y of at most {_MOST_CELLS:,} points"

    def __init__(self, ds: xr.Dataset) -> None:
        super().__init__(ds)
        self._has_X = "X" in ds.variables
        self.drawn = "cells" if self._has_X else "result"
        self._columns = _channels(ds) if self._has_X else ds
        self._names = [str(name) for name in self._columns.data_vars] if self._has_X else coordinates(ds)
        n = len(self._columns[self._names[0]])
        sources = [*(["given"] if "apriori" in ds.variables else []), "none", "kmeans"]
        source = "kmeans" if sources[0] == "none" and n > _MOST_AT_ONCE else sources[0]
        how: tuple[Parameter, ...] = (
            Parameter(
                "threshold", "log", 0.02 if n > 200 else 0.5, 0.001, 1.0, doc="size of full shapes, share or cells"
            ),
            Parameter("rule", "choice", "thesis", choices=_RULES, doc="distances below the threshold"),
            Parameter("distance", "choice", "centroid", choices=("centroid", "full"), doc="from cluster to cluster"),
            Parameter("apriori", "choice", source, choices=tuple(sources), doc="clusters to begin with"),
        )
        if self._has_X and "channel" in ds["X"].coords:
            default = tuple(name for name in self._names if name not in not_clustered(ds))
            words = "those that are clustered"
            how += (Parameter("channels", "several", default, choices=tuple(self._names), doc=words),)
        number, least = min(8, n), max(1, n // 200)
        hierarchy = self.ground({each.name: each.default for each in how})
        low, high = (rounded(factor * end) for factor, end in zip((0.9, 1.1), hierarchy.ends, strict=True))
        height = rounded(hierarchy.height(number, least))
        self.parameters = (
            Parameter("cut", "choice", _NUMBER, choices=(_NUMBER, _HEIGHT), doc="by number of clusters, or height"),
            Parameter("n_clusters", "whole", number, 1, min(50, n), doc="clusters of the cut", when=("cut", _NUMBER)),
            Parameter("height", "log", height, low, high, doc="no merge in a cluster is higher", when=("cut", _HEIGHT)),
            Parameter("min_size", "whole", least, 1, max(2, n // 10), doc="smaller ones are noise"),
            *how,
        )
        clustered = [name for name in self._names if name not in not_clustered(ds)]
        shown = self._most_telling(clustered, tree.cut(hierarchy.linkage, n_clusters=number, min_size=least))
        self.axes = (shown[0], shown[min(1, len(shown) - 1)])
        self.side_axes = (shown[2], shown[3]) if len(shown) > 3 else None

    def _most_telling(self, names: list[str], label: npt.NDArray[np.int64]) -> list[str]:
        """Return names of channels, those first of whose variance the clusters explain the largest share."""
        inside = label >= 0
        if not self._has_X or not inside.any():
            return names
        size = np.bincount(label[inside])

        def share(name: str) -> float:
            values = self._columns[name].values[inside].astype(np.float64)
            values -= values.mean()
            between = np.bincount(label[inside], values) ** 2 / np.maximum(size, 1)
            return -float(between.sum() / ((values**2).sum() or 1.0))

        return sorted(names, key=share)

    @staticmethod
    def suits(ds: xr.Dataset) -> bool:
        if "X" in ds.variables and ds["X"].ndim == 2:
            n, channels = _cells(ds).shape
            return channels > 1 and n <= _MOST_CELLS
        return is_plain(ds) and "boxsize" not in ds.attrs and ds["x"].size <= _MOST_CELLS

    @classmethod
    def seconds_to_begin(cls, ds: xr.Dataset) -> float:
        return 2e-5 * max(ds.sizes.values())

    def work(self, values: Values) -> Workload:
        n, source = len(self._columns[self._names[0]]), values["apriori"]
        if source == "kmeans":
            return Workload(1e-5 * n, f"{n:,} cells")
        sizes = np.unique(self.ds["apriori"].values, return_counts=True)[1] if source == "given" else np.array([n])
        pairs = float((sizes.astype(np.float64) ** 2).sum())
        return Workload(_PAIR_SECONDS[values["distance"]] * pairs, f"{pairs:.0e} pairs".replace("e+", "e"))

    def _key(self, values: Values) -> Any:
        return *(values[name] for name in _HOW), values.get("channels")

    def _left_out(self, values: Values) -> list[str]:
        """Return the channels that are not clustered."""
        return [name for name in self._names if name not in values.get("channels", self._names)]

    def ground(self, values: Values) -> Hierarchy:
        self._fit(values)
        return self._hierarchy

    def run(self, values: Values) -> xr.Dataset:
        label = self._fit(values).labels(**_cut(values))
        dims = self._columns[self._names[0]].dims
        return self._columns.assign(label=(dims, label, {"long_name": "cluster number, noise -1", "units": "1"}))

    def implied(self, values: Values, name: str, value: Any) -> dict[str, Any]:
        """Return what changes with a parameter: a cut of the other kind begins where the present one is."""
        key, fit = self._kept
        if name != "cut" or value == values["cut"] or key != self._key(values):
            return {name: value}
        if value == _HEIGHT:
            height = self._hierarchy.height(values["n_clusters"], values["min_size"])
            return {name: value, "height": rounded(height, 4)}
        return {name: value, "n_clusters": max(1, int(fit.labels(**_cut(values)).max()) + 1)}

    def options(self, values: Values) -> dict[str, Any]:
        return _how(values) | {"apriori": _APRIORI[values["apriori"]]} | _cut(values)

    def lines(self, values: Values, name: str = "result") -> list[str]:
        (line,) = super().lines(values, name)
        left_out = self._left_out(values)
        if set(left_out) != set(self.ds.attrs.get(NOT_CLUSTERED, ())):
            line = line.replace("= ds.", f"= ds.assign_attrs({NOT_CLUSTERED}={left_out!r}).", 1)
        return [line]

    @property
    def measured(self) -> tuple[str, dict[str, Any]]:
        return "cluster_table", {"weight": None, "coords": self._names}

    def table_lines(self, source: str = "result", name: str = "table") -> list[str]:
        if not self._has_X:
            return super().table_lines(source, name)
        channel = _channel(self.ds)
        names = "" if channel in self.ds.coords else f".assign_coords({argument(channel, repr(self._names))})"
        cells = f'cells = {source}["X"]{names}.to_dataset({channel!r}).assign(label={source}["label"])'
        return [cells, *super().table_lines("cells", name)]

    def is_given(self, name: str) -> bool:
        return name in self._names or super().is_given(name)

    def expression(self, name: str, source: str) -> str:
        if name not in self._names or not self._has_X:
            return super().expression(name, source)
        return f'{source}["X"].isel({argument(_channel(self.ds), self._names.index(name))}).values'

    def _fit(self, values: Values) -> Any:
        """Return the fitted estimator: its hierarchy is kept for other cuts."""
        from daskclust.hca.estimator import MahalanobisHCA

        key = self._key(values)
        if self._kept[0] != key:
            data = self.ds.assign_attrs({NOT_CLUSTERED: self._left_out(values)})
            X: Any = data if self._has_X else np.ascontiguousarray(self._columns[self._names].to_array().values.T)
            apriori: Any = _APRIORI[values["apriori"]]
            apriori = self.ds["apriori"].values if apriori == "apriori" else apriori
            fit = MahalanobisHCA(**_how(values)).fit(X, apriori=apriori)
            self._kept = (key, fit)
            self._hierarchy = Hierarchy(fit.linkage_)
        return self._kept[1]


def not_clustered(ds: xr.Dataset) -> list[str]:
    """Return the channels that are not clustered by default: those that the data name, or time, scatter and widths."""
    if NOT_CLUSTERED in ds.attrs:
        return list(np.atleast_1d(ds.attrs[NOT_CLUSTERED]))
    if "X" not in ds.variables or "channel" not in ds["X"].coords:
        return []
    names = [(str(name),) for name in ds["channel"].values]
    return aside(range(len(names)), names).get(NOT_CLUSTERED, [])


def _how(values: Values) -> dict[str, Any]:
    """Return the parameters of the estimator; a threshold above 1 is a number of cells."""
    threshold = values["threshold"]
    whole = {"threshold": round(threshold)} if threshold > 1 else {}
    return {name: values[name] for name in _HOW if name != "apriori"} | whole


def _cut(values: Values) -> dict[str, Any]:
    by = "n_clusters" if values["cut"] == _NUMBER else "height"
    return {by: values[by], "min_size": values["min_size"]}


def _channel(ds: xr.Dataset) -> str:
    """Return the dimension of X that is not that of cells, as ``ds.clust.hca`` finds it."""
    dims = ds["X"].dims
    return str("channel" if dims[0] == "channel" else dims[1])


def _cells(ds: xr.Dataset) -> xr.DataArray:
    """Return X with cells along the first dimension."""
    return ds["X"].transpose(..., _channel(ds))


def _channels(ds: xr.Dataset) -> xr.Dataset:
    X, channel = _cells(ds), _channel(ds)
    if channel not in X.coords:
        X = X.assign_coords({channel: [f"channel_{k + 1}" for k in range(X.sizes[channel])]})
    names: npt.NDArray[Any] = X[channel].values
    if len(np.unique(names)) < len(names):
        raise ValueError(f"names of channels must differ, got {', '.join(map(str, names))}; rename some of them")
    unit = {"units": X.attrs["units"]} if "units" in X.attrs else {}
    columns = X.reset_coords(drop=True).to_dataset(channel)
    return columns.map(lambda column: column.assign_attrs(unit)).assign_attrs(X.attrs)
