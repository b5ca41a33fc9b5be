"""Parquet files: rows read from the row groups that have them, columns written chunk by chunk."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from daskclust.io.attrs import KEY, pack
from daskclust.io.blocks import Block
from daskclust.io.files import reading

if TYPE_CHECKING:
    import xarray as xr

GROUP_ROWS = 1 << 20
"""Rows of a row group of a file that grows: at most 8 MB for a column of float64."""

_SAMPLE = 4096  # values by which a column is encoded
_BATCH = 1 << 16  # rows that pyarrow encodes at once: its 1024 take 6 % more time, with the same bytes


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


def _encoding(dtype: np.dtype[Any], values: Any) -> tuple[str, str]:
    """Return how a column is encoded and compressed, by its first values.

    A dictionary of its values, which is usual, costs more than the rest of writing; of integers of 8 and 16 bits it
    would make files of hits and clusters 3 to 7 % smaller. Of float32 numbers, three of four bytes look random where
    most differ: to compress them takes four times as long as to write them.
    """
    if dtype.kind in "bmMO" or dtype == np.float16:
        return "PLAIN", "SNAPPY"
    if dtype == np.float32 and isinstance(values, np.ndarray):
        sample = values[:: max(1, len(values) // _SAMPLE)]
        differ = len(np.unique(sample)) > len(sample) // 4
        return ("BYTE_STREAM_SPLIT", "NONE") if differ else ("PLAIN", "SNAPPY")
    is_long = dtype.kind in "iu" and dtype.itemsize >= 4
    return "DELTA_BINARY_PACKED" if is_long else "BYTE_STREAM_SPLIT", "SNAPPY"


def arrow_types(ds: xr.Dataset) -> dict[str, Any]:
    """Return the types that columns had in a file, for those that NumPy has none for; else None."""
    return {str(name): v.encoding.get("arrow") for name, v in ds.variables.items()}


def _arrow(values: Any, kind: Any) -> Any:
    """Return a column as Arrow's; numbers and booleans from their bytes, as Arrow's own way imports pandas."""
    import pyarrow as pa

    if not isinstance(values, np.ndarray):
        return values
    is_plain = values.dtype.kind in "iufb" and values.dtype.isnative
    if is_plain and kind == pa.from_numpy_dtype(values.dtype):
        is_bits = values.dtype.kind == "b"
        buffer = np.packbits(values, bitorder="little") if is_bits else np.ascontiguousarray(values)
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(buffer)])
    return pa.array(values, kind, from_pandas=values.dtype.kind in "mMO")


@contextmanager
def _in_words_of_the_system() -> Iterator[None]:
    """Let errors of the system say what it says: Arrow has words of its own before that."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno)) from error


class RowGroups:
    """Writer of blocks of columns to an open Parquet file, one row group each.

    A context manager, which ends the file; after an error, while the stream is still open. The attributes go into the
    file as they are at the end. With `event`, a row has one number of this column, and lists of all others. A file is
    written by its name: through Python's stream each of its many small pages would wait for other threads.
    """

    def __init__(
        self,
        stream: Any,  # a file of Python's that is open and empty, or a stream of Arrow's
        dtypes: Mapping[str, np.dtype[Any]],
        units: Mapping[str, str],
        attrs: Mapping[str, Any] | None = None,
        event: str | None = None,
        arrow: Mapping[str, Any] | None = None,  # types of columns for which NumPy has none
    ) -> None:
        import pyarrow as pa

        types = {
            name: (arrow or {}).get(name) or (pa.string() if dtype.kind == "O" else pa.from_numpy_dtype(dtype))
            for name, dtype in dtypes.items()
        }
        if event is not None:
            types = {name: kind if name == event else pa.list_(kind) for name, kind in types.items()}
        about = {name: {"units": units[name]} for name in types if name in units}
        # numbers that cannot be missing take three quarters of the time
        nullable = {name: dtypes[name].kind in "mMO" or event not in (None, name) for name in types}
        fields = [pa.field(name, kind, nullable[name], metadata=about.get(name)) for name, kind in types.items()]
        self.attrs = dict(attrs or {})
        self._schema = pa.schema(fields)
        self._stream, self._dtypes, self._writer = stream, dtypes, None
        self._ending = ExitStack()
        self._stored = {name: name if event in (None, name) else f"{name}.list.element" for name in dtypes}

    def _open(self, block: Mapping[str, Any]) -> Any:
        """Return the writer, made when the first values are known."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None:
            if not isinstance(self._stream, pa.NativeFile):
                self._stream = self._ending.enter_context(pa.OSFile(os.fsencode(self._stream.name), "ab"))
            how = {self._stored[name]: _encoding(dtype, block.get(name)) for name, dtype in self._dtypes.items()}
            self._writer = pq.ParquetWriter(
                self._stream,
                self._schema,
                use_dictionary=False,
                column_encoding={name: encoding for name, (encoding, _) in how.items()},
                compression={name: codec for name, (_, codec) in how.items()},
                write_page_checksum=True,  # a damaged number would not show otherwise
                write_batch_size=_BATCH,
            )
        return self._writer

    def write(self, block: Mapping[str, Any], most: int | None = None) -> None:
        """Write one block of columns, as groups of at most `most` rows where that is given."""
        import pyarrow as pa

        columns = [_arrow(values, field.type) for values, field in zip(block.values(), self._schema, strict=True)]
        table = pa.Table.from_arrays(columns, schema=self._schema)
        with _in_words_of_the_system():
            self._open(block).write_table(table, row_group_size=max(1, table.num_rows if most is None else most))

    def __enter__(self) -> RowGroups:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        with _in_words_of_the_system(), self._ending:
            writer = self._open({})
            if kind is None and self.attrs:
                writer.add_key_value_metadata({KEY: pack(self.attrs)})
            writer.close()


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


def shown(dtypes: Mapping[str, np.dtype[Any]]) -> str:
    """Return names and types for a message."""
    return ", ".join(f"{name} {dtype}" for name, dtype in dtypes.items())
