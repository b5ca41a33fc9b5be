"""Buttons that give figures and the notebook."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable

import panel as pn

from daskclust.app.state import State
from daskclust.app.tools.export import Seen, figure, figures, notebook
from daskclust.app.widgets import BESIDE, labelled

__all__ = ["Exporting", "Seen"]


class Exporting:
    """A choice of figures, and buttons for their files; `seen` tells what the page shows."""

    def __init__(self, state: State, seen: Callable[[], Seen]) -> None:
        self._state, self._seen = state, seen
        names = figures(state)
        self._name = labelled(pn.widgets.Select, "figure", options=names, value=names[0], **BESIDE)
        files = [
            pn.widgets.FileDownload(
                callback=functools.partial(self._figure, kind), filename=f"figure.{kind}", label=label,
                width=width, margin=(3, 3),
            )
            for kind, label, width in (("svg", "SVG", 58), ("png", "PNG, 300 dpi", 94))
        ]  # fmt: skip
        session = pn.widgets.FileDownload(
            callback=self._notebook,
            filename="explored.ipynb",
            label="Notebook",
            width=76,
            margin=(3, 3),
        )
        self.panel = pn.Column(
            self._name, pn.Row(*files, session, margin=(0, 7)), margin=0, sizing_mode="stretch_width"
        )

    def _figure(self, kind: str) -> io.BytesIO:
        return io.BytesIO(figure(self._state, self._seen(), self._name.value, kind))

    def _notebook(self) -> io.BytesIO:
        return io.BytesIO(notebook(self._state, self._seen()).encode())
