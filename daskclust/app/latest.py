"""Work in another thread that runs only the latest request: requests that come meanwhile never make a queue.

There is one thread for all explorers of the process: each step is parallel in itself.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Show = Callable[[], None]
Later = Callable[[Show], Any]

_PATIENCE = 2.0  # seconds; a page that was closed shows nothing any more

_log = logging.getLogger(__name__)


class Latest:
    """Runs the newest of many wishes: `begin` takes down what is wanted now, and returns the steps that do it.

    Each step runs in the other thread and yields what shows its result; `later` calls that, `fail` with an exception of
    a step, and `rest` when nothing more is wanted, in the thread of the widgets (None: all at once in this thread).
    """

    def __init__(
        self, begin: Callable[[], Iterator[Show]], fail: Callable[[Exception], None], rest: Show, later: Later | None
    ) -> None:
        self._begin, self._fail, self._rest, self._later = begin, fail, rest, later
        self._wanted = 0
        self.is_busy = False
        self.runs = 0

    def ask(self) -> None:
        """Let what is wanted now be done: at once, or when the present step has ended."""
        self._wanted += 1
        if not self.is_busy:
            self._start()

    def _start(self) -> None:
        self.is_busy = True
        self.runs += 1
        steps = self._begin()
        if self._later is None:
            self._run(steps, self._wanted, lambda show: show())
        else:
            _thread().submit(self._run, steps, self._wanted, self._later)

    def _run(self, steps: Iterator[Show], mine: int, later: Later) -> None:
        try:
            for show in steps:
                shown = threading.Event()
                later(show)
                later(shown.set)
                shown.wait(_PATIENCE)  # what comes next would take time from what is seen first
                if self._wanted != mine:
                    break  # what is left would be of yesterday
        except Exception as error:
            if not isinstance(error, ValueError | TypeError | MemoryError | OverflowError):
                _log.exception("a step of the explorer failed")  # a fault of ours; the explorer goes on
            later(functools.partial(self._fail, error))
        later(functools.partial(self._done, mine))

    def _done(self, mine: int) -> None:
        self.is_busy = False
        if self._wanted != mine:
            self._start()
        else:
            self._rest()


def later_in(document: Any) -> Later | None:
    """Return what calls a function soon in the thread of a served document, or a notebook; None where there is none."""
    if document is not None and getattr(document, "session_context", None) is not None:
        later: Later = document.add_next_tick_callback
        return later
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return None
    return loop.call_soon_threadsafe


@functools.cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="daskclust-explore")
