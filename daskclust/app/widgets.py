"""A widget for each parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from typing import Any

import numpy as np
import panel as pn

from daskclust.app.design import styled
from daskclust.app.parameters import STEPS, Parameter
from daskclust.app.selection import Range
from daskclust.app.slices import Slices
from daskclust.core.data.quote import in_html

_UNSEEN = "label, .bk-slider-title { position: absolute; clip-path: inset(50%); white-space: nowrap }"  # but read aloud
_ONE_LINE = "div { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; line-height: 15px }"
_NO_BUTTONS = ".bk-spin-btn { display: none !important }"  # arrow keys do the same
BESIDE: dict[str, Any] = {"width": 240, "margin": (2, 10), "css_classes": ["beside"]}  # a label on the left
_BUTTONS = ["slower", "previous", "pause", "play", "next", "faster"]  # of those that play slices


def button(words: str, do: Callable[[], None], **options: Any) -> Any:
    """Return a button that does something."""
    return pn.widgets.Button(label=words, on_click=lambda _: do(), **options)


def heading(words: str) -> Any:
    """Return the title of a group of widgets."""
    style = (
        "h2 { margin: 0; padding-top: 4px; font-size: 12px; color: var(--title); border-top: 1px solid var(--edge) }"
    )
    return pn.pane.HTML(
        f"<h2>{in_html(words)}</h2>", stylesheets=[style], sizing_mode="stretch_width", margin=(5, 10, 1, 10)
    )


class Keys(pn.custom.JSComponent):
    """An invisible component: with Shift, arrow keys are ten steps; a comma in a number is a decimal point."""

    _esm = """
    export function render() {
        document.addEventListener("keydown", (event) => {
            const target = event.composedPath()[0], takes = ".noUi-handle, .bk-spin-wrapper input"
            if (!event.shiftKey || !event.key.startsWith("Arrow") || !target.matches(takes)) return
            event.preventDefault()
            event.stopImmediatePropagation()
            for (let k = 0; k < 10; k++) target.dispatchEvent(new KeyboardEvent("keydown", {key: event.key}))
        }, true)
        document.addEventListener("input", (event) => {
            const target = event.composedPath()[0]
            if (!target.matches(".bk-spin-wrapper input") || !/^[^.,]*,[^.,]*$/.test(target.value)) return
            const place = target.selectionStart
            target.value = target.value.replace(",", ".")
            target.setSelectionRange(place, place)
        }, true)
    }
    """


class _Slider(pn.widgets.FloatSlider):
    """A slider without Panel's delay of 50 ms: `Latest` skips outdated values."""

    _debounce = 1


class Control:
    """A slider with a number beside it, or a choice."""

    def __init__(self, parameter: Parameter, known: Mapping[str, Any], changed: Any) -> None:
        self.parameter, self._changed, self._is_mine = parameter, changed, False
        if parameter.scale == "choice":
            options = {str(choice): choice for choice in parameter.choices}
            how: dict[str, Any] = {"options": options, "value": known[parameter.name], **BESIDE}
            self.slider: Any = pn.widgets.Select(label=parameter.name, **how)
            self.slider.param.watch(self._on_choice, "value")
            self.panel = pn.Column(self.slider, margin=0)
        elif parameter.scale == "several":
            how = {"options": list(parameter.choices), "value": list(known[parameter.name]), "inline": True}
            self.slider = pn.widgets.CheckBoxGroup(label=parameter.name, width=240, margin=(0, 10), **how)
            self.slider.param.watch(self._on_choice, "value")
            ticks = pn.Column(self.slider, max_height=112, scroll="y-auto", margin=0)
            self.panel = pn.Column(_words(parameter), ticks, margin=(3, 0, 0, 0))
        else:
            self._make_slider(parameter, known[parameter.name])
        self.follow(known)

    def _make_slider(self, parameter: Parameter, value: Any) -> None:
        low, high = min(parameter.low, value), max(parameter.high, value)
        self._is_log = parameter.scale == "log" and low > 0
        self.number = pn.widgets.FloatInput(
            label=parameter.name,
            stylesheets=[_UNSEEN, _NO_BUTTONS],
            value=float(value),
            step=parameter.digit(float(value)),
            width=64,
            margin=(0, 10, 0, 4),
            css_classes=[f"number-{parameter.name}"],
        )
        ends = (math.log10(low), math.log10(high)) if self._is_log else (low, high)
        step = 1.0 if parameter.scale == "whole" else (ends[1] - ends[0]) / STEPS
        self.slider = _Slider(  # type: ignore[no-untyped-call]
            label=parameter.name,
            stylesheets=[_UNSEEN],
            start=ends[0],
            end=ends[1] if ends[1] > ends[0] else ends[0] + 1,
            step=step,
            value=self._place(value),
            show_value=False,
            tooltips=False,
            width=240,
            margin=(0, 10, 2, 10),
            css_classes=[f"slider-{parameter.name}"],
        )
        self.slider.param.watch(self._on_slide, "value")
        self.number.param.watch(self._on_number, "value")
        self.panel = pn.Column(pn.Row(_words(parameter), self.number, margin=0), self.slider, margin=(3, 0, 0, 0))

    def follow(self, known: Mapping[str, Any], changed: Container[str] = ()) -> None:
        """Show a changed value; hide the control where another parameter makes it ineffective."""
        when = self.parameter.when
        self.panel.visible = when is None or known[when[0]] == when[1]
        if self.parameter.name in changed:
            self._show(known[self.parameter.name])

    def _show(self, value: Any) -> None:
        self._is_mine = True
        if self.parameter.scale in ("choice", "several"):
            self.slider.value = list(value) if self.parameter.scale == "several" else value
        else:
            self.number.param.update(value=float(value), step=self.parameter.digit(value))
            self.slider.value = min(max(self._place(value), self.slider.start), self.slider.end)
        self._is_mine = False

    def _place(self, value: Any) -> float:
        return math.log10(value) if self._is_log and value > 0 else float(value)

    def _on_choice(self, event: Any) -> None:
        if not self._is_mine:
            self._changed(self.parameter.name, event.new)

    def _on_slide(self, event: Any) -> None:
        if self._is_mine:
            return
        value = self.parameter.short(10.0**event.new if self._is_log else event.new)
        self._is_mine = True
        self.number.param.update(value=float(value), step=self.parameter.digit(value))
        self._is_mine = False
        self._changed(self.parameter.name, value)

    def _on_number(self, event: Any) -> None:
        if self._is_mine or event.new is None or not np.isfinite(event.new):
            return
        value = float(f"{event.new:.12g}")  # steps by keys add up errors
        self._show(value)
        self._changed(self.parameter.name, value)


def _words(parameter: Parameter) -> Any:
    """Return the name of a parameter, its unit, and below it what it means."""
    unit, doc = f" ({parameter.unit})" if parameter.unit else "", in_html(parameter.doc)
    return pn.pane.HTML(
        f"<b>{in_html(parameter.name)}</b>{in_html(unit)}<br>"
        f"<span style='color:var(--soft);font-size:11px' title='{doc}'>{doc}</span>",
        width=172,
        margin=(0, 0, 0, 10),
        stylesheets=[_ONE_LINE],
    )


class Player:
    """Chooses a slice, or plays one after the other; `chosen` is called with each, or with None for all of them."""

    def __init__(self, slices: Slices, part: Range | None, chosen: Callable[[Range | None], None]) -> None:
        self._slices, self._chosen = slices, chosen
        options = {f"all {slices.name}s": 0.0, **slices.lengths}
        self.place, length = (0, 0.0) if part is None else slices.place(part)
        self.length: Any = pn.widgets.Select(label="shown", options=options, value=length, **BESIDE)
        self._words = pn.pane.HTML(margin=(0, 10), sizing_mode="stretch_width")
        self._steps = pn.Column(margin=0)
        self.panel = pn.Column(self.length, self._words, self._steps, margin=0)
        self.length.param.watch(self._on_length, "value")
        self._arrange()

    @property
    def part(self) -> Range | None:
        """The slice that is chosen."""
        return self._slices.at(self.place, self.length.value) if self.length.value else None

    def go_to(self, value: float) -> None:
        """Choose the slice that holds a value of its column."""
        if self.length.value:
            self.player.value = self._slices.position(value, self.length.value)

    def _on_length(self, event: Any) -> None:
        """Show a window of another length where the last one began."""
        if event.old and event.new:
            begin = self._slices.at(self.place, event.old).low
            self.place = max(self._slices.position(begin, event.new), 0)
        self._arrange()
        self._chosen(self.part)

    def _arrange(self) -> None:
        """Make a player for slices of this length: its end cannot be changed later."""
        last = self._slices.count(self.length.value) - 1 if self.length.value else 0
        self.place = min(self.place, last) if self.length.value else self.place
        how: dict[str, Any] = {"show_loop_controls": False, "loop_policy": "loop", "visible_buttons": _BUTTONS}
        self.player: Any = pn.widgets.Player(
            value=self.place, end=max(last, 1), width=240, height=58, margin=(0, 10), **how
        )
        self.player.param.watch(self._on_place, "value")
        self._steps.objects = styled([self.player]) if last else []
        self._write()

    def _on_place(self, event: Any) -> None:
        self.place = event.new
        self._write()
        self._chosen(self.part)

    def _write(self) -> None:
        words = f"all {self._slices.name}s" if self.part is None else self._slices.words(self.part)
        self._words.object = f"<b class='slice-words'>{in_html(words)}</b>"
