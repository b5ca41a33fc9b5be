"""Columns of HDF5 files: datasets of one length in one group, or fields of a dataset of records."""

from __future__ import annotations

import errno
import math
import os
import resource
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.data.limits import check_memory
from daskclust.core.data.quote import listed, quoted, short
from daskclust.io.attrs import plain_attrs
from daskclust.io.blocks import Block, native
from daskclust.io.files import import_library, reading
from daskclust.io.rows import chunk_sizes, rows_in
from daskclust.io.schema import Naming, Table
from daskclust.io.tables.binary import check_lengths, check_numbers

import_h5py = partial(import_library, "h5py", "HDF5 files")

# Bytes of a file beside its data: headers and attributes.
_OVERHEAD = 1 << 15


def read_hdf5(path: str, group: str | None, naming: Naming, chunks: int | None) -> Table:
    """Read the columns of a group, of the only one that has any by default: at once, or lazily in chunks of rows.

    Attributes are those of the group and of the file; units, of the datasets.
    """
    with open_hdf5(path) as file:
        with reading(path, "HDF5"):
            groups = _groups(file)
        where = _group_name(groups, group, path)
        with reading(path, "HDF5"):
            places = _columns_in(file[where])
            attrs = {**plain_attrs(file.attrs), **plain_attrs(file[where].attrs)}
        naming = naming.settle(list(places), attrs.get("field"))
        chosen = naming.choose(list(places), named=True)
        dtypes, rows, units, own = {}, {}, {}, None
        for name, ours in chosen.items():
            with reading(path, "HDF5"):
                dataset = file[places[name].member]
                unit = plain_attrs(dataset.attrs).get("units")
                own = dataset.chunks
            dtypes[ours], rows[ours] = _check_column(dataset, places[name], path, naming.without(name))
            if unit is not None:
                units[ours] = str(unit[0] if isinstance(unit, list) and len(unit) == 1 else unit)
    check_lengths(rows, path)
    sizes = None if chunks is None else chunk_sizes(chunks, [(max(rows.values(), default=0), own and own[0])])
    if chunks is None:
        check_memory(sum(rows[ours] * dtypes[ours].itemsize for ours in rows), path)
    here = os.path.abspath(path)
    columns = {
        ours: rows_in(partial(_read_column, here, places[name]), [here], (rows[ours],), dtypes[ours], sizes)
        for name, ours in chosen.items()
    }
    return Table(columns, naming, units, attrs)


def open_hdf5(path: str) -> Any:
    """Open a file to read."""
    h5py = import_h5py()
    with reading(path, "HDF5"):
        return h5py.File(path, "r")


def _groups(file: Any) -> list[str]:
    """Return the names of all groups that have columns, and of datasets of records."""
    dataset, with_columns = import_h5py().Dataset, dict[str, None]()

    def visit(name: str, entry: Any) -> None:
        if isinstance(entry, dataset) and entry.ndim == 1 and entry.dtype.names:
            with_columns[f"/{name}"] = None
        elif isinstance(entry, dataset) and (_has_axes(entry) or (entry.ndim == 1 and entry.dtype.kind in "fiub")):
            with_columns["/" + name.rpartition("/")[0]] = None

    file.visititems(visit)  # follows no links out of the file, and nothing twice
    return list(with_columns)


def _group_name(groups: list[str], group: str | None, path: str) -> str:
    """Return the name of the group to read."""
    known = listed(name.strip("/") or "/" for name in groups)
    if group is not None:
        name = "/" + group.strip("/")
        if name not in groups:
            raise ValueError(f"{path} has no group {quoted(group)} with columns; it has {known}")
        return name
    if "/" in groups:
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


def _has_axes(dataset: Any) -> bool:
    """Return whether a dataset has vectors of 2 or 3 coordinates, such as positions of shape (n, 3)."""
    return dataset.ndim == 2 and _are_axes(dataset.dtype, dataset.shape[1:])


def _are_axes(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    return shape in ((2,), (3,)) and dtype.kind in "fiu"


class _Place(NamedTuple):
    """Where a column is: a dataset, perhaps a field of its records, and perhaps one axis of vectors."""

    member: str
    field: str | None = None
    axis: int | None = None


def _columns_in(group: Any) -> dict[str, _Place]:
    """Return the columns of a group or of records; ``pos`` of shape (n, 3) has ``pos_x``, ``pos_y`` and ``pos_z``."""
    if isinstance(group, import_h5py().Dataset):
        found = {name: (_Place(group.name, name), group.dtype[name]) for name in group.dtype.names}
    else:
        members = ((name, group[name]) for name in datasets_in(group))
        found = {name: (_Place(each.name), np.dtype((each.dtype, (each.shape or ())[1:]))) for name, each in members}
    columns: dict[str, _Place] = {}
    for name, (place, dtype) in found.items():
        if _are_axes(dtype.base, dtype.shape):
            columns.update({f"{name}_{'xyz'[k]}": place._replace(axis=k) for k in range(dtype.shape[0])})
        else:
            columns[name] = place
    return columns


def inside(group: Any, name: str, kind: type) -> Any:
    """Return a member of a group, a group or a dataset; None where it is none of the kind or in another file."""
    h5py = import_h5py()
    is_here = isinstance(group.get(name, getlink=True), h5py.HardLink | h5py.SoftLink)
    found = group.get(name) if is_here else None
    return found if isinstance(found, kind) else None


def _check_column(dataset: Any, place: _Place, path: str, remedy: str) -> tuple[np.dtype[Any], int]:
    """Return type and length of a dataset, if it is a column whose numbers are in the file."""
    name = place.member
    with reading(path, "HDF5"):
        shape, dtype = dataset.shape, dataset.dtype
    if place.field is not None:
        name, dtype = f"{name}[{place.field}]", dtype[place.field]
        shape, dtype = shape + dtype.shape, dtype.base
    what = f"dataset {short(name, 100)} of {path}"
    check_numbers(shape, dtype, what, remedy, (1,) if place.axis is None else (2,))
    check_stored(dataset, name, path, remedy)
    return dtype.newbyteorder("="), shape[0]


def check_stored(dataset: Any, name: str, path: str, remedy: str) -> None:
    """Raise for a dataset that is not completely in its file: HDF5 gives the fill value where there is nothing."""
    with reading(path, "HDF5"):
        elsewhere = dataset.is_virtual or bool(dataset.external)
        if dataset.chunks:
            needed = math.prod(-(-rows // step) for rows, step in zip(dataset.shape, dataset.chunks, strict=True))
            there, what = dataset.id.get_num_chunks(), "chunks"
        else:
            needed, there, what = dataset.nbytes, dataset.id.get_storage_size(), "bytes"
    if elsewhere:
        raise ValueError(f"dataset {name} of {path} stores its numbers in other files; copy them into one, or {remedy}")
    if there < needed:
        raise ValueError(
            f"dataset {name} of {path} has {there} of {needed} {what}: it was not written completely; write it again, "
            f"or {remedy}"
        )


def read_dataset(path: str, member: str, start: int, stop: int) -> npt.NDArray[Any]:
    """Return rows start to stop of one dataset of a file, which may have more dimensions."""
    return _read_column(path, _Place(member), start, stop)


def _read_column(path: str, place: _Place, start: int, stop: int) -> npt.NDArray[Any]:
    """Return rows start to stop of a column."""
    rows, member = slice(start, stop), place.member
    with open_hdf5(path) as file, reading(path, "HDF5", f"rows {start} to {stop - 1} of {member}, counted from 0"):
        if place.field is None:
            array: npt.NDArray[Any] = file[member][rows if place.axis is None else (rows, place.axis)]
        else:
            array = file[member][place.field, rows]
            array = array if place.axis is None else array[:, place.axis]
    return native(array)


def write_hdf5(
    stream: BinaryIO,
    blocks: Iterable[Block],
    dtypes: Mapping[str, np.dtype[Any]],
    rows: int,
    units: Mapping[str, str],
    attrs: Mapping[str, Any],
) -> None:
    """Write blocks of columns, one at a time, as datasets in the root of an open file.

    It is written through its name, as HDF5 must read while it writes.
    """
    check_space(stream, rows * sum(dtype.itemsize for dtype in dtypes.values()))
    with import_h5py().File(stream.name, "w", track_order=True) as file:
        file.attrs.update(attrs)
        columns = {name: file.create_dataset(name, shape=(rows,), dtype=dtype) for name, dtype in dtypes.items()}
        for name, unit in units.items():
            columns[name].attrs["units"] = unit
        stop = 0
        for block in blocks:
            start, stop = stop, stop + len(next(iter(block.values())))
            for name, values in block.items():
                columns[name][start:stop] = values


def check_space(stream: BinaryIO, size: int) -> None:
    """Refuse to begin a file of `size` bytes of data for which there is no space: HDF5 crashes where a write fails."""
    needed = size + _OVERHEAD
    disk = os.statvfs(stream.name)
    if disk.f_bavail * disk.f_frsize < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and limit < needed:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
