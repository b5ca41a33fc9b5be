"""Columns of Parquet files: read at once or row group by row group on demand, written chunk by chunk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ._binary import reading
from .schema import Naming, Variable, conform, target_dtype


def read_parquet(path: str, naming: Naming, chunks: int | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Read the columns of a Parquet file.

    Parameters
    ----------
    path : str
        The file.
    naming : Naming
        Which columns become which variables.
    chunks : int or None
        Rows per chunk of lazy columns; None reads at once.

    Returns
    -------
    columns : dict of str to numpy.ndarray or dask.array.Array, each of shape (n,)
        By variable.
    units : dict of str to str
        Units that the file gives, by variable.

    Raises
    ------
    ImportError
        Without pyarrow.
    ValueError
        For damaged files, columns that are no numbers, and missing values in columns of integers.
    """
    pq = _pyarrow_parquet()
    with reading(path, "Parquet"), pq.ParquetFile(path) as file:
        schema, rows = file.schema_arrow, file.metadata.num_rows
    chosen = naming.choose(schema.names, named=True)
    columns: dict[str, Any] = {}
    for name, ours in chosen.items():
        dtype = _numpy_dtype(schema.field(name).type, name, path)
        variable = naming.field.find(ours)
        if chunks is None:
            columns[ours] = _read_rows(path, name, variable, 0, rows)
        else:
            columns[ours] = _lazy_column(path, name, variable, target_dtype(dtype, variable), rows, chunks)
    metadata = {ours: (schema.field(name).metadata or {}).get(b"units") for name, ours in chosen.items()}
    return columns, {name: unit.decode() for name, unit in metadata.items() if unit is not None}


def _pyarrow_parquet() -> ModuleType:
    """Import pyarrow.parquet, or say what to install."""
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install pyarrow") from error
    return pq  # type: ignore[no-any-return,unused-ignore]


def _numpy_dtype(arrow_type: Any, name: str, path: str) -> np.dtype[Any]:
    """Return the NumPy type of an Arrow type of numbers or booleans."""
    import pyarrow.types as kinds

    if kinds.is_integer(arrow_type) or kinds.is_floating(arrow_type) or kinds.is_boolean(arrow_type):
        dtype: np.dtype[Any] = np.dtype(arrow_type.to_pandas_dtype())
        return dtype
    raise ValueError(
        f"column {name!r} of {path} has type {arrow_type}, which is no number; "
        f"leave it out with columns={{{name!r}: None}}"
    )


def _lazy_column(path: str, name: str, variable: Variable | None, dtype: np.dtype[Any], rows: int, chunks: int) -> Any:
    """Return one column as a dask array whose blocks read the row groups that they need."""
    import dask.array as da
    from dask.base import tokenize

    sizes = (chunks,) * (rows // chunks) + ((rows % chunks,) if rows % chunks or not rows else ())
    where = os.path.abspath(path)
    state = os.stat(where)
    # The time of writing is in the name, so that a file written anew is not taken from a cluster's memory.
    token = tokenize(where, state.st_mtime_ns, state.st_size, name, variable, sizes)
    return da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
        _read_block,
        path=where,
        column=name,
        variable=variable,
        chunks=(sizes,),
        dtype=dtype,
        meta=np.empty(0, dtype=dtype),
        name=f"daskclust-io-read-{token}",
    )


def _read_block(
    *, path: str, column: str, variable: Variable | None, block_info: Mapping[Any, Any] | None = None
) -> npt.NDArray[Any]:
    """Read the rows of one block; dask tells which ones."""
    if block_info is None:
        raise ValueError("block_info is missing: this function is for dask.array.map_blocks")
    start, stop = block_info[None]["array-location"][0]
    return _read_rows(path, column, variable, start, stop)


def _read_rows(path: str, column: str, variable: Variable | None, start: int, stop: int) -> npt.NDArray[Any]:
    """Read rows start to stop of one column, from the row groups that have them."""
    pq = _pyarrow_parquet()
    with reading(path, "Parquet"), pq.ParquetFile(path) as file:
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        ends = np.cumsum(sizes, dtype=np.int64)
        begins = ends - np.asarray(sizes, dtype=np.int64)
        groups = np.flatnonzero((begins < stop) & (ends > start))
        table = file.read_row_groups(groups.tolist(), columns=[column])
        offset = start - int(begins[groups[0]]) if groups.size else 0
        values = table.column(0).slice(offset, stop - start)
    if values.null_count and not _is_floating(values.type):
        row = start + int(np.argmax(values.is_null().to_numpy()))
        raise ValueError(
            f"column {column!r} of {path} has no value in row {row} (counted from 0), and integers and booleans have "
            f"no NaN; fill it, or leave the column out with columns={{{column!r}: None}}"
        )
    array: npt.NDArray[Any] = values.to_numpy()
    return array if variable is None else conform(array, variable, first_row=start)


def _is_floating(arrow_type: Any) -> bool:
    """Return whether an Arrow type has NaN, which a missing value becomes."""
    import pyarrow.types as kinds

    return bool(kinds.is_floating(arrow_type))


def write_parquet(
    stream: BinaryIO,
    blocks: Iterable[Mapping[str, npt.NDArray[Any]]],
    dtypes: Mapping[str, np.dtype[Any]],
    units: Mapping[str, str],
) -> None:
    """Write blocks of columns, one row group each.

    Parameters
    ----------
    stream : binary file
        Where to write.
    blocks : iterable of mapping of str to numpy.ndarray
        Taken one at a time.
    dtypes : mapping of str to numpy.dtype
        Types of the columns.
    units : mapping of str to str
        Kept in the metadata of the columns.
    """
    pq = _pyarrow_parquet()
    import pyarrow as pa

    fields = [
        pa.field(name, pa.from_numpy_dtype(dtype), metadata={"units": units[name]} if name in units else None)
        for name, dtype in dtypes.items()
    ]
    schema = pa.schema(fields)
    with pq.ParquetWriter(stream, schema) as writer:
        for block in blocks:
            table = pa.table([pa.array(block[name]) for name in dtypes], schema=schema)
            writer.write_table(table, row_group_size=max(1, table.num_rows))
