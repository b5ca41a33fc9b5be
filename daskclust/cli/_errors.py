"""What went wrong, in two lines: what, and what to do.

Messages of this package have the form "what; what to do". What is wrong is shown as Python has it; what to do names the
command's options, with the help of those whose parameters are wrong.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import typer

from daskclust.core.data.quote import listed, printable, short
from daskclust.machine import NoGPUError

# What the user can correct. All else is a fault of this program, and shows where it happened.
_OF_USERS = (ValueError, TypeError, OSError, ImportError, MemoryError, NoGPUError)
_USAGE: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError")  # typer hides it

_LONGEST = 4000  # characters of a message
_MOST_NAMES = 5  # of files in a hint
_TEMPORARY = re.compile(r"\.([^/]+)\.[0-9a-f]{32}\.tmp$")
_SETTING = re.compile(r"\b([a-z_]+)=(\{[^}]*\}|\[[^]]*\]|'[^']*'|-?\w[\w.]*|)")  # of a parameter, as Python has it
_ELSEWHERE = "ask its owner, or choose another place: `ls -ld` tells whose it is"
_AGAIN = "outputs that were not complete are not there; run it again to make them"
_FULL = "free some (`df -h` and `quota` tell how much is left), or write to another disk"
_OF_SYSTEM = {
    errno.ENOENT: "check the name; paths count from {here}",
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _ELSEWHERE),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _FULL),
    errno.EFBIG: "`ulimit -f` tells how large a file may be; write to another disk",
    errno.EADDRINUSE: "choose another port, or 0 for any free one",
    **dict.fromkeys((errno.ECONNRESET, errno.ETIMEDOUT), "--reconnect goes on when the sender is back"),
    errno.ECONNREFUSED: "start the sender first, and check host and port",
}
"""What to do about errors of the system."""


SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Those that end a program, beside SIGINT."""


@contextmanager
def handling(handler: Callable[[int, Any], None], *more: int) -> Iterator[None]:
    """Call a handler at these signals, and some more; those that are ignored, as SIGHUP below nohup, still are."""
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():  # signals are not for others
        heeded = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, handler) for number in (*heeded, *more)}
    try:
        yield
    finally:
        for number, handler_before in before.items():
            signal.signal(number, handler_before or signal.SIG_DFL)


class Terminated(KeyboardInterrupt):
    """Raised where the program is when it is asked to end, so that it cleans up behind itself.

    It is a KeyboardInterrupt, as event loops and pools let that one through and hold other exceptions back.
    """

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__()
        self.number = number


class Trouble(NamedTuple):
    """An error as it is told: its class, for scripts; a line each; the exit code."""

    kind: str
    what: str
    hint: str
    status: int = 1


def trouble(error: BaseException, command: Any) -> Trouble | None:
    """Return how an error of a command is told, None for a fault of this program; the command may not be known."""
    kind, called = type(error).__name__, "" if command is None else f"{command.name} "
    if isinstance(error, KeyboardInterrupt):
        name = signal.Signals(getattr(error, "number", signal.SIGINT))
        what = f"{'interrupted' if name == signal.SIGINT else 'stopped'} ({name.name})"
        return Trouble(kind, what, _AGAIN, 128 + name)
    manual = f"`daskclust {called}--help` " + ("tells more" if called else "lists the commands")
    if isinstance(error, _USAGE):
        return Trouble("UsageError", *_of_usage(error, manual), error.exit_code)
    if kind == "KilledWorker":
        what = "a Dask worker died, most likely for lack of memory"
        return Trouble(kind, what, "smaller --chunks, or fewer --workers, take less memory")
    if isinstance(error, MemoryError):
        what = f"not enough memory: {_one_line(error) or 'none is left'}"
        return Trouble("MemoryError", what, "--workers with --chunks takes less; or close other programs")
    if not isinstance(error, _OF_USERS):
        return None
    if isinstance(error, OSError) and error.errno is not None:
        return Trouble(kind, *_of_system(error))
    text = _one_line(error) or kind
    if isinstance(error, ImportError) and ": pip install" in text:
        what, _, hint = text.partition(": ")
    else:
        what, _, hint = text.rpartition("; ")
        if not what or hint.count(")") > hint.count("("):  # what is within brackets is no remedy
            what, hint = text, ""
    if not hint and isinstance(error, FileNotFoundError):
        hint = _nearest(Path(what.rpartition(": ")[2]))
    elif not hint and os.path.isfile(what.partition(" ")[0].rstrip(",:")):
        hint = "correct the file: is it complete, and does its extension tell its format?"
    hint = in_options(hint, command)
    return Trouble(kind, what, "; ".join(filter(None, [hint, *_options_for(text, hint, command)])) or manual)


def fault(error: BaseException) -> Trouble:
    """Return how a fault of this program is told, after its traceback."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" in {Path(last[0].filename).name}, line {last[0].lineno}" if last else ""
    told = f"{type(error).__name__}: {_one_line(error)}".removesuffix(": ")
    hint = "report it, please, with the lines above and the output of `daskclust info`"
    return Trouble(type(error).__name__, f"a fault of daskclust itself: {told}{where}", hint)


def _of_usage(error: Any, manual: str) -> tuple[str, str]:
    """Return what is wrong with a command line in typer's words, and the help of the option that is meant."""
    what = _lower(" ".join(error.format_message().split()).rstrip("."))
    if hasattr(error.__cause__, "errors"):  # of pydantic, which does not always show the value
        value = repr(error.__cause__.errors()[0]["input"])
        what += f", got {value}" * (value not in what)
    parameter = getattr(error, "param", None)
    return what, manual if parameter is None else f"{_name_of(parameter)}: {parameter.help} {manual}"


def _of_system(error: OSError) -> tuple[str, str]:
    """Return what the system says, without the name of the temporary file, and what to do."""
    what = _lower(error.strerror or _one_line(error))
    path = error.filename2 if isinstance(error.filename2, str) else error.filename
    if isinstance(path, str | bytes):
        what += ": " + _TEMPORARY.sub(r"\1", os.fsdecode(path))
    default = f"check {'host and port' if '://' in str(path) else 'the path and the disk'}"
    return what, _OF_SYSTEM.get(error.errno or 0, default).format(here=Path.cwd())


def _one_line(error: BaseException) -> str:
    return short(" ".join(printable(str(error)).split()), _LONGEST)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _name_of(parameter: Any) -> str:
    name: str = next((option for option in parameter.opts if option.startswith("--")), parameter.metavar)
    return (name or parameter.name.upper()).strip("[]")


def in_options(text: str, command: Any) -> str:
    """Return a remedy with options of a command for Python's parameters: ``data_set=1`` is ``--data-set 1``.

    Code for arrays is left out: a command has files.
    """
    text = text.partition(", e.g. X[")[0]
    options = {parameter.name: _name_of(parameter) for parameter in (command.params if command else ())}

    def option(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name not in options:
            return found[0]
        if value == "False":
            return f"--no-{options[name][2:]}"
        if value.startswith("{"):  # names of the data, and ours
            pairs = re.findall(r"'([^']*)': (?:'([^']*)'|None)", value)
            value = ",".join(f"{theirs.replace('its name', 'NAME')}={ours}" for theirs, ours in pairs) or "NAME=..."
        value = re.sub(r"['\[\]]", "", value).replace(", ", ",").replace("None", "none")
        return f"{options[name]} {value}" if value not in ("", "True") else options[name]

    return _SETTING.sub(option, text)


def _options_for(text: str, hint: str, command: Any) -> list[str]:
    """Return the options that a hint lacks, with their help, of the parameters that a message says ``must`` be, or has.

    These are named before ``must``, ``names``, ``is`` or an equals sign.
    """
    option = text.partition(" ")[0] if text.startswith("-") else None

    def is_meant(parameter: Any) -> bool:
        name = parameter.name
        is_named = re.search(rf"^{name}(\[[^]]*\])? (must|names|is) |\b{name}=", text)
        return bool(is_named) or option in parameter.opts or (name == "units" and "attrs['units']" in text)

    found = [parameter for parameter in (command.params if command else ()) if is_meant(parameter)]
    found = [parameter for parameter in found if _name_of(parameter) not in hint]
    return [f"{_name_of(parameter)}: {parameter.help.rstrip('.')}" for parameter in found]


def _nearest(path: Path) -> str:
    """Return the files whose names are nearest to that of one that is not there."""
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {folder}; paths count from {Path.cwd()}"
    there = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    near = get_close_matches(path.name, there, 3, 0.7)
    if near:
        return f"did you mean {' or '.join(str(folder / name) for name in near)}?"
    same = [name for name in there if name.endswith(path.suffix)] or there
    kind = f" {path.suffix} files" if same != there else ""
    shown = get_close_matches(path.name, same, _MOST_NAMES, 0.0)
    return f"{folder.resolve()} has{kind} {listed(shown)}" if there else f"{folder.resolve()} is empty"
