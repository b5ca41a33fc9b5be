"""Columns of hits in memory, by name: checked, joined, and parts of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskclust.core.data.columns import column, doubles, for_kernels, groups, integers, native
from daskclust.core.data.datasets import variable_of
from daskclust.core.data.inputs import columns_of
from daskclust.core.data.units import HITS
from daskclust.core.device.arrays import is_dask
from daskclust.events.estimator import check_clock
from daskclust.events.plan import EventPlan

Columns = dict[str, NDArray[Any]]

ROW = "source_row"
"""A column that goes through a stream: the row of a table that a hit comes from."""

_KINDS = dict.fromkeys((ROW, "x", "y"), integers) | dict.fromkeys(("tot", "energy", "tof"), native)
_KINDS |= {"chip": groups, "toa": doubles, "frame": integers}
_OTHERS = "chip", "tot", "energy", "tof", ROW


def count_hits(item: Any) -> int:
    """Return about how many hits an item of a stream has."""
    if isinstance(item, bytes | bytearray | memoryview):
        return len(item) // 8
    if hasattr(item, "sizes"):
        return max(item.sizes.values(), default=0)
    return len(item["x"] if isinstance(item, dict) else item)


def named(item: Any, plan: EventPlan) -> Any:
    """Return the columns of hits in a table or mapping, of those that a stream knows."""
    if plan.clock == "toa":
        columns = columns_of(item, ("x", "y", "toa"), (*_OTHERS, "frame"))
    else:
        columns = columns_of(item, ("x", "y"), ("frame", *_OTHERS, "toa"))
    check_clock(plan, "frame" in columns)
    return columns


def checked(item: Any, plan: EventPlan) -> Columns:
    """Return the columns of hits in the types of kernels, if all times are finite."""
    given = {name: each.compute() if is_dask(each) else each for name, each in named(item, plan).items()}
    columns = {name: for_kernels(name, column(name, values, _KINDS[name])) for name, values in given.items()}
    if "toa" not in columns:
        return columns
    with np.errstate(invalid="ignore", over="ignore"):
        total = columns["toa"].sum()  # finite where all are, mostly: one quick pass
    if not np.isfinite(total):
        bad = np.flatnonzero(~np.isfinite(columns["toa"]))
        if len(bad):
            raise ValueError(f"toa must be finite, got {columns['toa'][bad[0]]} in hit {bad[0]} of an item")
    return columns


def concatenated(parts: list[Columns | None]) -> Columns | None:
    """Return the hits of all parts, with the columns of the first."""
    given = [part for part in parts if part is not None]
    if len(given) < 2:
        return given[0] if given else None
    for part in given[1:]:
        if part.keys() != given[0].keys():
            raise ValueError(
                f"hits with the columns {sorted(part)} follow hits with {sorted(given[0])}; give all the same"
            )
    full = [part for part in given if len(part["x"])] or given[:1]
    if len(full) == 1:
        return full[0]
    return {name: np.concatenate([part[name] for part in full]) for name in given[0]}


def part_of(hits: Columns, places: Any) -> Columns:
    """Return some hits, by a slice, places or a mask."""
    return {name: values[places] for name, values in hits.items()}


def without_places(hits: Columns, places: NDArray[np.int64]) -> Columns:
    """Return the hits at all other places; those before the first of them, which are most, are not looked at."""
    first = int(places[0]) if len(places) else len(hits["x"])
    goes = np.ones(len(hits["x"]) - first, np.bool_)
    goes[places - first] = False
    return {name: np.concatenate([values[:first], values[first:][goes]]) for name, values in hits.items()}


def first_place(labels: NDArray[np.int64], cluster: int) -> int:
    """Return the place of a cluster's first hit, the number of hits where there is none."""
    place = int(np.argmax(labels == cluster))
    return place if labels[place] == cluster else len(labels)


def dataset_of(hits: Columns, detector: Mapping[str, Any]) -> xr.Dataset:
    """Return hits of a detector (its attributes) as a Dataset, whose variables have the units of Timepix hits."""
    variables = {name: variable_of("hit", values, {"units": HITS.get(name, "1")}) for name, values in hits.items()}
    return xr.Dataset(variables, attrs={"field": "timepix", **detector})


def detector_of(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return those attributes of hits that say what their coordinates are."""
    return {name: attrs[name] for name in ("layout", "gap") if name in attrs}
