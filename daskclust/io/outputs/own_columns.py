"""All columns of a file under their own names, as they are: numbers, text, times and categories.

Readers of a field take the columns that they know, and convert them. Commands write these columns beside their results.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.datasets import variable_of
from daskclust.core.data.fields import FIELDS
from daskclust.core.device.arrays import is_dask
from daskclust.io.blocks import as_objects, as_text
from daskclust.io.cytometry import fcs
from daskclust.io.cytometry.transform import Preparation
from daskclust.io.files import HDF5, NEXUS, PARQUET, TEXT, reading, split_member
from daskclust.io.particles.snapshot import is_snapshot
from daskclust.io.rows import ReadRows, Stored, by_blocks, rows_of_parts
from daskclust.io.tables import parquet_read, root, text
from daskclust.io.tables.binary import npy_columns
from daskclust.io.tables.hdf5 import hdf5_columns
from daskclust.io.tables.parquet_parts import parts_of
from daskclust.io.tables.zarr import stored_arrays

_SAMPLE = 1000  # lines of text that tell which columns are numbers
_TEXT = np.dtype(object)


class OwnColumns(NamedTuple):
    """The columns of a file by their own names, all with as many rows."""

    columns: Mapping[str, Stored]
    attrs: Mapping[str, Any] = {}  # of all columns together

    @property
    def rows(self) -> int:
        """The number of rows."""
        return next(iter(self.columns.values())).shape[0]

    @property
    def text(self) -> list[str]:
        """The names of columns without numbers, and of those where some are missing."""
        return [name for name, column in self.columns.items() if column.dtype.kind not in "fiub"]

    def dataset(self, dim: str, sizes: tuple[int, ...] | None = None) -> xr.Dataset:
        """Return the columns as variables, in memory, or lazy in chunks of so many rows."""
        return self._with({name: column.array(sizes) for name, column in self.columns.items()}, dim)

    def at(self, rows: Any, dim: str, known: Mapping[str, Any]) -> xr.Dataset:
        """Return the columns at some rows, in memory, or, of a dask array of their numbers, lazy in its chunks.

        Those whose values are `known` are not read again.
        """
        is_read = any(getattr(column.read, "func", None) is _part for column in self.columns.values())
        rows = rows.compute() if is_read and is_dask(rows) else rows  # no worker is sent what this process has read
        wanted = [(name, column) for name, column in self.columns.items() if name not in known]
        found = {name: by_blocks(_at_rows, rows, c.dtype, "own", read=c.rows) for name, c in wanted}
        return self._with({**known, **found}, dim)

    def _with(self, arrays: Mapping[str, Any], dim: str) -> xr.Dataset:
        variables = {}
        for name, column in self.columns.items():
            attrs = {} if column.units is None else {"units": column.units}
            variables[name] = variable_of(dim, arrays[name], attrs, {"arrow": column.arrow})
        return xr.Dataset(variables, attrs=dict(self.attrs))


def _at_rows(rows: npt.NDArray[np.int64], _: int, *, read: ReadRows) -> npt.NDArray[Any]:
    low, high = (int(rows.min()), int(rows.max()) + 1) if len(rows) else (0, 0)
    return read(low, high)[rows - low]


def own_columns(path: str | os.PathLike[str], data_set: int | None = None, *, joins: bool = True) -> OwnColumns | None:
    """Return the columns of a file; None of a file that has no names for them, or words, particles or events instead.

    Lists of a row are joined, and values of the row repeated, as readers do it, or not, where rows are points.
    `data_set` is that of an FCS file.
    """
    name, member = split_member(os.fspath(path))
    suffix = os.path.splitext(name)[1].lower()
    if suffix in PARQUET and os.path.isdir(name):
        return joined_columns([own_columns(file, joins=joins) for file in parts_of(name)])
    found, attrs = dict[str, Any](), dict[str, Any]()
    with reading(name, suffix[1:]):
        if suffix in PARQUET:
            found, attrs = parquet_read.own_columns(name, joins=joins)
        elif suffix == ".fcs":
            found, attrs = _of_fcs(name, data_set)
        elif suffix in (*HDF5, NEXUS):
            found = _of_hdf5(name, member)
        elif suffix == ".root":
            found = root.own_columns(name, member, joins=joins)
        elif suffix in TEXT:
            found = text.own_columns(name)
        elif suffix in (".npy", ".npz"):
            found = _of_numpy(name)
        elif suffix == ".zarr":
            found = _of_zarr(name)
    columns = {str(each): v if isinstance(v, Stored) else _held(name, v) for each, v in found.items()}
    rows = max((column.shape[0] for column in columns.values() if len(column.shape) == 1), default=0)
    kept = {each: column for each, column in columns.items() if column.shape == (rows,)}
    return OwnColumns(kept, attrs) if kept else None


def joined_columns(found: Sequence[OwnColumns | None]) -> OwnColumns | None:
    """Return the columns that all of several files have, one file after the other; None where one has none."""
    files = [each for each in found if each is not None]
    if len(files) < len(found):
        return None
    if len(files) == 1:
        return files[0]
    columns = {}
    for name, first in files[0].columns.items():
        if not all(name in each.columns for each in files):
            continue
        parts = [each.columns[name] for each in files]
        dtypes = {part.dtype for part in parts}
        is_plain = not any(name in each.text for each in files)
        dtype = first.dtype if len(dtypes) == 1 else np.result_type(*dtypes) if is_plain else _TEXT
        columns[name] = first._replace(
            read=partial(_rows_of_files, [(part.read, part.shape[0]) for part in parts], dtype),
            files=tuple(file for part in parts for file in part.files),
            shape=(sum(part.shape[0] for part in parts),),
            dtype=dtype,
            arrow=first.arrow if all(part.arrow == first.arrow for part in parts) else None,
        )
    return OwnColumns(columns, files[0].attrs)


def _rows_of_files(parts: Iterable[tuple[ReadRows, int]], dtype: np.dtype[Any], start: int, stop: int) -> Any:
    """Return rows of a column of several files, one after the other."""
    found = [np.empty(0, dtype)]
    for part in rows_of_parts(parts, start, stop):
        is_other = dtype == _TEXT != part.dtype  # text in another file
        found.append((as_text(part).astype(str) if is_other else part).astype(dtype, copy=False))
    return np.concatenate(found)


def text_columns(path: str | os.PathLike[str], field: str | None) -> list[str]:
    """Return the columns without numbers and with a name that no variable of the field has, None: of any field."""
    name, member = split_member(os.fspath(path))
    suffix = os.path.splitext(name)[1].lower()
    try:
        if suffix == ".root":  # this and others are not read for it
            words = root.text_in(name, member)
        elif suffix == ".npz":
            words = _text_in_npz(name)
        elif suffix in PARQUET:
            files = parts_of(name) if os.path.isdir(name) else [name]
            words = [each for file in files for each in parquet_read.text_in(file)]
        elif suffix in TEXT:
            head = text.own_columns(name, _SAMPLE)
            words = [each for each, values in head.items() if values.dtype.kind not in "fiub"]
        else:
            found = own_columns(path)
            words = [] if found is None else found.text
    except Exception:  # readers tell of it
        return []
    fields = FIELDS.values() if field is None else [FIELDS[field]]
    known = {name for each in fields for v in each.variables for name in (v.name, *v.aliases)}
    return [each for each in words if each.lower() not in known]


def _held(path: str, values: Any) -> Stored:
    """Return a column that is read already."""
    array = as_objects(np.asarray(values))
    array = array.astype(array.dtype.newbyteorder("=") if array.dtype.kind in "fiubmM" else _TEXT, copy=False)
    return Stored(partial(_part, array), (os.path.abspath(path),), "table", array.shape, array.dtype)


def _part(values: npt.NDArray[Any], start: int, stop: int) -> npt.NDArray[Any]:
    return values[start:stop]


# ------------------------------------------------------------------------------------------------------------- formats
def _of_hdf5(path: str, group: str | None) -> dict[str, Stored]:
    """Return the columns of a group; none of a snapshot, nor of positions alone."""
    columns = {} if is_snapshot(path) else hdf5_columns(path, group)[0]
    if all(len(array.shape) == 2 for array, _ in columns.values()):
        return {}
    return _plain({name: array.column(number) for name, (array, number) in columns.items()})


def _of_numpy(path: str) -> dict[str, Any]:
    """Return the fields of a structured array, or the arrays of an archive."""
    if path.lower().endswith(".npy"):
        return _plain({name: array for name, (array, _) in npy_columns(path)[1].items()})
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive) if len(archive.files) > 1 else {}


def _text_in_npz(path: str) -> list[str]:
    found = []
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            with archive.open(member) as stream:
                is_first = np.lib.format.read_magic(stream) == (1, 0)
                header = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
                found += [member.removesuffix(".npy")] * (header(stream)[2].kind not in "fiub")
    return found


def _of_zarr(path: str) -> dict[str, Stored]:
    """Return the arrays of a group; none of a store with positions of shape (n, 3), as snapshots have."""
    arrays = stored_arrays(path, fill_missing=True)
    return _plain(arrays) if all(len(array.shape) == 1 for array in arrays.values()) else {}


def _plain(arrays: Mapping[str, Stored]) -> dict[str, Stored]:
    """Return arrays of numbers, times and text."""
    return {name: array for name, array in arrays.items() if not array.fault or array.dtype.kind in "OmM"}


def _of_fcs(path: str, data_set: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the channels of an FCS file, neither compensated nor transformed, with its matrix as an attribute."""
    fcs.logger.disabled = True  # the reader has told of it
    try:
        layout = fcs.read_layout(path, data_set)
    finally:
        fcs.logger.disabled = False
    names, spillover = [own[0] for own in layout.names], layout.text.get("spillover") or layout.text.get("spill")
    X = fcs.events_of(layout, Preparation(), range(len(names)), None)
    attrs: dict[str, Any] = {"channel_names": names, "detector_names": list(layout.detectors)}
    return dict(zip(names, X.T, strict=True)), attrs | ({"spillover": spillover} if spillover else {})
