"""Columns of files that have arrays: one way to choose, check and read them; and those of NumPy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.limits import check_memory
from daskclust.core.data.quote import quoted, short
from daskclust.io.attrs import KEY, unpack
from daskclust.io.blocks import as_objects
from daskclust.io.files import reads
from daskclust.io.rows import Stored, chunk_sizes
from daskclust.io.schema import Naming, Table

Array = npt.NDArray[Any]
StoredColumns = Mapping[str, tuple[Stored, int]]
"""The columns of a file by name: the array that has each, and its number there."""


def table_of(
    columns: StoredColumns, naming: Naming, chunks: int | None, attrs: Mapping[str, Any] | None = None
) -> Table:
    """Return the columns of a file that are chosen: read, or lazy; an array that has several is read once."""
    attrs = dict(attrs or {})
    naming = naming.settle(list(columns), attrs.get("field"))
    chosen = naming.choose(list(columns), named=True)
    wanted: dict[Stored, list[int]] = {}
    for name in chosen:
        array, number = columns[name]
        if array.fault:
            raise ValueError(array.fault + naming.without(name))
        wanted[array] = sorted([*wanted.get(array, []), number])
    check_lengths({ours: columns[name][0].shape[0] for name, ours in chosen.items()}, naming.source)
    arrays = [array.only(numbers) for array, numbers in wanted.items()]
    read = dict(zip(wanted, columns_of(arrays, naming.source, chunks), strict=True))
    found, units = {}, {}
    for name, ours in chosen.items():
        array, number = columns[name]
        found[ours] = read[array][wanted[array].index(number)]
        if array.units is not None:
            units[ours] = array.units
    return Table(found, naming, units, attrs)


def columns_of(arrays: Iterable[Stored], source: str, chunks: int | None) -> list[list[Any]]:
    """Return the columns of arrays of as many rows: read, or lazy in chunks after those of the first array."""
    arrays = list(arrays)
    if chunks is None:
        check_memory(sum(int(np.prod(each.shape)) * each.dtype.itemsize for each in arrays), source)
    sizes = None if chunks is None else chunk_sizes(chunks, [(each.shape[0], each.own) for each in arrays[:1]])
    return [each.columns(sizes) for each in arrays]


def unnamed(stored: Stored, naming: Naming, chunks: int | None, attrs: Mapping[str, Any] | None = None) -> Table:
    """Return the columns of one array, which has no names for them, as a table."""
    remedy = "write the points as rows, with their coordinates first, or as a structured array of shape (n,)"
    if fault := stored.fault or no_numbers(stored.shape, stored.dtype, f"the array of {naming.source}"):
        raise ValueError(fault + remedy)
    names = naming.names(None, stored.shape[1] if len(stored.shape) == 2 else 1)
    naming = naming.settle(names)
    chosen = naming.choose(names)
    [columns] = columns_of([stored], naming.source, chunks)
    found = {chosen[name]: column for name, column in zip(names, columns, strict=True) if name in chosen}
    return Table(found, naming, attrs=dict(attrs or {}))


def no_numbers(shape: Sequence[int] | None, dtype: np.dtype[Any], what: str, dims: Sequence[int] = (1, 2)) -> str:
    """Return why an array is none of numbers of shape (n,) or (n, columns), or of one of these; "" where it is."""
    if shape is not None and len(shape) in dims and dtype.kind in "fiub" and 0 not in shape[1:]:
        return ""
    return (
        f"{what} has shape {None if shape is None else tuple(shape)} and dtype {short(dtype)}, which is no "
        f"{'table' if 2 in dims else 'column'} of numbers; "
    )


def check_lengths(lengths: Mapping[str, int], path: str) -> None:
    """Raise where columns have several lengths."""
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of {path} have unequal lengths: {short(lengths)}; leave some out with columns=")


# --------------------------------------------------------------------------------------------------------------- NumPy
@reads("NumPy")
def read_npy(path: str, naming: Naming, chunks: int | None = None) -> Table:
    """Read the columns of a file with an array of shape (n,) or (n, columns), or a structured one of shape (n,)."""
    return _table_of_array(*npy_columns(path), naming, chunks)


def npy_columns(path: str) -> tuple[Stored | None, StoredColumns]:
    """Return the array of a file, or the fields of a structured one."""
    here = os.path.abspath(path)
    # mapped into memory, read-only; objects, which need pickle, are refused
    array = np.lib.format.open_memmap(path, mode="r")
    return _columns_of_array(array, (here,), partial(_npy_rows, here), path)


def _npy_rows(path: str, name: str, start: int, stop: int) -> Array:
    """Return rows of the array of a file, a copy."""
    return np.array(_rows_of(np.lib.format.open_memmap(path, mode="r"), name, start, stop))


def _rows_of(array: Array, name: str, start: int, stop: int) -> Array:
    """Return rows of an array, of one field where it is structured."""
    return as_objects((array[name] if name else array)[start:stop])


def _columns_of_array(
    array: Array, files: tuple[str, ...], read: Callable[[str, int, int], Array], source: str
) -> tuple[Stored | None, StoredColumns]:
    """Return an array, or the fields of a structured one, whose rows `read` reads by the name of the field."""
    if array.dtype.names is None:
        return Stored(partial(read, ""), files, "NumPy", array.shape, array.dtype.newbyteorder("=")), {}
    columns = {}
    for name in array.dtype.names:
        values = array[name]
        fault = no_numbers(values.shape, values.dtype, f"column {quoted(name)} of {source}", (1,))
        dtype = np.dtype(object) if values.dtype.kind in "SU" else values.dtype.newbyteorder("=")
        columns[name] = Stored(partial(read, name), files, "NumPy", values.shape, dtype, fault=fault), 0
    return None, columns


def _table_of_array(array: Stored | None, columns: StoredColumns, naming: Naming, chunks: int | None) -> Table:
    """Return the columns of an array without names, or of a structured one."""
    return table_of(columns, naming, chunks) if array is None else unnamed(array, naming, chunks)


@reads("NumPy .npz")
def read_npz(path: str, naming: Naming) -> Table:
    """Read the columns of an archive: one array for each, or a single array as in a ``.npy`` file.

    The comment of the archive may tell units and attributes.
    """
    with open(path, "rb") as stream:
        archive = np.load(stream, allow_pickle=False)
        names, comment = list(archive.files), archive.zip.comment
        sizes = {each.filename.removesuffix(".npy"): each.file_size for each in archive.zip.infolist()}
        if len(names) == 1:
            check_memory(sizes[names[0]], path)
            array = np.asarray(archive[names[0]])
            if array.ndim != 1 or array.dtype.names is not None:
                return _table_of_array(*_columns_of_array(array, (path,), partial(_rows_of, array), path), naming, None)
        prefix = f"{KEY}: ".encode()
        attrs, units = unpack(comment.removeprefix(prefix) if comment.startswith(prefix) else None, path)
        naming = naming.settle(names, attrs.get("field"))
        chosen = naming.choose(names, named=True)
        check_memory(sum(sizes[name] for name in chosen), path)
        columns = {}
        for name, ours in chosen.items():
            values = np.asarray(archive[name])
            if fault := no_numbers(values.shape, values.dtype, f"column {quoted(name)} of {path}", (1,)):
                raise ValueError(fault + naming.without(name))
            columns[ours] = np.array(values, values.dtype.newbyteorder("="))
    check_lengths({name: len(values) for name, values in columns.items()}, path)
    told = {ours: units[name] for name, ours in chosen.items() if name in units}
    return Table(columns, naming, told, attrs)
