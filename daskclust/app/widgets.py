"""A widget for each parameter."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from typing import Any

import numpy as np
import panel as pn

from daskclust.app.parameters import Parameter
from daskclust.plot._look import COLORS

_STEPS = 200  # of a slider


def labelled(kind: Any, words: str, **options: Any) -> Any:
    """Return a widget with a label; older versions of Panel take it as the name."""
    return kind(**{"label" if "label" in kind.param else "name": words}, **options)


class Control:
    """A slider with a number beside it, or a choice."""

    def __init__(self, parameter: Parameter, known: Mapping[str, Any], changed: Any) -> None:
        self.parameter, self._changed = parameter, changed
        self._make(known[parameter.name])
        self.follow(known)

    def _make(self, value: Any) -> None:
        parameter, self._is_mine = self.parameter, False
        unit = f" ({parameter.unit})" if parameter.unit else ""
        if parameter.scale == "choice":
            options = {str(choice): choice for choice in parameter.choices}
            self._inner: Any = labelled(pn.widgets.Select, parameter.name, options=options, value=value, width=240)
            self._inner.param.watch(self._on_choice, "value")
            self.panel = pn.Column(self._inner)
            return
        low, high = parameter.widened(value)
        self._is_log = parameter.scale == "log" and low > 0
        self._number = pn.widgets.FloatInput(
            value=float(value), width=90, height=34, margin=(0, 5, 0, 5), css_classes=[f"number-{parameter.name}"]
        )
        ends = (math.log10(low), math.log10(high)) if self._is_log else (low, high)
        step = 1.0 if parameter.scale == "whole" else (ends[1] - ends[0]) / _STEPS
        self._inner = pn.widgets.FloatSlider(
            start=ends[0],
            end=ends[1] if ends[1] > ends[0] else ends[0] + 1,
            step=step,
            value=self._place(value),
            show_value=False,
            tooltips=False,
            width=240,
            margin=(0, 10, 6, 10),
            bar_color=COLORS[0],
            css_classes=[f"slider-{parameter.name}"],
        )
        self._inner.param.watch(self._on_slide, "value")
        self._number.param.watch(self._on_number, "value")
        name = pn.pane.HTML(
            f"<b>{parameter.name}</b>{unit}<br><span style='opacity:0.7;font-size:11px'>{parameter.doc}</span>",
            width=140,
            margin=(0, 0, 0, 10),
        )
        self.panel = pn.Column(pn.Row(name, self._number, margin=0), self._inner, margin=(4, 0))

    def follow(self, known: Mapping[str, Any], changed: Container[str] = ()) -> None:
        """Show the value if it was changed; be seen, or not, as the other parameters are."""
        when = self.parameter.when
        self.panel.visible = when is None or known[when[0]] == when[1]
        if self.parameter.name in changed:
            self._show(known[self.parameter.name])

    def _show(self, value: Any) -> None:
        self._is_mine = True
        if self.parameter.scale == "choice":
            self._inner.value = value
        else:
            self._number.value = float(value)
            self._inner.value = min(max(self._place(value), self._inner.start), self._inner.end)
        self._is_mine = False

    def _place(self, value: Any) -> float:
        return math.log10(value) if self._is_log and value > 0 else float(value)

    def _on_choice(self, event: Any) -> None:
        if not self._is_mine:
            self._changed(self.parameter.name, event.new)

    def _on_slide(self, event: Any) -> None:
        if self._is_mine:
            return
        value = 10.0**event.new if self._is_log else event.new
        value = round(value) if self.parameter.scale == "whole" else float(f"{value:.4g}")
        self._is_mine = True
        self._number.value = float(value)
        self._is_mine = False
        self._changed(self.parameter.name, value)

    def _on_number(self, event: Any) -> None:
        if self._is_mine or event.new is None or not np.isfinite(event.new):
            return
        self._show(event.new)
        self._changed(self.parameter.name, event.new)
