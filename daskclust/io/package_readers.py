"""Readers that other packages bring along, by the extension of their files."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import xarray as xr

from daskclust.core.data.quote import listed

GROUP = "daskclust.readers"
"""Entry points of this group are readers: of files with the extension that is their name."""


def reader_of_package(path: str) -> EntryPoint | None:
    """Return the reader that an installed package has for the extension of a file, or None."""
    suffix = Path(path).suffix.lower()[1:]
    found = list(entry_points(group=GROUP, name=suffix)) if suffix else []
    if len({entry.value for entry in found}) > 1:
        which = listed(sorted(f"{entry.value} of {entry.dist.name if entry.dist else '?'}" for entry in found))
        raise ValueError(f"several packages have a reader for .{suffix} files: {which}; uninstall all but one")
    return found[0] if found else None


def read_by(entry: EntryPoint, path: str, field: str | None, chunks: int | None) -> xr.Dataset:
    """Return what the reader of another package makes of a file: a Dataset of the field that is asked for."""
    reader: Callable[..., Any] = entry.load()
    ds = reader(path, chunks=None if chunks is None else int(chunks))
    if not isinstance(ds, xr.Dataset):
        raise TypeError(f"{entry.value}, the reader of {path}, must return an xarray.Dataset, got {type(ds).__name__}")
    if field not in (None, ds.attrs.get("field")):
        raise ValueError(
            f"{path} was read by {entry.value} as {ds.attrs.get('field')!r}, and {field!r} is asked for; readers make "
            "their Dataset by daskclust.io.to_dataset(..., field=)"
        )
    return ds
