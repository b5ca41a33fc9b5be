"""Files and folders that are written completely or not at all.

What is not complete has a hidden name that tells the process that writes it. Where that was killed, so that it could
not clean up, the next one that writes the same file does. Links are followed, as an editor does: what they lead to is
replaced. What is replaced gives its permissions to what takes its place; a folder is replaced only if it has nothing
but parts of a table or store.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import socket
import stat
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from daskclust.core.data.quote import quoted
from daskclust.io.files import KINDS, PARQUET, split_member

_PARTS = re.compile(r"zarr\.json|[^/]+/(zarr\.json|c/\d+)|part-\d{6,}\.parquet")
"""What there is in folders that outputs are: stores, and Parquet files."""
_WRITTEN_IN_PART = re.compile(r"\d+ requested and \d+ written")  # NumPy's words for a full disk
_NUMBERED = re.compile(r"\.\d+(\.(?:hdf5|h5))$")  # files of one snapshot
_LOOKS, _PAUSE, _PATIENCE = 10, 0.05, 5.0  # the last two in s
_TO_DISK_EVERY = 1.0  # s


def clash(target: str | os.PathLike[str], source: str | os.PathLike[str]) -> str:
    """Return what is wrong with an output that would take the place of an input, or of a part of it; else nothing."""
    source, _ = split_member(os.fspath(source))
    there, here = Path(os.path.realpath(target)), Path(os.path.realpath(source))
    if there == here:
        return "is the input"
    if there in here.parents:
        return f"holds the input {source}"
    is_member = here in there.parents and here.name.endswith((*PARQUET, ".zarr"))
    snapshots = {_NUMBERED.sub(r".*\1", str(path)) for path in (there, here)}
    if there.exists() and (is_member or len(snapshots) == 1):
        return f"is a part of the input {source}"
    return ""


def check_kind(target: Path, *, is_folder: bool) -> None:
    """Refuse to replace a folder by a file, and a file by a folder."""
    if target.is_dir() and not is_folder:
        raise IsADirectoryError(f"{target} is a folder; give another name")
    if is_folder and target.exists() and not target.is_dir():
        raise NotADirectoryError(f"{target} is a file; give another name")


def check_replaced(folder: Path, source: object = None) -> None:
    """Refuse to replace a folder that holds the source of what is written, or what no writer of such folders makes."""
    for each in source if isinstance(source, list) else [source]:
        wrong = clash(folder, each) if isinstance(each, str | os.PathLike) else ""
        if wrong.startswith("holds"):
            raise ValueError(f"{folder} {wrong}; give another name")
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = os.path.join(place, name)
            inner = os.path.relpath(path, folder)
            if os.path.islink(path) or (name in names and not _PARTS.fullmatch(inner)):
                raise ValueError(f"{folder} has {quoted(inner)}, which no output has; give another name, or remove it")


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside the target, which takes its place if the body succeeds and vanishes if not."""
    target, mode = place_of(target)
    _clear(target, "tmp")
    temporary = beside(target, "tmp")
    try:
        with open(temporary, "xb") as stream:
            if mode is not None:
                os.fchmod(stream.fileno(), mode)
            with _going_to_disk(stream.fileno()):
                yield stream
                stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
        sync_folder(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def _going_to_disk(file: int) -> Iterator[None]:
    """Put on the disk what is written so far, once a second: else all of it would have to wait at the end."""
    failed, is_done = list[OSError](), threading.Event()

    def go() -> None:
        while not failed and not is_done.wait(_TO_DISK_EVERY):
            try:
                os.fsync(file)
            except OSError as error:  # the system tells it once
                failed.append(error)

    thread = threading.Thread(target=go, name="daskclust-to-disk", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
    thread.join()
    if failed:
        raise failed[0]


@contextmanager
def replacing_folder(target: Path, source: object = None) -> Iterator[Path]:
    """Make a temporary folder beside the target, which takes its place if the body succeeds and vanishes if not.

    Its path is absolute: what workers write to it goes there from whichever folder they run in. The `source` is that of
    what is written, if it is known.
    """
    target, mode = place_of(target)
    check_replaced(target, source)
    _clear(target, "tmp")
    temporary, old = beside(target, "tmp"), beside(target, "old")
    try:
        temporary.mkdir()
        yield temporary
        check_replaced(target)  # what has come meanwhile
        if mode is not None and target.is_dir():
            temporary.chmod(mode)
        if target.exists():  # a folder with entries cannot be replaced at once
            os.replace(target, old)
        try:
            os.replace(temporary, target)
        except BaseException:
            if old.exists():
                os.replace(old, target)
            raise
        sync_folder(target.parent)
    finally:
        _remove(temporary)
    old.unlink() if old.is_file() else shutil.rmtree(old, ignore_errors=True)
    _clear(target, "old")


def place_of(target: Path) -> tuple[Path, int | None]:
    """Return where an output goes, which is where a link leads, and the permissions of what is there."""
    place = Path(os.path.realpath(target))
    if place.is_symlink():
        raise OSError(f"{target} is in a loop of symbolic links; give the path of the file itself")
    try:
        state = os.stat(place)
    except FileNotFoundError:
        return place, None
    kind = KINDS.get(stat.S_IFMT(state.st_mode))
    if kind is not None:
        raise OSError(f"{target} is {kind}, which is not replaced; write to a file")
    return place, stat.S_IMODE(state.st_mode)


def sync_folder(folder: Path) -> None:
    """Let new names in a folder outlast a power cut, where its file system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def naming(path: str | Path | None) -> Iterator[None]:
    """Let errors of the system name the file, or the connection: it does not where these are open."""
    try:
        yield
    except OSError as error:
        number = error.errno or (errno.ENOSPC if _WRITTEN_IN_PART.match(str(error)) else None)
        if path is None or number is None or error.filename is not None:
            raise
        raise OSError(number, error.strerror or os.strerror(number), str(path)) from error


def beside(target: Path, ending: str) -> Path:
    """Return a hidden name beside the target: 32 digits for this machine, this process, and by chance."""
    return target.with_name(f".{target.name}.{_machine()}{os.getpid():08x}{secrets.token_hex(8)}.{ending}")


def _machine() -> str:
    return f"{zlib.crc32(socket.gethostname().encode()):08x}"


def _clear(target: Path, ending: str) -> None:
    """Remove what processes of this machine that run no more have left beside the target."""
    left = re.compile(rf"\.{re.escape(target.name)}\.{_machine()}([0-9a-f]{{8}})[0-9a-f]{{16}}\.{ending}")
    with suppress(OSError):  # whoever writes there is told
        for name in os.listdir(target.parent):
            found = left.fullmatch(name)
            if found and not _runs(int(found[1], 16)):
                path = target.with_name(name)
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True


def _remove(folder: Path) -> None:
    """Remove a folder for good: after a failure, other tasks of its writer go on for a while and make it anew.

    What cannot be removed stays: the failure itself is to be told.
    """
    absent = 0 if folder.exists() else _LOOKS
    end = time.monotonic() + _PATIENCE
    while absent < _LOOKS and time.monotonic() < end:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(_PAUSE)
        absent = 0 if folder.exists() else absent + 1
