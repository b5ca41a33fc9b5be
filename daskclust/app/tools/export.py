"""What is seen, to take along: figures for a paper, the session as a notebook or as Python lines, the table."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import panel as pn

from daskclust.app.code import blocks, code
from daskclust.app.raster import Ranges
from daskclust.app.selection import Range
from daskclust.app.state import State
from daskclust.app.systems import SYSTEMS, Condensed, Decision, Hierarchy
from daskclust.app.widgets import BESIDE, button, heading
from daskclust.core.data.quote import argument, in_sheet

_DPI, _WIDTH = 300, 6.8  # inches: two columns of a paper
_LINES_STYLE = "textarea.bk-input { font: 11px monospace; height: 230px }"


class Seen(NamedTuple):
    """What the page shows: axes of the picture, ends of axes by the title of a panel, the slice, if there is one."""

    axes: tuple[str, str]
    ranges: Mapping[str, Ranges]
    within: tuple[Range, ...] = ()


class Exporting:
    """A choice of figures, and buttons that give files and Python lines; `seen` tells what the page shows."""

    def __init__(self, state: State, seen: Callable[[], Seen]) -> None:
        self._state = state
        names = figures(state)
        self._name = pn.widgets.Select(label="figure", options=names, value=names[0], **BESIDE)

        def save(words: str, width: int, file: str, make: Callable[[], bytes]) -> Any:
            how: dict[str, Any] = {"label": words, "width": width, "filename": file, "margin": (3, 3)}
            return pn.widgets.FileDownload(callback=lambda: io.BytesIO(make()), **how)

        figures_and_session = [
            save("SVG", 58, "figure.svg", lambda: figure(state, seen(), self._name.value, "svg")),
            save("PNG, 300 dpi", 94, "figure.png", lambda: figure(state, seen(), self._name.value, "png")),
            save("Notebook", 76, "explored.ipynb", lambda: notebook(state, seen()).encode()),
        ]
        tables = [
            save("Table as CSV", 86, "clusters.csv", lambda: self.table("csv")),
            save("Parquet", 56, "clusters.parquet", lambda: self.table("parquet")),
        ]
        python = button("Python lines", self.tell_lines, width=84, margin=(3, 3))
        self.lines = pn.widgets.TextAreaInput(
            value="", visible=False, sizing_mode="stretch_width", height=230, stylesheets=[_LINES_STYLE]
        )
        rows = [pn.Row(*figures_and_session, margin=(0, 7)), pn.Row(*tables, python, margin=(0, 7))]
        self.panel = pn.Column(heading("Save"), self._name, *rows, self.lines, margin=0, sizing_mode="stretch_width")

    def tell_lines(self) -> None:
        """Show the Python lines of the session."""
        self.lines.param.update(value=code(self._state), visible=True)

    def table(self, kind: str) -> bytes:
        """Return the table as a file: clusters with chosen points, or all."""
        frame = self._state.present.rows(self._state.mask).to_dataframe()
        made: bytes = frame.rename(columns=in_sheet).to_csv().encode() if kind == "csv" else frame.to_parquet()
        return made


# -------------------------------------------------------------------------------------------------------------- figures
def figures(state: State) -> list[str]:
    """Return the names of available figures."""
    ground = state.present.ground
    return ["picture"] if ground is None else ["picture", ground.title]


def figure(state: State, seen: Seen, name: str, kind: str) -> bytes:
    """Return a figure ("svg", "png") of the present view, drawn by matplotlib: few points are vectors."""
    from daskclust import plot

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"figure.{kind}")
        plot.save(_element(state, seen, name), file, dpi=_DPI, width=_WIDTH)
        return file.read_bytes()


def _element(state: State, seen: Seen, name: str) -> Any:
    from daskclust import plot

    outcome = state.present
    if isinstance(outcome.ground, Hierarchy) and name == Hierarchy.title:
        return plot.dendrogram(
            outcome.ground.linkage, labels=outcome.label, min_size=outcome.request.values["min_size"]
        )
    if isinstance(outcome.ground, Condensed) and name == Condensed.title:
        return plot.condensed_tree(outcome.ground.fit, logy=True)
    if name == Decision.title:
        ends = _powers(seen.ranges[name])
        return plot.decision(outcome.result, logx=True, logy=True).opts(xlim=ends[0], ylim=ends[1])
    ranges = seen.ranges[name]
    inside = outcome.within(seen.axes, ranges, seen.within)
    dim = outcome.result["label"].dims[0]
    drawn = plot.clusters(outcome.result.isel({dim: np.flatnonzero(inside)}), *seen.axes)
    return drawn.opts(xlim=ranges[0], ylim=ranges[1])


def _powers(ranges: Ranges) -> Ranges:
    """Return the limits of logarithmic axes."""
    x, y = ((10.0**low, 10.0**high) for low, high in ranges)
    return x, y


# ------------------------------------------------------------------------------------------------------------- notebook
def notebook(state: State, seen: Seen) -> str:
    """Return the session as a notebook (nbformat 4.5), which runs from top to bottom: data, clusters, table, pictures.

    Where it is not known how ``ds`` is made, the first cell asks for it.
    """
    title = SYSTEMS[state.system.name].title
    values = ", ".join(f"`{name} = {value!r}`" for name, value in state.values.items())
    outcome = state.present
    summary = f"{outcome.n_clusters:,} clusters of {len(outcome.label):,} points, {outcome.n_noise:,} of them noise."
    imports, source, *rest = blocks(state)
    asked = [] if source else ["`ds` must be the data set that was explored."]
    names = ["## Clusters", "## Chosen points"]
    cells = [_cell("markdown", [f"# {title}", "", f"Parameters: {values}.", "", summary, *asked])]
    drawing = ["import holoviews as hv", "from daskclust import plot", "", 'hv.extension("bokeh")']
    cells.append(_cell("code", [*imports, *drawing]))
    cells += [_cell("code", source)] if source else []
    for words, lines in zip(names, rest, strict=False):
        cells += [_cell("markdown", [words]), _cell("code", lines)]
    cells.append(_cell("code", ["table.to_dataframe()"]))
    cells.append(_cell("markdown", ["## What was seen"]))
    cells += [_cell("code", lines) for lines in _plots(state, seen)]
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    numbered = [each | {"id": f"cell-{number}"} for number, each in enumerate(cells)]
    return json.dumps({"cells": numbered, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def _cell(kind: str, lines: list[str]) -> dict[str, Any]:
    more: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": "\n".join(lines)} | more


def _plots(state: State, seen: Seen) -> list[list[str]]:
    """Return the lines that draw each picture, with its present axes."""
    system, drawn = state.system, state.system.drawn
    x, y = seen.ranges["picture"]
    lines = []
    if seen.within:
        parts = [each.words({each.name: system.expression(each.name, "result")}) for each in seen.within]
        lines = [f"there = {' & '.join(parts)}"]
        drawn = f"result.isel({argument(state.present.result['label'].dims[0], 'there')})"
    first, second = map(repr, seen.axes)
    chosen = [[f"plot.clusters(chosen, {first}, {second})"]] if state.mask is not None and drawn != "cells" else []
    found = [[*lines, f"plot.clusters({drawn}, {first}, {second}).opts(xlim={x!r}, ylim={y!r})"]]
    if Decision.title in seen.ranges:
        x, y = _powers(seen.ranges[Decision.title])
        found.append([f"plot.decision(result, logx=True, logy=True).opts(xlim={x!r}, ylim={y!r})"])
    if isinstance(state.present.ground, Hierarchy):
        least = state.values["min_size"]
        found.append([f'plot.dendrogram(result["linkage"].values, labels=result["label"].values, min_size={least})'])
    if isinstance(state.present.ground, Condensed):
        fitted = f"{state.present.ground.fit!r}.fit(ds)"
        found.append(["from daskclust import HDBSCAN", f"plot.condensed_tree({fitted}, logy=True)"])
    return found + chosen
