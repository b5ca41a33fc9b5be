"""Columns of Parquet files, read at once or on demand: a row for each hit, or one for each event with lists of hits."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.data.fields import VECTORS
from daskclust.core.data.limits import check_columns, check_memory
from daskclust.core.data.quote import quoted, short
from daskclust.io.attrs import KEY, unpack
from daskclust.io.files import reads
from daskclust.io.rows import About, OnDemand, Stored, by_blocks, chunk_sizes
from daskclust.io.schema import Naming, Table, short_names
from daskclust.io.tables.parquet import rows_of
from daskclust.io.tables.parquet_parts import joined, parts_of

Counts = npt.NDArray[np.int64]

_INDEX = re.compile(r"__null_dask_index__|__index_level_\d+__")  # a pandas index without a name: where rows were
_AT_ONCE = 1 << 26  # bytes of columns that are read together


class Leaf(NamedTuple):
    """Where the numbers of one column are in a file: in a column of its own, or in a field of one with records."""

    name: str
    column: str
    field: str | None
    stored: str  # the path that Parquet has it under
    is_list: bool  # whether a row has a list of numbers
    told: str  # its type, for messages
    kind: Any  # Arrow's type of its values
    dtype: np.dtype[Any] | None  # in which it is read; None where it holds no numbers
    units: str | None
    without: str = ""  # how it is left out, for messages
    axis: int | None = None  # the component that it is, where a row has a vector
    width: int = 0  # components of the vector


def read_parquet(path: str, naming: Naming, chunks: int | None) -> Table:
    """Read the columns of a Parquet file, at once, or lazily in chunks of hits.

    Where columns hold lists, these are joined, values of rows are repeated for each hit, and ``event`` is the row,
    unless a column is named so. Lists of a column such as ``position`` are its components, ``position_x`` ..., where
    there are two or three. Fields of records go by their own name, as ``x`` of ``hits.x``, where no other column
    has it, and by both names otherwise. Files in a folder are one table.
    """
    if not os.path.isdir(path):
        return _read_file(path, naming, chunks)
    files = parts_of(path)
    chunks = About(chunks) if isinstance(chunks, OnDemand) else chunks  # Dask joins parts
    return joined({file: _read_file(file, replace(naming, source=file), chunks, is_part=True) for file in files})


def _head(path: str, *, records: bool, lists: bool) -> tuple[list[Leaf], Any, dict[str, Any]]:
    """Return the columns of a file, its metadata, and the attributes of its data set."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        about = file.metadata
        check_columns(about.num_columns, path)
        stored = [file.schema.column(k).path for k in range(about.num_columns)]
        leaves = _leaves(file.schema_arrow, stored, records=records, lists=lists)
        vectors = [leaf for leaf in leaves if leaf.is_list and leaf.column.lower() in VECTORS and leaf.field is None]
        for leaf in vectors if about.num_rows else ():
            first = next(file.iter_batches(batch_size=1, columns=[leaf.stored])).column(0)[0].as_py() or ()
            if len(first) in (2, 3):
                place, same = leaves.index(leaf), leaf._replace(is_list=False, width=len(first))
                axes = enumerate("xyz"[: len(first)])
                leaves[place : place + 1] = [same._replace(name=f"{leaf.name}_{name}", axis=k) for k, name in axes]
    return leaves, about, unpack((about.metadata or {}).get(KEY.encode()), path)[0]


@reads("Parquet")
def _read_file(path: str, naming: Naming, chunks: int | None, *, is_part: bool = False) -> Table:
    leaves, about, attrs = _head(path, records=not naming.is_flat, lists=not naming.is_flat)
    rows, groups = about.num_rows, [about.row_group(k).num_rows for k in range(about.num_row_groups)]
    found = [leaf.name for leaf in leaves]
    naming = naming.settle(found, attrs.get("field"))
    names = naming.without_lists(naming.choose(found, named=True), [leaf.name for leaf in leaves if leaf.is_list])
    chosen = {}
    for leaf in leaves:
        if leaf.name in names:
            is_float = naming.is_float(leaf.name) and leaf.dtype is not None and leaf.dtype.kind != "f"
            dtype = np.dtype(np.float64) if is_float else leaf.dtype
            chosen[names[leaf.name]] = leaf._replace(dtype=dtype, without=naming.without(leaf.name))
    for leaf in chosen.values():
        if leaf.dtype is None:
            raise ValueError(
                f"column {quoted(leaf.name)} of {path} has type {short(leaf.told)}, which is no "
                f"{'list of numbers' if leaf.is_list else 'number'}; {leaf.without}"
            )
    here = os.path.abspath(path)
    lists = [leaf for leaf in chosen.values() if leaf.is_list]
    if lists and is_part and "event" not in chosen:
        raise ValueError(f"{path} has lists of hits and no column event, and is one of several; read them one by one")
    if lists:
        columns = _joined(here, chosen, lists[0], rows, chunks)
    elif chunks is None:
        check_memory(rows * sum(leaf.dtype.itemsize for leaf in chosen.values() if leaf.dtype is not None), path)
        columns = _read_flat(here, chosen, rows)
    else:
        sizes = chunk_sizes(chunks, [(size, size) for size in groups])
        columns = {ours: _stored(here, leaf, rows).array(sizes) for ours, leaf in chosen.items()}
    told = {ours: leaf.units for ours, leaf in chosen.items() if leaf.units is not None}
    return Table(columns, naming, told, attrs)


def own_columns(path: str, *, joins: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return all columns of a file as they are, and its attributes: text, times and missing values as objects, too.

    Columns are `Stored`, or arrays of hits where a row has lists of these, and `joins`; otherwise lists are objects.
    """
    leaves, about, attrs = _own_leaves(path, joins=joins)
    here, rows, lists = os.path.abspath(path), about.num_rows, [leaf for leaf in leaves if leaf.is_list]
    if lists:
        chosen = {leaf.name: leaf._replace(dtype=None) for leaf in leaves}
        joined_lists = _joined(here, chosen, lists[0], rows, None)
        return {name: joined_lists[name] for name in chosen}, {}
    return {leaf.name: _stored(here, leaf, rows) for leaf in leaves}, attrs


def text_in(path: str) -> list[str]:
    """Return the columns of a file that have no numbers, and those of whole numbers of which some are missing."""
    return [leaf.name for leaf in _own_leaves(path)[0] if np.dtype(leaf.dtype).kind not in "fiub"]


def _own_leaves(path: str, *, joins: bool = True) -> tuple[list[Leaf], Any, dict[str, Any]]:
    """Return the columns of a file in the types that hold all their values, its metadata and its attributes."""
    leaves, about, attrs = _head(path, records=True, lists=joins)
    groups = [about.row_group(k) for k in range(about.num_row_groups)]
    parts = [group.column(k) for group in groups for k in range(group.num_columns)]
    missing = {part.path_in_schema for part in parts if part.statistics is not None and part.statistics.null_count}
    dtypes = [_own_dtype(leaf.kind, missing=not leaf.is_list and leaf.stored in missing) for leaf in leaves]
    return [leaf._replace(dtype=dtype) for leaf, dtype in zip(leaves, dtypes, strict=True)], about, attrs


def _own_dtype(kind: Any, *, missing: bool) -> np.dtype[Any]:
    """Return NumPy's type for one of Arrow's: object where there is none for it, or none for its missing values."""
    import pyarrow.types as kinds

    if kinds.is_floating(kind) or ((kinds.is_integer(kind) or kinds.is_boolean(kind)) and not missing):
        dtype: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
        return dtype
    if kinds.is_timestamp(kind) or kinds.is_date32(kind):
        return np.dtype(f"M8[{'D' if kinds.is_date32(kind) else kind.unit}]")
    if kinds.is_duration(kind):
        return np.dtype(f"m8[{kind.unit}]")
    return np.dtype(object)


def _stored(path: str, leaf: Leaf, rows: int) -> Stored:
    """Return how a column with a value for each row is read."""
    dtype = np.dtype(leaf.dtype)
    arrow = None if dtype.kind in "fiub" else leaf.kind
    return Stored(partial(_read_rows, path, leaf), (path,), "Parquet", (rows,), dtype, units=leaf.units, arrow=arrow)


def _leaves(schema: Any, stored: list[str], *, records: bool, lists: bool) -> list[Leaf]:
    """Return all columns of a file: those in `records` and in `lists`, too, or these as they are."""
    import pyarrow.types as kinds

    leaves: list[Leaf] = []
    for column in schema:
        if _INDEX.fullmatch(column.name):
            continue
        tests = (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list)
        is_list = lists and any(test(column.type) for test in tests)
        inner = column.type.value_type if is_list else column.type
        is_record = kinds.is_struct(inner) and records
        parts = [inner.field(k) for k in range(inner.num_fields)] if is_record else [None]
        for part in parts:
            name, kind, about = (None, inner, column) if part is None else (part.name, part.type, part)
            within = (path for path in stored if path.startswith(f"{column.name}.") and path.endswith(f".{name}"))
            is_number = kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)
            dtype = np.dtype(kind.to_pandas_dtype()) if is_number else None
            dtype = np.dtype(np.float64) if kinds.is_decimal(kind) else dtype
            told = (about.metadata or {}).get(b"units")
            units = None if told is None else told.decode("utf-8", "replace")
            place = (column.name, name, column.name if name is None else next(within, column.name))
            leaves.append(Leaf("", *place, is_list, str(column.type), kind, dtype, units))
    names = short_names([(leaf.column,) if leaf.field is None else (leaf.column, leaf.field) for leaf in leaves])
    return [leaf._replace(name=name) for name, leaf in zip(names, leaves, strict=True)]


def _in_field(values: Any, leaf: Leaf, path: str, start: int = 0) -> Any:
    """Return the values of a field of records, a component of vectors, or values that are neither."""
    import pyarrow.compute as pc

    if leaf.axis is not None:
        lengths = pc.list_value_length(values).fill_null(leaf.width).to_numpy()
        if (lengths != leaf.width).any():
            row = int(np.argmax(lengths != leaf.width))
            raise ValueError(
                f"column {quoted(leaf.column)} of {path} has {leaf.width} components in its first row and "
                f"{lengths[row]} in row {start + row} (counted from 0); correct it"
            )
        return pc.list_element(values, leaf.axis)
    return values if leaf.field is None else pc.struct_field(values, leaf.field)


def _numbers(values: Any, path: str, leaf: Leaf, row_of: Callable[[int], int]) -> npt.NDArray[Any]:
    """Return Arrow's numbers as an array; missing ones are NaN, where there is one. Others are times and objects."""
    import pyarrow.types as kinds

    dtype = leaf.dtype or _own_dtype(values.type, missing=bool(values.null_count))
    if dtype.kind == "O":
        values = values.cast(values.type.value_type) if kinds.is_dictionary(values.type) else values
        return np.fromiter(values.to_pylist(), object, len(values))
    if values.null_count and dtype.kind not in "fmM":
        raise ValueError(
            f"column {quoted(leaf.name)} of {path} has no value in row {row_of(_first_null(values))} (counted from "
            f"0), and integers and booleans have no NaN; fill it, or {leaf.without}"
        )
    array: npt.NDArray[Any]
    if values.null_count or not (kinds.is_integer(values.type) or kinds.is_floating(values.type)):
        array = values.to_numpy()  # imports pandas
    else:
        array = np.concatenate([np.empty(0, dtype), *map(np.from_dlpack, getattr(values, "chunks", [values]))])
    return array.astype(dtype, copy=False)


def _first_null(values: Any) -> int:
    return int(np.argmax(values.is_null().to_numpy()))


# ---------------------------------------------------------------------------------------------- a value for each row
def _read_flat(path: str, chosen: Mapping[str, Leaf], rows: int) -> dict[str, Any]:
    """Return columns, many at a time: each time the whole footer is gone through."""
    columns, leaves, step = {}, list(chosen.items()), max(1, _AT_ONCE // max(8 * rows, 1))
    for start in range(0, len(leaves), step):
        some = leaves[start : start + step]
        table = rows_of(path, [leaf.stored for _, leaf in some], 0, rows)
        columns.update({ours: _flat_numbers(table, path, leaf, 0) for ours, leaf in some})
    return columns


def _read_rows(path: str, leaf: Leaf, start: int, stop: int) -> npt.NDArray[Any]:
    """Read rows start to stop of one column, from the row groups that have them."""
    return _flat_numbers(rows_of(path, [leaf.stored], start, stop), path, leaf, start)


def _flat_numbers(table: Any, path: str, leaf: Leaf, start: int) -> npt.NDArray[Any]:
    """Return a column of an Arrow table, from row `start` of the file on."""
    return _numbers(_in_field(table.column(leaf.column), leaf, path, start), path, leaf, lambda place: start + place)


# ----------------------------------------------------------------------------------------------- a list for each row
def _joined(path: str, chosen: Mapping[str, Leaf], first: Leaf, n_rows: int, chunks: int | None) -> dict[str, Any]:
    """Return the hits of all rows as columns: read, or lazy, in blocks of whole rows with about `chunks` hits each."""
    lengths = _read_lengths(path, first, 0, n_rows)
    if chunks is None:
        columns = {ours: _read_hits(lengths, 0, path, leaf, first) for ours, leaf in chosen.items()}
        return {"event": _row_of_hits(lengths, 0)} | columns
    begins = np.append(0, np.cumsum(lengths))
    borders = np.searchsorted(begins, np.arange(chunks, begins[-1], chunks))
    borders = np.unique(np.concatenate([[0], borders[begins[borders] < begins[-1]], [n_rows]]))
    borders = borders if len(borders) > 1 else np.zeros(2, np.int64)
    hits, rows = (tuple(np.diff(ends).tolist()) for ends in (begins[borders], borders))
    read = partial(_read_lengths, path, first)
    counts = Stored(read, (path,), "Parquet", (n_rows,), np.dtype(np.int64)).array(rows)
    columns = {
        ours: by_blocks(_read_hits, counts, leaf.dtype, "read", hits, path=path, leaf=leaf, first=first)
        for ours, leaf in chosen.items()
    }
    return {"event": by_blocks(_row_of_hits, counts, np.dtype(np.int64), "read", hits)} | columns


def _read_lengths(path: str, leaf: Leaf, start: int, stop: int) -> Counts:
    """Return how many hits each of the rows start to stop has."""
    return _lengths(rows_of(path, [leaf.stored], start, stop).column(leaf.column), path, leaf, start)


def _lengths(lists: Any, path: str, leaf: Leaf, start: int) -> Counts:
    """Return the lengths of lists, if none is missing."""
    import pyarrow.compute as pc

    if lists.null_count:
        raise ValueError(
            f"column {quoted(leaf.name)} of {path} has no list in row {start + _first_null(lists)} (counted from 0); "
            f"a row without hits has an empty list: fill it, or {leaf.without}"
        )
    lengths: Counts = pc.list_value_length(lists).to_numpy().astype(np.int64)
    return lengths


def _read_hits(counts: Counts, start: int, path: str, leaf: Leaf, first: Leaf) -> npt.NDArray[Any]:
    """Read the hits of rows from `start` on, which have so many; a number of a row is repeated for each of its hits."""
    import pyarrow.compute as pc

    stop = start + len(counts)
    if not leaf.is_list:
        return np.repeat(_read_rows(path, leaf, start, stop), counts)
    lists = rows_of(path, [leaf.stored], start, stop).column(leaf.column)
    lengths = _lengths(lists, path, leaf, start)
    if not np.array_equal(lengths, counts):
        row = int(np.argmax(lengths != counts))
        raise ValueError(
            f"columns {quoted(first.name)} and {quoted(leaf.name)} of {path} have lists of unequal lengths, "
            f"{counts[row]} and {lengths[row]} in row {start + row} (counted from 0), so they are not of the same "
            f"hits; {leaf.without}"
        )
    ends = np.cumsum(counts)
    values = _in_field(pc.list_flatten(lists), leaf, path)
    return _numbers(values, path, leaf, lambda place: start + int(np.searchsorted(ends, place, "right")))


def _row_of_hits(counts: Counts, start: int) -> npt.NDArray[np.int64]:
    """Return the row of each hit; rows are counted from `start` on."""
    return np.repeat(np.arange(start, start + len(counts), dtype=np.int64), counts)
