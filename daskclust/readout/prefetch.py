"""Prefetch: a thread reads a source, a few items before they are asked for and no more."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

_MOST_ITEMS = 4  # that are read and not taken


class Prefetch:
    """Items of a source, in rounds; a source that is too fast has to wait, and is closed in the end where it can be."""

    def __init__(self, source: Iterable[Any], size_of: Callable[[Any], int]) -> None:
        self._source, self._size_of = source, size_of
        self._items: queue.Queue[Any] = queue.Queue(maxsize=_MOST_ITEMS)
        self._stop = threading.Event()

    @property
    def waiting(self) -> int:
        """Number of items that have been read and not taken."""
        return self._items.qsize()

    def rounds(self, size: int, latency: float) -> Iterator[tuple[list[Any], bool]]:
        """Yield the items of each round, and whether it is the last.

        A round is of `size` in all or more, or of what comes within `latency` seconds. The error of a source that fails
        is raised after the last round.
        """
        threading.Thread(target=self._read, name="daskclust-source", daemon=True).start()
        end = None
        try:
            while end is None:
                taken, end = self._take(size, latency)
                yield taken, end is not None
        finally:
            self._stop.set()
        if end.error is not None:  # what came before was given first
            raise end.error

    def _take(self, wanted: int, latency: float) -> tuple[list[Any], _End | None]:
        taken: list[Any] = []
        size, until = 0, time.monotonic() + latency
        while size < wanted:
            try:
                item = self._items.get(timeout=min(max(until - time.monotonic(), 0.001), threading.TIMEOUT_MAX))
            except queue.Empty:
                break
            if isinstance(item, _End):
                return taken, item
            taken.append(item)
            size += self._size_of(item)
        return taken, None

    def _read(self) -> None:
        error: BaseException | None = None
        try:
            for item in self._source:
                if not self._put(item):
                    return
        except BaseException as raised:
            error = raised
        finally:
            close = getattr(self._source, "close", None)
            if close is not None:
                close()
        self._put(_End(error))

    def _put(self, item: Any) -> bool:
        """Wait until there is room; return False if nothing more is wanted."""
        while not self._stop.is_set():
            try:
                self._items.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False


@dataclass
class _End:
    """The last item of a source, with what it raised."""

    error: BaseException | None
