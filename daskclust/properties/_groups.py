"""Numbers of groups of points, such as events, in any table of clusters: that which all points of a cluster have."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from daskclust.core.data.columns import groups
from daskclust.core.device.arrays import HOST, device_of, to_host
from daskclust.core.merge.labels import NOISE

from . import _lazy
from ._columns import Array, Int, checked, grouped, in_rows

_GROUPS = ("event", "layer", "chip")


@dataclass(frozen=True, slots=True)
class Partial:
    """What is known of the clusters that have points in some chunks."""

    ids: Int  # (m,): numbers of the clusters, ascending
    low: Int  # (g, m): extent of each group's numbers
    high: Int
    noise_size: int = 0
    noise_weight: float = 0.0


def group_columns(
    ds: xr.Dataset, first: xr.DataArray, labels: Any, rows: int, taken: Collection[str]
) -> dict[str, Any]:
    """Return a column for each group of the points that `first` has, but for those whose names are `taken`."""
    names = [name for name in _GROUPS if name in ds and name not in taken and ds[name].dims == first.dims]
    if not names:
        return {}
    finish_all = functools.partial(finish, names=names)
    given = checked({name: ds[name].data for name in names}, first.shape, dict.fromkeys(names, groups))
    arrays = {"labels": labels, **given}
    if _lazy.is_lazy(arrays):
        return dict(_lazy.columns(arrays, summarise, merge, finish_all, rows))
    device = device_of(labels)
    found = finish_all(summarise(arrays, 0), rows)
    return found if device is HOST else {name: device.from_host(column) for name, column in found.items()}


def summarise(arrays: Mapping[str, Any], start: int) -> Partial:
    """Return the summary of one chunk."""
    labels, *numbers = (to_host(array).astype(np.int64, copy=False) for array in arrays.values())
    inside = labels != NOISE
    every = np.array([each[inside] for each in numbers]).reshape(len(numbers), -1)
    return _grouped(labels[inside], every, every)


def merge(parts: Sequence[Partial]) -> Partial:
    """Return the summary of all chunks of which some summaries are."""
    ids, low, high = zip(*((part.ids, part.low, part.high) for part in parts), strict=True)
    return _grouped(np.concatenate(ids), np.concatenate(low, axis=1), np.concatenate(high, axis=1))


def _grouped(ids: Int, low: Int, high: Int) -> Partial:
    """Return the summary of several, in which clusters may be more than once."""
    same, shape = grouped(ids), (len(low), -1)
    lowest = np.array([same.reduced(np.minimum, row) for row in low]).reshape(shape)
    return Partial(same.ids, lowest, np.array([same.reduced(np.maximum, row) for row in high]).reshape(shape))


def finish(partial: Partial, rows: int, *, names: Sequence[str]) -> dict[str, Array]:
    """Return the columns: the number that all points of a cluster have, -1 where they have several."""
    common = np.where(partial.low == partial.high, partial.low, NOISE)
    return in_rows(dict(zip(names, common, strict=True)), partial.ids, len(partial.ids), rows, ())
