"""What is shown: two consoles, summaries as tables or JSON, and manuals below the options of a command."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.segment import Segment
from rich.table import Table
from typer.core import TyperArgument, TyperCommand, TyperGroup

from daskclust.core.data.fields import CALORIMETER, PARTICLES, TIMEPIX
from daskclust.core.data.quote import printable


class _Console(Console):
    """A console that escapes control characters of what it prints, and lets the caller say that nobody reads on."""

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        """Yield what is printed; the codes of rich itself are apart from texts."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 (called while rich handles BrokenPipeError)


_LINES = ("reason", "basis")  # of a summary: too long for its table
console = _Console()
errors = _Console(stderr=True)


# -------------------------------------------------------------------------------------------------------------- summary
def show(summary: dict[str, Any], as_json: bool, title: str, to: Console = console, *, quiet: bool = False) -> None:
    """Show a summary as a table, or as JSON, or not at all."""
    if as_json:
        emit(summary)
    elif not quiet:
        facts = {name: value for name, value in summary.items() if name not in ("seconds_compiling", *_LINES)}
        if "seconds_clustering" in facts:  # what has no other word is of all
            in_all = [name for name in facts if name == "seconds" or name.endswith("_per_second")]
            facts = {f"{name} in all" if name in in_all else name: value for name, value in facts.items()}
        if compiling := summary.get("seconds_compiling"):
            facts["compiling"] = f"{compiling:.1f} s, once"
        to.print(facts_table(title, facts))
        for name in _LINES:
            if name in summary:
                tell(summary[name], to)


def tell(text: str, to: Console = console) -> None:
    """Print a line, which the terminal may wrap and a pipe has in one piece."""
    to.print(escape(text), highlight=False, soft_wrap=True)


def facts_table(title: str, facts: dict[str, Any], *, justify: Literal["left", "right"] = "right") -> Table:
    """Return a table of two columns: names, and numbers with commas."""
    table = Table(title=escape(title), show_header=False, title_justify="left", min_width=len(title))
    table.add_column(style="bold")
    table.add_column(justify=justify, overflow="fold")
    for name, value in facts.items():
        text = f"{value:,}" if type(value) is int else f"{value:,.6g}" if type(value) is float else str(value)
        text = "not known" if value is None else text
        table.add_row(name.replace("_", " "), escape(text))
    return table


def table_of(title: str, heads: list[str]) -> Table:
    """Return a table to be filled, its columns aligned to the right."""
    table = Table(title=title, title_justify="left")
    for head in heads:
        table.add_column(head, justify="right")
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


# -------------------------------------------------------------------------------------------------------------- manuals
RUNNING, READOUTS, TO_BEGIN = "Running", "Raw words and readouts", "Parameters to begin with"
_MORE = (RUNNING, READOUTS, TO_BEGIN)  # panels of options that a short help leaves out
PAGE = "docs/howto/terminal.md"
READS = {
    "clue": (CALORIMETER, ("x", "y", "layer", "energy", "event")),
    "events": (TIMEPIX, ("x", "y", "toa", "tot", "chip", "energy")),
    "dbscan": (PARTICLES, ("x", "y", "z")),
    "hdbscan": (PARTICLES, ("x", "y", "z", "event")),
    "fof": (PARTICLES, ("x", "y", "z", "vx", "vy", "vz", "mass")),
}
"""The variables of each field that a command uses, by their names in `Field`."""


class _Manual:
    """A command with a short help, and a manual for the rest: all options, what is read, examples to be copied."""

    def __init__(self, *args: Any, help: str | None = None, epilog: str | None = None, **options: Any) -> None:
        paragraphs = re.sub(r"(?<!\n)\n(?!\n)", " ", help or "")  # a line each: the terminal's width breaks them
        super().__init__(*args, help=paragraphs, **options)  # type: ignore[call-arg]
        for parameter in self.params:  # type: ignore[attr-defined]
            if isinstance(parameter, TyperArgument):  # <list[Path]> tells nothing beside FILE
                parameter.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
        self.examples = (epilog or "").strip("\n")
        self._shows_all = True

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, those of the short help while this is printed."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        if self._shows_all:
            return params
        return [each for each in params if getattr(each, "rich_help_panel", None) not in _MORE and each.name != "help"]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the short help."""
        self._shows_all = False
        try:
            super().format_help(ctx, formatter)  # type: ignore[misc]
        finally:
            self._shows_all = True
        tell(f" More options, columns of files, examples: {ctx.command_path} --help-all")

    def show_manual(self, ctx: Any) -> None:
        """Print every option, the columns that are read, and examples."""
        super().format_help(ctx, ctx.make_formatter())  # type: ignore[misc]
        if ctx.command.name in READS:
            field, names = READS[ctx.command.name]
            table = Table.grid(padding=(0, 2))
            table.add_column(style="bold cyan")
            for variable in (each for each in field.variables if each.name in names):
                unit = f"in any unit, {variable.usual} usually" if variable.usual else variable.unit
                facts = [variable.doc, *[unit] * (unit != "1"), *["optional"] * (variable.name not in field.required)]
                also = f"; also {', '.join(variable.aliases)}" if variable.aliases else ""
                table.add_row(variable.name, escape(", ".join(facts) + also))
            console.print(Panel(table, title="Columns that are read", title_align="left", border_style="dim"))
        console.print(f" [bold]Examples[/]\n{escape(self.examples)}\n", highlight=False, soft_wrap=True)
        tell(f" {PAGE}: columns that are written, exit codes, variables of the environment")


class ManualCommand(_Manual, TyperCommand):
    """A command with its manual."""


class ManualGroup(_Manual, TyperGroup):
    """The program, with its manual."""
