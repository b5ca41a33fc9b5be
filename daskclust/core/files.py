"""Files that are there completely or not at all."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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
    """Make a temporary folder beside the target, which takes its place if the body succeeds and vanishes if not."""
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
        shutil.rmtree(temporary, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
