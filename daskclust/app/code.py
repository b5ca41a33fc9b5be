"""The Python lines that make what the explorer shows."""

from __future__ import annotations

from daskclust.app.selection import Clusters
from daskclust.app.state import State


def code(state: State) -> str:
    """Return a program that reproduces a state: the clusters, their table, and the chosen points.

    Parameters
    ----------
    state : State
        What is to be reproduced.

    Returns
    -------
    str
        Lines that make ``result``, ``table`` and, if points are chosen, ``inside`` (which ones) and ``chosen``. They
        begin with what makes ``ds``, if that is known.
    """
    system = state.system
    body = [*system.lines(state.values), *system.table_lines()]
    if state.mask is not None and state.selection is not None:
        body += ["", *_selection(state)]
    imports = _imports(body, state.source)
    return "\n".join([*imports, "", *state.source, *body]) + "\n"


def _selection(state: State) -> list[str]:
    """Return the lines that make ``inside``, from what was clustered when points were chosen."""
    selection, origin = state.selection, state.origin
    assert selection is not None
    assert origin is not None
    then, ground = origin
    now = state.request()
    lines: list[str] = []
    source = "result"
    if ground is not None and any(name in ground.columns for name in selection.needs):
        lines = then.system.ground_lines(then.values, ground, "drawn")
        if lines == now.system.lines(now.values, "drawn"):
            lines = []  # the result has it all
        else:
            source = "drawn"
        expressions = ground.expressions(source)
    else:
        if then.system is not now.system or then.values != now.values:  # clusters are others now
            source = "ds"
            if not all(map(then.system.is_given, selection.needs)):
                lines, source = then.system.lines(then.values, "before"), "before"
        expressions = {name: then.system.expression(name, source) for name in selection.needs}
    if isinstance(selection, Clusters) and selection.by is not None:
        lines += then.system.table_lines(source, "rows")
    dim = state.present.result["label"].dims[0]
    return [*lines, *selection.lines(expressions), f"chosen = result.isel({dim}=inside)"]


def _imports(body: list[str], source: tuple[str, ...]) -> list[str]:
    text = "\n".join([*body, *source])
    lines = ["import numpy as np"] if "np." in text else []
    lines += ["import xarray as xr"] if "xr." in text else []
    if lines:
        lines.append("")
    names = [name for name in ("MahalanobisHCA", "io", "properties") if f"{name}." in text or f"{name}(" in text]
    return [*lines, f"from daskclust import {', '.join(names)}"]
