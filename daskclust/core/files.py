"""Files that are there completely or not at all."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_LOOKS, _PAUSE, _PATIENCE = 10, 0.05, 5.0  # the last two in s


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside the target, which takes its place if the body succeeds and vanishes if not."""
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def replacing_folder(target: Path) -> Iterator[Path]:
    """Make a temporary folder beside the target, which takes its place if the body succeeds and vanishes if not.

    Its path is absolute: what workers write to it goes there from whichever folder they run in.
    """
    target = Path(os.path.abspath(target))
    mark = uuid.uuid4().hex
    temporary, old = target.with_name(f".{target.name}.{mark}.tmp"), target.with_name(f".{target.name}.{mark}.old")
    try:
        temporary.mkdir()
        yield temporary
        if target.exists():  # a folder with entries cannot be replaced at once
            os.replace(target, old)
        try:
            os.replace(temporary, target)
        except BaseException:
            if old.exists():
                os.replace(old, target)
            raise
    finally:
        _remove(temporary)
    shutil.rmtree(old, ignore_errors=True)


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
