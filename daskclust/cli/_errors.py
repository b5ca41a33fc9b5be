"""What went wrong, in two lines: what, and what to do.

Messages of this package have the form "what; what to do" and name parameters as Python has them. Here they become two
lines with the names of options.
"""

from __future__ import annotations

import errno
import os
import re
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from daskclust.core.data.quote import short
from daskclust.machine import NoGPUError

# What is the user's to mend. All else is a fault of this program, and shows where it happened.
_OF_USERS = (ValueError, TypeError, OSError, ImportError, MemoryError, NoGPUError)
_USAGE: Any = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError"
)  # typer has no name for it

_LONGEST = 4000  # characters of a message
_TEMPORARY = re.compile(r"\.([^/]+)\.[0-9a-f]{32}\.tmp$")
_VERBS = "give|choose|name|add|use|write|remove|delete|correct|convert|call|it is cut"
_KEYWORD = re.compile(r"(?<![\w.\[])([a-z_]+)=(\{[^}]*\}|\[[^\]]*\]|'[^']*'|\w[\w.]*|)")
_PHRASES = (
    (r" as a mapping \{name in the file: name of the variable\}", " x=NAME,y=NAME"),
    (r"\bn_workers\b", "--workers"),
    (r"name (it|the unit of each|the right one) in (its |their )?attrs(\['units'\])?", "give units with --units"),
    (r", e\.g\. X\[np\.isfinite\(X\)\.all\(axis=1\)\]", ""),
    (r"X contains (\S+)( \(inf\))?: X\[(\d+), (\d+)\] = \S+", r"\1 in coordinate \4 of point \3, both counted from 0"),
)
"""What is said in Python, and what that is on the command line."""
_OF_FILES = (
    (r"is empty \(0 bytes\)|has no data", "give a file with points; was it written to its end?"),
    (
        r"cannot be read as|is not a UTF-8|is damaged|signature",
        "is it complete, and does its extension tell its format?",
    ),
    (r"no layout of", "is it complete, and a file of the format that its extension tells?"),
    (r", line \d+", "correct that line, or leave it out"),
)
"""What to do where a message on a file does not say so."""
_NUMBERS = {"float_parsing": "a number", "int_parsing": "a whole number", "int_from_float": "a whole number"}
_SYSTEM = {
    errno.ENOENT: ("there is no {path}", "check the name; paths count from {here}"),
    errno.EACCES: ("no permission for {path}", "ask its owner, or choose another place: `ls -ld` tells whose it is"),
    errno.EPERM: ("no permission for {path}", "ask its owner, or choose another place: `ls -ld` tells whose it is"),
    errno.EISDIR: ("{path} is a folder", "name a file in it"),
    errno.ENOTDIR: ("{path} is no folder, or a part of its path is none", "check the path"),
    errno.EEXIST: ("{path} is there already, and is no folder", "remove it, or choose another name"),
    errno.ENOSPC: ("no space is left to write {path}", "free some (`df -h` tells where), or write to another disk"),
    errno.EDQUOT: (
        "your quota leaves no space to write {path}",
        "free some (`quota` tells how much), or write elsewhere",
    ),
    errno.EFBIG: ("{path} grows larger than files may be here", "`ulimit -f` tells how large; write to another disk"),
    errno.EROFS: ("{path} is on a disk that is only read", "write to another one"),
    errno.ENAMETOOLONG: ("the name {path} is too long", "give a shorter one"),
    errno.EADDRINUSE: ("the port is taken: {text}", "choose another one, or 0 for any free one"),
    errno.ECONNREFUSED: ("nobody listens there: {text}", "start the sender first, and check host and port"),
}
"""What errors of the system mean, and what to do."""


@dataclass(frozen=True)
class Trouble:
    """An error as it is told.

    Parameters
    ----------
    kind : str
        Class of the error, for scripts.
    what, hint : str
        One line each.
    status : int
        Exit code.
    """

    kind: str
    what: str
    hint: str
    status: int = 1


def trouble(error: BaseException, command: Any, commands: Sequence[str]) -> Trouble | None:
    """Return how an error is told; None for one that is a fault of this program.

    Parameters
    ----------
    error : Exception
        What a command raised, or the parser of the command line.
    command : click command or None
        The one that was called, if it got so far.
    commands : sequence of str
        Names of all.
    """
    manual = f"`daskclust {command.name} --help` tells more" if command else "`daskclust --help` lists the commands"
    if isinstance(error, _USAGE):
        return _of_usage(error, command, commands, manual)
    if type(error).__name__ == "KilledWorker":
        return Trouble("KilledWorker", "a Dask worker died, most likely for lack of memory",
                       "smaller --chunks, or fewer --workers, take less memory")  # fmt: skip
    if isinstance(error, MemoryError):
        return Trouble("MemoryError", f"not enough memory: {_one_line(error) or 'none is left'}",
                       "--workers with --chunks takes less; or close other programs")  # fmt: skip
    if not isinstance(error, _OF_USERS):
        return None
    if isinstance(error, OSError) and error.errno is not None:
        return _of_system(error)
    what, hint = _split(error)
    names = _names_of(command)
    what, hint = _in_options(what, names), _in_options(hint, names)
    if isinstance(error, FileNotFoundError) and not hint:
        hint = _near(what)
    hint = hint or _option_named(what, command) or next((do for mark, do in _OF_FILES if re.search(mark, what)), manual)
    return Trouble(type(error).__name__, what, hint)


def note(text: str, command: Any) -> str:
    """Return a remark of the package on the user's data, with the names of options."""
    text = re.sub(r"\bdisorder=([\d.e+]+)", lambda found: f"--disorder {float(found[1]) / 1e3:.7g}", text)  # ns, us
    return _in_options(" ".join(text.split()), _names_of(command))


def fault(error: BaseException) -> Trouble:
    """Return how a fault of this program is told, after its traceback."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" in {Path(last[0].filename).name}, line {last[0].lineno}" if last else ""
    told = f"{type(error).__name__}: {_one_line(error)}" if _one_line(error) else type(error).__name__
    return Trouble(type(error).__name__, f"a fault of daskclust itself: {told}{where}",
                   "report it, please, with the lines above and the output of `daskclust info`")  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- messages
def _one_line(error: BaseException) -> str:
    return short(" ".join(str(error).split()), _LONGEST)


def _split(error: BaseException) -> tuple[str, str]:
    """Return what a message says, and what it says to do: behind the last semicolon, or behind what is to install."""
    text = _one_line(error) or type(error).__name__
    if isinstance(error, ImportError) and ": pip install" in text:
        what, _, hint = text.partition(": ")
        return what, hint
    marks = [found for found in re.finditer("; ", text) if _depth(text[: found.start()]) == 0]
    marks = marks or list(re.finditer(rf"[:,] (?=({_VERBS}) )", text))
    if not marks:
        return text, ""
    what, hint = text[: marks[-1].start()], text[marks[-1].end() :]
    return what, f"use one of {hint.removeprefix('known: ')}" if hint.startswith("known: ") else hint


def _depth(text: str) -> int:
    """Return how many brackets are open behind a text."""
    return text.count("(") - text.count(")")


def _names_of(command: Any) -> dict[str, str]:
    """Return parameters of a command, as Python has them, with the names on the command line."""
    names: dict[str, str] = {}
    for parameter in command.params if command else ():
        long = [option for option in parameter.opts if option.startswith("--")]
        names[parameter.name] = long[0] if long else (parameter.metavar or parameter.name.upper()).strip("[]")
    return names


def _in_options(text: str, names: dict[str, str]) -> str:
    """Return a message with options in the place of Python's parameters."""
    for python, ours in _PHRASES:
        text = re.sub(python, ours, text)
    begin = re.match(r"([a-z_]+)(?= (must|names|is) )", text)
    if begin and begin[1] in names:
        text = names[begin[1]] + text[begin.end() :]

    def option(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name not in names:
            return found[0]
        return names[name] if value in ("", "True") else f"{names[name]} {_value(value)}"

    long = [name for name in names if "_" in name]
    text = _KEYWORD.sub(option, text)
    return re.sub(rf"(?<![\w'-])({'|'.join(long)})(?![\w'])", lambda found: names[found[1]], text) if long else text


def _value(text: str) -> str:
    """Return a value of Python's as it is given on the command line."""
    if text.startswith("{"):
        pairs = re.findall(r"'([^']*)': (?:'([^']*)'|None)", text)
        return ",".join(f"{ours}={theirs.replace('its name', 'NAME')}" for theirs, ours in pairs) or "NAME=..."
    if text.startswith("[") and "'" in text:
        return "NAME,NAME,..."
    return text.strip("'[]").replace(", ", ",").replace("None", "none")


def _option_named(what: str, command: Any) -> str:
    """Return what the manual has on the option that a message begins with."""
    word = what.partition(" ")[0]
    for parameter in command.params if command else ():
        if word in parameter.opts or word == _names_of(command)[parameter.name]:
            return f"{word}: {_bare(parameter.help)}"
    return ""


def _bare(text: str | None) -> str:
    """Return a help text without marks and defaults."""
    return re.sub(r"\s*\\?\[default:.*", "", (text or "").replace("\\[", "[")).strip()


def _near(what: str) -> str:
    """Return names like the one that a message ends with."""
    path = Path(re.sub(r"^(no such (file|folder): |there is no (file|folder) )", "", what))
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {folder}; paths count from {Path.cwd()}"
    near = get_close_matches(path.name, sorted(os.listdir(folder)), 2, 0.7)
    return (
        f"did you mean {' or '.join(str(folder / name) for name in near)}?"
        if near
        else f"`ls {folder}` tells what is there"
    )


# --------------------------------------------------------------------------------------------------------------- system
def _of_system(error: OSError) -> Trouble:
    text = error.strerror or _one_line(error)
    told = error.filename2 if isinstance(error.filename2, str) else error.filename
    path = _TEMPORARY.sub(r"\1", os.fsdecode(told)) if isinstance(told, str | bytes) else "the output"
    what, hint = _SYSTEM.get(error.errno or 0, (f"{path}: {text}" if told else text, "check the path and the disk"))
    fields = {"path": path, "text": f"{error.strerror or error}", "here": Path.cwd()}
    return Trouble(type(error).__name__, what.format(**fields), hint.format(**fields))


# ---------------------------------------------------------------------------------------------------------------- usage
def _of_usage(error: Any, command: Any, commands: Sequence[str], manual: str) -> Trouble:
    """Return what is wrong with a command line."""
    kind, text = type(error).__name__, " ".join(error.format_message().split()).rstrip(".")
    parameter = getattr(error, "param", None)
    needed = [each for each in (command.params if command else ()) if each.required]
    if kind == "NoSuchOption":
        known = [
            option for each in (command.params if command else ()) for option in (*each.opts, *each.secondary_opts)
        ]
        what = f"there is no option {error.option_name}{f' of daskclust {command.name}' if command else ''}"
        hint = _meant(error.option_name, [*known, "--help"]) + manual
    elif text.startswith("No such command"):
        word = text.split("'")[1]
        what, hint = f"there is no command {word}", _meant(word, commands) + "`daskclust --help` lists the commands"
    elif parameter is not None:
        names = _names_of(command)
        name = names.get(parameter.name, parameter.name)
        what, more = f"{name} is missing", f"needed are {', '.join(names[each.name] for each in needed)}; "
        if kind != "MissingParameter":
            what, more = _of_value(error, name), ""
        hint = f"{name}: {_bare(getattr(parameter, 'help', ''))}".rstrip(".") + f"; {more}{manual}"
    else:
        what, hint = text[:1].lower() + text[1:], manual
    return Trouble("UsageError", what, hint, error.exit_code)


def _of_value(error: Any, name: str) -> str:
    """Return what is wrong with the value of an option."""
    checked = getattr(error.__cause__, "errors", None)
    if checked is None:
        return f"{name}: {' '.join(error.message.split()).rstrip('.')}"
    first = checked()[0]
    choices = first["msg"].partition(" is not one of ")[2].rstrip(".").replace("'", "")
    kind = _NUMBERS.get(first["type"]) or (f"one of {choices}" if choices else first["msg"])
    return f"{name} must be {kind}, got {first['input']!r}"


def _meant(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, list(known), 2)
    return f"did you mean {' or '.join(near)}? " if near else ""
