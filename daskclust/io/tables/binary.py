"""Columns of NumPy files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.files import reading
from daskclust.core.data.quote import quoted, short
from daskclust.io.attrs import KEY, unpack
from daskclust.io.schema import Naming, Table


def read_npy(path: str, naming: Naming) -> Table:
    """Read the columns of a file with an array of shape (n, columns), or a structured one of shape (n,)."""
    return _columns_of(map_npy(path), naming)


def map_npy(path: str) -> npt.NDArray[Any]:
    """Map the array of a ``.npy`` file into memory, read-only; objects, which need pickle, are refused."""
    with reading(path, "NumPy"):
        array: npt.NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    return array


def _columns_of(array: npt.NDArray[Any], naming: Naming) -> Table:
    """Return chosen columns of a 2-D or structured array, each as its own contiguous array."""
    names = array.dtype.names
    if array.ndim != (2 if names is None else 1):
        raise ValueError(
            f"{naming.source} holds an array of shape {array.shape} and dtype {short(array.dtype)}; "
            "expected shape (n, columns), or a structured array of shape (n,)"
        )
    if names is None:
        found = naming.names(None, array.shape[1])
        columns = dict(zip(found, array.T, strict=True))
    else:
        found = list(names)
        columns = {name: array[name] for name in found}
    naming = naming.settle(found)
    chosen = naming.choose(found, named=names is not None)
    return Table({ours: _column(columns[name], name, naming.source) for name, ours in chosen.items()}, naming)


def _column(values: npt.NDArray[Any], name: str, source: str) -> npt.NDArray[Any]:
    """Return one column as a plain array in native byte order."""
    if values.ndim != 1 or values.dtype.kind not in "fiub":
        raise ValueError(
            f"column {quoted(name)} of {source} has shape {values.shape} and dtype {short(values.dtype)}, which is no "
            f"column of numbers; leave it out with columns={{{quoted(name)}: None}}"
        )
    return np.array(values, dtype=values.dtype.newbyteorder("="))


def read_npz(path: str, naming: Naming) -> Table:
    """Read the columns of an archive: one array for each, or a single array as in a ``.npy`` file.

    The comment of the archive may tell units and attributes.
    """

    def read(name: str) -> npt.NDArray[Any]:
        with reading(path, "NumPy .npz"):
            return np.asarray(archive[name])

    with open(path, "rb") as stream:
        with reading(path, "NumPy .npz"):
            archive = np.load(stream, allow_pickle=False)
            names, comment = list(archive.files), archive.zip.comment
        if len(names) == 1:
            array = read(names[0])
            if array.ndim != 1 or array.dtype.names is not None:
                return _columns_of(array, naming)
        prefix = f"{KEY}: ".encode()
        attrs, units = unpack(comment.removeprefix(prefix) if comment.startswith(prefix) else None, path)
        naming = naming.settle(names, attrs.get("field"))
        chosen = naming.choose(names, named=True)
        columns = {ours: _column(read(name), name, path) for name, ours in chosen.items()}
    check_lengths({name: len(values) for name, values in columns.items()}, path)
    told = {ours: units[name] for name, ours in chosen.items() if name in units}
    return Table(columns, naming, told, attrs)


def check_lengths(lengths: Mapping[str, int], path: str) -> None:
    """Raise where columns have several lengths."""
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of {path} have unequal lengths: {short(lengths)}; leave some out with columns=")
