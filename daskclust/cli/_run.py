"""Run the command line, and tell how it ended: exit codes, two lines for an error, signals."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import typer
from rich.markup import escape

from daskclust.cli._console import emit, errors
from daskclust.cli._errors import Terminated, fault, handling, in_options, trouble
from daskclust.core.run.ending import flush

_NAME = "daskclust"
_COMPLETE = f"_{_NAME.upper()}_COMPLETE"
_NOBODY_READS = 128 + signal.SIGPIPE
_BY_SIGNAL = {128 + number: number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}  # by SIGQUIT: no core


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
    except (Exception, KeyboardInterrupt) as error:
        return tell_error(KeyboardInterrupt() if isinstance(error, typer.Abort) else error, called, as_json)


def tell_error(error: BaseException, command: Any, as_json: bool, source: str = "") -> int:
    """Tell what went wrong, with one of several sources, and return the exit code; of a fault also where it is.

    It is told in two lines on standard error, with --json also as a document on standard output.
    """
    told, kept = trouble(error, command), vars(error).get("kept", {})  # kept: of a readout, see `Ending`
    if told is None or os.environ.get("DASKCLUST_TRACEBACK", "0") not in ("", "0"):
        traceback.print_exception(error)
    told = told or fault(error)
    if kept:
        is_of_system = isinstance(error, OSError) and error.errno is not None
        told = told._replace(hint="; ".join([kept["hint"], told.hint][: 1 + is_of_system]))
    if source not in told.what:
        told = told._replace(what=f"{source}: {told.what}")
    try:
        if as_json:
            document = {"kind": told.kind, "what": told.what, "hint": told.hint, "exit_code": told.status}
            emit(kept.get("summary", {}) | {"error": document})
        else:
            sys.stdout.flush()
    except OSError:
        _let_go_of_output()
    with suppress(OSError):  # where nobody is there to be told
        for style, name, text in (("bold red", "error", told.what), ("bold", "hint", told.hint)):
            errors.print(f"[{style}]{name}:[/] {escape(text)}", highlight=False, soft_wrap=True)
    return told.status


def leave(status: int) -> NoReturn:
    """End the program: after a signal as that signal does, so that a shell's loop over files ends, too."""
    if status in _BY_SIGNAL:
        flush()
        signal.signal(_BY_SIGNAL[status], signal.SIG_DFL)
        os.kill(os.getpid(), _BY_SIGNAL[status])
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
        words = escape(in_options(" ".join(str(text).split()), command))
        errors.print(f"[bold yellow]note:[/] {words}", highlight=False, soft_wrap=True)

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
    """Let SIGTERM and its like raise `Terminated`, so that files and workers are cleaned up as they are at Ctrl-C."""
    is_dropping, first = False, 0

    def end(number: int, _: Any) -> None:
        nonlocal first
        first = first or number
        if is_dropping:  # what is raised there goes no further either; the alarm comes again
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(first, signal.SIG_DFL)  # once more, and it ends at once
        raise Terminated(first)

    def drop(dropped: Any) -> None:
        nonlocal is_dropping
        if dropped.exc_type is Terminated:  # within a finalizer, where it goes no further: so again, a moment later
            is_dropping = True
            signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
            is_dropping = False
        else:
            unraisable(dropped)

    unraisable, sys.unraisablehook = sys.unraisablehook, drop
    try:
        with handling(end, signal.SIGALRM):
            yield
    finally:
        sys.unraisablehook = unraisable
