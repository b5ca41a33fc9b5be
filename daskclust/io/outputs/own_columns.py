"""All columns of a file under their own names, as they are: numbers, text, times and categories.

Readers of a field take the columns that they know, and convert them. Commands write these columns beside their results.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.fields import FIELDS
from daskclust.core.device.arrays import is_dask
from daskclust.io.attrs import KEY, unpack
from daskclust.io.blocks import as_text
from daskclust.io.files import HDF5, PARQUET, TEXT, import_library, reading
from daskclust.io.rows import Stored, by_blocks

_SAMPLE = 1000  # lines of text that tell which columns are numbers
_TEXT = np.dtype(object)
_KNOWN = {name for field in FIELDS.values() for v in field.variables for name in (v.name, *v.aliases)}


class Column(NamedTuple):
    """A column of a file: what it holds, and how its rows are read."""

    dtype: np.dtype[Any]  # object for text, and for what NumPy has no type for
    read: Callable[[int, int], npt.NDArray[Any]]
    units: str | None = None
    arrow: Any = None  # the type that Parquet has, where NumPy has none for it

    @property
    def is_number(self) -> bool:
        """Whether it has numbers or booleans, none of which is missing."""
        return self.dtype.kind in "fiub"


class OwnColumns(NamedTuple):
    """The columns of a file by their own names, all with as many rows."""

    paths: tuple[str, ...]
    rows: int
    columns: Mapping[str, Column]
    attrs: Mapping[str, Any] = {}  # of all columns together

    def dataset(self, dim: str, sizes: tuple[int, ...] | None = None) -> xr.Dataset:
        """Return the columns as variables, in memory, or lazy in chunks of so many rows."""
        files = tuple(map(os.path.abspath, self.paths))
        arrays = {
            name: Stored(column.read, files, "table", (self.rows,), column.dtype).array(sizes)
            for name, column in self.columns.items()
        }
        return self._with(arrays, dim)

    def at(self, rows: Any, dim: str) -> xr.Dataset:
        """Return the columns at some rows, in memory, or, of a dask array of their numbers, lazy in its chunks."""
        is_read = any(getattr(column.read, "func", None) is _part for column in self.columns.values())
        rows = rows.compute() if is_read and is_dask(rows) else rows  # no worker is sent what this process has read
        columns = self.columns.items()
        return self._with({name: by_blocks(_at_rows, rows, c.dtype, "own", read=c.read) for name, c in columns}, dim)

    def _with(self, arrays: Mapping[str, Any], dim: str) -> xr.Dataset:
        variables = {}
        for name, column in self.columns.items():
            attrs = {} if column.units is None else {"units": column.units}
            variables[name] = xr.Variable(dim, arrays[name], attrs, {"arrow": column.arrow})
        return xr.Dataset(variables, attrs=dict(self.attrs))


def _at_rows(rows: npt.NDArray[np.int64], _: int, *, read: Callable[[int, int], Any]) -> npt.NDArray[Any]:
    low, high = (int(rows.min()), int(rows.max()) + 1) if len(rows) else (0, 0)
    found: npt.NDArray[Any] = read(low, high)[rows - low]
    return found


def own_columns(path: str | os.PathLike[str], data_set: int | None = None) -> OwnColumns | None:
    """Return the columns of a file; None of a file that has no names for them, or words, particles or events instead.

    Lists of a row are joined, and values of the row repeated, as readers do it. `data_set` is that of an FCS file.
    """
    name = os.fspath(path)
    suffix = os.path.splitext(name)[1].lower()
    find: Any = next((find for suffixes, find in _FORMATS.items() if suffix in suffixes), None)
    if find is None:
        return None
    with reading(name, suffix[1:]):
        found: OwnColumns | None = find(name, data_set) if find is _of_fcs else find(name)
        return found


def joined_columns(found: Sequence[OwnColumns | None]) -> OwnColumns | None:
    """Return the columns that all of several files have, one file after the other; None where one has none."""
    files = [each for each in found if each is not None]
    if len(files) < len(found):
        return None
    if len(files) == 1:
        return files[0]
    rows, columns = [each.rows for each in files], {}
    for name in files[0].columns:
        parts = [each.columns[name] for each in files if name in each.columns]
        if len(parts) < len(files):
            continue
        dtypes, first = {part.dtype for part in parts}, parts[0]
        is_plain = all(part.is_number for part in parts)
        dtype = first.dtype if len(dtypes) == 1 else np.result_type(*dtypes) if is_plain else _TEXT
        arrow = first.arrow if all(part.arrow == first.arrow for part in parts) else None
        read = partial(_rows_of_parts, [part.read for part in parts], rows, dtype)
        columns[name] = Column(dtype, read, first.units, arrow)
    return OwnColumns(tuple(path for each in files for path in each.paths), sum(rows), columns, files[0].attrs)


def _rows_of_parts(reads: Sequence[Any], rows: Sequence[int], dtype: Any, start: int, stop: int) -> npt.NDArray[Any]:
    """Return rows of a column of several files, one after the other."""
    parts, begin = [np.empty(0, dtype)], 0
    for read, count in zip(reads, rows, strict=True):
        first, last = max(start - begin, 0), min(stop - begin, count)
        if first < last:
            part = read(first, last)
            if dtype == _TEXT and part.dtype != _TEXT:  # text in another file
                part = as_text(part).astype(str)
            parts.append(part.astype(dtype, copy=False))
        begin += count
    return np.concatenate(parts)


def text_columns(path: str | os.PathLike[str]) -> list[str]:
    """Return the columns that have no numbers, and a name that no variable of a field has: readers cannot use them."""
    name = os.fspath(path)
    suffix = os.path.splitext(name)[1].lower()
    try:
        if suffix in (".root", ".npz"):  # these are not read for it
            text = _text_in_root(name) if suffix == ".root" else _text_in_npz(name)
        else:
            in_head = {TEXT: partial(_of_text, most=_SAMPLE), PARQUET: partial(of_parquet, joins=False)}
            found = next((find for suffixes, find in in_head.items() if suffix in suffixes), own_columns)(name)
            text = [] if found is None else [each for each, column in found.columns.items() if not column.is_number]
    except Exception:  # readers tell of it
        return []
    return [each for each in text if each.lower() not in _KNOWN]


def _text_in_root(path: str) -> list[str]:
    from daskclust.io.tables import root

    uproot = import_library("uproot", "ROOT files")
    with uproot.open(path, handler=uproot.MemmapSource) as file:
        name = root._tree_name(file, None, path)
        if file.classname_of(name) == root._CLASSES[1]:
            types = {name: field.typename for name, field in root._fields(file[name]).items()}
        else:
            types = {name: branch.typename for name, (branch, _) in root._branches(file[name]).items()}
    return [name for name, kind in types.items() if "string" in kind or kind == "char*"]


def _text_in_npz(path: str) -> list[str]:
    found = []
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            with archive.open(member) as stream:
                is_first = np.lib.format.read_magic(stream) == (1, 0)
                header = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
                found += [member.removesuffix(".npy")] * (header(stream)[2].kind not in "fiub")
    return found


def _in_memory(path: str, columns: Mapping[str, Any], attrs: Mapping[str, Any] | None = None) -> OwnColumns | None:
    """Return columns that are read already; those of other lengths are none."""
    arrays = {str(name): _plain(np.asarray(values)) for name, values in columns.items()}
    rows = max((len(values) for values in arrays.values() if values.ndim == 1), default=0)
    kept = {name: values for name, values in arrays.items() if values.shape == (rows,)}
    if not kept:
        return None
    found = {name: Column(values.dtype, partial(_part, values)) for name, values in kept.items()}
    return OwnColumns((path,), rows, found, attrs or {})


def _part(values: npt.NDArray[Any], start: int, stop: int) -> npt.NDArray[Any]:
    return values[start:stop]


def _plain(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers and times in native byte order, and anything else as objects, bytes as text."""
    if values.dtype.kind in "fiubmM":
        return values.astype(values.dtype.newbyteorder("="), copy=False)
    if values.dtype.kind in "SO":
        return np.array([v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in values], _TEXT)
    return values.astype(_TEXT)


# ------------------------------------------------------------------------------------------------------------- formats
def of_parquet(path: str, *, joins: bool = True) -> OwnColumns | None:
    """Return the columns of a Parquet file, or of a folder of such, read row group by row group; of lists, at once."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import pyarrow.types as kinds

    from daskclust.io.tables.parquet_parts import parts_of

    files = parts_of(path) if os.path.isdir(path) else [path]
    abouts = [pq.read_metadata(file) for file in files]
    schema, rows = pq.read_schema(files[0]), [about.num_rows for about in abouts]
    fields = [field for field in schema if not field.name.startswith("__index_level_")]
    if any(kinds.is_nested(field.type) for field in fields):
        if not joins:
            return None
        table = _joined_lists(pa.concat_tables([pq.read_table(file) for file in files]))
        found = _in_memory(path, {name: _to_numpy(table.column(name)) for name in table.column_names})
        return found
    places = {schema.field(k).name: k for k in range(len(schema))}
    columns = {}
    for field in fields:
        missing = any(_has_missing(about, places[field.name]) for about in abouts)
        dtype = _dtype_of(field.type, missing=missing)
        told = (field.metadata or {}).get(b"units")
        read = partial(_rows_of_files, [os.path.abspath(file) for file in files], rows, field.name)
        units = None if told is None else told.decode("utf-8", "replace")
        columns[field.name] = Column(dtype, read, units, None if dtype.kind in "fiub" else field.type)
    return OwnColumns((path,), sum(rows), columns, unpack((abouts[0].metadata or {}).get(KEY.encode()), path)[0])


def _has_missing(about: Any, column: int) -> bool:
    """Return whether the metadata of a Parquet file tell of missing values in a column."""
    told = (about.row_group(k).column(column).statistics for k in range(about.num_row_groups))
    return any(each is not None and each.null_count for each in told)


def _dtype_of(kind: Any, *, missing: bool) -> np.dtype[Any]:
    """Return NumPy's type for one of Arrow's: object where there is none for it, or none for its missing values."""
    import pyarrow.types as kinds

    is_whole = (kinds.is_integer(kind) or kinds.is_boolean(kind)) and not missing
    dtype: np.dtype[Any] = _TEXT
    if kinds.is_floating(kind) or is_whole:
        dtype = np.dtype(kind.to_pandas_dtype())
    elif kinds.is_timestamp(kind) or kinds.is_date32(kind):
        dtype = np.datetime64(0, "D" if kinds.is_date32(kind) else kind.unit).dtype
    return dtype


def _rows_of_files(files: list[str], rows: list[int], name: str, start: int, stop: int) -> npt.NDArray[Any]:
    """Return rows of a column of files that are one table."""
    import pyarrow as pa

    from daskclust.io.tables.parquet import rows_of

    parts: list[Any] = []
    begin = 0
    for file, count in zip(files, rows, strict=True):
        first, last = max(start - begin, 0), min(stop - begin, count)
        if first < last or (start == stop and not parts):
            parts.append(rows_of(file, [name], first, max(first, last)).column(0))
        begin += count
    chunks = [chunk for part in parts for chunk in part.chunks]
    return _to_numpy(pa.chunked_array(chunks, type=parts[0].type if parts else None))


def _to_numpy(values: Any) -> npt.NDArray[Any]:
    """Return Arrow's values as an array: numbers and times as they are, others as objects."""
    import pyarrow.types as kinds

    dtype = _dtype_of(values.type, missing=bool(values.null_count))
    if dtype != _TEXT:
        found: npt.NDArray[Any] = values.to_numpy()
        return found.astype(dtype, copy=False)
    if kinds.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    objects = np.empty(len(values), object)
    objects[:] = values.to_pylist()
    return objects


def _joined_lists(table: Any) -> Any:
    """Return a table of hits: lists of a row joined, records as their fields, other values repeated for each hit."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    lists = [name for name in table.column_names if kinds.is_list(table.schema.field(name).type)]
    if lists:
        lengths = pc.list_value_length(table.column(lists[0])).to_numpy()
        of_hit = pa.array(np.repeat(np.arange(len(lengths)), lengths))
        columns = zip(table.column_names, table.columns, strict=True)
        joined = [pc.list_flatten(each) if name in lists else each.take(of_hit) for name, each in columns]
        table = pa.table(joined, names=table.column_names)
    records = {name for name in table.column_names if kinds.is_struct(table.schema.field(name).type)}
    flat = table.flatten()
    short = [name.partition(".")[2] if name.partition(".")[0] in records else name for name in flat.column_names]
    return flat.rename_columns(short if len(set(short)) == len(short) else flat.column_names)


class _AsWritten(dict[str, str | None]):
    """A naming of columns by which names of a header stay as they are, with units behind them."""

    def __contains__(self, name: object) -> bool:
        return True


def _of_text(path: str, most: int | None = None) -> OwnColumns | None:
    """Return the columns of a text file with names, those of numbers as such; of so many lines at most."""
    import pandas as pd

    from daskclust.io.schema import Naming
    from daskclust.io.tables import text

    layout = text._look(path, Naming(None, _AsWritten(), path))
    if layout.header is None:
        return None
    width = layout.width + layout.ends

    def read(**options: Any) -> Any:
        with text._open(path) as stream:
            for _ in range(layout.skip):
                next(stream)
            return pd.read_csv(
                stream, sep=layout.separator or r"\s+", names=range(width), comment="#", skipinitialspace=True,
                na_values=["nan", "NaN"], keep_default_na=False, nrows=most, index_col=False, **options,
            )  # fmt: skip

    try:
        frame = read(low_memory=False) if layout.separator else read()
    except ValueError:  # what the reader takes line by line
        return None
    words = [k for k in frame if frame[k].dtype.kind not in "fiu"]
    if words:  # as they are: True is no number
        frame = frame.astype(dict.fromkeys(words, object))
        frame[words] = read(dtype=str, usecols=words)[words].astype(object)
    return _in_memory(path, {name: frame[k].to_numpy() for k, name in enumerate(layout.header[: layout.width])})


def _of_hdf5(path: str) -> OwnColumns | None:
    """Return the datasets of the root, or of the only group with columns; None of a snapshot."""
    from daskclust.io.particles.snapshot import is_snapshot
    from daskclust.io.tables import hdf5

    if is_snapshot(Path(path)):
        return None
    with hdf5.import_h5py().File(path, "r") as file:
        group = file[hdf5._group_name(hdf5._groups(file), None, path)]
        if not hasattr(group, "keys"):
            return _in_memory(path, {name: group[name] for name in group.dtype.names})
        columns, rows = {}, 0
        for name in hdf5.datasets_in(group):
            each = group[name]
            is_text = hdf5.import_h5py().check_string_dtype(each.dtype) is not None
            if each.ndim == 1 and (is_text or each.dtype.kind in "fiub"):
                units = each.attrs.get("units")
                read = partial(_dataset, os.path.abspath(path), each.name)
                dtype = _TEXT if is_text else each.dtype.newbyteorder("=")
                columns[name] = Column(dtype, read, units if isinstance(units, str) else None)
                rows = len(each)
    return OwnColumns((path,), rows, columns) if columns else None


def _dataset(path: str, name: str, start: int, stop: int) -> npt.NDArray[Any]:
    from daskclust.io.tables.hdf5 import read_dataset

    return _plain(read_dataset(path, name, start, stop))


def _of_numpy(path: str) -> OwnColumns | None:
    """Return the arrays of an archive, or the fields of a structured array."""
    with open(path, "rb") as stream:
        found = np.load(stream, allow_pickle=False)
        names = found.dtype.names if isinstance(found, np.ndarray) else found.files
        if names is None or (len(names) == 1 and not isinstance(found, np.ndarray)):
            return None
        return _in_memory(path, {name: found[name] for name in names})


def _of_root(path: str) -> OwnColumns | None:
    """Return the branches of the only tree of a file, lists joined."""
    from daskclust.io.tables import root

    uproot = import_library("uproot", "ROOT files")
    import awkward as ak

    with uproot.open(path, handler=uproot.MemmapSource) as file:
        name = root._tree_name(file, None, path)
        if file.classname_of(name) == root._CLASSES[1]:
            arrays = {name: field.array() for name, field in root._fields(file[name]).items()}
        else:
            branches = root._branches(file[name]).items()
            whole = {name: (branch.array(library="ak"), leaf) for name, (branch, leaf) in branches}
            arrays = {name: array if leaf is None else array[leaf] for name, (array, leaf) in whole.items()}
    is_text = {name: ak.parameters(array).get("__array__") == "string" for name, array in arrays.items()}
    lists = [name for name, array in arrays.items() if array.ndim == 2 and not is_text[name]]
    lengths = np.asarray(ak.num(arrays[lists[0]])) if lists else None
    columns = {}
    for name, array in arrays.items():
        values = ak.flatten(array) if name in lists else array
        found = np.array(ak.to_list(values), object) if is_text[name] else np.asarray(values)
        columns[name] = found if lengths is None or name in lists else np.repeat(found, lengths)
    return _in_memory(path, columns)


def _of_zarr(path: str) -> OwnColumns | None:
    """Return the arrays of a group; None of a store with positions of shape (n, 3), as snapshots have."""
    zarr = import_library("zarr", "zarr stores")
    root = zarr.open(path, mode="r")
    if hasattr(root, "shape") or any(len(array.shape) != 1 for _, array in root.arrays()):
        return None
    columns, rows = {}, 0
    for name, array in root.arrays():
        is_number = np.dtype(array.dtype).kind in "fiub"
        units = array.attrs.get("units")
        read = partial(_array, os.path.join(os.path.abspath(path), str(name)))
        dtype = np.dtype(array.dtype).newbyteorder("=") if is_number else _TEXT
        columns[str(name)] = Column(dtype, read, units if isinstance(units, str) else None)
        rows = array.shape[0]
    return OwnColumns((path,), rows, columns) if columns else None


def _array(path: str, start: int, stop: int) -> npt.NDArray[Any]:
    return _plain(np.asarray(import_library("zarr", "zarr stores").open_array(path, mode="r")[start:stop]))


def _of_fcs(path: str, data_set: int | None = None) -> OwnColumns | None:
    """Return the channels of an FCS file, neither compensated nor transformed, with its matrix as an attribute."""
    from daskclust.io.cytometry import fcs
    from daskclust.io.cytometry.transform import Preparation

    fcs.logger.disabled = True  # the reader has told of it
    try:
        layout = fcs.read_layout(path, data_set)
    finally:
        fcs.logger.disabled = False
    names, spillover = [own[0] for own in layout.names], layout.text.get("spillover") or layout.text.get("spill")
    X = fcs.events_of(layout, Preparation(), range(len(names)), None)
    attrs: dict[str, Any] = {"channel_names": names, "detector_names": list(layout.detectors)}
    return _in_memory(path, dict(zip(names, X.T, strict=True)), attrs | ({"spillover": spillover} if spillover else {}))


_FORMATS = {
    PARQUET: of_parquet,
    TEXT: _of_text,
    HDF5: _of_hdf5,
    (".npy", ".npz"): _of_numpy,
    (".root",): _of_root,
    (".zarr",): _of_zarr,
    (".fcs",): _of_fcs,
}
