"""A process beside the explorer, for work that must be able to be ended: kernels that run in a thread cannot be.

It gets the data once, and then computes functions of them, one after the other. It ends with `stop`, and with the
program that began it. It is begun by name, not by `multiprocessing`, which would run the user's script again.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Any

from daskclust.core.device.machine_code.compiling import Compiling, listening

_BEGIN = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); from daskclust.app import process; process.main()"
)


class StoppedError(Exception):
    """The work was ended with `Process.stop`."""


class Process:
    """A process that computes functions of the data `ds`; it begins when it is first needed."""

    def __init__(self, ds: Any) -> None:
        self._ds = ds
        self._process: subprocess.Popen[bytes] | None = None

    def call(self, function: Callable[..., Any], *arguments: Any, compiles: Callable[[Compiling], None]) -> Any:
        """Return ``function(ds, *arguments)``; it must be the function of a module.

        `compiles` is told of kernels that are compiled there. Called in any thread. Raises `StoppedError` after `stop`.
        """
        process = self._process = self._process or self._begin()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            _send((function, arguments), process.stdin)
            while isinstance(answer := pickle.load(process.stdout), Compiling):
                compiles(answer)
        except (OSError, EOFError, pickle.UnpicklingError, ValueError):  # it is gone
            if self._process is not process:
                raise StoppedError from None
            self.stop()
            words = f"the process that computes has ended with code {process.poll()}; there may be too little memory"
            raise MemoryError(words) from None
        if isinstance(answer, Exception):
            raise answer
        return answer[0]

    def stop(self) -> None:
        """End the process, in the middle of its work; another one begins when it is needed."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with suppress(OSError):  # what was to be sent
                    pipe.close()

    def _begin(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", _BEGIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._process = process
        assert process.stdin is not None
        with suppress(OSError):  # told by whoever reads
            _send(sys.path, process.stdin)
            _send(self._ds, process.stdin)
        return process


def _send(what: Any, to: IO[bytes]) -> None:
    pickle.dump(what, to, protocol=5)
    to.flush()


def main() -> None:
    """Compute what is asked for at the standard input, and end with it."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed is no answer
    asked: SimpleQueue[Any] = SimpleQueue()
    ds = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_listen, args=(asked,), daemon=True).start()
    with listening(lambda told: _send(told, answers)):
        while True:
            function, arguments = asked.get()
            try:
                answer: Any = (function(ds, *arguments),)
            except Exception as error:
                answer = error
            _send(answer, answers)


def _listen(asked: SimpleQueue[Any]) -> None:
    """Take what is asked for; end at once, in the middle of work too, where nobody asks any more."""
    try:
        while True:
            asked.put(pickle.load(sys.stdin.buffer))
    finally:
        os._exit(0)
