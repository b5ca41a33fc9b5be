"""DBSCAN, friends-of-friends and HDBSCAN*."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from daskclust.accessor import ClustAccessor
from daskclust.app.parameters import Parameter, rounded
from daskclust.app.systems._base import ExplorerSystem, Ground, Values, coordinates, default_of, is_plain, matrix
from daskclust.app.systems._scale import lengths
from daskclust.plot._condensed import Tree, tree_of
from daskclust.plot._data import unit_of


class _Points(ExplorerSystem):
    """Points of one to three dimensions, maybe in a box."""

    needs = "x, and neither layer nor toa"
    weights = ("energy", "mass")
    suits = staticmethod(is_plain)

    def __init__(self, ds: xr.Dataset) -> None:
        super().__init__(ds)
        names = coordinates(ds)
        self.axes = (names[0], names[1])
        self.side_axes = (names[0], names[2]) if len(names) > 2 else None
        self._is_box = ds.attrs.get("boxsize") is not None

    def _length(self, name: str, doc: str) -> Parameter:
        names = coordinates(self.ds)
        small, usual = lengths(matrix(self.ds, names))
        ends = rounded(small / 4), rounded(10 * usual)
        return Parameter(name, "log", rounded(usual, 2), *ends, unit=unit_of(self.ds[names[0]]), doc=doc)

    @property
    def measured(self) -> tuple[str, dict[str, Any]]:
        # in a box centres may be across its faces
        return ("halo_table", {}) if self._is_box else super().measured


class Dbscan(_Points):
    """DBSCAN."""

    name = "dbscan"
    title = "DBSCAN"

    def __init__(self, ds: xr.Dataset) -> None:
        super().__init__(ds)
        eps = self._length("eps", "largest distance of neighbours")
        least = default_of("dbscan", "min_samples")
        self.parameters = (eps, Parameter("min_samples", "whole", least, 1, 100, doc="neighbours of core points"))


class Fof(_Points):
    """Friends-of-friends; fewer or more members need no new links."""

    name = "fof"
    title = "Friends-of-friends"
    cut = "min_members"

    def __init__(self, ds: xr.Dataset) -> None:
        super().__init__(ds)
        least = default_of("fof", "min_members")
        members = Parameter("min_members", "whole", least, 2, 500, doc="members of a group, at least")
        length = self._length("linking_length", "largest distance of friends")
        self.parameters = length, members
        if self._is_box and all(np.ravel(ds.attrs["boxsize"])):  # None or 0 along an open axis
            by_mean = Parameter("b", "linear", 0.2, 0.05, 0.5, doc="length by mean separation", when=("by", "b"))
            by = Parameter("by", "choice", "b", choices=("b", "linking_length"), doc="which length is given")
            self.parameters = by, by_mean, replace(length, when=("by", "linking_length")), members

    def options(self, values: Values) -> dict[str, Any]:
        """Return the length that is chosen, and all else."""
        others = {"by", "b", "linking_length"} - {values["by"]} if "by" in values else set()
        return {name: value for name, value in values.items() if name not in others}


@dataclass(frozen=True, eq=False)
class Condensed(Ground):
    """The condensed tree of a fit, which the cut goes through."""

    fit: Any
    title: ClassVar[str] = "condensed tree"

    @cached_property
    def tree(self) -> Tree:
        """Clusters and where points leave them, as they are drawn."""
        return tree_of(self.fit)


class Hdbscan(_Points):
    """HDBSCAN*: other clusters of the same spanning tree need no new one."""

    name = "hdbscan"
    _condensed: tuple[Any, Any] = (None, None)
    title = "HDBSCAN*"
    point_seconds = 3e-6

    def __init__(self, ds: xr.Dataset) -> None:
        super().__init__(ds)
        n = max(ds.sizes.values())
        least = min(max(5, n // 200), 500)
        cut = self._length("cluster_selection_epsilon", "cut; none at the lower end")
        most = max(3, min(n // 2, 10 * least))
        self.parameters = (
            Parameter("min_cluster_size", "whole", least, 2, most, doc="points of a cluster, at least"),
            Parameter("min_samples", "whole", 5, 1, 50, doc="neighbours of dense points"),
            Parameter("cluster_selection_method", "choice", "eom", choices=("eom", "leaf"), doc="stable, or smallest"),
            replace(cut, default=cut.low),
        )

    def given(self, parameters: Values) -> dict[str, Any]:
        """Let `min_samples` follow from `min_cluster_size`, as the estimator's default does."""
        size = {"min_samples": parameters["min_cluster_size"]} if "min_cluster_size" in parameters else {}
        return {**size, **parameters}

    def run(self, values: Values) -> xr.Dataset:
        return ClustAccessor(self.ds).assign(self.ground(values).fit)

    def ground(self, values: Values) -> Condensed:
        how = self.options(values)
        if self._condensed[0] != how:
            selection = {name: value for name, value in how.items() if name != "min_samples"}
            self._condensed = how, Condensed(self._fit(how["min_samples"]).rethreshold(**selection))
        found: Condensed = self._condensed[1]
        return found

    def _key(self, values: Values) -> Any:
        return values["min_samples"]

    def options(self, values: Values) -> dict[str, Any]:
        """Return the parameters of the estimator: no cut at the lower end of its slider."""
        cut = values["cluster_selection_epsilon"]
        return {**values, "cluster_selection_epsilon": cut if cut > self.parameters[-1].low else 0.0}

    def _fit(self, min_samples: int) -> Any:
        """Return a fit whose spanning tree is kept for other clusters."""
        from daskclust.hdbscan.estimator import HDBSCAN

        if self._kept[0] != min_samples:
            self._kept = min_samples, HDBSCAN(min_samples=min_samples).fit(self.ds)
        return self._kept[1]
