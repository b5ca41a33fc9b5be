"""Attributes of data sets in the metadata of files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from daskclust.core.data.fields import FIELDS
from daskclust.core.data.quote import quoted

if TYPE_CHECKING:
    import xarray as xr

KEY = "daskclust"
"""Where files keep the text that `pack` makes."""


def stored_attrs(ds: xr.Dataset, dim: str) -> dict[str, Any]:
    """Return the attributes of a data set that go into a file: not ``source`` and ``columns``, which tell of a file.

    A table of clusters is of no field, whatever the data set it was made of.
    """
    attrs = {str(name): _plain(value) for name, value in ds.attrs.items() if name not in ("source", "columns")}
    if isinstance(box := ds.attrs.get("boxsize"), list | tuple):
        attrs["boxsize"] = [side or 0.0 for side in box]  # 0 is an open axis: formats have no None
    field = FIELDS.get(str(attrs.get("field")))
    if field is None or field.dim != dim:
        attrs.pop("field", None)
    return {name: value for name, value in attrs.items() if value is not None}


def stored_units(ds: xr.Dataset) -> dict[str, str]:
    """Return the units of all variables that have one, by name."""
    return {str(name): str(v.attrs["units"]) for name, v in ds.variables.items() if "units" in v.attrs}


def _plain(value: Any) -> Any:
    """Return a value as Python's own type, or None if it is neither number nor text nor a list of these."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, list | tuple):
        items = [_plain(item) for item in value]
        return None if any(item is None or isinstance(item, list) for item in items) else items
    return value if isinstance(value, bool | int | float | str) else None


def plain_attrs(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes of a file as Python's own types, without those that are no numbers or texts."""
    plain = {str(name): _plain(value) for name, value in attrs.items()}
    return {name: value for name, value in plain.items() if value is not None}


def pack(attrs: Mapping[str, Any], units: Mapping[str, str] | None = None) -> str:
    """Return attributes, and units of columns, as one line of text."""
    return json.dumps({"attrs": dict(attrs), "units": dict(units or {})})


def unpack(text: str | bytes | None, source: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the attributes, and the units of columns, that `pack` packed; none of no text."""
    if not text:
        return {}, {}
    try:
        entry = json.loads(text)
        attrs, units = plain_attrs(entry["attrs"]), entry["units"]
        if all(isinstance(unit, str) for unit in units.values()):
            return attrs, dict(units)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise ValueError(f"{source} has damaged metadata {quoted(text)}; write the file again, or remove its {KEY!r} entry")
