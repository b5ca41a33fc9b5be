"""Readers and writers: files of one field to an `xarray.Dataset`, and back.

Names load on first use, so importing this package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .hits import read_hits, write_hits
    from .schema import CALORIMETER, FIELDS, Field, Variable, to_dataset

_HOME = {
    "read_hits": "hits",
    "write_hits": "hits",
    "CALORIMETER": "schema",
    "FIELDS": "schema",
    "Field": "schema",
    "Variable": "schema",
    "to_dataset": "schema",
}

__all__ = ["CALORIMETER", "FIELDS", "Field", "Variable", "read_hits", "to_dataset", "write_hits"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
