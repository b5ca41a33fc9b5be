"""``daskclust demo`` and ``info``."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from daskclust.cli._frame import console, emit, facts_table, progress
from daskclust.cli._options import OUTPUT, RUNNING, Json, Quiet

if TYPE_CHECKING:
    import xarray as xr

_COLUMNS = {"cluster": "d", "layer": "d", "size": "d", "energy": ".2f", "x": ".1f", "y": ".1f", "rms": ".2f"}

MANUALS = {
    "demo": """
Reads
  nothing                       the event is made, the same one for the same --seed

Writes
  -o                            daskclust-demo.html, a page with pictures, in this folder; needs the extra app

Keys of --json
  hits, layers                  numbers of the event
  clusters, noise               number of clusters, and of hits in none
  purity, completeness          from 0 to 1, by energy, against the true showers
  seconds_dask, seconds_memory  time to cluster on workers and in this process, kernels compiled, s
  equal                         whether the two answers are equal, element by element
  page                          the file that was written

Examples
  # make an event, cluster it, show it
  $ daskclust demo
  # the same in a folder of your own, on four workers
  $ daskclust demo -o pictures --workers 4
""",
    "info": """
Writes
  standard output               versions; processor, cores, memory (GiB); GPUs, or what is missing for one; systems

Keys of --json
  versions                      of Python and packages, "not installed" where there is none
  processor                     model, cores, threads of kernels, memory
  gpu                           devices, driver, packages
  systems                       title and estimator of each

Examples
  # what a report of an error should have
  $ daskclust info
  # the version of one package, for a script
  $ daskclust info --json | jq -r .versions.numba
""",
}


# ---------------------------------------------------------------------------------------------------------------- demo
def demo(
    folder: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder for the page; made if it is not there.", rich_help_panel=OUTPUT),
    ] = Path("daskclust-demo"),
    seed: Annotated[int, typer.Option(help="Seed of the event: another one, another event.")] = 1,
    workers: Annotated[int, typer.Option(help="Processes of the Dask cluster.", rich_help_panel=RUNNING)] = 2,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Cluster a calorimeter event on a local Dask cluster, check the answer, and show it.

    Makes an event like those of CMS's HGCAL, clusters it layer by layer on workers and again in this process, compares
    the two, and writes a page with pictures. The first run compiles the kernels: a minute or so.
    """
    from daskclust.demo import run_demo

    _check_demo(folder, workers, seed)
    with progress("making an event", quiet=quiet) as work:
        report = run_demo(folder, workers, seed, tell=work.begin)
    if as_json:
        emit(report.facts())
    elif not quiet:
        console.print(_largest(report.clusters))
        for line in report.lines():
            console.print(line, highlight=False, soft_wrap=True)


def _check_demo(folder: Path, workers: int, seed: int) -> None:
    """Refuse, before any work, what would fail at its end."""
    missing = [name for name in ("holoviews", "datashader", "bokeh") if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(f'the page of the demonstration needs {missing[0]}: pip install "daskclust[app]"')
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"-o {folder} is a file, not a folder; name another one")
    if workers < 1:
        raise ValueError(f"--workers must be 1 or more, got {workers}")
    if seed < 0:
        raise ValueError(f"--seed must be 0 or more, got {seed}")


def _largest(clusters: xr.Dataset) -> Table:
    """Return a table of the clusters with most energy."""
    largest = clusters.sortby("energy", ascending=False).isel(cluster=slice(10))
    table = Table(title="The ten clusters with most energy", title_justify="left")
    for name in _COLUMNS:
        unit = largest[name].attrs.get("units", "1")
        table.add_column(name if unit == "1" else f"{name} ({unit})", justify="right")
    for row in zip(*[largest[name].values for name in _COLUMNS], strict=True):
        table.add_row(*[format(value, form) for value, form in zip(row, _COLUMNS.values(), strict=True)])
    return table


# ---------------------------------------------------------------------------------------------------------------- info
def info(as_json: Json = False) -> None:
    """Show versions, the CPU, GPUs, and what is missing for a GPU."""
    from daskclust.machine import describe

    facts: dict[str, dict[str, Any]] = describe()
    if as_json:
        emit(facts)
        return
    for section, entries in facts.items():
        console.print(facts_table(section, entries, justify="left"))
