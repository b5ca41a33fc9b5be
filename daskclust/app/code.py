"""The Python lines that make what the explorer shows."""

from __future__ import annotations

from daskclust.app.selection import Clusters
from daskclust.app.state import State
from daskclust.app.systems import DELTA, DENSITY, Clue


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
    then, decision = origin
    names = ["label", *selection.axes]
    names += [selection.within.name] if selection.within is not None else []
    now = state.request()
    same = then.system is now.system and then.values == now.values
    source = "result" if same else "ds"
    lines: list[str] = []
    if decision is not None and selection.axes == (DENSITY, DELTA) and isinstance(then.system, Clue):
        lines += then.system.wide_lines(then.values, decision.reach)
    elif not same and (isinstance(selection, Clusters) or _lacks(state, selection.axes)):
        # the clusters in which points were chosen are others now
        lines += [line.replace("result =", "before =") for line in then.system.lines(then.values)]
        source = "before"
    expressions = {name: f'{source}["{name}"].values' for name in names}
    if decision is not None:
        expressions |= decision.expressions()
    lines += selection.lines(expressions)
    dim = state.present.result["label"].dims[0]
    return [*lines, f"chosen = result.isel({dim}=inside)"]


def _lacks(state: State, axes: tuple[str, ...]) -> bool:
    """Return whether axes are results, or channels, not variables of the data."""
    return any(name not in state.ds.variables for name in axes)


def _imports(body: list[str], source: tuple[str, ...]) -> list[str]:
    text = "\n".join([*body, *source])
    lines = ["import numpy as np"] if "np." in text else []
    lines += ["import xarray as xr"] if "xr." in text else []
    if lines:
        lines.append("")
    if ".clust." in text:
        lines.append("import daskclust.accessor")
    names = [name for name in ("MahalanobisHCA", "io", "properties") if f"{name}." in text or f"{name}(" in text]
    return [*lines, f"from daskclust import {', '.join(names)}"]
