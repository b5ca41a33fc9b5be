"""Columns of NumPy and ROOT files."""

from __future__ import annotations

import errno
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from ._attrs import KEY, unpack
from .schema import Naming, Table

Arrays = dict[str, npt.NDArray[Any]]


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
    except (MemoryError, PermissionError, ImportError):
        raise
    except Exception as error:
        said = " ".join(str(error).split()).rstrip(".")
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
    with reading(path, "NumPy"):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    return _columns_of(array, naming)


def _columns_of(array: npt.NDArray[Any], naming: Naming) -> Table:
    """Return chosen columns of a 2-D or structured array, each as its own contiguous array."""
    if array.dtype.names is not None and array.ndim == 1:
        naming = naming.settle(array.dtype.names)
        chosen = naming.choose(array.dtype.names, named=True)
        return Table({ours: _column(array[name], name, naming.source) for name, ours in chosen.items()}, naming)
    if array.dtype.names is not None or array.ndim != 2:
        raise ValueError(
            f"{naming.source} holds an array of shape {array.shape} and dtype {array.dtype}; "
            "expected shape (n, columns), or a structured array of shape (n,)"
        )
    names = naming.names(None, array.shape[1])
    naming = naming.settle(names)
    chosen = naming.choose(names)
    columns = {ours: _column(array[:, names.index(name)], name, naming.source) for name, ours in chosen.items()}
    return Table(columns, naming)


def _column(values: npt.NDArray[Any], name: str, source: str) -> npt.NDArray[Any]:
    """Return one column as a plain array in native byte order."""
    if values.ndim != 1 or values.dtype.kind not in "fiub":
        raise ValueError(
            f"column {name!r} of {source} has shape {values.shape} and dtype {values.dtype}, which is no column of "
            f"numbers; leave it out with columns={{{name!r}: None}}"
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
        return _columns_of(_member(path, *members.values()), naming)
    attrs, units = unpack(_metadata(comment), path)
    naming = naming.settle(list(members), attrs.get("field"))
    chosen = naming.choose(list(members), named=True)
    columns = {ours: _column(_member(path, members[name]), name, path) for name, ours in chosen.items()}
    told = {ours: units[name] for name, ours in chosen.items() if name in units}
    return Table(same_length(columns, path), naming, told, attrs)


def _metadata(comment: bytes) -> bytes | None:
    """Return our part of an archive's comment, if it is one of ours."""
    prefix = f"{KEY}: ".encode()
    return comment.removeprefix(prefix) if comment.startswith(prefix) else None


def _member(path: str, info: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """Return one array of an archive."""
    with reading(path, "NumPy .npz"), zipfile.ZipFile(path) as archive, archive.open(info) as stream:
        array: npt.NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _check_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> int:
    """Return the number of dimensions that one array of an archive claims, 0 for a structured one.

    NumPy allocates what the header claims before it reads, so a damaged header must not get that far.
    """
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


def same_length(columns: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the columns, if they have one length."""
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of {path} have unequal lengths: {lengths}; leave some out with columns=")
    return columns


def read_root(path: str, tree: str | None, naming: Naming) -> Table:
    """Read the branches of one tree of a ROOT file.

    Parameters
    ----------
    path : str
        The file.
    tree : str or None
        Name of the tree; None where the file has only one.
    naming : Naming
        Which branches become which variables.

    Returns
    -------
    Table
        The columns. Where branches are jagged (a list of hits per event), they are joined, values per event are
        repeated for each of its hits, and ``event`` is the entry of the tree, unless a branch is named so.

    Raises
    ------
    ImportError
        Without uproot.
    ValueError
        For damaged files, no or several trees, branches that are no numbers, and lists of unequal lengths.
    """
    try:
        import uproot
    except ImportError as error:
        raise ImportError('reading ROOT files needs uproot: pip install "daskclust[io]"') from error
    with reading(path, "ROOT"):
        file = uproot.open(path)
    with file:
        name = _tree_name(file, tree, path)
        with reading(path, "ROOT"):
            branches = {b.name: b for b in file[name].itervalues(recursive=True) if not len(b.branches)}
        naming = naming.settle(list(branches))
        chosen = naming.choose(list(branches), named=True)
        with reading(path, "ROOT"):
            arrays = {name: branches[name].array(library="ak") for name in chosen}
    columns = _flatten(arrays, path)
    event = columns.pop("", None)
    result = {ours: columns[name] for name, ours in chosen.items()}
    if event is not None and "event" not in result:
        result["event"] = event
    return Table(result, naming)


def _tree_name(file: Any, tree: str | None, path: str) -> str:
    """Return the name of the tree to read."""
    with reading(path, "ROOT"):
        known = list(file.keys(cycle=False, filter_classname="TTree"))
    if tree is None:
        if len(known) != 1:
            raise ValueError(
                f"{path} has {len(known)} trees ({', '.join(known)}); choose one with {path}:name"
                if known
                else f"{path} has no TTree"
            )
        return str(known[0])
    if tree not in known:
        raise ValueError(f"{path} has no tree {tree!r}; it has {', '.join(known) or 'none'}")
    return tree


def _flatten(arrays: Mapping[str, Any], path: str) -> Arrays:
    """Return flat columns of flat or jagged awkward arrays; the event number has the name ''."""
    import awkward as ak

    for name, array in arrays.items():
        if array.ndim > 2 or not all(kind in "fiub" for kind in _kinds(array)):
            raise ValueError(
                f"branch {name!r} of {path} has type {array.type}, which is neither a number per hit nor a list of "
                f"numbers per event; leave it out with columns={{{name!r}: None}}"
            )
    jagged = [name for name, array in arrays.items() if array.ndim == 2]
    if not jagged:
        return {name: ak.to_numpy(array) for name, array in arrays.items()}
    counts = ak.to_numpy(ak.num(arrays[jagged[0]]))
    columns: Arrays = {"": np.repeat(np.arange(len(counts), dtype=np.int64), counts)}
    for name, array in arrays.items():
        if name not in jagged:
            columns[name] = np.repeat(ak.to_numpy(array), counts)
            continue
        if not np.array_equal(ak.to_numpy(ak.num(array)), counts):
            raise ValueError(
                f"branches {jagged[0]!r} and {name!r} of {path} have lists of unequal lengths, so they are not of the "
                "same hits; give columns={'branch': 'variable', ..., '*': None} to read only those that belong together"
            )
        columns[name] = ak.to_numpy(ak.flatten(array))
    return columns


def _kinds(array: Any) -> list[str]:
    """Return the NumPy kind of the numbers in an awkward array, 'O' for what is no number."""
    import awkward as ak

    flat = ak.flatten(array, axis=None) if array.ndim == 2 else array
    try:
        return [ak.to_numpy(flat).dtype.kind]
    except (TypeError, ValueError):
        return ["O"]
