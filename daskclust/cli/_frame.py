"""What commands share: consoles, progress, the summary, files that are written."""

from __future__ import annotations

import errno
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from daskclust.cli._work import Work


_WRITTEN_IN_PART = re.compile(r"\d+ requested and \d+ written")  # NumPy's words for a full disk


class _Console(Console):
    """A console that leaves it to the caller to say that nobody reads on."""

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 (called while rich handles BrokenPipeError)


console = _Console()
errors = _Console(stderr=True)


# -------------------------------------------------------------------------------------------------------------- summary
def show(summary: dict[str, Any], as_json: bool, title: str, to: Console | None = None, *, quiet: bool = False) -> None:
    """Show a summary as a table, or as JSON, or not at all."""
    if as_json:
        emit(summary)
    elif not quiet:
        (to or console).print(facts_table(title, summary))


def facts_table(title: str, facts: dict[str, Any], *, justify: Literal["left", "right"] = "right") -> Table:
    """Return a table of two columns: names, and numbers with commas."""
    table = Table(title=escape(title), show_header=False, title_justify="left", min_width=len(title))
    table.add_column(style="bold")
    table.add_column(justify=justify, overflow="fold")
    for name, value in facts.items():
        text = f"{value:,}" if type(value) is int else f"{value:,.6g}" if type(value) is float else str(value)
        table.add_row(name.replace("_", " "), escape(text))
    return table


def emit(document: Any) -> None:
    """Print one JSON document; what JSON has no number for (NaN, infinity) is null."""
    print(json.dumps(_plain(document), allow_nan=False), flush=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else _plain(value.item())


# ------------------------------------------------------------------------------------------------------------- progress
@contextmanager
def progress(name: str, *, quiet: bool = False) -> Iterator[Work]:
    """Show on standard error what goes on; nothing where that is no terminal."""
    from daskclust.cli._work import bar

    with bar(name, errors, quiet=quiet) as work:
        yield work


# ---------------------------------------------------------------------------------------------------------------- files
@contextmanager
def naming(path: Path | None) -> Iterator[None]:
    """Let errors of the disk name the file that is written: the system does not."""
    try:
        yield
    except OSError as error:
        number = error.errno or (errno.ENOSPC if _WRITTEN_IN_PART.match(str(error)) else None)
        if path is None or number is None or error.filename is not None:
            raise
        raise OSError(number, os.strerror(number), str(path)) from error


def write_all(outputs: list[tuple[Path | None, Callable[[Path], None]]], work: Work) -> None:
    """Write those files of a command that are asked for, one after the other."""
    for path, write in outputs:
        if path is not None:
            work.write(path)
            with naming(path):
                write(path)
