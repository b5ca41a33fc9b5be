"""Numbers of groups of points, such as events, in any table of clusters: that which all points of a cluster have."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from daskclust.core.data.columns import groups
from daskclust.core.device.arrays import HOST, device_of, to_host
from daskclust.core.merge.labels import NOISE

from . import _lazy
from ._columns import checked
from ._summary import Array, Columns, Groups, Summary, TableSteps, grouped

if TYPE_CHECKING:
    import xarray as xr

_GROUPS = ("event", "layer", "chip", "frame")


def group_columns(
    ds: xr.Dataset, first: xr.DataArray, labels: Any, rows: Any, taken: Collection[str]
) -> dict[str, Any]:
    """Return a column for each group of the points that `first` has, but for those whose names are `taken`."""
    names = [name for name in _GROUPS if name in ds and name not in taken and ds[name].dims == first.dims]
    if not names:
        return {}
    given = checked({name: ds[name].data for name in names}, first.shape, dict.fromkeys(names, groups))
    steps = TableSteps(_summarise, _merge, functools.partial(_finish, names=names))
    found = _lazy.columns({"labels": labels, **given}, steps, rows)
    device = HOST if _lazy.is_lazy(given | {"labels": labels}) else device_of(labels)
    return {name: device.from_host(found[name]) for name in names}


def _summarise(arrays: Mapping[str, Any], start: int) -> Summary:
    """Return the summary of one chunk: the extent of each group's numbers."""
    labels, *numbers = (to_host(array).astype(np.int64, copy=False) for array in arrays.values())
    inside = labels != NOISE
    every = np.array([each[inside] for each in numbers]).reshape(len(numbers), -1)
    same = grouped(labels[inside])
    return Summary(same.ids, _merge(same, {"low": every, "high": every}))


def _merge(same: Groups, many: Columns) -> Columns:
    return {"low": same.reduced(np.minimum, many["low"]), "high": same.reduced(np.maximum, many["high"])}


def _finish(many: Columns, *, names: Sequence[str]) -> dict[str, Array]:
    """Return the columns: the number that all points of a cluster have, -1 where they have several."""
    common = np.where(many["low"] == many["high"], many["low"], NOISE)
    return dict(zip(names, common, strict=True))
