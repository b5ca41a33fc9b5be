"""The Python lines that make what the explorer shows."""

from __future__ import annotations

from daskclust.app.selection import Clusters, Selection
from daskclust.app.state import Outcome, State


def code(state: State) -> str:
    """Return a program that makes ``result``, ``table`` and, if points are chosen, ``inside`` (which) and ``chosen``.

    It begins with what makes ``ds``, if that is known.
    """
    system = state.system
    body = [*system.lines(state.values), *system.table_lines()]
    if state.mask is not None and state.selection is not None and state.origin is not None:
        body += ["", *_selection(state, state.selection, state.origin)]
    return "\n".join([*_imports("\n".join([*body, *state.source])), "", *state.source, *body]) + "\n"


def _selection(state: State, selection: Selection, origin: Outcome) -> list[str]:
    """Return the lines that make ``inside``, from what was clustered when points were chosen."""
    then, ground, now = origin.request, origin.ground, state.request()
    lines: list[str] = []
    source = "result"
    if ground is not None and any(name in ground.columns for name in selection.needs):
        drawn = then.system.ground_lines(then.values, ground, "drawn")
        if drawn != now.system.lines(now.values, "drawn"):  # else the result has it all
            lines, source = drawn, "drawn"
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


def _imports(text: str) -> list[str]:
    arrays = [
        f"import {module} as {name}" for module, name in (("numpy", "np"), ("xarray", "xr")) if f"{name}." in text
    ]
    names = [name for name in ("MahalanobisHCA", "io", "properties") if f"{name}." in text or f"{name}(" in text]
    return [*arrays, *([""] if arrays else []), f"from daskclust import {', '.join(names)}"]
