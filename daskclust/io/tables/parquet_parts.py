"""Parquet written where chunks are computed: a file of a folder for each, which is read as one table, or its bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from daskclust.core.data.lazy import chunk_numbers, futures_along, lazy_along, values_or_index, workers_client
from daskclust.core.data.quote import quoted
from daskclust.core.run.graph import only_needed
from daskclust.io.attrs import stored_attrs, stored_units
from daskclust.io.blocks import (
    BLOCK_ROWS,
    ahead,
    computed_once,
    has_common_steps,
    lazy_names,
    native,
    only_dim,
    scalars_of,
)
from daskclust.io.files import PARQUET, numeric_order
from daskclust.io.replacing import replacing, replacing_folder
from daskclust.io.tables.parquet import RowGroups, arrow_types, shown
from daskclust.io.tables.parquet_join import append, joining

if TYPE_CHECKING:
    import xarray as xr

    from daskclust.io.schema import Table


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
    scalars = scalars_of(ds)
    dim = only_dim(ds.drop_vars(scalars))
    with replacing_folder(target, ds.attrs.get("source")) as folder, only_needed():
        written = _encoded(ds, dim, scalars, folder=str(folder))
        written.compute()
        if len(found := list(folder.glob("part-*"))) != written.numblocks[0]:
            raise FileNotFoundError(
                f"workers wrote {written.numblocks[0]} files to {folder.parent}, and {len(found)} are here; give a "
                "folder that all machines have under the same name"
            )


def write_from_workers(stream: BinaryIO, ds: xr.Dataset, dim: str) -> None:
    """Write each chunk of a lazy data set as a row group of an open file; workers make its bytes.

    Those of this machine write them, too.
    """
    from distributed import LocalCluster, as_completed

    ds, sizes = ds.unify_chunks(), ds.chunks[dim]
    wanted = [k for k, size in enumerate(sizes) if size] or [0]
    client = workers_client()
    file = str(stream.name) if isinstance(client.cluster, LocalCluster) else None
    with joining(stream) as parts:
        add = (lambda part: part.tobytes()) if file else partial(append, stream)
        if all(has_common_steps(ds[name].data, 1.25) for name in lazy_names(ds)):  # a table: smaller than its columns
            with only_needed():
                futures = futures_along(_encoded(ds, dim, file=file))
            numbers = {futures[k].key: number for number, k in enumerate(wanted)}
            finished = as_completed([futures[k] for k in wanted], loop=client.loop)
            del futures  # workers may forget what is written
            for future in finished:
                parts[numbers[future.key]] = add(future.result())
        else:
            encoded = _encoded(computed_once(ds), dim, file=file)
            parts |= enumerate(map(add, ahead(encoded.blocks[k] for k in wanted)))


def _encoded(
    ds: xr.Dataset, dim: str, scalars: Sequence[Any] = (), folder: str | None = None, file: str | None = None
) -> Any:
    """Return each chunk as bytes of a Parquet file, lazy, or write it to a folder, or to a file with others.

    `scalars` become attributes.
    """
    import dask.array as da

    rows = ds.drop_vars(scalars)
    rows = rows.unify_chunks() if rows.chunks else rows.chunk({dim: BLOCK_ROWS})
    sizes = rows.chunks.get(dim, (0,))
    columns = {
        str(name): lazy_along(values_or_index(v, rows.indexes.get(name)), sizes) for name, v in rows.variables.items()
    }
    pairs = [part for column in columns.values() for part in (column, "a")]
    pairs += [part for name in scalars for part in (da.asarray(ds[name].data), "")]  # type: ignore[no-untyped-call,unused-ignore]
    return da.blockwise(
        _encode_part,
        "a",
        chunk_numbers(len(sizes)),
        "a",
        *pairs,
        names=(tuple(columns), tuple(map(str, scalars))),
        folder=folder,
        file=file,
        about=(stored_units(rows), stored_attrs(rows, dim), arrow_types(rows)),
        adjust_chunks={"a": (np.nan,) * len(sizes)},
        dtype=np.uint8,
        meta=np.empty(0, np.uint8),
        token="daskclust-io-write",
        align_arrays=False,
    )


def _encode_part(number: tuple[int], *blocks: Any, names: Any, folder: str | None, file: str | None, about: Any) -> Any:
    """Encode one chunk. Numbers that are no columns become attributes."""
    import pyarrow as pa

    columns = {name: native(block) for name, block in zip(names[0], blocks, strict=False)}
    told = {name: block.item() for name, block in zip(names[1], blocks[len(columns) :], strict=True)}
    dtypes = {name: values.dtype for name, values in columns.items()}
    units, attrs, arrow = about
    path = Path(folder or "", f"part-{number[0]:06}.parquet")
    target: Any = replacing(path) if folder else pa.BufferOutputStream()
    with target as stream:
        with RowGroups(stream, dtypes, units, {**attrs, **told}, arrow=arrow) as groups:
            groups.write(columns)
        encoded = b"" if folder else stream.getvalue()
    return np.frombuffer(append(file, encoded) if file else encoded, np.uint8)


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
