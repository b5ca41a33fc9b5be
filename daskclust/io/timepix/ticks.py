"""Hits whose times are counts of clock ticks: in the order of time, in the units of data sets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.fields import TIMEPIX
from daskclust.core.device.timesort import TICK, order_of_ticks

if TYPE_CHECKING:
    import xarray as xr

COARSE = 16
"""Fine ticks in one tick of the coarse clock of 40 MHz."""

TOT_TICK = COARSE * TICK
"""The tick of the coarse clock, in which time over threshold is counted: 25 ns."""

Integers = npt.NDArray[np.integer[Any]]


def hits_of_ticks(
    columns: Mapping[str, Integers],
    ticks: npt.NDArray[np.int64],
    tot: Integers,
    *,
    source: str | os.PathLike[str],
    attrs: Mapping[str, Any],
    chunks: int | None,
) -> xr.Dataset:
    """Return a Timepix data set of decoded words or rows, sorted by (frame, toa, order of input), chips independent.

    `ticks` are of 1.5625 ns, those of `tot` of 25 ns; `chunks` makes dask arrays. ``attrs["n_unsorted"]`` counts hits
    that came after a later one.
    """
    import xarray as xr

    key = _frames_in_order(columns["frame"], ticks) if "frame" in columns else ticks
    n_unsorted = int(np.count_nonzero(key < np.maximum.accumulate(key)))
    if n_unsorted:
        order = order_of_ticks(key)
        ticks, tot = ticks[order], tot[order]
        columns = {name: values[order] for name, values in columns.items()}
    values: dict[str, npt.NDArray[Any]] = {
        "x": columns["x"].astype(np.uint16),
        "y": columns["y"].astype(np.uint16),
        "toa": ticks * TICK,
        "tot": tot.astype(np.float32) * np.float32(TOT_TICK),
        "chip": columns["chip"].astype(np.uint8),
    }
    values |= {"frame": columns["frame"].astype(np.int64)} if "frame" in columns else {}
    told = {"field": TIMEPIX.name, "source": os.fspath(source), "layout": "chips", **attrs, "n_unsorted": n_unsorted}
    about = TIMEPIX.attrs
    ds = xr.Dataset({name: (TIMEPIX.dim, array, about[name]) for name, array in values.items()}, attrs=told)
    return ds if chunks is None else ds.chunk({TIMEPIX.dim: chunks}, name_prefix="daskclust-io-")


def _frames_in_order(frame: Integers, ticks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return numbers that are in order as (frame, tick) are, and are the same where both are."""
    order = np.lexsort((ticks, frame))
    is_new = (np.diff(frame[order]) != 0) | (np.diff(ticks[order]) != 0)
    number = np.empty(len(order), np.int64)
    number[order] = np.concatenate([[0][: len(order)], np.cumsum(is_new)])
    return number
