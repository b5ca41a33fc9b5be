"""Lines across a picture that are dragged with the mouse, and follow sliders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from daskclust.app.views._frame import Canvas

Drag = Callable[[str, float], None]


class Style(NamedTuple):
    """How a line is drawn: "width" lies across, "height" stands up."""

    dimension: str
    color: str
    dash: str


class Thresholds:
    """The lines of a picture.

    Parameters
    ----------
    canvas : Canvas
        The picture.
    styles : mapping of str to Style
        Of each line, by the name of its parameter.
    places : mapping of str to float
        Where they are at first, on the axes of the picture.
    drag : callable
        Called with the name and the place of a line that was dragged.
    """

    def __init__(self, canvas: Canvas, styles: Mapping[str, Style], places: Mapping[str, float], drag: Drag) -> None:
        from bokeh.models import Span  # type: ignore[attr-defined,unused-ignore]

        self._drag, self._is_mine = drag, False
        self._lines: dict[str, Any] = {}
        for name, (dimension, color, dash) in styles.items():
            line = Span(
                location=places[name],
                dimension=dimension,
                line_color=color,
                line_dash=dash,
                line_width=2.5,
                hover_line_color=color,
                hover_line_width=5.0,
                editable=True,
                name=name,
            )
            line.on_change("location", self._dragged(name))
            canvas.figure.add_layout(line)
            self._lines[name] = line

    def _dragged(self, name: str) -> Callable[[str, Any, Any], None]:
        """Return what bokeh calls as a line is dragged."""

        def on_location(attr: str, old: Any, new: Any) -> None:
            if not self._is_mine:
                self._drag(name, float(new))

        return on_location

    def place(self, name: str) -> float:
        """Return where a line is."""
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
