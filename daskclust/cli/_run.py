"""Run the command line, and tell how it ended: exit codes, two lines for an error, signals."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import typer
from rich.markup import escape

from daskclust.cli._console import emit, errors
from daskclust.cli._errors import Trouble, fault, note, trouble

_NAME = "daskclust"
_COMPLETE = f"_{_NAME.upper()}_COMPLETE"
_INTERRUPTED = 128 + signal.SIGINT
_TERMINATED = 128 + signal.SIGTERM
_NOBODY_READS = 128 + signal.SIGPIPE
_AGAIN = "outputs that were not complete are not there; run it again to make them"
_STOPPED = {
    _INTERRUPTED: Trouble("KeyboardInterrupt", "interrupted (SIGINT)", _AGAIN, _INTERRUPTED),
    _TERMINATED: Trouble("Terminated", "stopped (SIGTERM)", _AGAIN, _TERMINATED),
}


class Terminated(KeyboardInterrupt):
    """Raised where the program is when it is asked to end, so that it cleans up behind itself.

    It is a KeyboardInterrupt, as event loops and pools let that one through and hold other exceptions back.
    """


def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Run a command, and return the exit code: docs/howto/terminal.md lists them."""
    program: Any = typer.main.get_command(app)
    if _COMPLETE in os.environ:  # a shell asks what may come next
        program.main(list(arguments), prog_name=_NAME, standalone_mode=True)
        return 0
    as_json = "--json" in arguments
    called = next((program.commands[word] for word in arguments if word in program.commands), None)
    try:
        with _terminating(), _noting(called):
            status = _call(program, arguments)
            sys.stdout.flush()  # what cannot be written shows here, not at the very end
        return status
    except BrokenPipeError:
        _let_go_of_output()
        return _NOBODY_READS
    except Terminated:
        return _tell(_STOPPED[_TERMINATED], as_json)
    except (KeyboardInterrupt, typer.Abort):
        return _tell(_STOPPED[_INTERRUPTED], as_json)
    except Exception as error:
        told = trouble(error, called)
        if told is None or os.environ.get("DASKCLUST_TRACEBACK", "0") not in ("", "0"):
            traceback.print_exception(error)
        return _tell(told or fault(error), as_json)


def leave(status: int) -> NoReturn:
    """End the program: after a signal as that signal does, so that a shell's loop over files ends, too."""
    if status in _STOPPED:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        signal.signal(status - 128, signal.SIG_DFL)
        os.kill(os.getpid(), status - 128)
    sys.exit(status)


def _call(program: Any, arguments: Sequence[str]) -> int:
    """Parse the arguments and call the command; typer's own way to do so handles signals and pipes otherwise."""
    try:
        with program.make_context(_NAME, list(arguments)) as context:
            program.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        if type(error).__name__ != "NoArgsIsHelpError":
            raise
        return 2  # the help has been shown
    return 0


def _tell(told: Trouble, as_json: bool) -> int:
    """Print what went wrong: two lines on standard error, with --json also a document on standard output."""
    try:
        if as_json:
            emit({"error": {"kind": told.kind, "what": told.what, "hint": told.hint, "exit_code": told.status}})
        else:
            sys.stdout.flush()
    except OSError:
        _let_go_of_output()
    with suppress(OSError):  # where nobody is there to be told
        for style, name, text in (("bold red", "error", told.what), ("bold", "hint", told.hint)):
            errors.print(f"[{style}]{name}:[/] {escape(text)}", highlight=False, soft_wrap=True)
    return told.status


def _let_go_of_output() -> None:
    """Let the rest of the output vanish: it would fail again at the end of the program."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _noting(command: Any) -> Iterator[None]:
    """Show warnings and what the package logs as notes on standard error, a line each."""

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            tell(record.getMessage())

    def tell(text: object, *_: Any, **__: Any) -> None:
        errors.print(f"[bold yellow]note:[/] {escape(note(str(text), command))}", highlight=False, soft_wrap=True)

    logger, handler = logging.getLogger(_NAME), Notes(logging.WARNING)
    logger.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = tell  # type: ignore[assignment]
            yield
    finally:
        logger.removeHandler(handler)


@contextmanager
def _terminating() -> Iterator[None]:
    """Let SIGTERM raise `Terminated`, so that files and workers are cleaned up as they are at Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    is_dropping = False

    def end(*_: Any) -> None:
        if is_dropping:  # what is raised there goes no further either; the alarm comes again
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # once more, and it ends at once
        raise Terminated

    def drop(dropped: Any) -> None:
        nonlocal is_dropping
        if dropped.exc_type is Terminated:  # within a finalizer, where it goes no further: so again, a moment later
            is_dropping = True
            signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
            is_dropping = False
        else:
            unraisable(dropped)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGALRM)}
    unraisable, sys.unraisablehook = sys.unraisablehook, drop
    try:
        yield
    finally:
        sys.unraisablehook = unraisable
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
