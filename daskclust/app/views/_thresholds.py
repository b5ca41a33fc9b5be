"""Lines across a picture that are dragged with the mouse, and follow sliders."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bokeh.models import Span  # type: ignore[attr-defined,unused-ignore]

from daskclust.app.views._frame import Canvas

Drag = Callable[[str, float], None]


class Style(NamedTuple):
    """How a line is drawn: "width" lies across, "height" stands up."""

    dimension: str
    color: str
    dash: str


class Thresholds:
    """The lines of a picture by their parameters' names, at places on its axes; `drag` is called as one is dragged."""

    def __init__(self, canvas: Canvas, styles: Mapping[str, Style], places: Mapping[str, float], drag: Drag) -> None:
        self._drag, self._is_mine = drag, False
        self._lines: dict[str, Any] = {}
        for name, (dimension, color, dash) in styles.items():
            line = Span(location=places[name], dimension=dimension, name=name, editable=True)
            line.update(line_color=color, line_dash=dash, line_width=2.5, hover_line_color=color, hover_line_width=5.0)
            line.on_change("location", functools.partial(self._on_location, name))
            canvas.figure.add_layout(line)
            self._lines[name] = line

    def _on_location(self, name: str, attr: str, old: Any, new: Any) -> None:
        if not self._is_mine:
            self._drag(name, float(new))

    def place(self, name: str) -> float:
        return float(self._lines[name].location)

    def move(self, name: str, place: float, *, dash: str | None = None) -> None:
        """Move a line, as its slider was moved."""
        line = self._lines[name]
        if abs(self.place(name) - place) > 1e-9:
            self._is_mine = True
            line.location = place
            self._is_mine = False
        if dash is not None:
            line.line_dash = dash
