"""The command line: ``daskclust demo | clue | events | dbscan | fof | hca | explore | info | bench``."""

from __future__ import annotations

import sys

import typer
from rich.markup import escape

from daskclust.cli._frame import errors
from daskclust.cli.clue import clue
from daskclust.cli.dbscan import dbscan, fof
from daskclust.cli.events import events
from daskclust.cli.explore import explore
from daskclust.cli.hca import hca
from daskclust.cli.tools import bench, demo, info

_USER_ERRORS = (ValueError, TypeError, OSError, ImportError)

app = typer.Typer(
    no_args_is_help=True,
    help="Exact clustering of large point data, in memory, on Dask and on GPUs.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, clue, events, dbscan, fof, hca, explore, info, bench):
    app.command()(command)


def main() -> None:
    """Run the command line; an error of the user's is told in a line or two, without a traceback."""
    try:
        app()
    except _USER_ERRORS as error:
        text = escape(str(error) or type(error).__name__)
        errors.print(f"[bold red]error:[/] {text}", highlight=False, soft_wrap=True)
        sys.exit(1)
