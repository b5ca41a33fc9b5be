"""The command line: ``daskclust clue | events | dbscan | fof | hdbscan | hca | explore | demo | info | warm``."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import Annotated

import typer

from daskclust.cli import clue, events, hca, points, tools
from daskclust.cli._console import ManualCommand, ManualGroup
from daskclust.cli._options import help_all, with_groups
from daskclust.cli._run import leave, run
from daskclust.core.device.freed_memory import keep_freed
from daskclust.core.run.ending import end_at_once

_EXAMPLES = """
  # see that it works: an event is made, clustered and shown
  daskclust demo
  # cluster your own hits
  daskclust clue hits.csv --dc 1.3 --rhoc 5 -o labelled.parquet
  # any of them on four Dask workers, for a script; on the workers of a cluster that runs; on a GPU
  daskclust fof snapshot.hdf5 --b 0.2 --workers 4 --json
  daskclust clue hits.parquet --dc 2 --rhoc 0.3 --scheduler tcp://host:8786 -o labelled.parquet
  daskclust clue hits.parquet --dc 2 --rhoc 0.3 --cuda -o labelled.parquet
  # complete commands, options and choices with the Tab key
  daskclust --install-completion
"""

_HELP = """Cluster large point data exactly: in memory, on Dask and on GPUs.

The answer does not depend on chunks, workers, threads or the device. An output is there completely or not at all; a
file that exists is replaced."""

app = typer.Typer(
    cls=ManualGroup,
    no_args_is_help=True,
    help=_HELP,
    epilog=_EXAMPLES,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for panel, command, examples in (
    ("Cluster", clue.clue, clue.EXAMPLES),
    ("Cluster", events.events, events.EXAMPLES),
    ("Cluster", points.dbscan, points.DBSCAN),
    ("Cluster", points.fof, points.FOF),
    ("Cluster", points.hdbscan, points.HDBSCAN),
    ("Cluster", hca.hca, hca.EXAMPLES),
    ("Look", tools.explore, tools.EXPLORE),
    ("Look", tools.demo, tools.DEMO),
    ("Tools", tools.info, tools.INFO),
    ("Tools", tools.warm, tools.WARM),
    ("Tools", tools.manual, tools.HELP),
):
    name = "help" if command is tools.manual else None
    app.command(name, cls=ManualCommand, epilog=examples, rich_help_panel=panel)(with_groups(command))


@app.callback(invoke_without_command=True)
def _program(
    version: Annotated[bool, typer.Option("--version", help="Print the version, and exit.")] = False,
    manual: Annotated[bool, help_all(None)] = False,
) -> None:
    if version:
        from daskclust import __version__

        print(f"daskclust {__version__}")
        raise typer.Exit


def program() -> None:
    """Run the command line as a process of its own, which ends without taking the interpreter apart: that takes 0.3 s.

    What ends at exit was registered later than `end`, so that it is called before it.
    """
    status: int | None = None

    def end() -> None:
        if status is not None:
            end_at_once(status)

    atexit.register(end)
    gc.disable()  # until work begins, see `progress`: to look for garbage among imports is a twentieth of a short run
    keep_freed()  # else a fifth of the time of a large fof
    try:
        main()
    except SystemExit as at_end:
        status = at_end.code if isinstance(at_end.code, int) else None
        raise


def main() -> None:
    """Run the command line; errors are told in two lines, without a traceback."""
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "error")  # read when dask is imported, here and by workers
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's would start, spin and wait: here nothing needs them
    os.environ.setdefault("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0")  # numba's remarks on kernels tell users nothing
    leave(run(app, sys.argv[1:]))
