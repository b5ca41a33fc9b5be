"""What the explorer asks of a system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.app.parameters import Parameter
from daskclust.app.systems._ground import Ground
from daskclust.core.data.inputs import split_points

Values = Mapping[str, Any]


class System:
    """A way to cluster a data set, with parameters whose ranges suit it, and a cache of what does not change.

    Parameters
    ----------
    ds : xarray.Dataset
        Points in memory.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    needs: ClassVar[str]
    """What a data set must have, in words."""
    parameters: tuple[Parameter, ...]
    axes: tuple[str, str]
    """Variables of the first picture."""
    side_axes: tuple[str, str] | None = None
    """Variables of a second picture, if it is of use."""

    def __init__(self, ds: xr.Dataset) -> None:
        self.ds = ds

    @staticmethod
    def suits(ds: xr.Dataset) -> bool:
        """Return whether a data set has what the system needs."""
        raise NotImplementedError

    def run(self, values: Values) -> xr.Dataset:
        """Return the data set with ``label`` and other results as variables along the points."""
        raise NotImplementedError

    def lines(self, values: Values, name: str = "result") -> list[str]:
        """Return the Python lines that make what `run` returns, and call it `name`, from ``ds``."""
        raise NotImplementedError

    def ground(self, values: Values) -> Ground | None:
        """Return what thresholds go through, the same object as long as it need not change; None: nothing is drawn."""
        return None

    def ground_lines(self, values: Values, ground: Ground, name: str) -> list[str]:
        """Return the Python lines that make a result with all that `ground` draws, and call it `name`."""
        return self.lines(values, name)

    def implied(self, values: Values, name: str, value: Any) -> dict[str, Any]:
        """Return the parameters that change when one is changed by the user: itself, and maybe others."""
        return {name: value}

    def is_given(self, name: str) -> bool:
        """Return whether a variable is one of the data, and no result."""
        return name in self.ds.variables

    def expression(self, name: str, source: str) -> str:
        """Return the Python expression for a variable; `source` is what the lines call the data set that has it."""
        return f"{source}[{name!r}].values"

    def table(self, result: xr.Dataset) -> xr.Dataset:
        """Return a row for each cluster."""
        from daskclust.properties import cluster_table

        return cluster_table(result, weight=self.weight)

    def table_lines(self, source: str = "result", name: str = "table") -> list[str]:
        """Return the Python lines that make the table, and call it `name`, of the result `source`."""
        return [f"{name} = properties.cluster_table({source}, weight={self.weight!r})"]

    @property
    def weight(self) -> str | None:
        """Variable that weighs points."""
        return next((name for name in ("energy", "weight") if name in self.ds.variables), None)


def point_columns(ds: xr.Dataset) -> list[str]:
    """Return the names of numeric variables along the points."""
    dim = ds["x"].dims if "x" in ds.variables else next((v.dims for v in ds.variables.values() if v.ndim == 1), ())
    return [str(name) for name, v in ds.variables.items() if v.dims == dim and len(dim) == 1 and v.dtype.kind in "fiub"]


def matrix(ds: xr.Dataset, names: Sequence[str]) -> npt.NDArray[Any]:
    """Return variables in one unit side by side (n, d)."""
    return np.asarray(split_points(ds, (), names).X)


def coordinates(ds: xr.Dataset) -> list[str]:
    """Return what ``ds.clust`` takes as coordinates."""
    return [name for name in ("x", "y", "z") if name in ds.variables and not (name == "z" and "layer" in ds.variables)]


def is_timepix(ds: xr.Dataset) -> bool:
    """Return whether points are pixel hits."""
    return {"x", "y", "toa"} <= set(ds.variables)


def unit_of(ds: xr.Dataset, name: str) -> str:
    """Return the unit of a variable, empty where it has none."""
    unit = str(ds[name].attrs.get("units", ""))
    return "" if unit == "1" else unit
