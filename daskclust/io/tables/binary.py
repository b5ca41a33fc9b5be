"""Columns of NumPy files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.limits import check_memory
from daskclust.core.data.quote import quoted, short
from daskclust.io.attrs import KEY, unpack
from daskclust.io.files import reading
from daskclust.io.rows import columns_in
from daskclust.io.schema import Naming, Table

Array = npt.NDArray[Any]


def read_npy(path: str, naming: Naming, chunks: int | None = None) -> Table:
    """Read the columns of a file with an array of shape (n,) or (n, columns), or a structured one of shape (n,)."""
    here = os.path.abspath(path)

    def load(array: Array, name: str) -> list[Any]:
        dtype = array.dtype.newbyteorder("=")
        return columns_in(partial(_npy_rows, here, name), [here], array.shape, dtype, chunks)

    return _columns_of(map_npy(path), naming, load)


def _npy_rows(path: str, name: str, start: int, stop: int) -> Array:
    """Return rows of the array of a file, of one field where it is structured."""
    rows = map_npy(path)[start:stop]
    return _copied(rows[name] if name else rows)


def _copied(values: Array) -> Array:
    return np.array(values, values.dtype.newbyteorder("="), order="C")


def map_npy(path: str) -> Array:
    """Map the array of a ``.npy`` file into memory, read-only; objects, which need pickle, are refused."""
    with reading(path, "NumPy"):
        array: Array = np.lib.format.open_memmap(path, mode="r")
    return array


def _columns_of(array: Array, naming: Naming, load: Callable[[Array, str], list[Any]]) -> Table:
    """Return the columns of an array, or of a structured one, which `load` loads by the name of its field."""
    source, names = naming.source, array.dtype.names
    if names is None:
        remedy = "write the points as rows, with their coordinates first, or as a structured array of shape (n,)"
        check_numbers(array.shape, array.dtype, f"the array of {source}", remedy)
        return unnamed(load(array, ""), naming)
    naming = naming.settle(names)
    columns = {}
    for name, ours in naming.choose(names, named=True).items():
        what = f"column {quoted(name)} of {source}"
        check_numbers(array[name].shape, array[name].dtype, what, naming.without(name), (1,))
        [columns[ours]] = load(array[name], name)
    return Table(columns, naming)


def unnamed(columns: list[Any], naming: Naming) -> Table:
    """Return columns without names as a table."""
    names = naming.names(None, len(columns))
    naming = naming.settle(names)
    chosen = naming.choose(names)
    return Table({chosen[name]: column for name, column in zip(names, columns, strict=True) if name in chosen}, naming)


def check_numbers(
    shape: Sequence[int] | None, dtype: np.dtype[Any], what: str, remedy: str, dims: Sequence[int] = (1, 2)
) -> None:
    """Refuse what is no array of numbers of shape (n,) or (n, columns), or of one of these."""
    if shape is None or len(shape) not in dims or dtype.kind not in "fiub" or 0 in shape[1:]:
        raise ValueError(
            f"{what} has shape {None if shape is None else tuple(shape)} and dtype {short(dtype)}, which is no "
            f"{'table' if 2 in dims else 'column'} of numbers; {remedy}"
        )


def read_npz(path: str, naming: Naming) -> Table:
    """Read the columns of an archive: one array for each, or a single array as in a ``.npy`` file.

    The comment of the archive may tell units and attributes.
    """

    def read(name: str) -> Array:
        with reading(path, "NumPy .npz"):
            return np.asarray(archive[name])

    with open(path, "rb") as stream:
        with reading(path, "NumPy .npz"):
            archive = np.load(stream, allow_pickle=False)
            names, comment = list(archive.files), archive.zip.comment
            sizes = {each.filename.removesuffix(".npy"): each.file_size for each in archive.zip.infolist()}
        if len(names) == 1:
            check_memory(sizes[names[0]], path)
            array = read(names[0])
            if array.ndim != 1 or array.dtype.names is not None:
                return _columns_of(array, naming, lambda values, _: list(_copied(np.atleast_2d(values.T))))
        prefix = f"{KEY}: ".encode()
        attrs, units = unpack(comment.removeprefix(prefix) if comment.startswith(prefix) else None, path)
        naming = naming.settle(names, attrs.get("field"))
        chosen = naming.choose(names, named=True)
        check_memory(sum(sizes[name] for name in chosen), path)
        columns = {}
        for name, ours in chosen.items():
            values = read(name)
            check_numbers(values.shape, values.dtype, f"column {quoted(name)} of {path}", naming.without(name), (1,))
            columns[ours] = _copied(values)
    check_lengths({name: len(values) for name, values in columns.items()}, path)
    told = {ours: units[name] for name, ours in chosen.items() if name in units}
    return Table(columns, naming, told, attrs)


def check_lengths(lengths: Mapping[str, int], path: str) -> None:
    """Raise where columns have several lengths."""
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of {path} have unequal lengths: {short(lengths)}; leave some out with columns=")
