"""The decision plot of CLUE, whose thresholds are dragged with the mouse."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from bokeh.models import Span  # type: ignore[attr-defined,unused-ignore]

from daskclust.app import raster
from daskclust.app.look import Look
from daskclust.app.raster import Ranges
from daskclust.app.selection import ChosenClusters, mask_of
from daskclust.app.state import State
from daskclust.app.systems import DELTA, DENSITY, Decision
from daskclust.app.views._frame import IMAGE, PLACES, STARS, Canvas, Frame, none, span
from daskclust.app.views._scene import Choose, Scene, View
from daskclust.app.views._thresholds import Drag, Style, Thresholds
from daskclust.app.worker import Show
from daskclust.plot import RHO
from daskclust.plot._data import unit_of
from daskclust.plot._decision import FOLLOWER, KIND_STYLES, LINE_STYLES, OUTLIER, SEED

_LINES = {name: Style("height" if name == "rhoc" else "width", *style) for name, style in LINE_STYLES.items()}
_MOST_STARS = 300
_NOWHERE = -9.0  # the logarithm of what has none


class DecisionPlot(View):
    """Density against distance to the nearest higher, in the logarithm, with lines for the thresholds."""

    title = Decision.title

    def __init__(self, state: State, choose: Choose, moved: Callable[[], None], drag: Drag) -> None:
        outcome = state.present
        decision = outcome.ground
        assert isinstance(decision, Decision)
        columns = decision.columns
        ranges = span(columns[DENSITY], 0.06), span(np.append(columns[DELTA], np.log10(decision.level)), 0.06)
        units = [unit_of(outcome.result[name]) for name in ("density", "delta")]
        words = [f"local density {RHO}", "distance to higher δ"]
        labels = [f"{word} ({unit})" if unit else word for word, unit in zip(words, units, strict=True)]
        self.canvas = canvas = Canvas(ranges, labels)
        canvas.power_ticks(canvas.figure.axis)
        self._pixels = canvas.figure.image_rgba(source=none(*IMAGE))
        self._stars = canvas.figure.scatter(source=none(*PLACES), **STARS)
        self._level = Span(dimension="width", line_dash="dotted", line_width=1.5)  # of points without a higher one
        canvas.figure.add_layout(self._level)
        canvas.watch((DENSITY, DELTA), choose, moved)
        self._state, self._choose = state, choose
        canvas.on_click(self.click)
        places = {name: _place(state.values[name]) for name in _LINES}
        self.thresholds = Thresholds(canvas, _LINES, places, lambda name, place: drag(name, 10.0**place))
        self._counts: tuple[Any, Any] = (None, None)
        self.panel, self.caption = canvas.panel, canvas.caption

    def follow(self, values: Mapping[str, Any]) -> None:
        for name in _LINES:
            self.thresholds.move(name, _place(values[name]))

    def dress(self, look: Look) -> None:
        self.canvas.dress(look)
        self._level.line_color, self._stars.glyph.line_color = look.line, look.ink

    def click(self, x: float, y: float) -> None:
        """Choose the cluster of the nearest seed, if it is within reach."""
        result, decision = self._state.present.result, self._state.present.ground
        assert isinstance(decision, Decision)
        seeds = np.flatnonzero(result["is_seed"].values)
        nearest = self.canvas.nearest((x, y), decision.columns[DENSITY][seeds], decision.columns[DELTA][seeds])
        if nearest is not None:
            self._choose(ChosenClusters((int(self._state.present.label[seeds[nearest]]),)))

    # -------------------------------------------------------------------------------------------------------- pixels
    def setting(self) -> Frame:
        return self.canvas.ranges, self.canvas.size

    def prepare(self, scene: Scene, setting: Frame) -> Show:
        """Paint pixels by their side of the thresholds; points are counted only when they change."""
        decision, look = scene.outcome.ground, scene.look
        assert isinstance(decision, Decision)
        counts = self._count(decision, None, setting)
        picture = np.zeros((*counts.shape, 4), np.uint8)
        if scene.mask is not None:
            raster.cover(picture, counts, (look.pale,), look)
            counts = self._count(decision, scene.mask, setting)
        sides = self._sides(scene.outcome.request.values, setting)
        by_kind = np.stack([np.where(where, counts, 0) for where in sides.values()])
        raster.cover(picture, by_kind, [KIND_STYLES[kind][0] for kind in sides], look)
        is_seed = scene.outcome.result["is_seed"].values
        mask = is_seed if scene.mask is None else is_seed & scene.mask
        if scene.within:
            mask = mask & mask_of(scene.within, scene.outcome.columns)
        seeds = np.flatnonzero(mask) if np.count_nonzero(mask) <= _MOST_STARS else np.empty(0, np.int64)
        title = f"{int(np.count_nonzero(is_seed)):,} seeds"
        stars = {"x": decision.columns[DENSITY][seeds], "y": decision.columns[DELTA][seeds]}
        return functools.partial(self._show, raster.grown(picture), setting[0], stars, title, np.log10(decision.level))

    def _sides(self, values: Mapping[str, Any], frame: Frame) -> dict[str, npt.NDArray[np.bool_]]:
        """Return which pixels are those of followers, outliers and seeds."""
        x, y = (np.linspace(*ends, 2 * number + 1)[1::2] for ends, number in zip(*frame, strict=True))
        dense = (x >= _place(values["rhoc"]))[None, :]
        seed = dense & (y > _place(values["delta_c"]))[:, None]
        outlier = ~dense & (y > _place(values["delta_o"]))[:, None]
        return {FOLLOWER: ~seed & ~outlier, OUTLIER: outlier, SEED: seed}

    def _count(self, decision: Decision, mask: npt.NDArray[np.bool_] | None, frame: Frame) -> Any:
        """Return the points of each pixel; those of all points are kept while lines are dragged."""
        key = (decision, frame)
        x, y = decision.columns[DENSITY], decision.columns[DELTA]
        if mask is not None:
            return raster.count((x[mask], y[mask]), *frame)
        if self._counts[0] != key:
            self._counts = (key, raster.count((x, y), *frame))
        return self._counts[1]

    def _show(self, pixels: raster.Pixels, ranges: Ranges, stars: Any, title: str, level: float) -> None:
        self.canvas.paint(self._pixels, pixels, ranges)
        self._stars.data_source.data = stars
        self.canvas.title(title)
        self._level.location = float(level)


def _place(value: float) -> float:
    return float(np.log10(value)) if value > 0 else _NOWHERE
