"""``daskclust explore``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from daskclust.cli._frame import console, errors, progress

_HERE = ("localhost", "127.0.0.1", "::1")


def explore(
    path: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Points: what clue, events, fof and dbscan read, FCS, tables of cells."),
    ],
    system: Annotated[
        str | None, typer.Option(help="clue, events, fof, dbscan or hca.  \\[default: what suits the file]")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Names of the columns of a file without a header.")] = None,
    port: Annotated[int, typer.Option(help="Port of the page; 0: a free one.")] = 0,
    address: Annotated[str, typer.Option(help="Where to listen; another one lets others in.")] = "localhost",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Tell the address, and open no browser.")] = False,
) -> None:
    """Explore a file in the browser: sliders, pictures, a table and histograms that follow.

    The page is for this machine only, unless --address says otherwise. Ctrl-C ends it.
    """
    from daskclust.app import serve
    from daskclust.app.opening import open_file
    from daskclust.app.systems import SYSTEMS

    if system is not None and system not in SYSTEMS:
        raise ValueError(f"--system must be one of {', '.join(SYSTEMS)}, got {system!r}")
    if not 0 <= port < 65536:
        raise ValueError(f"--port must be from 0 to 65535, got {port}")
    with progress(f"reading {path.name}"):
        names = None if columns is None else [name.strip() for name in columns.split(",")]
        ds, line = open_file(path, system, names)
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
