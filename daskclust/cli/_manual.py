"""Help that reads like a manual: below its options, a command says what it reads and writes, and shows examples."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from typer.core import TyperCommand, TyperGroup

from daskclust.cli._frame import console

CLUSTER, LOOK, TOOLS = "Cluster", "Look", "Tools"
"""Groups of commands."""

_EXAMPLES = "Examples"


@dataclass(frozen=True)
class Manual:
    """The text of a manual, taken apart.

    Parameters
    ----------
    sections : dict of str to list of (str, str)
        Of each title its rows: a name, and what is to be said of it.
    examples : list of (str, str)
        What a line does, and the line.
    """

    sections: dict[str, list[tuple[str, str]]]
    examples: list[tuple[str, str]]


def parse(text: str) -> Manual:
    r"""Take the text of a manual apart.

    Parameters
    ----------
    text : str
        Titles begin a line. Rows are indented by two, with two spaces or more between name and text, and go on in lines
        that are indented by more. Below the title Examples are comments, ``# ...``, each with a line, ``$ ...``, that a
        backslash may break.

    Returns
    -------
    Manual

    Examples
    --------
    >>> parse("Reads\n  x, y  position,\n        cm\nExamples\n  # see it\n  $ daskclust \\\n    demo")
    Manual(sections={'Reads': [('x, y', 'position, cm')]}, examples=[('see it', 'daskclust demo')])
    """
    sections: dict[str, list[tuple[str, str]]] = {}
    examples: list[tuple[str, str]] = []
    title = ""
    for line in filter(str.strip, re.sub(r" \\\n +", " ", text).splitlines()):
        if not line.startswith(" "):
            title = line
            continue
        if title == _EXAMPLES:
            mark, _, words = line.strip().partition(" ")
            examples = [*examples, (words, "")] if mark == "#" else [*examples[:-1], (examples[-1][0], words)]
            continue
        rows = sections.setdefault(title, [])
        if line.startswith("   "):
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {line.strip()}")
        else:
            name, words = re.split(r"  +", line.strip(), maxsplit=1)
            rows.append((name, words))
    return Manual(sections, examples)


class _Manual:
    """What a command and the program have in common."""

    manual = ""

    def __init__(self, *args: Any, **options: Any) -> None:
        """Let each paragraph of the help be one line, which the width of the terminal breaks."""
        if options.get("help"):
            options["help"] = re.sub(r"(?<!\n)\n(?!\n)", " ", options["help"])
        super().__init__(*args, **options)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help and the manual."""
        super().format_help(ctx, formatter)  # type: ignore[misc]
        _show(self.manual)


class ManualCommand(_Manual, TyperCommand):
    """A command with a manual."""


class ManualGroup(_Manual, TyperGroup):
    """The program, with its manual."""


def with_manual(manual: str) -> type[ManualCommand]:
    """Return the class of a command that has this manual."""
    return type("ManualCommand", (ManualCommand,), {"manual": manual})


def group_with_manual(manual: str) -> type[ManualGroup]:
    """Return the class of a program that has this manual."""
    return type("ManualGroup", (ManualGroup,), {"manual": manual})


def _show(text: str) -> None:
    """Print a manual; examples have no frame, so that they can be copied."""
    manual = parse(text)
    for title, rows in manual.sections.items():
        console.print(_panel(title, rows))
    if manual.examples:
        console.print(f" [bold]{_EXAMPLES}[/]")
    for words, line in manual.examples:
        console.print(f"   [dim]# {escape(words)}[/]", highlight=False, soft_wrap=True)
        console.print(f"   {escape(line)}", highlight=False, soft_wrap=True)
    console.print()


def _panel(title: str, rows: list[tuple[str, str]]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold cyan", max_width=26)
    table.add_column()
    for name, words in rows:
        table.add_row(escape(name), escape(words))
    return Panel(table, title=title, title_align="left", border_style="dim", expand=True)
