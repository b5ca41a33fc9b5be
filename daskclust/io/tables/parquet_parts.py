"""Folders of Parquet files: one for each chunk, written where the chunk is computed, and read as one table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from daskclust.core.data.lazy import lazy_along
from daskclust.core.data.quote import quoted
from daskclust.core.run.graph import only_needed
from daskclust.io.attrs import stored_attrs, stored_units
from daskclust.io.blocks import BLOCK_ROWS, native, only_dim, scalars_of
from daskclust.io.files import PARQUET, numeric_order
from daskclust.io.replacing import replacing, replacing_folder
from daskclust.io.schema import Table
from daskclust.io.tables.parquet import RowGroups, shown


def parts_of(folder: str) -> list[str]:
    """Return the Parquet files in a folder, in the order of their names, where numbers count as numbers."""
    names = [name for name in os.listdir(folder) if not name.startswith((".", "_"))]
    within = [name for name in names if os.path.isdir(os.path.join(folder, name))]
    files = sorted((name for name in names if name.endswith(PARQUET) and name not in within), key=numeric_order)
    if within or not files:
        has = f" with folders in it, such as {quoted(min(within))}" if within else ""
        raise IsADirectoryError(f"{folder} is a directory{has}; give one file, or a folder of .parquet files")
    return [os.path.join(folder, name) for name in files]


def write_parts(target: Path, ds: xr.Dataset) -> None:
    """Write each chunk of a data set to a file of its own; the folder is there completely or not at all."""
    import dask.array as da

    scalars = {str(name): ds[name].data for name in scalars_of(ds)}
    rows = ds.drop_vars(list(scalars))
    dim = only_dim(rows)
    rows = rows.unify_chunks() if rows.chunks else rows.chunk({dim: BLOCK_ROWS})
    sizes = rows.chunks.get(dim, (0,))
    columns = {str(name): lazy_along(v.data, sizes, 0, rows.indexes.get(name)) for name, v in rows.variables.items()}
    with replacing_folder(target, ds.attrs.get("source")) as folder, only_needed():
        written = da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
            _write_part,
            *columns.values(),
            *map(da.asarray, scalars.values()),  # type: ignore[no-untyped-call,unused-ignore]
            names=(tuple(columns), tuple(scalars)),
            folder=str(folder),
            units=stored_units(rows),
            attrs=stored_attrs(rows, dim),
            chunks=((1,) * len(sizes),),
            dtype=np.int64,
            meta=np.empty(0, np.int64),
            token="daskclust-io-write",
        )
        written.compute()
        if len(found := list(folder.glob("part-*"))) != len(sizes):
            raise FileNotFoundError(
                f"workers wrote {len(sizes)} files to {folder.parent}, and {len(found)} are here; give a folder that "
                "all machines have under the same name"
            )


def _write_part(*blocks: Any, names: Any, folder: str, units: Any, attrs: Any, block_info: Any) -> Any:
    """Write one chunk; dask tells which one. Numbers that are no columns become attributes."""
    columns = {name: native(block) for name, block in zip(names[0], blocks, strict=False)}
    told = {name: block.item() for name, block in zip(names[1], blocks[len(columns) :], strict=True)}
    path = Path(folder, f"part-{block_info[0]['chunk-location'][0]:06}.parquet")
    dtypes = {name: values.dtype for name, values in columns.items()}
    with replacing(path) as stream, RowGroups(stream, dtypes, units, {**attrs, **told}) as groups:
        groups.write(columns)
    return np.array([len(blocks[0])])


def joined(tables: Mapping[str, Table]) -> Table:
    """Return tables of files as one."""
    (first_file, first), *others = tables.items()
    types = {name: values.dtype for name, values in first.columns.items()}
    for file, table in others:
        found = {name: values.dtype for name, values in table.columns.items()}
        if found != types:
            raise ValueError(
                f"{file} has the columns {shown(found)}, and {first_file} has {shown(types)}: they are not parts of "
                "one table; read them one by one"
            )
    columns = {name: [table.columns[name] for table in tables.values()] for name in types}
    if all(isinstance(values, np.ndarray) for values in first.columns.values()):
        return replace(first, columns={name: np.concatenate(parts) for name, parts in columns.items()})
    import dask.array as da

    for name, parts in columns.items():  # without the empty ones
        columns[name] = da.concatenate([part for part in parts if len(part)] or parts[:1])  # type: ignore[no-untyped-call,unused-ignore]
    return replace(first, columns=columns)
