"""Files that can be read, and what is said of those that cannot."""

from __future__ import annotations

import errno
import functools
import importlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeVar, cast

from daskclust.core.data.quote import short

Reader = TypeVar("Reader", bound=Callable[..., Any])

TEXT, PARQUET, HDF5 = (".csv", ".tsv", ".txt"), (".parquet", ".pq"), (".hdf5", ".h5")
"""Extensions of tables, by format."""

STORE = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")
"""Files by which a zarr store is known."""

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
