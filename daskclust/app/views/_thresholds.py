"""Lines across a picture that are dragged with the mouse, and follow sliders."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bokeh.models import CustomJS, Span  # type: ignore[attr-defined,unused-ignore]

from daskclust.app.views._frame import Canvas

Drag = Callable[[str, float], None]

_REACH = 13  # pixels from a line within which it is grabbed: 12, and what the browser rounds

# BokehJS grabs a line within 2.5 pixels, and no longer once the mouse has been down for 0.3 s
_GRAB = f"""
const views = lines.map((line) => Bokeh.index.find_one(line)).filter((view) => view != null)
const away = (view, x, y) => Math.abs(view.model.dimension == "width" ? y - view.line.p0.y : x - view.line.p0.x)
for (const view of views) {{
    view._hit_test = (x, y) => {{
        const least = Math.min({_REACH}, ...views.map((each) => away(each, x, y)))
        return view.plot_view.frame.bbox.contains(x, y) && away(view, x, y) <= least ? "edge" : null
    }}
}}
Bokeh.require("core/ui_gestures").UIGestures.press_threshold = 1e9
"""
_FOCUS = """
const {sx, sy} = cb_obj
const line = lines.find((line) => Bokeh.index.find_one(line)?._hit_test(sx, sy))
const inside = (root) => [...root.querySelectorAll("*")].flatMap((each) => each.shadowRoot ?? [])
const find = (root) => root.querySelector(".slider-" + line.name)
    ?? inside(root).reduce((found, each) => found ?? find(each), null)
if (line) find(document)?.shadowRoot.querySelector(".noUi-handle").focus()
"""


class Style(NamedTuple):
    """How a line is drawn: "width" is horizontal, "height" vertical."""

    dimension: str
    color: str
    dash: str


class Thresholds:
    """Lines of a figure by the names of their parameters; `drag` is called as one is dragged.

    The nearest within reach is thick under the mouse, and can be dragged. After a click or a drag, arrow keys go to the
    slider of the line.
    """

    def __init__(self, canvas: Canvas, styles: Mapping[str, Style], places: Mapping[str, float], drag: Drag) -> None:
        self._drag = drag
        self._moving: set[str] = set()  # by the mouse or by their sliders
        self.lines: dict[str, Any] = {}
        for name, (dimension, color, dash) in styles.items():
            line = Span(location=places[name], dimension=dimension, name=name, editable=True)
            line.update(line_color=color, line_dash=dash, line_width=2.5)
            line.update(hover_line_color=color, hover_line_width=6.0, hover_line_alpha=1.0)
            line.on_change("location", functools.partial(self._on_location, name))
            canvas.figure.add_layout(line)
            self.lines[name] = line
        for event, code in (("mouseenter", _GRAB), ("tap", _FOCUS), ("panend", _FOCUS)):
            canvas.figure.js_on_event(event, CustomJS(args={"lines": list(self.lines.values())}, code=code))

    def _on_location(self, name: str, attr: str, old: Any, new: Any) -> None:
        if name not in self._moving:
            self._moving.add(name)  # it stays under the mouse, between two numbers of its slider
            self._drag(name, float(new))
            self._moving.remove(name)

    def place(self, name: str) -> float:
        return float(self.lines[name].location)

    def move(self, name: str, place: float, *, dash: str | None = None) -> None:
        """Move a line to the value of its slider."""
        line = self.lines[name]
        if name not in self._moving and abs(self.place(name) - place) > 1e-9:
            self._moving.add(name)
            line.location = place
            self._moving.remove(name)
        if dash is not None:
            line.line_dash = dash
