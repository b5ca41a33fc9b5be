"""Columns of NumPy files."""

from __future__ import annotations

import errno
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.quote import quoted, short
from daskclust.io.attrs import KEY, unpack
from daskclust.io.schema import Naming, Table

# NumPy refuses longer headers, but reads them first.
_LONGEST_HEADER = 10_000
# Deflate makes at most 1032 bytes out of one; what claims more was never written.
_MOST_EXPANSION = 2000


@contextmanager
def reading(path: str, kind: str, part: str = "") -> Iterator[None]:
    """Turn what a format's library raises for a damaged file into a ValueError that names the file.

    The libraries raise almost any class on damaged bytes (struct.error, KeyError, OSError, zlib.error and more), so
    the net is wide on purpose; what is not about the bytes passes through.

    Parameters
    ----------
    path : str
        The file.
    kind : str
        Name of the format.
    part : str, default ""
        What is read of a file whose head is right, such as a row group: it must be damaged if it cannot be.

    Raises
    ------
    FileNotFoundError
        With the file's name, which not all libraries give.
    ValueError
        In place of any other error of the body.
    """
    try:
        yield
    except FileNotFoundError as error:
        if error.filename is not None:
            raise
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error
    except MemoryError as error:
        if not type(error).__module__.startswith("pyarrow"):
            raise
        # Arrow believes the headers of pages, and asks for what they say
        raise ValueError(
            f"{path} cannot be read as a {kind} file: a part of it claims more memory than there is ({error}); it is "
            "damaged, or chunks= may read it"
        ) from error
    except (PermissionError, ImportError):
        raise
    except Exception as error:
        said = short(" ".join(str(error).split()).rstrip("."), 1000)
        told = f"{part}: {said}; it is damaged: copy or write the file again" if part else said
        raise ValueError(f"{path} cannot be read as a {kind} file: {told}") from error


def read_npy(path: str, naming: Naming) -> Table:
    """Read the columns of a ``.npy`` file: a 2-D array of shape (n, columns), or a structured one of shape (n,).

    Parameters
    ----------
    path : str
        The file. It is mapped, not loaded, so that only the chosen columns take memory.
    naming : Naming
        Which columns become which variables.

    Returns
    -------
    Table
        The columns.

    Raises
    ------
    ValueError
        For damaged files, objects (they would need pickle) and other shapes.
    """
    return _columns_of(map_npy(path), naming)


def map_npy(path: str) -> npt.NDArray[Any]:
    """Map the array of a ``.npy`` file into memory, read-only.

    Raises
    ------
    ValueError
        For what is no such file, and for objects, which would need pickle.
    """
    with reading(path, "NumPy"):
        with open(path, "rb") as stream:
            if np.lib.format.read_magic(stream) != (1, 0):
                length = int.from_bytes(stream.read(4), "little")
                if length > _LONGEST_HEADER:
                    raise ValueError(f"its header claims {length} bytes, more than any of {_LONGEST_HEADER}")
        array: npt.NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    return array


def _columns_of(array: npt.NDArray[Any], naming: Naming) -> Table:
    """Return chosen columns of a 2-D or structured array, each as its own contiguous array."""
    if array.dtype.names is not None and array.ndim == 1:
        naming = naming.settle(array.dtype.names)
        chosen = naming.choose(array.dtype.names, named=True)
        return Table({ours: _column(array[name], name, naming.source) for name, ours in chosen.items()}, naming)
    if array.dtype.names is not None or array.ndim != 2:
        raise ValueError(
            f"{naming.source} holds an array of shape {array.shape} and dtype {short(array.dtype)}; "
            "expected shape (n, columns), or a structured array of shape (n,)"
        )
    names = naming.names(None, array.shape[1])
    naming = naming.settle(names)
    chosen = naming.choose(names)
    places = {name: k for k, name in enumerate(names)}
    columns = {ours: _column(array[:, places[name]], name, naming.source) for name, ours in chosen.items()}
    return Table(columns, naming)


def _column(values: npt.NDArray[Any], name: str, source: str) -> npt.NDArray[Any]:
    """Return one column as a plain array in native byte order."""
    if values.ndim != 1 or values.dtype.kind not in "fiub":
        raise ValueError(
            f"column {quoted(name)} of {source} has shape {values.shape} and dtype {short(values.dtype)}, which is no "
            f"column of numbers; leave it out with columns={{{quoted(name)}: None}}"
        )
    return np.array(values, dtype=values.dtype.newbyteorder("="))


def read_npz(path: str, naming: Naming) -> Table:
    """Read the columns of a ``.npz`` file: one array per column, or a single array as in a ``.npy`` file.

    Parameters
    ----------
    path : str
        The file.
    naming : Naming
        Which columns become which variables.

    Returns
    -------
    Table
        The columns, and units and attributes that the comment of the archive tells.

    Raises
    ------
    ValueError
        For damaged files, objects (they would need pickle), other shapes and unequal lengths.
    """
    with reading(path, "NumPy .npz"), zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        dimensions = [_check_member(archive, info) for info in members.values()]
        comment = archive.comment
    if len(members) == 1 and dimensions != [1]:
        with zipfile.ZipFile(path) as archive:
            return _columns_of(_member(path, archive, *members.values()), naming)
    attrs, units = unpack(_metadata(comment), path)
    naming = naming.settle(list(members), attrs.get("field"))
    chosen = naming.choose(list(members), named=True)
    with zipfile.ZipFile(path) as archive:
        columns = {ours: _column(_member(path, archive, members[name]), name, path) for name, ours in chosen.items()}
    told = {ours: units[name] for name, ours in chosen.items() if name in units}
    return Table(same_length(columns, path), naming, told, attrs)


def _metadata(comment: bytes) -> bytes | None:
    """Return our part of an archive's comment, if it is one of ours."""
    prefix = f"{KEY}: ".encode()
    return comment.removeprefix(prefix) if comment.startswith(prefix) else None


def _member(path: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """Return one array of an archive."""
    with reading(path, "NumPy .npz"), archive.open(info) as stream:
        array: npt.NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _check_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> int:
    """Return the number of dimensions that one array of an archive claims, 0 for a structured one.

    NumPy allocates what the header claims before it reads, so a damaged header must not get that far.
    """
    if info.file_size > _MOST_EXPANSION * info.compress_size or info.compress_size > _size(archive):
        raise ValueError(
            f"{info.filename} claims {info.file_size} bytes, made of {info.compress_size}, and the file has "
            f"{_size(archive)}"
        )
    with archive.open(info) as stream:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        claimed = dtype.itemsize
        for length in shape:
            claimed *= length
        if not dtype.hasobject and claimed != info.file_size - stream.tell():
            raise ValueError(f"{info.filename} claims {claimed} bytes of data and has {info.file_size - stream.tell()}")
    return 0 if dtype.names is not None else len(shape)


def _size(archive: zipfile.ZipFile) -> int:
    """Return the bytes of an archive."""
    return os.path.getsize(os.fspath(archive.filename or ""))


def same_length(columns: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the columns, if they have one length."""
    check_lengths({name: len(values) for name, values in columns.items()}, path)
    return columns


def check_lengths(lengths: Mapping[str, int], path: str) -> None:
    """Raise where columns have several lengths."""
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of {path} have unequal lengths: {short(lengths)}; leave some out with columns=")
