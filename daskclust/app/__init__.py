"""The explorer: a clustering changed by sliders, seen at once in pictures, a table and histograms.

`explore` is for notebooks, `serve` for a browser; ``daskclust explore FILE`` is `serve` from the command line.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from daskclust.core.data.datasets import dataset_of

if TYPE_CHECKING:
    from daskclust.app.layout import Explorer

__all__ = ["explore", "serve"]


def explore(ds: Any, system: str | None = None, **parameters: Any) -> Explorer:
    """Explore a data set in a notebook.

    Parameters
    ----------
    ds : xarray.Dataset, data frame or mapping
        Points; what is lazy or on a GPU is brought to memory. There must be ``x`` and ``y``, or ``X`` (cell, channel).
    system : {"clue", "events", "fof", "dbscan", "hdbscan", "hca"}, optional
        By default the first one that suits the data.
    **parameters
        Of the system, to begin with; the rest is derived from the data.

    Returns
    -------
    Explorer
        What a notebook shows as sliders, pictures, a table and histograms. ``explorer.state.present.result`` is the
        clustering at any time.

    Raises
    ------
    TypeError
        For what has no named columns.
    ValueError
        Where no system, or not this one, suits the data; for no points and unknown parameters.
    ImportError
        Without the extra ``app``.

    Examples
    --------
    >>> from daskclust.datasets import calorimeter
    >>> explorer = explore(calorimeter(2, 100, rng=0), dc=20.0, rhoc=8.0, delta_c=20.0, delta_o=20.0)
    >>> explorer.state.present.n_clusters
    17
    """
    layout = _layout()
    explorer: Explorer = layout.Explorer(layout.State(dataset_of(ds), system, **parameters))
    return explorer


def serve(
    ds: Any,
    system: str | None = None,
    *,
    source: Sequence[str] = (),
    address: str = "localhost",
    port: int = 0,
    allow_origin: Sequence[str] = (),
    token: str | None = None,
    show: bool = True,
    start: bool = True,
    title: str = "daskclust",
    **parameters: Any,
) -> Any:
    """Serve the explorer of a data set to a browser, with a state of its own for each page.

    Parameters
    ----------
    ds, system, **parameters
        As of `explore`, which tells of errors, too.
    source : sequence of str
        Python lines that make `ds`, for the lines that the explorer gives.
    address : str, default "localhost"
        Where to listen.
    port : int, default 0
        0 takes any free one.
    allow_origin : sequence of str
        Names, or ``name:port``, that the browser's address has behind a proxy. ``localhost`` with any port, which is
        what a tunnel gives, is always let in. ``BOKEH_ALLOW_WS_ORIGIN`` is read, too.
    token : str, optional
        What browsers must have in the address, as ``?token=...``. By default your own need none (where the system does
        not tell whose they are, those of this machine), and others are told in the terminal, with an address for them.
    show, start : bool, default True
        Open a browser; serve until interrupted, or return at once.
    title : str, default "daskclust"
        Of the page.

    Returns
    -------
    bokeh.server.server.Server
        With ``port``, and ``stop``.

    Raises
    ------
    ValueError, ImportError
        As of `explore`.
    OSError
        Where another program has the port.
    """
    layout = _layout()
    import panel as pn

    from daskclust.app.page import access

    first = layout.State(dataset_of(ds), system, source=tuple(source), **parameters)
    first.update()  # what is wrong is told before anything is served, and kernels are compiled
    layout.Explorer(first)  # those of pictures, too

    def page() -> Any:
        from daskclust.app.page import served

        served.frame(pn.state.curdoc)
        return layout.Explorer(first.twin())

    how = {"show": False, "start": False, "title": title, "sign_sessions": True, "secret_key": secrets.token_urlsafe()}
    server = pn.serve({"/": page}, address=address, port=port, verbose=False, threaded=False, **how)
    others = () if address in access.HERE else {address, socket.gethostname(), socket.getfqdn()} - {"0.0.0.0", "::"}
    access.guard(server, others, allow_origin, token)
    if show:
        server.io_loop.add_callback(server.show, f"/?token={token}" if token else "/")
    if start:
        access.run(server)
    return server


def _layout() -> Any:
    """Return the module with widgets and state, loaded where it is needed only."""
    try:
        import panel as pn
    except ImportError as error:
        raise ImportError('the explorer needs Panel: pip install "daskclust[app]"') from error
    pn.extension("tabulator")
    from daskclust.app import layout

    return layout
