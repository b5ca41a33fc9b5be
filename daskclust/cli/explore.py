"""``daskclust explore``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from daskclust.cli._frame import console, errors, progress
from daskclust.cli._options import READING, RUNNING, Columns, Quiet, columns_of, one_of

_HERE = ("localhost", "127.0.0.1", "::1")

MANUALS = {
    "explore": """
Reads
  FILE                          into memory, as the command of --system does, which says what columns and units there
                                are: .tpx3, .t3pa, Parquet, HDF5, CSV or text, NumPy, zarr, ArborX, ROOT, FCS

Writes
  standard output               the address of the page
  in the browser                its buttons give the table of clusters, as CSV or Parquet, and the Python lines of
                                what is shown

Examples
  # sliders and pictures in the browser
  $ daskclust explore hits.parquet
  # halos of a snapshot
  $ daskclust explore snapshot.hdf5 --system fof
  # your own names of columns
  $ daskclust explore my.csv --columns x=px,y=py,energy=E
  # on another machine, behind ssh -L 5006:localhost:5006 of this one
  $ daskclust explore run.tpx3 --port 5006 --no-browser
""",
}


def explore(
    path: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Points: what clue, events, fof and dbscan read, FCS, tables of cells."),
    ],
    system: Annotated[
        Literal["clue", "events", "fof", "dbscan", "hca"] | None,
        one_of("clue, events, fof, dbscan or hca.  \\[default: what suits the file]", READING),
    ] = None,
    columns: Columns = None,
    port: Annotated[int, typer.Option(help="Port of the page; 0: a free one.", rich_help_panel=RUNNING)] = 0,
    address: Annotated[
        str, typer.Option(help="Where to listen; another one lets others in.", rich_help_panel=RUNNING)
    ] = "localhost",
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Tell the address, and open no browser.", rich_help_panel=RUNNING)
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Explore a file in the browser: sliders, pictures, a table and histograms that follow.

    The page is for this machine only, unless --address says otherwise. Ctrl-C ends it.
    """
    from daskclust.app import serve
    from daskclust.app.opening import open_file

    if not 0 <= port < 65536:
        raise ValueError(f"--port must be from 0 to 65535, got {port}")
    with progress(f"reading {path.name}", quiet=quiet):
        ds, line = open_file(path, system, columns_of(columns))
        server = serve(
            ds,
            system,
            source=[line],
            address=address,
            port=port,
            show=False,
            start=False,
            title=f"{path.name} - daskclust",
        )
    url = f"http://{'localhost' if address in _HERE else address}:{server.port}/"
    console.print(f"exploring {path.name} at {url} (Ctrl-C ends it)", highlight=False, soft_wrap=True)
    if address not in _HERE:
        errors.print(f"note: whoever reaches {address} may explore, too", highlight=False)
    server.start()
    if not no_browser:
        server.io_loop.add_callback(server.show, "/")
    try:
        server.io_loop.start()  # Ctrl-C ends it: Panel sees to that
    finally:
        server.stop()
