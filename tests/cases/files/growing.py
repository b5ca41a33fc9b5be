"""A file that grows while it is followed, and files that cannot grow as on a full disk."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from daskclust.io.timepix import sources

_PIECE = 6001


@contextmanager
def growing_file(path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Write a file in pieces beside what follows it, whose time stands still until all is written."""
    written = threading.Event()
    monkeypatch.setattr(sources, "time", Clock(written))

    def grow() -> None:
        time.sleep(0.1)
        with open(path, "wb") as stream:
            for k in range(0, len(data), _PIECE):
                stream.write(data[k : k + _PIECE])
                stream.flush()
                time.sleep(0.01)
        written.set()

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        yield
    finally:
        writer.join()


class Clock:
    """In the place of ``time`` where a file is followed: time stands still until `written` is set, then it runs.

    So a writer may be as slow as a busy machine makes it.
    """

    def __init__(self, written: threading.Event) -> None:
        self._written, self._now = written, 0.0

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
        self._now += 1.0 * self._written.is_set()


@contextmanager
def small_files(most: int) -> Iterator[None]:
    """Let files of this process end at so many bytes, as those on a full disk do."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
