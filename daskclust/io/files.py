"""Files that can be read, one or several, and what is said of those that cannot."""

from __future__ import annotations

import errno
import functools
import glob
import importlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeVar, cast

from daskclust.core.data.quote import listed, quoted, repeated, short

Reader = TypeVar("Reader", bound=Callable[..., Any])

File = str | os.PathLike[str]
Paths = File | Iterable[File]
"""What names one file or several."""

TEXT, PARQUET, HDF5 = (".csv", ".tsv", ".txt"), (".parquet", ".pq"), (".hdf5", ".h5")
"""Extensions of tables, by format."""

NEXUS = ".nxs"
"""The extension of NeXus files, of HDF5 with events."""

READABLE = (*TEXT, *PARQUET, *HDF5, NEXUS, ".root", ".npy", ".npz")
WRITABLE = (*PARQUET, ".csv", ".h5", ".hdf5", ".npz", ".zarr")
"""Extensions of tables of points."""

OUTPUTS = (*WRITABLE, ".root", ".fcs")
"""Extensions of what commands write."""

MAGIC = {
    b"PAR1": ".parquet", b"\x89HDF": ".h5", b"root": ".root", b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz",
    b"FCS": ".fcs", b"TPX3": ".tpx3",
}  # fmt: skip
"""What files of a format begin with."""

STORE = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")
"""Files by which a zarr store is known."""

_MEMBER = re.compile(r"(.*\.(?:root|hdf5|h5|nxs)):([^*?\[]*)", re.IGNORECASE | re.DOTALL)

KINDS = {
    stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip
"""What is no file, by the kind that the system tells."""


def check_file(path: str, instead: str = "give one file") -> os.stat_result:
    """Return the state of a file of at least one byte; raise for anything else."""
    try:
        state = os.stat(path)
    except FileNotFoundError:
        if os.path.islink(path):
            raise FileNotFoundError(
                f"{path} is a symbolic link to {os.readlink(path)}, which is not there; correct the link"
            ) from None
        raise FileNotFoundError(f"no such file: {path}") from None
    kind = KINDS.get(stat.S_IFMT(state.st_mode))
    if stat.S_ISDIR(state.st_mode):
        raise IsADirectoryError(f"{path} is a directory; {instead}")
    if kind is not None:
        raise OSError(f"{path} is {kind}, which can only be read from beginning to end; write its data to a file first")
    if state.st_size == 0:
        raise ValueError(f"{path} is empty (0 bytes)")
    return state


def is_parts(path: str) -> bool:
    """Return whether a path is a folder of Parquet files, as its name says."""
    return os.path.isdir(path) and path.endswith(PARQUET)


def is_store(path: str) -> bool:
    """Return whether a path is a zarr store on disk."""
    return os.path.isdir(path) and any(os.path.exists(os.path.join(path, mark)) for mark in STORE)


def split_member(path: str) -> tuple[str, str | None]:
    """Return file and tree of ``file.root:tree``, or file and group of ``file.h5:group``."""
    found = None if os.path.lexists(path) else _MEMBER.fullmatch(path)
    return (found[1], found[2]) if found else (path, None)


def known_suffix(path: str | os.PathLike[str], known: Sequence[str]) -> str:
    """Return the extension of a path in lower case, if it is a known one."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in known:
        raise ValueError(f"unknown extension {suffix!r} of {os.fspath(path)}; known: {', '.join(known)}")
    return suffix


def import_library(name: str, what: str) -> ModuleType:
    """Import a library that reads `what`, or say what to install."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f'{what} need {name.partition(".")[0]}: pip install "daskclust[io]"') from error


@contextmanager
def reading(path: str, kind: str, part: str = "") -> Iterator[None]:
    """Turn what a library raises for a damaged file, of almost any class, into a ValueError that names the file.

    What names it already stays as it is. `part` is what is read of a file whose head is right, such as a row group: it
    must be damaged if it cannot be.
    """
    try:
        yield
    except FileNotFoundError as error:
        if error.filename is not None:
            raise
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error
    except (PermissionError, ImportError):
        raise
    except Exception as error:
        is_told = path in str(error) or os.path.abspath(path) in str(error)
        if is_told and type(error) in (ValueError, MemoryError, IsADirectoryError):
            raise
        said = short(" ".join(str(error).split()).rstrip("."), 1000)
        if isinstance(error, MemoryError):  # libraries ask for as much as a header says, right or wrong
            said = f"it asks for more memory than there is ({said}): it is damaged, or too large without chunks="
        elif part:
            said = f"{part}: {said}; it is damaged: copy or write the file again"
        raise ValueError(f"{path} cannot be read as a {kind} file: {said}") from error


def reads(kind: str) -> Callable[[Reader], Reader]:
    """Let a function whose first argument is the path of a file of some kind raise what `reading` makes of errors."""

    def decorated(function: Reader) -> Reader:
        @functools.wraps(function)
        def read(path: str, *args: Any, **options: Any) -> Any:
            with reading(path, kind):
                return function(path, *args, **options)

        return cast(Reader, read)

    return decorated


# ---------------------------------------------------------------------------------------------------------- several
def files_of(paths: Paths, endings: Sequence[str] = ()) -> list[str] | None:
    """Return the files that a list, a glob or a folder names; None for the name of one file.

    A list keeps its order. Of globs and folders files are in the order of their names, where numbers count as numbers.
    """
    if isinstance(paths, str | os.PathLike):
        return _expanded(os.fspath(paths), endings)
    given: list[Any] = list(paths) if isinstance(paths, Iterable) else [paths]
    if wrong := [path for path in given if not isinstance(path, str | os.PathLike)]:
        raise TypeError(f"path must be the name of a file, or a list of names, got {quoted(wrong[0])}")
    if not given:
        raise ValueError("the list of files is empty; name one or more")
    names = [os.fspath(path) for path in given]
    found = [file for name in names for file in _expanded(name, endings) or [name]]
    if twice := repeated(map(os.path.realpath, found)):
        raise ValueError(f"{twice[0]} is given twice; name each file once")
    return found


def numeric_order(name: str) -> list[Any]:
    """Return a key that sorts names so that ``run_2`` is before ``run_10``."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _expanded(path: str, endings: Sequence[str]) -> list[str] | None:
    """Return the files of a glob or a folder, None for anything else."""
    if os.path.isdir(path):
        return None if _is_one(path) else _in_folder(path, endings)
    if not glob.has_magic(path) or os.path.lexists(path):
        return None
    pattern, member = split_member(path)
    chosen = "" if member is None else f":{member}"
    found = [file + chosen for file in glob.glob(pattern, recursive=True) if _is_one(file)]
    if not found:
        raise FileNotFoundError(f"no file matches {path}; is the folder {quoted(os.path.dirname(path) or '.')} right?")
    return sorted(found, key=numeric_order)


def _is_one(path: str) -> bool:
    """Return whether a path is a file, or a folder that is read as one."""
    return not os.path.isdir(path) or is_parts(path.rstrip("/")) or is_store(path) or path.endswith(".zarr")


def _in_folder(folder: str, endings: Sequence[str]) -> list[str]:
    """Return the files of a folder that a reader may take, if they are of one kind."""
    names = [name for name in os.listdir(folder) if not name.startswith((".", "_"))]
    names = [name for name in names if _is_one(os.path.join(folder, name)) and (not endings or _kind(name) in endings)]
    kinds = sorted(set(map(_kind, names)))
    if not names:
        wanted = f"that has {' or '.join(endings)} files" if endings else "with files in it"
        raise IsADirectoryError(f"{folder} is a directory; give one {wanted}, or a file")
    if len(kinds) > 1:
        pattern = os.path.join(folder, f"*{kinds[0]}")
        raise ValueError(f"{folder} has files of several kinds, {listed(kinds)}; choose those of one, as {pattern}")
    return [os.path.join(folder, name) for name in sorted(names, key=numeric_order)]


def _kind(name: str) -> str:
    return os.path.splitext(name)[1].lower()
