"""The button that asks for suggested parameters, and what it shows: values, the reason, the curve, and "Use"."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import panel as pn
from bokeh.plotting import figure

from daskclust.app.state import State
from daskclust.app.tools.suggest import Curve, Suggestion, suggest
from daskclust.app.widgets import button
from daskclust.app.worker import Later, Latest, Show
from daskclust.core.data.quote import in_html
from daskclust.plot._look import ACCENT, COLORS

_MOST_DRAWN = 400  # points of a curve
_PLAIN = {"width": None, "height": 170, "toolbar_location": None, "tools": "", "sizing_mode": "stretch_width"}


class Suggesting:
    """A button, and below it the suggestion; `use` applies it; another button is `beside`."""

    def __init__(self, state: State, use: Callable[[dict[str, Any]], None], later: Later | None, beside: Any) -> None:
        self._state, self._use = state, use
        self.latest = Latest(self._begin, self._fail, lambda: None, later)
        self._ask = button("Suggest parameters", self.latest.ask, width=130, margin=(3, 4, 3, 10))
        self.shown = pn.Column(visible=False, margin=0, sizing_mode="stretch_width")
        self.panel = pn.Column(pn.Row(self._ask, beside, margin=0), self.shown, margin=0, sizing_mode="stretch_width")

    def _begin(self) -> Iterator[Show]:
        self._ask.loading = True
        outcome = self._state.present

        def steps() -> Iterator[Show]:
            yield functools.partial(self._show, suggest(outcome))

        return steps()

    def _fail(self, error: Exception) -> None:
        self._ask.loading = False
        self.shown.param.update(objects=[_words(in_html(f"No suggestion: {error}"))], visible=True)

    def _show(self, found: Suggestion) -> None:
        self._ask.loading = False
        numbers = [f"{name} = {value:g}" for name, value in found.values.items() if not isinstance(value, str)]
        values = f"<b>{', '.join(numbers)}</b><br>" if numbers else ""
        parts = [_words(values + in_html(found.reason))]
        if len(found.curve.x):
            parts.append(pn.pane.Bokeh(_drawn(found.curve), sizing_mode="stretch_width", margin=0))
        if found.values:
            parts.append(button("Use", lambda: self._use(found.values)))
        self.shown.param.update(objects=parts, visible=True)


def _words(text: str) -> Any:
    return pn.pane.HTML(f"<span class='suggestion'>{text}</span>", sizing_mode="stretch_width", margin=(0, 10))


def _drawn(curve: Curve) -> Any:
    kinds = ["log" if each else "linear" for each in curve.log]
    made: Callable[..., Any] = figure  # its types are those of many versions
    picture = made(x_axis_type=kinds[0], y_axis_type=kinds[1], **_PLAIN)
    few = np.unique(np.geomspace(1, len(curve.x), min(len(curve.x), _MOST_DRAWN)).round().astype(int)) - 1
    few = few if curve.log[0] else np.unique(np.linspace(0, len(curve.x) - 1, _MOST_DRAWN).round().astype(int))
    picture.line(curve.x[few], curve.y[few], color=ACCENT, line_width=2)
    if curve.at is not None:
        picture.scatter([curve.at[0]], [curve.at[1]], size=9, color=COLORS[1])
    picture.axis.axis_label_text_font_size = picture.axis.major_label_text_font_size = "8pt"
    picture.xaxis.axis_label, picture.yaxis.axis_label = curve.words
    return picture
