"""Report that kernels are being compiled, which the first fit of a kind waits for once, and how long that took.

Who shows progress listens (`listening`): the command line, the explorer, a client of Dask for its workers. Where nobody
does, a notebook gets a progress bar, a terminal a line that goes, and a script one line of the logger ``daskclust``; at
level INFO that has each kernel. Above level WARNING nothing is shown.
What is loaded from numba's cache, or came with the package, is quick and not reported.
"""

from __future__ import annotations

import functools
import importlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import SimpleNamespace
from typing import Any, NamedTuple

_log = logging.getLogger("daskclust")
COMPILING = "compiling kernels for this machine, once; later runs load them"
"""What one line says of all kernels, in logs and pipes."""


class Compiling(NamedTuple):
    """What a process compiles now, or has just compiled."""

    number: int  # of this kernel among those that the present fit compiles or loads; where no fit is known, the process
    expected: int  # about how many they will be; 0 where nobody knows
    is_busy: bool
    kernels: int  # that the process has compiled
    seconds: float  # how long that took

    def __str__(self) -> str:
        of = f"of about {self.expected}" if self.number <= self.expected else "so far"
        return f"compiling kernels for this machine, once: {self.number} {of}"


Listener = Callable[[Compiling], None]
listeners: list[Listener] = []

THIS_PROCESS = ""  # this process, beside addresses of workers
seconds_of: dict[str, float] = {THIS_PROCESS: 0.0}
"""How long each process has compiled so far: this one, and workers since they were first heard of."""

_lock = threading.RLock()
_busy: dict[str, bool] = {}
_unheard: dict[str, float] = {}  # seconds that a worker had compiled for others, as it was first heard of
_now = SimpleNamespace(compiled=0, loaded=0, expected=0, before=0)  # before: compiled and loaded for earlier fits


def count() -> int:
    """Return how many kernels this process has compiled."""
    return int(_now.compiled)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call a function as compiling of a kernel begins and ends, in the thread that compiles; it must be quick."""
    listeners.append(listener)
    try:
        yield
    finally:
        listeners.remove(listener)


@contextmanager
def expecting(kernels: int) -> Iterator[None]:
    """Say about how many kernels the fit needs that is done in this context."""
    outer = _now.expected, _now.before
    _now.expected, _now.before = kernels, _now.compiled + _now.loaded
    try:
        yield
    finally:
        _now.expected, _now.before = outer


@contextmanager
def telling() -> Iterator[None]:
    """Report that a kernel is compiled in this context."""
    with _lock:
        _report(THIS_PROCESS, _present(is_busy=True))
    began = time.perf_counter()
    try:
        yield
    finally:
        with _lock:
            _now.compiled += 1
            seconds_of[THIS_PROCESS] += time.perf_counter() - began
            _report(THIS_PROCESS, _present(is_busy=False))


def loaded() -> None:
    """Count a kernel that was loaded from numba's cache."""
    with _lock:
        _now.loaded += 1


def watched(dispatcher: Any) -> Any:
    """Return a dispatcher, of numba-cuda or numba, whose compilations are reported to listeners."""
    dispatcher.compile = functools.partial(_compile, dispatcher.compile)
    dispatcher._cache.load_overload = functools.partial(_load, dispatcher._cache.load_overload)
    return dispatcher


_under_way = threading.local()  # what ends with the compiling of a thread


def _compile(compile_: Callable[..., Any], signature: Any) -> Any:
    with ExitStack() as _under_way.stack:
        return compile_(signature)


def _load(load: Callable[..., Any], *key: Any) -> Any:
    """Load machine code from numba's cache; where it is not there, numba goes on to compile it."""
    found = load(*key)
    if found is None:
        _under_way.stack.enter_context(telling())
    else:
        loaded()
    return found


def _present(*, is_busy: bool) -> Compiling:
    number = _now.compiled + _now.loaded - _now.before + is_busy
    return Compiling(number, _now.expected, is_busy, _now.compiled, seconds_of[THIS_PROCESS])


def heard(worker: str, state: Compiling) -> None:
    """Record and report what a worker compiles."""
    with _lock:
        seconds_of[worker] = state.seconds - _unheard.setdefault(worker, state.seconds)
        _report(worker, state)


def _report(who: str, state: Compiling) -> None:
    _busy[who] = state.is_busy
    if state.is_busy:
        _log.info("%s", state)
    elif any(_busy.values()):
        return  # another one goes on
    for listener in listeners[:] or [_show]:
        listener(state)


# -------------------------------------------------------------------------------------------------------------- seconds
class Clock:
    """A clock that stands still while kernels are compiled; of workers, while the one that compiles longest does."""

    def __init__(self) -> None:
        self._began, self._before = time.perf_counter(), dict(seconds_of)

    @property
    def compiling(self) -> float:
        """Seconds of compiling since the clock was made."""
        return max(seconds - self._before.get(who, 0.0) for who, seconds in list(seconds_of.items()))

    @property
    def seconds(self) -> float:
        """Seconds since then, without those."""
        return max(time.perf_counter() - self._began - self.compiling, 0.0)

    @property
    def aside(self) -> str:
        """A remark on the seconds, such as "compiling 6.2 s, once"; nothing where nothing was compiled."""
        return f"compiling {self.compiling:.1f} s, once" if self.compiling else ""


# ---------------------------------------------------------------------------------------- where nobody shows progress
def _show(state: Compiling) -> None:
    """Show a bar in a notebook, a line in a terminal that goes when it is done, and a line in the log elsewhere."""
    import multiprocessing  # not needed by a process that compiles nothing

    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not _log.isEnabledFor(logging.WARNING):
        return
    if hasattr(shell, "kernel"):
        _notebook(shell).show(state)
    elif multiprocessing.parent_process() is not None:
        return
    elif sys.stderr is not None and sys.stderr.isatty():
        with suppress(OSError):
            sys.stderr.write(f"\r{state}\x1b[K" if state.is_busy else "\r\x1b[K")
            sys.stderr.flush()
    else:
        _log_once()


@functools.cache
def _log_once() -> None:
    _log.warning(COMPILING)  # which Python writes to stderr where a program has not set up logging


class _Notebook:
    """A progress bar below a cell, which becomes a sentence as the cell ends."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._bar: Any = None

    def show(self, state: Compiling) -> None:
        if self._bar is None:
            self._clock, self._before, self._bar = Clock(), state.kernels, self._display(str(state), "", new=True)
            self._shell.events.register("post_run_cell", self._end)
        of = f' max="{state.expected}" value="{state.number - state.is_busy}"' if state.number <= state.expected else ""
        self._kernels = state.kernels
        if not state.is_busy and state.number >= state.expected:  # there may be others; what comes now may take long
            self._say_done()
            return
        self._display(str(state), f'<progress{of} style="width: 12em; vertical-align: middle"></progress> ')

    def _end(self, *_: Any) -> None:
        self._shell.events.unregister("post_run_cell", self._end)
        self._say_done()
        self._bar = None

    def _say_done(self) -> None:
        number, seconds = self._kernels - self._before, self._clock.compiling
        self._display(f"compiled {number} kernels for this machine in {seconds:.1f} s, once", "")

    def _display(self, words: str, bar: str, *, new: bool = False) -> Any:
        shown = {"text/plain": words, "text/html": f"<div>{bar}{words}</div>"}
        if not new:
            return self._bar.update(shown, raw=True)
        return importlib.import_module("IPython.display").display(shown, raw=True, display_id=True)


_notebook = functools.cache(_Notebook)
