"""Columns of a table in a file of any format that its extension tells."""

from __future__ import annotations

from dataclasses import replace

from daskclust.io.files import HDF5, NEXUS, PARQUET, READABLE, TEXT, is_store, known_suffix
from daskclust.io.schema import Naming, Table
from daskclust.io.tables.binary import read_npy, read_npz
from daskclust.io.tables.hdf5 import read_hdf5
from daskclust.io.tables.parquet_read import read_parquet
from daskclust.io.tables.root import read_root
from daskclust.io.tables.text import read_text
from daskclust.io.tables.zarr import read_zarr


def read_any_table(path: str, part: str | None, naming: Naming, chunks: int | None) -> Table:
    """Return the columns that are chosen; `part` is a tree or a group of the file."""
    suffix = "" if is_store(path) else known_suffix(path, (*READABLE, ".zarr"))
    if suffix in PARQUET:
        return read_parquet(path, naming, chunks)
    if suffix in (*HDF5, NEXUS):
        return read_hdf5(path, part, naming, chunks)
    if suffix in ("", ".zarr"):
        return read_zarr(path, naming, chunks, fill_missing=False)
    if suffix in TEXT:
        return read_text(path, naming)
    if suffix == ".root":
        return read_root(path, part, replace(naming, needs={}))  # lists give event, which is no branch
    return (read_npy if suffix == ".npy" else read_npz)(path, naming)
