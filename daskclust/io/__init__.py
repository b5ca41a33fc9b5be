"""Readers and writers: files of one field to an `xarray.Dataset`, and back.

Names load on first use, so importing this package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._cytometry_gmhc import read_gmhc, write_gmhc
    from ._cytometry_transform import arcsinh_transform, compensate
    from ._cytometry_write import write_cells
    from ._devices import to_device
    from ._parquet import ParquetSink
    from .calibration import Calibration, calibrate, read_calibration
    from .cytometry import open_fcs, read_cells
    from .fields import CALORIMETER, FIELDS, PARTICLES, TIMEPIX, Field, Variable
    from .hits import read_hits, write_hits
    from .katherine import open_katherine
    from .particles import linking_length, open_particles, write_particles
    from .readout import WordReader, follow, receive
    from .schema import to_dataset
    from .t3pa import open_t3pa
    from .timepix import open_tpx3, open_tpx3_triggers, time_of_flight, write_tpx3
    from .timewalk import correct_timewalk

_NAMES = {
    "_cytometry_gmhc": ("read_gmhc", "write_gmhc"),
    "_cytometry_transform": ("arcsinh_transform", "compensate"),
    "_cytometry_write": ("write_cells",),
    "_devices": ("to_device",),
    "_parquet": ("ParquetSink",),
    "calibration": ("Calibration", "calibrate", "read_calibration"),
    "cytometry": ("open_fcs", "read_cells"),
    "fields": ("CALORIMETER", "FIELDS", "PARTICLES", "TIMEPIX", "Field", "Variable"),
    "hits": ("read_hits", "write_hits"),
    "katherine": ("open_katherine",),
    "particles": ("linking_length", "open_particles", "write_particles"),
    "readout": ("WordReader", "follow", "receive"),
    "schema": ("to_dataset",),
    "t3pa": ("open_t3pa",),
    "timepix": ("open_tpx3", "open_tpx3_triggers", "time_of_flight", "write_tpx3"),
    "timewalk": ("correct_timewalk",),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "CALORIMETER",
    "FIELDS",
    "PARTICLES",
    "TIMEPIX",
    "Calibration",
    "Field",
    "ParquetSink",
    "Variable",
    "WordReader",
    "arcsinh_transform",
    "calibrate",
    "compensate",
    "correct_timewalk",
    "follow",
    "linking_length",
    "open_fcs",
    "open_katherine",
    "open_particles",
    "open_t3pa",
    "open_tpx3",
    "open_tpx3_triggers",
    "read_calibration",
    "read_cells",
    "read_gmhc",
    "read_hits",
    "receive",
    "time_of_flight",
    "to_dataset",
    "to_device",
    "write_cells",
    "write_gmhc",
    "write_hits",
    "write_particles",
    "write_tpx3",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
