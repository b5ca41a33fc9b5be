"""Columns of HDF5 files: datasets of one length in one group."""

from __future__ import annotations

import errno
import math
import os
import resource
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from daskclust.core.data.quote import listed, quoted, short
from daskclust.io.attrs import plain_attrs
from daskclust.io.blocks import Block
from daskclust.io.fields import Variable
from daskclust.io.kinds import conform
from daskclust.io.lazy import lazy_column
from daskclust.io.schema import Naming, Table
from daskclust.io.tables.binary import check_lengths, reading

# The filters of HDF5 make less than this out of one byte; what claims more was never written.
_MOST_EXPANSION = 2000
# The sum at the end of a chunk, which the filter that checks it takes off without asking whether it is there.
_FLETCHER32 = 4
# How a global heap begins, and the bytes at the start and the end of a file where it is looked for.
_HEAP, _HEAPS_WITHIN = b"GCOL\x01\0\0\0", 1 << 22
# Bytes of a file beside its data: headers and attributes.
_OVERHEAD = 1 << 15


def read_hdf5(path: str, group: str | None, naming: Naming, chunks: int | None) -> Table:
    """Read the columns of an HDF5 file.

    Parameters
    ----------
    path : str
        The file.
    group : str or None
        The group that has the columns; None where only one has any.
    naming : Naming
        Which datasets become which variables.
    chunks : int or None
        Rows per chunk of lazy columns; None reads at once.

    Returns
    -------
    Table
        Columns, the ``units`` attributes of the datasets, and the attributes of the group and of the file.

    Raises
    ------
    ImportError
        Without h5py.
    ValueError
        For damaged files, no or several groups with columns, datasets that are no columns of numbers, that claim more
        data than the file holds or that keep them in other files, and unequal lengths.
    """
    h5py = import_h5py()
    with open_hdf5(path) as file:
        with reading(path, "HDF5"):
            groups = _groups(h5py, file)
        where = _group_name(groups, group, path)
        with reading(path, "HDF5"):
            found = datasets_in(h5py, file[where])
            attrs = {**plain_attrs(file.attrs), **plain_attrs(file[where].attrs)}
        naming = naming.settle(found, attrs.get("field"))
        chosen = naming.choose(found, named=True)
        members = {ours: f"{where.rstrip('/')}/{name}" for name, ours in chosen.items()}
        dtypes, rows, units = {}, {}, {}
        for ours, member in members.items():
            with reading(path, "HDF5"):
                dataset = file[member]
                unit = plain_attrs(dataset.attrs).get("units")
            dtypes[ours], rows[ours] = _check_column(dataset, member, path)
            if unit is not None:
                units[ours] = str(unit[0] if isinstance(unit, list) and len(unit) == 1 else unit)
    check_lengths(rows, path)
    columns = {
        ours: _column(path, member, naming.known.find(ours), dtypes[ours], rows[ours], chunks)
        for ours, member in members.items()
    }
    return Table(columns, naming, units, attrs)


def import_h5py() -> ModuleType:
    """Import h5py, or say what to install."""
    try:
        import h5py  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise ImportError('HDF5 files need h5py: pip install "daskclust[io]"') from error
    return h5py  # type: ignore[no-any-return,unused-ignore]


def open_hdf5(path: str) -> Any:
    """Open a file whose texts are to be read, too.

    Raises
    ------
    ValueError
        For damaged files. Texts are in heaps, which the library does not leave where one has an object of no size, as
        pages have that were never written; such heaps are looked for where writers of attributes put them.
    """
    h5py = import_h5py()
    with reading(path, "HDF5"):
        size = os.path.getsize(path)
        with open(path, "rb") as stream:
            for start in {0, max(size - _HEAPS_WITHIN, 0)}:
                stream.seek(start)
                _check_heaps(stream.read(_HEAPS_WITHIN))
        return h5py.File(path, "r")


def _check_heaps(data: bytes) -> None:
    """Raise where a heap of texts has an object of no size before its end."""
    place = data.find(_HEAP)
    while place >= 0:
        end = place + int.from_bytes(data[place + 8 : place + 16], "little")
        entry = place + 16
        while entry + 16 <= min(end, len(data)):
            is_free = data[entry : entry + 2] == bytes(2)
            size = int.from_bytes(data[entry + 8 : entry + 16], "little")
            if is_free and not size:
                raise ValueError(f"its heap of texts at byte {place} has an object of no size; write it again")
            entry += size if is_free else 16 + -(-size // 8) * 8
        place = data.find(_HEAP, place + 1)


def _column(
    path: str, member: str, variable: Variable | None, dtype: np.dtype[Any], rows: int, chunks: int | None
) -> Any:
    """Return one column, read or lazy."""
    if chunks is None:
        return _read_rows(path, member, variable, 0, rows)
    return lazy_column(_read_rows, path, member, variable, dtype, rows, chunks)


def _groups(h5py: ModuleType, file: Any) -> list[str]:
    """Return the names of all groups that have datasets of one dimension."""
    with_columns: dict[str, None] = {}

    def visit(name: str, entry: Any) -> None:
        if isinstance(entry, h5py.Dataset) and entry.ndim == 1 and entry.dtype.kind in "fiub":
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


def datasets_in(h5py: ModuleType, group: Any) -> list[str]:
    """Return the names of the datasets of a group, without links to other files."""
    inside = (h5py.HardLink, h5py.SoftLink)
    names = [name for name in group if isinstance(group.get(name, getlink=True), inside)]
    return [name for name in names if isinstance(group.get(name), h5py.Dataset)]


def _check_column(dataset: Any, name: str, path: str) -> tuple[np.dtype[Any], int]:
    """Return type and length of a dataset, if it is a column whose numbers are in the file."""
    remedy = f"leave it out with columns={{{quoted(name.rpartition('/')[2])}: None}}"
    with reading(path, "HDF5"):
        shape, dtype = dataset.shape, dataset.dtype
    if shape is None or len(shape) != 1 or dtype.kind not in "fiub":
        raise ValueError(
            f"dataset {short(name, 100)} of {path} has shape {shape} and dtype {short(dtype)}, which is no column; "
            + remedy
        )
    check_stored(dataset, name, path, remedy)
    return dtype, shape[0]


def check_stored(dataset: Any, name: str, path: str, remedy: str) -> None:
    """Raise for a dataset that is not, or not completely, in its file.

    Parameters
    ----------
    dataset : h5py.Dataset
        Of one or more dimensions.
    name, path : str
        The dataset and its file, for messages.
    remedy : str
        What else to do, for messages.

    Raises
    ------
    ValueError
        For one that claims more data than the file holds, or keeps them in other files.
    """
    with reading(path, "HDF5"):
        shape, itemsize, chunks = dataset.shape, dataset.dtype.itemsize, dataset.chunks
        elsewhere = dataset.is_virtual or bool(dataset.external)
        stored, claimed = dataset.id.get_storage_size(), math.prod(shape) * itemsize
        largest = max(claimed, math.prod(chunks) * itemsize if chunks else 0)
        blocks = math.prod(-(-length // step) for length, step in zip(shape, chunks, strict=True)) if chunks else 0
        complete = dataset.id.get_num_chunks() >= blocks if blocks else stored >= claimed
        least = _least_chunk(dataset) if blocks and dataset.fletcher32 else _FLETCHER32
    if elsewhere:
        raise ValueError(f"dataset {name} of {path} keeps its numbers in other files; copy them into one, or {remedy}")
    if claimed and (not complete or largest > stored * _MOST_EXPANSION):
        raise ValueError(
            f"dataset {name} of {path} claims {largest} bytes of data, and the file holds {stored} of it: it was not "
            f"written completely; write it again, or {remedy}"
        )
    if least < _FLETCHER32:
        raise ValueError(
            f"dataset {name} of {path} has a chunk of {least} bytes, which is less than its checksum takes; write it "
            f"again, or {remedy}"
        )


def _least_chunk(dataset: Any) -> int:
    """Return the stored bytes of the smallest chunk of a dataset."""
    sizes: list[int] = []
    dataset.id.chunk_iter(lambda chunk: sizes.append(chunk.size))
    return min(sizes, default=0)


def read_dataset(path: str, member: str, start: int, stop: int) -> npt.NDArray[Any]:
    """Return rows start to stop of one dataset of a file, which may have more dimensions."""
    with reading(path, "HDF5"):
        file = import_h5py().File(path, "r")
    with file, reading(path, "HDF5", f"rows {start} to {stop - 1} of {member}, counted from 0"):
        array: npt.NDArray[Any] = file[member][start:stop]
    return array


def _read_rows(path: str, column: str, variable: Variable | None, start: int, stop: int) -> npt.NDArray[Any]:
    """Read rows start to stop of one dataset."""
    array: npt.NDArray[Any] = read_dataset(path, column, start, stop)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return array if variable is None else conform(array, variable, first_row=start, source=path)


def write_hdf5(
    stream: BinaryIO,
    blocks: Iterable[Block],
    dtypes: Mapping[str, np.dtype[Any]],
    rows: int,
    units: Mapping[str, str],
    attrs: Mapping[str, Any],
) -> None:
    """Write blocks of columns as datasets in the root of a file.

    Parameters
    ----------
    stream : binary file
        An open file with a name; it is written through its name, as HDF5 must read while it writes.
    blocks : iterable of mapping of str to numpy.ndarray
        Taken one at a time.
    dtypes : mapping of str to numpy.dtype
        Types of the columns.
    rows : int
        Length of the columns.
    units : mapping of str to str
        Become attributes of the datasets.
    attrs : mapping of str to object
        Become attributes of the file.

    Raises
    ------
    ImportError
        Without h5py.
    OSError
        Where there is no space for the file.
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
