"""Which of our readers a file is for, and all of them as an engine of xarray."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import xarray as xr
from xarray.backends import BackendEntrypoint

from daskclust.io.files import HDF5, is_store
from daskclust.io.particles.snapshot import is_snapshot

_OWN = {".tpx3": "open_tpx3", ".t3pa": "open_t3pa", ".clog": "open_pixet", ".pmf": "open_pixet", ".fcs": "open_fcs"}
_PARTICLES = (".arborx", ".zarr")


def reader_of(path: str | os.PathLike[str], *, of_cells: bool = False) -> str:
    """Return the name of the function of `daskclust.io` that reads a file; tables may be `of_cells`."""
    suffix = Path(path).suffix.lower()
    if suffix in _OWN:
        return _OWN[suffix]
    if of_cells:
        return "read_cells"
    if suffix in _PARTICLES or is_store(os.fspath(path)) or (suffix in HDF5 and is_snapshot(path)):
        return "open_particles"
    return "read_hits"


class Engine(BackendEntrypoint):
    """Open files of all fields with ``xr.open_dataset(path, engine="daskclust")``.

    The extension, or the content of HDF5, chooses the reader of `daskclust.io`, which takes all other options; points
    are in memory. `reader` names it where the extension does not tell, as ``reader="read_cells"`` of a table.
    """

    description = "Hits, particles and cells: .tpx3, .t3pa, .clog, .fcs, snapshots, NeXus, ROOT, Parquet, CSV ..."
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "reader")

    def open_dataset(  # type: ignore[override,unused-ignore]
        self,
        filename_or_obj: str | os.PathLike[str],
        *,
        drop_variables: str | Iterable[str] | None = None,
        reader: str | None = None,
        **options: Any,
    ) -> xr.Dataset:
        """Return the points of a file."""
        from daskclust import io

        ds: xr.Dataset = getattr(io, reader or reader_of(filename_or_obj))(filename_or_obj, **options)
        return ds.drop_vars(drop_variables or (), errors="ignore")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Say whether a path has an extension that no other library has; raw Timepix3 files have an engine."""
        return Path(str(filename_or_obj)).suffix.lower() in {*_OWN, ".arborx"} - {".tpx3"}
