"""A widget for each parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from typing import Any

import numpy as np
import panel as pn

from daskclust.app.parameters import STEPS, Parameter
from daskclust.app.slices import Slice, Slices
from daskclust.plot._look import COLORS

_SPEEDS = (1, 2, 5, 10)  # slices a second


def labelled(kind: Any, words: str, **options: Any) -> Any:
    """Return a widget with a label; older versions of Panel take it as the name."""
    return kind(**{"label" if "label" in kind.param else "name": words}, **options)


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
            value=float(value),
            step=parameter.digit(float(value)),
            width=90,
            height=34,
            margin=(0, 5, 0, 5),
            css_classes=[f"number-{parameter.name}"],
            stylesheets=[".bk-spin-btn { display: none !important }"],  # arrow keys do the same
        )
        ends = (math.log10(low), math.log10(high)) if self._is_log else (low, high)
        step = 1.0 if parameter.scale == "whole" else (ends[1] - ends[0]) / STEPS
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
            self._number.param.update(value=float(value), step=self.parameter.digit(value))
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
        value = self.parameter.short(10.0**event.new if self._is_log else event.new)
        self._is_mine = True
        self._number.param.update(value=float(value), step=self.parameter.digit(value))
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
        self, slices: Slices, chosen: Callable[[Slice | None], None], is_busy: Callable[[], bool], width: int
    ) -> None:
        self._slices, self._chosen, self._is_busy = slices, chosen, is_busy
        options = {f"all {slices.name}s": None, **slices.lengths}
        length = next((each for each in slices.lengths.values() if slices.first == slices.at(0, each)), None)
        self._words = pn.pane.HTML(margin=(0, 10), width=width)
        self._length = labelled(pn.widgets.Select, "shown", options=options, value=length, width=width // 2 - 10)
        self._speed = labelled(
            pn.widgets.Select, "speed", options={f"{k} a second": k for k in _SPEEDS}, value=2, width=width // 2 - 10
        )
        self._place = labelled(
            pn.widgets.IntSlider,
            slices.name,
            start=0,
            end=1,
            show_value=False,
            width=width,
            css_classes=["slider-slice"],
        )
        clicks = {"Back": lambda _: self._step(-1), "Play": self._on_play, "Step": lambda _: self._step(1)}
        self._buttons = [
            labelled(pn.widgets.Button, words, width=width // 3 - 10, margin=(5, 5), on_click=click)
            for words, click in clicks.items()
        ]
        self._timer: Any = None
        self._is_mine = False
        self._length.param.watch(self._on_length, "value")
        self._speed.param.watch(self._on_speed, "value")
        self._place.param.watch(lambda _: self._tell(), "value")
        self.panel = pn.Column(
            pn.Row(self._length, self._speed, margin=0),
            self._words,
            self._place,
            pn.Row(*self._buttons, margin=(0, 5)),
            margin=0,
        )
        self._fit()

    @property
    def part(self) -> Slice | None:
        """The slice that is chosen."""
        length = self._length.value
        return None if length is None else self._slices.at(self._place.value, length)

    def go_to(self, value: float) -> None:
        """Choose the slice that holds a value of its column."""
        if self._length.value is not None:
            self._place.value = self._slices.position(value, self._length.value)

    def _on_length(self, event: Any) -> None:
        """Show a window of another length where the last one began."""
        self._pause()
        begin = None if event.old is None else self._slices.at(self._place.value, event.old)
        self._fit(begin[0] if isinstance(begin, tuple) else None)
        self._tell()

    def _fit(self, value: float | None = None) -> None:
        """Let the slider have a place for each slice of this length, and be at the one with a value."""
        length = self._length.value
        last = 0 if length is None else self._slices.count(length) - 1
        place = self._place.value if value is None or length is None else self._slices.position(value, length)
        self._is_mine = True
        self._place.param.update(end=max(last, 1), value=min(max(place, 0), last), disabled=last < 1)
        self._is_mine = False
        for button in self._buttons:
            button.disabled = last < 1
        self._write()

    def _write(self) -> None:
        words = f"all {self._slices.name}s" if self.part is None else self._slices.words(self.part)
        self._words.object = f"<b class='slice-words'>{words}</b>"

    def _tell(self) -> None:
        if not self._is_mine:
            self._write()
            self._chosen(self.part)

    def _step(self, by: int) -> None:
        self._place.value = (self._place.value + by) % (self._place.end + 1)

    def _on_play(self, _: Any) -> None:
        if self._timer is not None:
            self._pause()
        else:
            self._timer = pn.state.add_periodic_callback(self._tick, period=1000 // self._speed.value)
            self._name_button("Pause")

    def _pause(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
            self._name_button("Play")

    def _name_button(self, words: str) -> None:
        play = self._buttons[1]
        setattr(play, "label" if "label" in play.param else "name", words)

    def _on_speed(self, event: Any) -> None:
        if self._timer is not None:
            self._timer.period = 1000 // event.new

    def _tick(self) -> None:
        if not self._is_busy():
            self._step(1)
