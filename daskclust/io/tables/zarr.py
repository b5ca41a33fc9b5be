"""Writing points and tables as zarr stores: a group with one array for each column."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path

import xarray as xr

from daskclust.io.attrs import stored_attrs
from daskclust.io.blocks import as_text, in_memory
from daskclust.io.files import import_library

import_zarr = partial(import_library, "zarr", "zarr stores")

# Rows of a chunk that is written: 4 MB for a column of float32.
_CHUNK_ROWS = 1 << 20


def write_zarr(folder: Path, ds: xr.Dataset, dim: str) -> None:
    """Write variables as arrays of a group into an empty folder, which `xarray.open_zarr` opens too."""
    zarr = import_zarr()
    plain = xr.Dataset(
        {
            str(name): (dim, v.data, {"units": v.attrs["units"]} if "units" in v.attrs else {})
            for name, v in ds.variables.items()
        },
        attrs=stored_attrs(ds, dim),
    )
    # Equal chunks, as the format wants them, each written by one task; empty ones too, or they would seem missing.
    plain = plain.chunk({dim: _CHUNK_ROWS})
    words = [name for name, v in ds.variables.items() if v.dtype.kind in "MO"]  # in memory: xarray looks at text
    plain = plain.assign({name: (dim, as_text(in_memory(ds[name]).values).astype(object)) for name in words})
    # With checksums: a damaged number would not show otherwise.
    checked = {"compressors": [zarr.codecs.ZstdCodec(level=0, checksum=True)]}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Cc]onsolidated metadata.*")
        plain.to_zarr(
            folder,
            mode="w",
            consolidated=False,
            write_empty_chunks=True,
            encoding=dict.fromkeys(plain.variables, checked),
        )
