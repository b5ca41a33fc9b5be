"""Work beside the page: only the newest request runs, in a thread; what takes long runs in a process that can be ended.

There is one thread for all explorers of the process: each step is parallel in itself. Kernels that run in a thread
cannot be ended.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Any

from daskclust.core.device.machine_code.compiling import Compiling, listening

Show = Callable[[], None]
Later = Callable[[Show], Any]

LONG = 2.0  # seconds; work of which more is expected is done in a process
_PATIENCE = 2.0  # seconds; a page that was closed shows nothing any more
# by name, not by `multiprocessing`, which would run the user's script again
_BEGIN = """
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from daskclust.app.worker import main
main()
"""

_log = logging.getLogger(__name__)


class Latest:
    """Runs only the newest request: `begin` returns the steps of the present one.

    Each step runs in the other thread and yields what shows its result; `later` calls that, `fail` with an exception of
    a step, and `rest` when nothing more is wanted, in the thread of the widgets (None: all at once in this thread).
    """

    def __init__(
        self, begin: Callable[[], Iterator[Show]], fail: Callable[[Exception], None], rest: Show, later: Later | None
    ) -> None:
        self._begin, self.fail, self._rest, self._later = begin, fail, rest, later
        self._wanted = 0
        self.is_busy = False

    def ask(self) -> None:
        """Run the present request: at once, or when the running step has ended."""
        self._wanted += 1
        if not self.is_busy:
            self._start()

    def _start(self) -> None:
        self.is_busy = True
        steps = self._begin()
        if self._later is None:
            self._run(steps, self._wanted, lambda show: show())
        else:
            thread_named("daskclust-explore").submit(self._run, steps, self._wanted, self._later)

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
            later(functools.partial(self.fail, error))
        later(functools.partial(self._done, mine))

    def _done(self, mine: int) -> None:
        self.is_busy = False
        if self._wanted != mine:
            self._start()
        else:
            self._rest()


def later_in(document: Any) -> Later | None:
    """Return the function that schedules calls in the thread of a document or notebook; None without one."""
    if document is not None and getattr(document, "session_context", None) is not None:
        later: Later = document.add_next_tick_callback
        return later
    try:
        return asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        return None


@functools.cache
def thread_named(name: str) -> ThreadPoolExecutor:
    """Return what runs functions one after the other in a thread, the same for all explorers."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)


class Worker:
    """A process that computes functions of the data `ds`, one after the other, and ends with the program that began it.

    It begins when it is first needed, and gets the data once.
    """

    def __init__(self, ds: Any) -> None:
        self._ds = ds
        self.process: Any = None  # a Popen with both pipes

    def call(self, function: Callable[..., Any], *arguments: Any, compiles: Callable[[Compiling], None]) -> Any:
        """Return ``function(ds, *arguments)``; it must be the function of a module.

        `compiles` is called with the state of kernels that are compiled there. It may be called in any thread. Raises
        MemoryError where the process has ended, with `stop` too.
        """
        process = self.process = self.process or self._begin()
        try:
            _send((function, arguments), process.stdin)
            while isinstance(answer := pickle.load(process.stdout), Compiling):
                compiles(answer)
        except (OSError, EOFError, pickle.UnpicklingError, ValueError):
            if self.process is process:
                self.stop()
            words = f"the process that computes has ended with code {process.poll()}; there may be too little memory"
            raise MemoryError(words) from None
        if isinstance(answer, Exception):
            raise answer
        return answer[0]

    def stop(self) -> None:
        """End the process, in the middle of its work; another one begins when it is needed."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # what was to be sent
                    pipe.close()

    def _begin(self) -> Any:
        process: Any = subprocess.Popen([sys.executable, "-c", _BEGIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process = process
        with suppress(OSError):  # the reader reports it
            _send(sys.path, process.stdin)
            _send(self._ds, process.stdin)
        return process


def _send(what: Any, to: IO[bytes]) -> None:
    pickle.dump(what, to, protocol=5)
    to.flush()


def main() -> None:
    """Compute requests from standard input until it ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed is no answer
    asked: SimpleQueue[Any] = SimpleQueue()
    ds = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_listen, args=(asked,), daemon=True).start()
    with listening(lambda state: _send(state, answers)):
        while True:
            function, arguments = asked.get()
            try:
                answer: Any = (function(ds, *arguments),)
            except Exception as error:
                answer = error
            _send(answer, answers)


def _listen(asked: SimpleQueue[Any]) -> None:
    """Queue requests; exit at once when standard input ends, even during work."""
    try:
        while True:
            asked.put(pickle.load(sys.stdin.buffer))
    finally:
        os._exit(0)
