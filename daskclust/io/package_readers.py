"""Readers that other packages bring along, by the extension of their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import xarray as xr

from daskclust.core.data.quote import listed
from daskclust.io.rows import OnDemand
from daskclust.io.schema import Needs

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


def read_by(
    entry: EntryPoint, path: str, field: str | None, chunks: int | None, given: Mapping[str, Any], needs: Needs
) -> xr.Dataset:
    """Return a file of a field as the reader of another package makes it; names and units, if `given`, are refused."""
    for option, value in given.items():
        if value is not None:
            raise ValueError(f"{option} cannot be chosen of {path}, which {entry.value} reads; leave it out")
    reader: Callable[..., Any] = entry.load()
    ds = reader(path, chunks=None if chunks is None else int(chunks))
    if not isinstance(ds, xr.Dataset):
        raise TypeError(f"{entry.value}, the reader of {path}, must return an xarray.Dataset, got {type(ds).__name__}")
    if field not in (None, ds.attrs.get("field")):
        raise ValueError(
            f"{path} was read by {entry.value} as {ds.attrs.get('field')!r}, and {field!r} is asked for; readers make "
            "their Dataset by daskclust.io.to_dataset(..., field=)"
        )
    for option, columns in needs.items():
        if missing := [column for column in columns if column not in ds.variables]:
            raise ValueError(f"{option} names {missing[0]!r}, which {path} does not have; it has {listed(ds)}")
    if chunks is None or ds.chunks or isinstance(chunks, OnDemand):
        return ds
    return ds.chunk(int(chunks), name_prefix="daskclust-io-")
