"""A widget for each parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from typing import Any

import numpy as np
import panel as pn

from daskclust.app.parameters import STEPS, Parameter
from daskclust.app.slices import Slice, Slices
from daskclust.core.data.quote import in_html

_UNSEEN = "label, .bk-slider-title { position: absolute; clip-path: inset(50%); white-space: nowrap }"  # but read aloud
_ONE_LINE = "div { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; line-height: 15px }"
_NO_BUTTONS = ".bk-spin-btn { display: none !important }"  # arrow keys do the same
BESIDE: dict[str, Any] = {"width": 240, "margin": (2, 10), "css_classes": ["beside"]}  # a label on the left
_SPEEDS = (1, 2, 5, 10)  # slices a second


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
    """Nothing that is seen: with Shift, arrow keys are ten steps of a slider or of a number."""

    _esm = """
    export function render() {
        document.addEventListener("keydown", (event) => {
            const target = event.composedPath()[0], takes = ".noUi-handle, .bk-spin-wrapper input"
            if (!event.shiftKey || !event.key.startsWith("Arrow") || !target.matches(takes)) return
            event.preventDefault()
            event.stopImmediatePropagation()
            for (let k = 0; k < 10; k++) target.dispatchEvent(new KeyboardEvent("keydown", {key: event.key}))
        }, true)
    }
    """


class _Slider(pn.widgets.FloatSlider):
    """A slider that is heard at once: Panel's waits 50 ms for other changes, which `Latest` does better."""

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
        unit, doc = f" ({parameter.unit})" if parameter.unit else "", in_html(parameter.doc)
        name = pn.pane.HTML(
            f"<b>{in_html(parameter.name)}</b>{in_html(unit)}<br>"
            f"<span style='color:var(--soft);font-size:11px' title='{doc}'>{doc}</span>",
            width=172,
            margin=(0, 0, 0, 10),
            stylesheets=[_ONE_LINE],
        )
        self.panel = pn.Column(pn.Row(name, self.number, margin=0), self.slider, margin=(3, 0, 0, 0))

    def follow(self, known: Mapping[str, Any], changed: Container[str] = ()) -> None:
        """Show the value if it was changed; be seen, or not, as the other parameters are."""
        when = self.parameter.when
        self.panel.visible = when is None or known[when[0]] == when[1]
        if self.parameter.name in changed:
            self._show(known[self.parameter.name])

    def _show(self, value: Any) -> None:
        self._is_mine = True
        if self.parameter.scale == "choice":
            self.slider.value = value
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


class Player:
    """Chooses a slice by its place, steps to the next one, or plays all of them; `chosen` is called with each.

    While `is_busy`, nothing is played: each slice is seen before the next one comes.
    """

    def __init__(
        self,
        slices: Slices,
        part: Slice | None,
        chosen: Callable[[Slice | None], None],
        is_busy: Callable[[], bool],
        width: int,
    ) -> None:
        self._slices, self._chosen, self._is_busy = slices, chosen, is_busy
        options = {f"all {slices.name}s": 0.0, **slices.lengths}
        place, length = (0, 0.0) if part is None else slices.place(part)
        self._words = pn.pane.HTML(margin=(0, 10), width=width)
        self._length: Any = pn.widgets.Select(label="shown", options=options, value=length, **BESIDE)
        self._speed = pn.widgets.Select(label="speed", options={f"{k} / s": k for k in _SPEEDS}, value=2, **BESIDE)
        self._place: Any = pn.widgets.IntSlider(
            label=slices.name,
            value=place,
            end=max(place, 1),
            show_value=False,
            stylesheets=[_UNSEEN],
            width=width,
            css_classes=["slider-slice"],
        )
        clicks = {"Back": lambda: self._step(-1), "Play": self._on_play, "Step": lambda: self._step(1)}
        self._buttons = [button(*each, width=width // 3 - 10, margin=(2, 5)) for each in clicks.items()]
        self._timer: Any = None
        self._is_mine = False
        self._length.param.watch(self._on_length, "value")
        self._speed.param.watch(self._on_speed, "value")
        self._place.param.watch(lambda _: self._tell(), "value")
        # of one slice
        self._steps = pn.Column(self._words, self._place, pn.Row(*self._buttons, margin=(0, 5)), self._speed, margin=0)
        self.panel = pn.Column(self._length, self._steps, margin=0)
        self._fit()

    @property
    def part(self) -> Slice | None:
        """The slice that is chosen."""
        length = self._length.value
        return self._slices.at(self._place.value, length) if length else None

    def go_to(self, value: float) -> None:
        """Choose the slice that holds a value of its column."""
        if self._length.value:
            self._place.value = self._slices.position(value, self._length.value)

    def _on_length(self, event: Any) -> None:
        """Show a window of another length where the last one began."""
        self._pause()
        begin = self._slices.at(self._place.value, event.old) if event.old else None
        self._fit(begin[0] if isinstance(begin, tuple) else None)
        self._tell()

    def _fit(self, value: float | None = None) -> None:
        """Let the slider have a place for each slice of this length, and be at the one with a value."""
        length = self._length.value
        last = self._slices.count(length) - 1 if length else 0
        place = self._slices.position(value, length) if length and value is not None else self._place.value
        self._is_mine = True
        self._place.param.update(end=max(last, 1), value=min(max(place, 0), last), disabled=last < 1)
        self._is_mine = False
        for button in self._buttons:
            button.disabled = last < 1
        self._steps.visible = bool(length)
        self._write()

    def _write(self) -> None:
        words = f"all {self._slices.name}s" if self.part is None else self._slices.words(self.part)
        self._words.object = f"<b class='slice-words'>{in_html(words)}</b>"

    def _tell(self) -> None:
        if not self._is_mine:
            self._write()
            self._chosen(self.part)

    def _step(self, by: int) -> None:
        self._place.value = (self._place.value + by) % (self._place.end + 1)

    def _on_play(self) -> None:
        if self._timer is not None:
            self._pause()
        else:
            self._timer = pn.state.add_periodic_callback(self._tick, period=1000 // self._speed.value)
            self._buttons[1].label = "Pause"

    def _pause(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
            self._buttons[1].label = "Play"

    def _on_speed(self, event: Any) -> None:
        if self._timer is not None:
            self._timer.period = 1000 // event.new

    def _tick(self) -> None:
        if not self._is_busy():
            self._step(1)
