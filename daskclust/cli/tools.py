"""``daskclust explore``, ``demo``, ``info`` and ``warm``."""

from __future__ import annotations

import importlib.util
import secrets
import shlex
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from daskclust.cli._console import TO_BEGIN, console, emit, errors, facts_table, show, table_of
from daskclust.cli._options import (
    SHOWN,
    AnyParametersOf,
    Axes,
    Box,
    CellOptions,
    ColumnOptions,
    Json,
    Quiet,
    box_of,
    file_argument,
    in_unit_of,
    names,
    option,
    reading,
    running,
    writing,
)
from daskclust.cli._progress import progress
from daskclust.cli._several import check_source, names_of

if TYPE_CHECKING:
    import xarray as xr

_COLUMNS = {"cluster": "d", "layer": "d", "size": "d", "energy": ".2f", "mass": ".3g", "tot": ".0f"}
_COLUMNS |= {"x": ".1f", "y": ".1f", "z": ".1f", "rms": ".2f"}

System = Literal["clue", "events", "fof", "dbscan", "hdbscan", "hca"]
_to_begin = partial(option, TO_BEGIN, default="by the data")
_PARAMETERS = AnyParametersOf(
    ("clue:CLUE", "dc", "rhoc", "delta_c", "delta_o", "kernel"),
    ("events:EventBuilder", "dt_max", "variant", "connectivity", "min_hits"),
    ("dbscan:DBSCAN", "eps", "min_samples"),
    ("dbscan:FriendsOfFriends", "linking_length", "b", "min_members"),
    ("hdbscan:HDBSCAN", "min_cluster_size", "cluster_selection_method", "cluster_selection_epsilon"),
    ("hca:MahalanobisHCA", "threshold", "rule", "distance", "n_clusters"),
)

EXPLORE = """
  # with the thresholds of a clustering
  daskclust explore hits.parquet --system clue --dc 1.5 --rhoc 0.2
  # a file of your own, with units
  daskclust explore my.csv --system clue --columns px=x,py=y,E=energy --units x=mm,y=mm
  # on another machine, behind ssh -L 5006:localhost:5006 of this one; the port of this one may be another
  daskclust explore run.tpx3 --port 5006 --no-browser
  # behind jupyter-server-proxy of a hub
  daskclust explore run.tpx3 --port 5006 --no-browser --allow-origin hub.example.org
"""

DEMO = """
  # make an event of a calorimeter, cluster it, show it
  daskclust demo
  # halos of a simulation, in a folder of your own, on four workers
  daskclust demo fof -o pictures --workers 4
"""

INFO = """
  # what a report of an error should have
  daskclust info
  # the version of one package, for a script
  daskclust info --json | jq -r .versions.numba
"""

HELP = """
  # the manual of a command
  daskclust help clue
  # that of the program: exit codes, variables of the environment
  daskclust help
"""

WARM = """
  # all systems, on all cores: after an installation, or in the making of an image
  daskclust warm
  # two of them, on four cores
  daskclust warm clue fof --workers 4
"""


# ------------------------------------------------------------------------------------------------------------- explore
def explore(
    paths: Annotated[
        list[Path], file_argument("Points: what clue, events, fof and dbscan read, FCS, tables of cells.", *SHOWN)
    ],
    *,
    system: Annotated[System | None, reading("What clusters the points.", default="what suits the file")] = None,
    coordinates: Axes = None,
    boxsize: Box = None,
    given: Annotated[dict[str, Any], _PARAMETERS],
    max_pixel_hits: Annotated[float | None, _to_begin("Hits of a pixel that is not noisy, at most.")] = None,
    height: Annotated[float | None, _to_begin("Height at which a hierarchy is cut.")] = None,
    min_size: Annotated[int | None, _to_begin("Cells of a cluster of a cut, at least.", min=1)] = None,
    apriori: Annotated[Literal["given", "none", "kmeans"] | None, _to_begin("Apriori clusters.")] = None,
    layout: Annotated[
        Literal["chips", "quad", "timepix4"] | None,
        reading("Of several chips: apart, or one detector; or of Timepix4.", default="the file's"),
    ] = None,
    gap: Annotated[int | None, reading("Pixels between the chips of a quad.", default="0", min=0)] = None,
    file: ColumnOptions,
    cells: CellOptions,
    port: Annotated[int, running("Port of the page; 0: a free one.", min=0, max=65535)] = 0,
    address: Annotated[str, running("Where to listen; another one lets others in, with a token.")] = "localhost",
    allow_origin: Annotated[
        str | None, running("Names of a proxy in the browser's address: hub.example.org.", default="this machine")
    ] = None,
    token: Annotated[bool, running("Each browser needs the token of the address.", default="with --address")] = False,
    no_browser: Annotated[bool, running("Tell the address, and open no browser.", "--no-browser")] = False,
    quiet: Quiet = False,
) -> None:
    """Explore a file in the browser: sliders, pictures, a table and histograms that follow.

    The page is for this machine only, unless --address says otherwise. Ctrl-C ends it.
    """
    for path in paths:
        check_source(path)
    from daskclust.app import serve
    from daskclust.app.opening import FIELD_OF, open_file
    from daskclust.app.systems import not_clustered
    from daskclust.core.data.inputs import NOT_CLUSTERED
    from daskclust.io.cytometry.rows import prepared_in_words

    parameters = given | {"max_pixel_hits": max_pixel_hits, "height": height, "min_size": min_size, "apriori": apriori}
    pixels = {name: value for name, value in (("layout", layout), ("gap", gap)) if value is not None}
    tables = paths if system != "hca" else ()  # of cells columns are chosen by --channels
    naming = file.naming(FIELD_OF.get(system or ""), tables)
    name = names_of(paths).rpartition("/")[2]
    with progress(f"reading {name}", quiet=quiet):
        how = {**naming, "coordinates": names(coordinates), "cells": cells.reading, "pixels": pixels}
        ds, *lines = open_file(paths, system, **how)
        if (box := box_of(boxsize)) != "auto":
            ds = ds.assign_attrs(boxsize=box)
            lines.append(f"ds = ds.assign_attrs(boxsize={box!r})")
        variable = ds.variables.get("toa", ds.variables.get("x"))
        unit = None if variable is None else variable.attrs.get("units")
        parameters = in_unit_of(unit, {name: value for name, value in parameters.items() if value is not None})
        is_here = address in ("localhost", "127.0.0.1", "::1")
        secret = secrets.token_urlsafe() if token or not is_here else None
        server = serve(
            ds,
            system,
            source=lines,
            title=f"{name} - daskclust",
            address=address,
            port=port,
            allow_origin=names(allow_origin) or (),
            token=secret,
            show=False,
            start=False,
            **parameters,
        )
    from daskclust.app.page.access import run

    way = "/" if secret is None else f"/?token={secret}"
    url = f"http://{'localhost' if is_here else address}:{server.port}{way}"
    console.print(f"exploring {name} at {url} (Ctrl-C ends it)", highlight=False, soft_wrap=True)
    left_out = not_clustered(ds)
    if told := prepared_in_words({**ds.attrs, NOT_CLUSTERED: left_out} if left_out else ds.attrs):
        console.print(f"channels: {told}", highlight=False, soft_wrap=True)
    if not is_here:
        errors.print("note: whoever has this address may explore, too", highlight=False)
    if not no_browser:
        server.io_loop.add_callback(server.show, way)
    run(server)


# ---------------------------------------------------------------------------------------------------------------- demo
def demo(
    system: Annotated[
        System, typer.Argument(metavar="SYSTEM", help="clue, events, fof, dbscan, hdbscan or hca.")
    ] = "clue",
    *,
    folder: Annotated[Path, writing("Folder for the page; made if it is not there.", "--output", "-o")] = Path(
        "daskclust-demo"
    ),
    seed: Annotated[int, running("Seed of the data: another one, other data.", min=0)] = 1,
    workers: Annotated[int, running("Processes of the Dask cluster.", min=1)] = 2,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make data, cluster them on a local Dask cluster, check the answer, and show it on a page.

    Makes the data of a system, such as an event of a calorimeter, clusters them on workers and again in this process,
    compares the two, and writes a page with pictures.
    """
    from daskclust.demo import run_demo

    missing = [name for name in ("holoviews", "datashader", "bokeh") if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(f'the page of the demonstration needs {missing[0]}: pip install "daskclust[app]"')
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"-o {folder} is a file, not a folder; name another one")
    with progress("making data", quiet=quiet) as work:
        clusters, facts = run_demo(system, folder, workers, seed, work.begin)
    shown = not as_json and not quiet
    if shown:
        console.print(_largest(clusters))
    show(facts, as_json, f"Demonstration of {system}", quiet=quiet)
    if shown:
        same = "are equal, element by element" if facts["equal"] else "DIFFER"
        points = Path(facts["page"]).with_suffix(".parquet")
        text = f"the answers of the workers and of this process {same}; for so few points seconds_dask is the time of "
        text += f"Dask itself: tasks, and points that go between processes\nopen {facts['page']} in a browser\n"
        text += f"next: daskclust explore {shlex.join([str(points), '--system', system])}"
        console.print(text, highlight=False, soft_wrap=True)


def _largest(clusters: xr.Dataset) -> Table:
    weight = next(name for name in ("energy", "mass", "tot", "size") if name in clusters)
    largest = clusters.sortby(weight, ascending=False).isel(cluster=slice(10))
    shown = {name: form for name, form in _COLUMNS.items() if name in largest.variables}
    units = {name: largest[name].attrs.get("units", "1") for name in shown}
    heads = [name if unit == "1" else f"{name} ({unit})" for name, unit in units.items()]
    table = table_of(f"Largest by {weight}", heads)
    for row in zip(*[largest[name].values for name in shown], strict=True):
        table.add_row(*[format(value, form) for value, form in zip(row, shown.values(), strict=True)])
    return table


# ---------------------------------------------------------------------------------------------------------------- help
def manual(
    context: typer.Context,
    command: Annotated[str | None, typer.Argument(metavar="[COMMAND]", help="A command.", show_default="all")] = None,
) -> None:
    """Show the whole manual of a command, or of the program."""
    program: Any = context.find_root()
    if command is None:
        program.command.show_manual(program)
        return
    if command not in program.command.commands:
        raise typer.BadParameter(f"no such command {command!r}", param_hint="COMMAND")
    chosen = program.command.commands[command]
    chosen.show_manual(type(context)(chosen, info_name=command, parent=program, **chosen.context_settings))


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


# ---------------------------------------------------------------------------------------------------------------- warm
def warm(
    systems: Annotated[
        list[str] | None,
        typer.Argument(metavar="SYSTEM", help="clue, events, fof, dbscan, hdbscan, hca.", show_default="all"),
    ] = None,
    workers: Annotated[int | None, running("Processes that compile side by side.", min=1, default="the cores")] = None,
    cuda: Annotated[bool, running("Compile for an NVIDIA GPU.", "--cuda")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compile kernels now, so that no first run waits for it.

    They are kept for this machine and its users; what is there already, or came with the package, is not compiled.
    """
    from dask.system import CPU_COUNT

    from daskclust.core.device.machine_code import shipped
    from daskclust.workers import start
    from daskclust.workers._compile import TOPIC, checked_systems, compile_on

    names, began = checked_systems(systems or "all"), time.perf_counter()
    count = min(CPU_COUNT, 2 * len(names)) if workers is None and not cuda else workers
    title = "compiling kernels for this machine, once"

    def report(done: int, total: int) -> None:
        work.at(done, f"{title}: {done} of {total} kinds of use", total)

    with progress("starting workers", quiet=quiet) as work, start(count, cuda=cuda) as client:
        client.unsubscribe_topic(TOPIC)  # this bar is about nothing else
        work.begin(title)
        found = compile_on(client, names, cuda=cuda, report=report)
    facts = {"systems": ", ".join(names), "compiled": found, "shipped": shipped.describe()}
    facts["seconds"] = round(time.perf_counter() - began, 3)
    show(facts, as_json, "Kernels" if found else "Kernels: nothing was left to compile", quiet=quiet)
