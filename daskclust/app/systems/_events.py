"""Event building."""

from __future__ import annotations

from typing import Any

import xarray as xr

from daskclust.accessor import ClustAccessor
from daskclust.app.parameters import Parameter
from daskclust.app.systems._base import System, Values, is_timepix
from daskclust.core.merge.labels import without_small


class Events(System):
    """Event building; a smallest number of hits needs no new clusters."""

    name = "events"
    title = "Event building"
    needs = "x, y and toa"

    def __init__(self, ds: xr.Dataset) -> None:
        super().__init__(ds)
        self.axes, self.side_axes = ("x", "y"), ("toa", "x")
        self.parameters = (
            Parameter("dt_max", "log", 200.0, 1.0, 10_000.0, unit="ns", doc="largest difference of times"),
            Parameter("min_hits", "whole", 1, 1, 100, doc="hits of a cluster, at least"),
            Parameter("variant", "choice", "local", choices=("local", "global", "static"), doc="what a cluster is"),
            Parameter("connectivity", "choice", 8, choices=(8, 4), doc="touching pixels"),
        )
        self._kept: tuple[Any, xr.Dataset] = (None, ds)

    @staticmethod
    def suits(ds: xr.Dataset) -> bool:
        """Return whether a data set has what the system needs."""
        return is_timepix(ds)

    def run(self, values: Values) -> xr.Dataset:
        """Return the data set with labels."""
        how = {name: values[name] for name in ("dt_max", "variant", "connectivity")}
        if self._kept[0] != how:
            self._kept = (how, ClustAccessor(self.ds).events(**how))
        found, least = self._kept[1], values["min_hits"]
        label = found["label"]
        number = without_small(label.values, least)
        return found.assign(label=(label.dims, number, label.attrs)).assign_attrs(
            events=found.attrs["events"].replace("min_hits=1", f"min_hits={least}")
        )

    def lines(self, values: Values, name: str = "result") -> list[str]:
        """Return the Python lines that make the result, and call it `name`, from ``ds``."""
        names = ("dt_max", "variant", "connectivity", "min_hits")
        return [f"{name} = ds.clust.events({', '.join(f'{each}={values[each]!r}' for each in names)})"]

    def table(self, result: xr.Dataset) -> xr.Dataset:
        """Return a row for each cluster."""
        from daskclust.properties import cluster_table

        return cluster_table(result)

    def table_lines(self, source: str = "result", name: str = "table") -> list[str]:
        """Return the Python lines that make the table, and call it `name`, of the result `source`."""
        return [f"{name} = properties.cluster_table({source})"]
