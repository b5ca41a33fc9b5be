"""Hits of pixel detectors to NeXus: a group NXevent_data that scipp, Mantid and others read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import xarray as xr

from daskclust.core.data.fields import SIDES
from daskclust.core.data.units import hit_column
from daskclust.io.attrs import stored_attrs, stored_units
from daskclust.io.blocks import blocks_of, column_dtypes
from daskclust.io.tables.hdf5 import check_space, create_columns, import_h5py, put_block

_GROUP = "entry/hits"  # as rustpix has it
_MANY = 1 << 16  # pulses of a chunk of the file
_STEP = 25 / 96  # ns, of the clock of triggers


def write_nexus(stream: BinaryIO, ds: xr.Dataset, dim: str) -> None:
    """Write hits as a group NXevent_data, whose pulses are the triggers that ``tof`` counts from: one without it.

    Beside NeXus' columns it has all variables under their names; ``event_time_offset`` is ``toa`` where there is no
    ``tof``, one dataset of two names.
    """
    ds = ds.assign({name: hit_column(ds[name], name) for name in ("toa", "tof") if name in ds})
    dtypes, rows, attrs = column_dtypes(ds), ds.sizes[dim], stored_attrs(ds, dim)
    has_tof, (width, height) = "tof" in dtypes, _sides(attrs)
    check_space(stream, rows * (12 + sum(dtype.itemsize for dtype in dtypes.values())))
    with import_h5py().File(stream.name, "w", track_order=True) as file:
        file.attrs.update(NX_class="NXroot", default="entry")
        entry = file.create_group("entry")
        entry.attrs["NX_class"] = "NXentry"
        group = file.create_group(_GROUP, track_order=True)
        group.attrs.update({**attrs, "NX_class": "NXevent_data", "x_size": width, "y_size": height})
        types = {"event_id": np.dtype(np.int32)} | ({"event_time_offset": np.dtype(np.float64)} if has_tof else {})
        columns = create_columns(group, {**dtypes, **types}, rows)
        if not has_tof:
            group["event_time_offset"] = columns["toa"]
        zero, index = (
            group.create_dataset(name, (0,), dtype, maxshape=(None,), chunks=(_MANY,))
            for name, dtype in (("event_time_zero", np.float64), ("event_index", np.int64))
        )
        for name, unit in {**stored_units(ds), "event_time_offset": "ns", "event_time_zero": "ns"}.items():
            group[name].attrs["units"] = unit
        stop, last = 0, np.nan
        for block in blocks_of(ds, dim):
            start, stop = stop, stop + len(block["toa"])
            number = block["y"].astype(np.int32) * width + block["x"]
            if "chip" in block and attrs.get("layout") != "quad":
                number += block["chip"].astype(np.int32) * (width * height)
            found = {**block, "event_id": number}
            since = np.zeros(stop - start)
            if has_tof:
                is_known = np.isfinite(block["tof"])
                since = np.where(is_known, block["toa"] - block["tof"], 0.0)
                found["event_time_offset"] = np.where(is_known, block["tof"], block["toa"])
            put_block(columns, found, start, stop)
            before = np.concatenate([[last], since[:-1]])[: len(since)]
            begins = np.flatnonzero(~(np.abs(since - before) < _STEP / 2))  # less is rounding
            for dataset, values in ((zero, since[begins]), (index, start + begins)):
                dataset.resize(len(dataset) + len(begins), axis=0)
                dataset[len(dataset) - len(begins) :] = values
            last = since[-1] if len(since) else last


def _sides(attrs: Mapping[str, Any]) -> tuple[int, int]:
    """Return columns and rows of the coordinates of hits."""
    width, height = SIDES.get(str(attrs.get("layout")), SIDES["chips"])
    gap = int(attrs.get("gap", 0)) if attrs.get("layout") == "quad" else 0
    return width + gap, height + gap
