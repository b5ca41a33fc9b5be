"""Parquet files: rows read from the row groups that have them, columns written chunk by chunk."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.io.attrs import KEY, pack, stored_attrs, stored_units
from daskclust.io.blocks import Block, column_dtypes, native_block, only_dim
from daskclust.io.files import reading
from daskclust.io.replacing import naming, replacing

# Rows of a row group: smaller tables are collected, of larger ones groups of at most 8 MB for a column of float64 made.
_LEAST_ROWS, _GROUP_ROWS = 1 << 18, 1 << 20


def rows_of(path: str, columns: Sequence[str], start: int, stop: int) -> Any:
    """Return rows start to stop of some columns, by their name or stored path, as an Arrow table.

    Only row groups that have these rows are read. A damaged one is told with its number: pages that `RowGroups` writes
    have checksums.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with reading(path, "Parquet"), pq.ParquetFile(path, page_checksum_verification=True) as file:
        sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
        tables = [file.read_row_groups([], columns=list(columns))]
        ends = np.cumsum(sizes, dtype=np.int64)
        begins = ends - np.asarray(sizes, dtype=np.int64)
        groups = np.flatnonzero((begins < stop) & (ends > start))
        for k in groups:
            with reading(path, "Parquet", f"row group {k} (rows {begins[k]} to {ends[k] - 1}, counted from 0)"):
                tables.append(file.read_row_group(k, columns=list(columns)))
    table = pa.concat_tables(tables).slice(start - int(begins[groups[0]]) if groups.size else 0, stop - start)
    if table.num_rows != stop - start:
        raise ValueError(
            f"{path} has {table.num_rows} of the rows {start} to {stop - 1} that its metadata announce; it is "
            "damaged: copy or write the file again"
        )
    return table


def _encoding(dtype: np.dtype[Any]) -> str:
    """Return how a column is encoded.

    A dictionary of its values, which is usual, costs more than the rest of writing; of integers of 8 and 16 bits it
    would make files of hits and clusters 3 to 7 % smaller.
    """
    if dtype.kind in "bMO" or dtype == np.float16:
        return "PLAIN"
    return "DELTA_BINARY_PACKED" if dtype.kind in "iu" and dtype.itemsize >= 4 else "BYTE_STREAM_SPLIT"


def _type_of(dtype: np.dtype[Any]) -> Any:
    """Return Arrow's type: text for objects."""
    import pyarrow as pa

    return pa.string() if dtype.kind == "O" else pa.from_numpy_dtype(dtype)


class RowGroups:
    """Writer of blocks of columns to an open Parquet file, one row group each.

    A context manager, which ends the file; after an error, while the stream is still open. The attributes go into the
    file as they are at the end. With `event`, a row has one number of this column, and lists of all others.
    """

    def __init__(
        self,
        stream: BinaryIO,
        dtypes: Mapping[str, np.dtype[Any]],
        units: Mapping[str, str],
        attrs: Mapping[str, Any] | None = None,
        event: str | None = None,
        arrow: Mapping[str, Any] | None = None,  # types of columns for which NumPy has none
    ) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        types = {name: (arrow or {}).get(name) or _type_of(dtype) for name, dtype in dtypes.items()}
        if event is not None:
            types = {name: kind if name == event else pa.list_(kind) for name, kind in types.items()}
        fields = [
            pa.field(name, kind, metadata={"units": units[name]} if name in units else None)
            for name, kind in types.items()
        ]
        self.attrs = dict(attrs or {})
        self._schema = pa.schema(fields)
        self._has_text = any(dtype.kind in "MO" for dtype in dtypes.values())
        stored = {name: name if event in (None, name) else f"{name}.list.element" for name in dtypes}
        self._writer = pq.ParquetWriter(
            stream,
            self._schema,
            use_dictionary=False,
            column_encoding={stored[name]: _encoding(dtype) for name, dtype in dtypes.items()},
            write_page_checksum=True,  # a damaged number would not show otherwise
        )

    def write(self, block: Mapping[str, Any], most: int | None = None) -> None:
        """Write one block of columns, as groups of at most `most` rows where that is given."""
        import pyarrow as pa

        columns = (
            {
                name: pa.array(v, field.type) if v.dtype.kind in "MO" else v
                for (name, v), field in zip(block.items(), self._schema, strict=True)
            }
            if self._has_text
            else dict(block)
        )
        table = pa.table(columns, schema=self._schema)
        self._writer.write_table(table, row_group_size=max(1, table.num_rows if most is None else most))

    def __enter__(self) -> RowGroups:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None and self.attrs:
            self._writer.add_key_value_metadata({KEY: pack(self.attrs)})
        self._writer.close()


def by_event(blocks: Iterable[Block], event: str) -> Iterator[Mapping[str, Any]]:
    """Yield blocks of one row for each event, with lists of its hits: an event may go on in the next block of hits."""
    import pyarrow as pa

    waiting: dict[str, npt.NDArray[Any]] = {}
    for block in itertools.chain(blocks, [None]):
        hits = waiting if block is None else {n: np.concatenate([waiting.get(n, v[:0]), v]) for n, v in block.items()}
        number = hits[event]
        falls = np.flatnonzero(number[1:] < number[:-1])
        if falls.size:
            before, after = number[falls[0] : falls[0] + 2].tolist()
            raise ValueError(
                f"lists of hits need hits in the order of {event}, got {after} after {before}; sort them first, "
                f"ds.sortby({event!r})"
            )
        starts = np.flatnonzero(np.r_[number.size > 0, number[1:] != number[:-1]])
        done = number.size if block is None else int(starts[-1:].sum())
        offsets = np.append(starts[starts < done], done).astype(np.int32)
        waiting = {name: values[done:] for name, values in hits.items()}
        if done or block is None:
            yield {
                name: values[offsets[:-1]] if name == event else pa.ListArray.from_arrays(offsets, values[:done])
                for name, values in hits.items()
            }


class ParquetSink:
    """A Parquet file that grows table by table, and is there completely or not at all.

    Parameters
    ----------
    path : str or path
        The file. One that exists is replaced at the end.

    Attributes
    ----------
    attrs : dict of str to object
        Attributes of the data set, those of the first table to begin with; what they are at the end is written.
    n_rows : int
        Rows that were given so far.

    Notes
    -----
    It is a context manager: at the end of the ``with`` block the file gets its name; after an error nothing is left.
    Memory holds one row group, of a million rows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from daskclust.io import ParquetSink, read_hits
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "hits.parquet")
    >>> with ParquetSink(file) as sink:
    ...     for k in range(3):
    ...         sink.write(xr.Dataset({"x": ("hit", [0.5 + k]), "y": ("hit", [2.0])}))
    >>> read_hits(file)["x"].values
    array([0.5, 1.5, 2.5])
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.attrs: dict[str, Any] = {}
        self.n_rows = 0
        self._dim = ""
        self._dtypes: dict[str, np.dtype[Any]] = {}
        self._waiting: list[Block] = []
        self._n_waiting = 0
        self._groups: RowGroups | None = None
        self._stack = ExitStack()
        self._stream: BinaryIO | None = None

    def __enter__(self) -> ParquetSink:
        self._stream = self._stack.enter_context(replacing(self.path))
        return self

    def write(self, ds: xr.Dataset) -> None:
        """Add the rows of a table.

        Parameters
        ----------
        ds : xarray.Dataset
            Variables of numbers or booleans along one dimension, in memory; as many, with the same names and types,
            as in the first table. They are written at once, or copied.

        Raises
        ------
        ValueError
            For variables of other shapes, names or types, and outside of a ``with`` block.
        """
        if self._stream is None:
            raise ValueError(f"the sink of {self.path} is not open; use it as: with ParquetSink(path) as sink: ...")
        dtypes = column_dtypes(ds)
        if self._groups is None:
            self._dim, self._dtypes = only_dim(ds), dtypes
            types = {str(name): v.encoding.get("arrow") for name, v in ds.variables.items()}
            groups = RowGroups(self._stream, dtypes, stored_units(ds), arrow=types)
            self._groups = self._stack.enter_context(groups)
            self.attrs = {**ds.attrs, **self.attrs}
        elif dtypes != self._dtypes or only_dim(ds) != self._dim:
            raise ValueError(
                f"a table of {shown(dtypes)} cannot follow one of {shown(self._dtypes)} in {self.path}; "
                "give all tables the same variables and types"
            )
        rows, block = ds.sizes[self._dim], native_block(ds)
        self.n_rows += rows
        if rows >= _LEAST_ROWS:
            self._flush(self._groups)
            self._groups.write(block, most=_GROUP_ROWS)
            return
        # A stream may fill the same arrays again.
        self._waiting.append({name: np.array(values) for name, values in block.items()})
        self._n_waiting += rows
        if self._n_waiting >= _GROUP_ROWS:
            self._flush(self._groups)

    def _flush(self, groups: RowGroups) -> None:
        """Write what was collected as row groups."""
        if self._waiting:
            columns = {name: np.concatenate([block[name] for block in self._waiting]) for name in self._dtypes}
            self._waiting.clear()
            self._n_waiting = 0
            groups.write(columns, most=_GROUP_ROWS)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream = None
        if kind is not None:
            self._stack.__exit__(kind, error, trace)
            return
        with naming(self.path), self._stack:  # ends the row groups, then the file
            if self._groups is None:
                raise ValueError(f"no table was written to {self.path}; write one, even if it has no rows")
            self._flush(self._groups)
            self._groups.attrs = stored_attrs(xr.Dataset(attrs=self.attrs), self._dim)


def shown(dtypes: Mapping[str, np.dtype[Any]]) -> str:
    """Return names and types for a message."""
    return ", ".join(f"{name} {dtype}" for name, dtype in dtypes.items())
