"""Columns of HDF5 files: datasets of one length in one group, fields of a dataset of records, or events."""

from __future__ import annotations

import errno
import math
import os
import resource
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from daskclust.core.data.quote import listed, quoted, short
from daskclust.io.attrs import plain_attrs, stored_attrs, stored_units
from daskclust.io.blocks import Block, as_objects, as_text, blocks_of, column_dtypes
from daskclust.io.files import import_library, reads
from daskclust.io.rows import Stored
from daskclust.io.schema import Naming, Table
from daskclust.io.tables.binary import StoredColumns, no_numbers, table_of
from daskclust.io.tables.nexus import event_columns, event_groups

if TYPE_CHECKING:
    import xarray as xr

import_h5py = partial(import_library, "h5py", "HDF5 files")

# Bytes of a file beside its data: headers and attributes.
_OVERHEAD = 1 << 15


@reads("HDF5")
def read_hdf5(path: str, group: str | None, naming: Naming, chunks: int | None) -> Table:
    """Read the columns of a group, of the only one that has events, or any: at once, or lazily in chunks of rows.

    Attributes are those of the group and of the file; units, of the datasets.
    """
    columns, attrs = hdf5_columns(path, group)
    return table_of(columns, naming, chunks, attrs)


def hdf5_columns(path: str, group: str | None = None) -> tuple[StoredColumns, dict[str, Any]]:
    """Return the columns of a group, or of records, and its attributes; ``pos`` of shape (n, 3) has ``pos_x``, ..."""
    with import_h5py().File(path, "r") as file:
        groups = _groups(file) if group is not None else event_groups(file) or _groups(file)
        found = file[_group_name(file, groups, group, path)]
        told = {**plain_attrs(file.attrs), **plain_attrs(found.attrs)}
        if isinstance(found, import_h5py().Dataset):
            arrays = {name: _stored(found, name, path) for name in found.dtype.names}
        else:
            columns_in = (name for name in datasets_in(found) if not found[name].dtype.names)  # records are a group
            arrays = {name: _stored(found[name], None, path) for name in columns_in}
            arrays, told = event_columns(found, arrays, told, path)
        columns: dict[str, tuple[Stored, int]] = {}
        for name, array in arrays.items():
            if _are_axes(array.dtype, array.shape[1:]):
                columns |= {f"{name}_{'xyz'[k]}": (array, k) for k in range(array.shape[1])}
            else:
                columns[name] = array, 0
        return columns, told


def _stored(dataset: Any, field: str | None, path: str) -> Stored:
    """Return how a dataset, or a field of its records, is read."""
    name = dataset.name if field is None else f"{dataset.name}[{field}]"
    shape, dtype = dataset.shape, dataset.dtype
    if field is not None:
        shape, dtype = shape + dtype[field].shape, dtype[field].base
    is_wide = shape is not None and _are_axes(dtype, shape[1:])
    fault = no_numbers(shape, dtype, f"dataset {short(name, 100)} of {path}", (2,) if is_wide else (1,))
    fault = fault or lacks(dataset, name, path)
    if dtype.kind in "SO":  # of objects, texts alone can be columns
        dtype = np.dtype(object if import_h5py().check_string_dtype(dtype) else np.void)
    unit = plain_attrs(dataset.attrs).get("units")
    unit = unit[0] if isinstance(unit, list) and len(unit) == 1 else unit
    here = os.path.abspath(path)
    return Stored(
        partial(read_dataset, here, dataset.name, field=field), (here,), "HDF5", shape or (), dtype.newbyteorder("="),
        dataset.chunks and dataset.chunks[0], None if unit is None else str(unit), f" of {dataset.name}", fault,
    )  # fmt: skip


def _groups(file: Any) -> list[str]:
    """Return the names of all groups that have columns, and of datasets of records."""
    with_columns = dict[str, None]()

    def visit(name: str, entry: Any) -> None:
        if not isinstance(entry, import_h5py().Dataset):
            return
        if entry.ndim == 1 and entry.dtype.names:
            with_columns[f"/{name}"] = None
        elif (entry.ndim == 1 and entry.dtype.kind in "fiub") or _are_axes(entry.dtype, (entry.shape or ())[1:]):
            with_columns["/" + name.rpartition("/")[0]] = None

    file.visititems(visit)  # follows no links out of the file, and nothing twice
    return list(with_columns)


def _group_name(file: Any, groups: list[str], group: str | None, path: str) -> str:
    known = listed(name.strip("/") or "/" for name in groups)
    if group is not None:
        name = "/" + group.strip("/")
        if name not in groups:
            raise ValueError(f"{path} has no group {quoted(group)} with columns; it has {known}")
        return name
    has_records = any(f"/{name}" in groups for name in datasets_in(file))
    if "/" in groups and not has_records:
        return "/"
    if len(groups) != 1:
        raise ValueError(
            f"{path} has {len(groups)} groups with columns ({known}); choose one with {path}:name"
            if groups
            else f"{path} has no dataset of one dimension with numbers"
        )
    return groups[0]


def datasets_in(group: Any) -> list[str]:
    """Return the names of the datasets of a group, without links to other files."""
    return [name for name in group if inside(group, name, import_h5py().Dataset) is not None]


def _are_axes(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    """Return whether rows of some shape are vectors of 2 or 3 coordinates, as positions are."""
    return shape in ((2,), (3,)) and dtype.kind in "fiu"


def inside(group: Any, name: str, kind: type) -> Any:
    """Return a member of a group, a group or a dataset; None where it is none of the kind or in another file."""
    h5py = import_h5py()
    is_here = isinstance(group.get(name, getlink=True), h5py.HardLink | h5py.SoftLink)
    found = group.get(name) if is_here else None
    return found if isinstance(found, kind) else None


def lacks(dataset: Any, name: str, path: str) -> str:
    """Return what a dataset lacks that is not completely in its file: HDF5 gives the fill value where nothing is."""
    if dataset.chunks:
        needed = math.prod(-(-rows // step) for rows, step in zip(dataset.shape, dataset.chunks, strict=True))
        there, what = dataset.id.get_num_chunks(), "chunks"
    else:
        needed, there, what = dataset.nbytes, dataset.id.get_storage_size(), "bytes"
    if dataset.is_virtual or bool(dataset.external):
        return f"dataset {name} of {path} stores its numbers in other files; copy them into one, or "
    if there >= needed:
        return ""
    was = f"dataset {name} of {path} has {there} of {needed} {what}: it was not written completely"
    return f"{was}; write it again, or "


def read_dataset(path: str, member: str, start: int, stop: int, field: str | None = None) -> npt.NDArray[Any]:
    """Return rows start to stop of one dataset of a file, of one field of its records."""
    with import_h5py().File(path, "r") as file:
        return as_objects(file[member][start:stop] if field is None else file[member][field, start:stop])


def write_hdf5(stream: BinaryIO, ds: xr.Dataset, dim: str) -> None:
    """Write blocks of columns, one at a time, as datasets in the root of an open file.

    It is written through its name, as HDF5 must read while it writes.
    """
    dtypes, rows = column_dtypes(ds), ds.sizes[dim]
    check_space(stream, rows * sum(dtype.itemsize for dtype in dtypes.values()))
    with import_h5py().File(stream.name, "w", track_order=True) as file:
        file.attrs.update(stored_attrs(ds, dim))
        columns = create_columns(file, dtypes, rows)
        for name, unit in stored_units(ds).items():
            columns[name].attrs["units"] = unit
        stop = 0
        for block in blocks_of(ds, dim):
            start, stop = stop, stop + len(next(iter(block.values())))
            put_block(columns, block, start, stop)


def create_columns(group: Any, dtypes: Mapping[str, np.dtype[Any]], rows: int) -> dict[str, Any]:
    """Return new datasets of a group, by name; times and objects become texts."""
    text = import_h5py().string_dtype()
    types = {name: text if dtype.kind in "mMO" else dtype for name, dtype in dtypes.items()}
    return {name: group.create_dataset(name, shape=(rows,), dtype=dtype) for name, dtype in types.items()}


def put_block(columns: Mapping[str, Any], block: Block, start: int, stop: int) -> None:
    """Write columns of a block to rows start to stop of datasets."""
    for name, values in block.items():
        columns[name][start:stop] = as_text(values).astype(object) if values.dtype.kind in "mMO" else values


def check_space(stream: BinaryIO, size: int) -> None:
    """Refuse to begin a file of `size` bytes of data for which there is no space: HDF5 crashes where a write fails."""
    needed = size + _OVERHEAD
    disk = os.statvfs(stream.name)
    if disk.f_bavail * disk.f_frsize < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and limit < needed:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
