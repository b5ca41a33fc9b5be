"""DBSCAN and friends-of-friends."""

from __future__ import annotations

from typing import Any

import xarray as xr

from daskclust.accessor import ClustAccessor
from daskclust.app.parameters import Parameter, rounded
from daskclust.app.systems._base import System, Values, coordinates, is_timepix, matrix, unit_of
from daskclust.app.systems._scale import lengths
from daskclust.core.merge.labels import without_small


class _Points(System):
    """Points of one to three dimensions, maybe in a box."""

    needs = "x, and neither layer nor toa"

    def __init__(self, ds: xr.Dataset) -> None:
        super().__init__(ds)
        names = coordinates(ds)
        self._unit = unit_of(ds, names[0])
        self._lengths = lengths(matrix(ds, names))
        self.axes = (names[0], names[1])
        self.side_axes = (names[0], names[2]) if len(names) > 2 else None

    @staticmethod
    def suits(ds: xr.Dataset) -> bool:
        """Return whether a data set has what the system needs."""
        return {"x", "y"} <= set(ds.variables) and not is_timepix(ds) and "layer" not in ds.variables

    @property
    def _is_box(self) -> bool:
        return self.ds.attrs.get("boxsize") is not None

    def table(self, result: xr.Dataset) -> xr.Dataset:
        """Return a row for each cluster; centres are right in boxes."""
        if not self._is_box:
            return super().table(result)
        from daskclust.properties import halo_table

        return halo_table(result)

    def table_lines(self, source: str = "result", name: str = "table") -> list[str]:
        """Return the Python lines that make the table, and call it `name`, of the result `source`."""
        return [f"{name} = properties.halo_table({source})"] if self._is_box else super().table_lines(source, name)

    @property
    def weight(self) -> str | None:
        """Variable that weighs points in the table."""
        return next((name for name in ("energy", "mass") if name in self.ds.variables), None)


class Dbscan(_Points):
    """DBSCAN."""

    name = "dbscan"
    title = "DBSCAN"

    def __init__(self, ds: xr.Dataset) -> None:
        super().__init__(ds)
        small, usual, _ = self._lengths
        eps = rounded(usual, 2)
        ends = rounded(small / 4), rounded(10 * usual)
        self.parameters = (
            Parameter("eps", "log", eps, *ends, unit=self._unit, doc="largest distance of neighbours"),
            Parameter("min_samples", "whole", 8, 1, 100, doc="neighbours of core points"),
        )

    def run(self, values: Values) -> xr.Dataset:
        """Return the data set with labels and core points."""
        return ClustAccessor(self.ds).dbscan(values["eps"], min_samples=values["min_samples"])

    def lines(self, values: Values, name: str = "result") -> list[str]:
        """Return the Python lines that make the result, and call it `name`, from ``ds``."""
        return [f"{name} = ds.clust.dbscan({values['eps']!r}, min_samples={values['min_samples']!r})"]


class FriendsOfFriends(_Points):
    """Friends-of-friends; fewer or more members need no new links."""

    name = "fof"
    title = "Friends-of-friends"

    def __init__(self, ds: xr.Dataset) -> None:
        super().__init__(ds)
        if self._is_box:
            length = Parameter("b", "linear", 0.2, 0.05, 0.5, doc="linking length by mean separation")
        else:
            small, usual, _ = self._lengths
            ends = rounded(small / 4), rounded(10 * usual)
            length = Parameter(
                "linking_length", "log", rounded(usual, 2), *ends, unit=self._unit, doc="largest distance of friends"
            )
        self.parameters = (length, Parameter("min_members", "whole", 20, 2, 500, doc="members of a group, at least"))
        self._length = length.name
        self._kept: tuple[Any, xr.Dataset] = (None, ds)

    def run(self, values: Values) -> xr.Dataset:
        """Return the data set with labels."""
        length = values[self._length]
        if self._kept[0] != length:
            self._kept = (length, ClustAccessor(self.ds).fof(**{self._length: length}))
        groups, least = self._kept[1], values["min_members"]
        label = groups["label"]
        number = without_small(label.values, least)
        attrs = {**label.attrs, "min_members": least}
        return groups.assign(label=(label.dims, number, attrs)).assign_attrs(
            fof=groups.attrs["fof"].replace("min_members=2,", f"min_members={least},")
        )

    def lines(self, values: Values, name: str = "result") -> list[str]:
        """Return the Python lines that make the result, and call it `name`, from ``ds``."""
        given = ", ".join(f"{each}={values[each]!r}" for each in (self._length, "min_members"))
        return [f"{name} = ds.clust.fof({given})"]
