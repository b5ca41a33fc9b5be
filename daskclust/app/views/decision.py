"""The decision plot of CLUE, whose thresholds are dragged with the mouse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.app import raster
from daskclust.app.parameters import rounded
from daskclust.app.state import State
from daskclust.app.systems import DELTA, DENSITY, Decision
from daskclust.app.systems._base import unit_of
from daskclust.app.views._frame import Canvas, Ranges, image, span
from daskclust.app.views._scene import Choose, Scene, View
from daskclust.plot import RHO
from daskclust.plot._elements import hv

_FOLLOWER, _OUTLIER, _SEED = "#7FA6C9", "#8A8A8A", "#B2182B"  # as in daskclust.plot.decision
_PALE = ("#E4E4E4",)
_LINES = {
    "rhoc": ("height", "#0072B2", "solid"),
    "delta_c": ("width", "#0072B2", "dashed"),
    "delta_o": ("width", "#D55E00", "dashed"),
}
"""Thresholds: along which way the line goes, its colour and its dash."""
_MOST_STARS = 1_500

Array = npt.NDArray[Any]


class _Data(NamedTuple):
    ranges: Ranges
    pixels: npt.NDArray[np.uint8]
    seeds: tuple[Array, Array]
    title: str
    level: float


class DecisionPlot(View):
    """Density against distance to the nearest higher, in the logarithm, with lines for the thresholds.

    Parameters
    ----------
    state : State
        With an outcome of CLUE.
    size : tuple of int
        Width and height in pixels.
    choose : callable
        Called with what is selected.
    moved : callable
        Called when axes have changed.
    drag : callable
        Called with the name and the value of a threshold whose line was dragged.
    """

    def __init__(
        self,
        state: State,
        size: tuple[int, int],
        choose: Choose,
        moved: Callable[[], None],
        drag: Callable[[str, float], None],
    ) -> None:
        outcome = state.present
        assert outcome.decision is not None
        self._size, self._drag = size, drag
        columns = outcome.decision.columns
        ranges = span(columns[DENSITY], 0.06), span(np.append(columns[DELTA], np.log10(outcome.decision.level)), 0.06)
        units = [unit_of(outcome.result, name) for name in ("density", "delta")]
        words = [f"local density {RHO}", "distance to higher δ"]
        labels = [f"{word} ({unit})" if unit else word for word, unit in zip(words, units, strict=True)]
        kdims = [hv.Dimension(DENSITY, label=labels[0]), hv.Dimension(DELTA, label=labels[1])]
        none = np.empty(0)
        stars = hv.Points((none, none), kdims).opts(
            marker="star", size=9, color=_SEED, line_color=_SEED, line_width=0.6, backend="bokeh"
        )
        self._canvas = Canvas([image(kdims, ranges), stars], size, ranges)
        self._canvas.watch((DENSITY, DELTA), choose, moved)
        self._lines = self._add_lines(state.values)
        self._counts: tuple[Any, Any] = (None, None)
        self.panel = self._canvas.panel

    # ---------------------------------------------------------------------------------------------------------- lines
    def _add_lines(self, values: dict[str, Any]) -> dict[str, Any]:
        from bokeh.models import CustomJSTickFormatter, Span  # type: ignore[attr-defined,unused-ignore]

        figure = self._canvas.figure
        for axis in (figure.xaxis[0], figure.yaxis[0]):  # what is drawn are logarithms
            axis.formatter = CustomJSTickFormatter(code=_POWER)
        self._level = Span(dimension="width", line_color="#555555", line_dash="dotted", line_width=1.5)
        figure.add_layout(self._level)
        lines = {}
        for name, (dimension, color, dash) in _LINES.items():
            line = Span(
                location=float(np.log10(values[name])) if values[name] > 0 else -9.0,
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
            figure.add_layout(line)
            lines[name] = line
        return lines

    def _dragged(self, name: str) -> Callable[[str, Any, Any], None]:
        """Return what bokeh calls as a line is dragged."""

        def on_location(attr: str, old: Any, new: Any) -> None:
            if not self._is_mine:
                self._drag(name, rounded(10.0 ** float(new), 4))

        return on_location

    _is_mine = False

    def move(self, name: str, value: float) -> None:
        """Move the line of a threshold, after its slider."""
        location = float(np.log10(value)) if value > 0 else -9.0
        line = self._lines.get(name)
        if line is not None and abs(float(line.location) - location) > 1e-9:
            self._is_mine = True
            line.location = location
            self._is_mine = False

    # -------------------------------------------------------------------------------------------------------- pixels
    def setting(self) -> Ranges:
        """Return what the axes show."""
        return self._canvas.ranges

    def prepare(self, scene: Scene, setting: Ranges) -> _Data:
        """Paint pixels by the side of the thresholds on which they are; points are counted when they change only."""
        decision = scene.outcome.decision
        assert decision is not None
        values = scene.outcome.request.values
        counts = self._count(decision, None, setting)
        picture = np.zeros((counts.size, 4), np.uint8)
        if scene.mask is not None:
            raster.cover(picture, counts[..., None], _PALE)
            counts = self._count(decision, scene.mask, setting)
        x, y = (np.linspace(*ends, 2 * number + 1)[1::2] for ends, number in zip(setting, self._size, strict=True))
        dense = (x >= np.log10(values["rhoc"]))[None, :] if values["rhoc"] > 0 else np.ones((1, len(x)), np.bool_)
        seed = dense & (y > np.log10(values["delta_c"]))[:, None]
        outlier = ~dense & (y > np.log10(values["delta_o"]))[:, None]
        for color, where in ((_FOLLOWER, ~seed & ~outlier), (_OUTLIER, outlier), (_SEED, seed)):
            raster.cover(picture, np.where(where, counts, 0)[..., None], (color,))
        mask = scene.outcome.result["is_seed"].values
        mask = mask if scene.mask is None else mask & scene.mask
        seeds = np.flatnonzero(mask) if np.count_nonzero(mask) <= _MOST_STARS else np.empty(0, np.int64)
        title = f"{int(np.count_nonzero(scene.outcome.result['is_seed'].values)):,} seeds"
        columns = decision.columns
        stars = columns[DENSITY][seeds], columns[DELTA][seeds]
        return _Data(setting, raster.finished(picture, self._size), stars, title, float(np.log10(decision.level)))

    def _count(self, decision: Decision, mask: npt.NDArray[np.bool_] | None, ranges: Ranges) -> Any:
        """Return the points of each pixel; those of all points are kept while lines are dragged."""
        key = (decision, ranges)
        x, y = decision.columns[DENSITY], decision.columns[DELTA]
        if mask is not None:
            return raster.count((x[mask], y[mask]), None, ranges, self._size)
        if self._counts[0] != key:
            self._counts = (key, raster.count((x, y), None, ranges, self._size))
        return self._counts[1]

    def show(self, data: _Data) -> None:
        """Show it."""
        self._canvas.paint(0, data.pixels, data.ranges)
        self._canvas.fill(1, **{DENSITY: data.seeds[0], DELTA: data.seeds[1]})
        self._canvas.title(data.title)
        self._level.location = data.level


_POWER = """
const value = 10 ** tick
return value >= 1e5 || value < 1e-4 ? value.toExponential(1) : Number(value.toPrecision(2)).toString()
"""
