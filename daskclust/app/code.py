"""The Python lines that make what the explorer shows."""

from __future__ import annotations

from daskclust.app.selection import ChosenClusters, Selection
from daskclust.app.state import Outcome, State
from daskclust.core.data.quote import argument


def code(state: State) -> str:
    """Return a program that makes ``result``, ``table`` and, if points are chosen, ``inside`` (which) and ``chosen``.

    It begins with what makes ``ds``, if that is known.
    """
    imports, source, made, *chosen = blocks(state)
    return "\n".join([*imports, "", *source, *made, *(line for block in chosen for line in ("", *block))]) + "\n"


def blocks(state: State) -> list[list[str]]:
    """Return the lines of `code` in parts: imports, what makes ``ds``, clusters and table, chosen points if any."""
    system = state.system
    source = [*state.source, *system.hiding_lines(state.values)]
    parts = [[*system.lines(state.values), *system.table_lines()]]
    selection, mask, origin = state.chosen
    if mask is not None and selection is not None and origin is not None:
        parts.append(_selection(state, selection, origin))
    return [_imports("\n".join([*source, *(line for part in parts for line in part)])), source, *parts]


def _selection(state: State, selection: Selection, origin: Outcome) -> list[str]:
    """Return the lines that make ``inside``, from what was clustered when points were chosen."""
    then, now = origin.request, state.request()
    system, lines = then.system, then.system.lines(then.values, "before")
    ground = origin.ground if origin.ground is not None and set(selection.needs) & set(origin.ground.columns) else None
    if ground is not None:
        lines = system.ground_lines(then.values, ground, "before")
    if lines == now.system.lines(now.values, "before"):  # the result has it all
        lines, source = [], "result"
    elif ground is None and all(map(system.is_given, selection.needs)):
        lines, source = [], "ds"
    else:
        source = "before"
    if ground is not None:
        expressions = ground.expressions(source)
    else:
        expressions = {name: system.expression(name, source) for name in selection.needs}
    if isinstance(selection, ChosenClusters) and selection.by is not None:
        lines += system.table_lines(source, "rows")
    dim = state.present.result["label"].dims[0]
    return [*lines, *selection.lines(expressions), f"chosen = result.isel({argument(dim, 'inside')})"]


def _imports(text: str) -> list[str]:
    arrays = [
        f"import {module} as {name}" for module, name in (("numpy", "np"), ("xarray", "xr")) if f"{name}." in text
    ]
    names = [name for name in ("MahalanobisHCA", "io", "properties") if f"{name}." in text or f"{name}(" in text]
    return [*arrays, *([""] if arrays else []), f"from daskclust import {', '.join(names)}"]
