"""Buttons that give figures, the notebook, the table and Python lines."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from typing import Any

import panel as pn

from daskclust.app.code import code
from daskclust.app.state import State
from daskclust.app.tools.export import Seen, figure, figures, notebook
from daskclust.app.widgets import BESIDE, heading, labelled
from daskclust.core.data.quote import in_sheet

__all__ = ["Exporting", "Seen"]

_LINES_STYLE = "textarea.bk-input { font: 11px monospace; height: 230px }"


class Exporting:
    """A choice of figures, and buttons that give files and Python lines; `seen` tells what the page shows."""

    def __init__(self, state: State, seen: Callable[[], Seen]) -> None:
        self._state, self._seen = state, seen
        names = figures(state)
        self._name = labelled(pn.widgets.Select, "figure", options=names, value=names[0], **BESIDE)
        figure_as = [
            _file(functools.partial(self._figure, kind), f"figure.{kind}", label, width)
            for kind, label, width in (("svg", "SVG", 58), ("png", "PNG, 300 dpi", 94))
        ]
        session = _file(self._notebook, "explored.ipynb", "Notebook", 76)
        table_as = [
            _file(functools.partial(self.table, kind), f"clusters.{kind}", label, width)
            for kind, label, width in (("csv", "Table as CSV", 86), ("parquet", "Parquet", 56))
        ]
        python = labelled(pn.widgets.Button, "Python lines", width=84, margin=(3, 3))
        python.on_click(lambda _: self.tell_lines())
        self.lines = pn.widgets.TextAreaInput(
            value="", visible=False, sizing_mode="stretch_width", height=230, stylesheets=[_LINES_STYLE]
        )
        rows = [pn.Row(*figure_as, session, margin=(0, 7)), pn.Row(*table_as, python, margin=(0, 7))]
        self.panel = pn.Column(heading("Save"), self._name, *rows, self.lines, margin=0, sizing_mode="stretch_width")

    def tell_lines(self) -> None:
        """Show the lines that do in Python what the page does."""
        self.lines.param.update(value=code(self._state), visible=True)

    def table(self, kind: str) -> io.BytesIO:
        """Return the table, of clusters with chosen points or of all, as a file."""
        frame = self._state.present.rows(self._state.mask).to_dataframe()
        return io.BytesIO(frame.rename(columns=in_sheet).to_csv().encode() if kind == "csv" else frame.to_parquet())

    def _figure(self, kind: str) -> io.BytesIO:
        return io.BytesIO(figure(self._state, self._seen(), self._name.value, kind))

    def _notebook(self) -> io.BytesIO:
        return io.BytesIO(notebook(self._state, self._seen()).encode())


def _file(callback: Callable[[], io.BytesIO], filename: str, label: str, width: int) -> Any:
    return pn.widgets.FileDownload(callback=callback, filename=filename, label=label, width=width, margin=(3, 3))
