"""Points on two of their variables, in the colours of their clusters."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
from bokeh.transform import linear_cmap

from daskclust.app import raster
from daskclust.app.look import LIGHT, Look
from daskclust.app.raster import Array, Ranges
from daskclust.app.selection import ChosenClusters, Range
from daskclust.app.slices import time_unit
from daskclust.app.state import Outcome, State
from daskclust.app.views._frame import IMAGE, NOTHING, PLACES, STARS, Canvas, Frame, none, span
from daskclust.app.views._scene import Choose, Column, Scene, View
from daskclust.app.worker import Show
from daskclust.plot._data import dimension
from daskclust.plot._look import COLORS

_MOST_MARKERS = 8_000  # more points than this within the axes are drawn as pixels
_MOST_SEEDS = 300
SECOND = "second picture"
_MARKS = ("x", "y", "color", "alpha", "size")


class Picture(View):
    """Points in the present axes, drawn anew at each zoom; axes follow those of a `linked` picture."""

    title = "picture"
    where: Column = "left"

    def __init__(
        self,
        state: State,
        axes: tuple[str, str],
        choose: Choose,
        moved: Any,
        *,
        is_second: bool = False,
        linked: Picture | None = None,
    ) -> None:
        self.axes, self._is_second = axes, is_second
        if is_second:
            self.title, self.where, self.share = SECOND, "right", 4
        self._state, self._choose = state, choose
        outcome = state.present
        x, y = raster.as_columns(outcome.columns, axes)
        units = [outcome.result[name].attrs.get("units") for name in axes]
        is_plane = units[0] == units[1] and not ("z" in axes and "layer" in outcome.columns)  # layers are far apart
        ranges: Ranges = (span(x), span(y))
        labels = [dimension(outcome.result[name], name) for name in axes]
        times = [
            time_unit(ends[1], unit) if name == "toa" and unit else (unit, 1.0)
            for name, unit, ends in zip(axes, units, ranges, strict=True)
        ]
        words = [label.clone(unit=unit).pprint_label for label, (unit, _) in zip(labels, times, strict=True)]
        self.canvas = canvas = Canvas(ranges, words, equal=linked is None and is_plane)
        if linked is not None:
            canvas.link(linked.canvas)
        canvas.plain_ticks(*(size for _, size in times))
        colors = linear_cmap("color", [*COLORS, LIGHT.noise], -0.5, len(COLORS) + 0.5)
        marks = {"fill_color": colors, "line_color": None, "fill_alpha": "alpha", "size": "size"}
        self._pixels = canvas.figure.image_rgba(source=none(*IMAGE))
        self._marks = canvas.figure.scatter(source=none(*_MARKS), **marks)
        self._stars = canvas.figure.scatter(source=none(*PLACES), **STARS)
        self._seen: tuple[Any, Any] = (None, None)
        self._cells: tuple[Any, Any] = (None, None)
        canvas.watch(axes, choose, moved)
        canvas.on_click(self.click)
        self.panel, self.caption = canvas.panel, canvas.caption

    def show_times(self, outcome: Outcome, within: tuple[Range, ...]) -> None:
        """Let an axis of time show all of a window, or all times."""
        if "toa" in self.axes:
            window = next((np.array([each.low, each.high]) for each in within if each.name == "toa"), None)
            times = span(outcome.columns["toa"] if window is None else window)
            now, whole = (
                tuple(times if name == "toa" else ends for name, ends in zip(self.axes, ranges, strict=True))
                for ranges in (self.canvas.ranges, self.canvas.whole)
            )
            self.canvas.show(whole)  # type: ignore[arg-type]
            self.canvas.zoom(now)  # type: ignore[arg-type]

    def zoom(self, outcome: Outcome, mask: npt.NDArray[np.bool_]) -> None:
        """Zoom to some points."""
        columns = raster.as_columns(outcome.columns, self.axes)
        x, y = (_around(each[mask], ends) for each, ends in zip(columns, self.canvas.whole, strict=True))
        self.canvas.zoom((x, y))

    def click(self, x: float, y: float) -> None:
        """Choose the cluster of the nearest point, or nothing."""
        there, *places = self._seen[1]
        nearest = self.canvas.nearest((x, y), *places)
        label = -1 if nearest is None else int(self._state.present.label[there][nearest])
        self._choose(ChosenClusters((label,)) if label >= 0 else None)

    def dress(self, look: Look) -> None:
        self.canvas.dress(look)
        self._marks.glyph.fill_color.transform.palette = [*COLORS, look.noise]
        self._stars.glyph.line_color = look.ink

    def setting(self) -> Frame:
        return self.canvas.ranges, self.canvas.size

    def prepare(self, scene: Scene, setting: Frame) -> Show:
        """Paint pixels, or draw markers where few points are within the axes."""
        outcome, mask, within, look = scene.outcome, scene.mask, scene.within, scene.look
        ranges, frame = setting
        key = ranges, within, outcome.n_hidden
        if self._seen[0] != key:
            self._seen = (key, self._within(outcome, ranges, within))
        there, x, y = self._seen[1]
        label, chosen = outcome.label[there], None if mask is None else mask[there]
        kind = raster.kinds(label)
        pixels, marks, stars = NOTHING, none(*_MARKS), none(*PLACES)
        if len(label) > _MOST_MARKERS:
            ranges, size = zip(*map(_cells, (x, y), ranges, frame), strict=True)
            if self._cells[0] != (key, frame):  # while clusters change, points stay where they are
                self._cells = (key, frame), raster.RasterCells.of((x, y), ranges, size)
            pixels = raster.paint(self._cells[1], kind, chosen, look=look, spread=size == frame)
        else:
            order = np.argsort(kind < len(COLORS), kind="stable")  # noise below
            opacity = np.ones(len(kind)) if chosen is None else np.where(chosen, 1.0, 0.15)
            marks = {"x": x[order], "y": y[order], "color": kind[order].astype(np.float64), "alpha": opacity[order]}
            marks["size"] = np.full(len(x), 7.0 if len(x) < 500 else 5.0 if len(x) < 2_000 else 3.5)
        if "is_seed" in outcome.result:
            is_seed = outcome.result["is_seed"].values[there]
            where = np.flatnonzero(is_seed if chosen is None else is_seed & chosen)
            stars = {"x": x[where], "y": y[where]} if len(where) <= _MOST_SEEDS else stars
        return functools.partial(self._show, ranges, pixels, marks, stars, self._title(outcome, within, label))

    def _show(self, ranges: Ranges, pixels: raster.Pixels, marks: Any, stars: Any, title: str) -> None:
        self.canvas.paint(self._pixels, pixels, ranges)
        self._marks.data_source.data, self._stars.data_source.data = marks, stars
        self.canvas.title("" if self._is_second else title)

    def _within(self, outcome: Outcome, ranges: Ranges, parts: tuple[Range, ...]) -> tuple[Any, Array, Array]:
        """Return which points of the slice are within the axes, and where they are."""
        x, y = raster.as_columns(outcome.columns, self.axes)
        inside = outcome.within(self.axes, ranges, parts)
        there = slice(None) if inside.all() else np.flatnonzero(inside)  # all points need no copies
        return there, x[there], y[there]

    def _title(self, outcome: Outcome, within: tuple[Range, ...], label: npt.NDArray[np.int64]) -> str:
        """Return how many clusters there are, and how much of what is seen, with the labels `label`, is noise."""
        n = len(outcome.label) - outcome.n_hidden
        noise = outcome.n_noise if len(label) == n else int(np.count_nonzero(label < 0))
        if within:
            clusters, words = len(np.unique(label[label >= 0])), ", ".join(map(self._state.words_of, within))
            return f"{words}: {clusters:,} clusters, {len(label):,} points" + (f", {noise:,} noise" if noise else "")
        in_view = " in view" if len(label) < n else ""
        return f"{outcome.n_clusters:,} clusters, {noise:,} of {len(label):,} points{in_view} noise"


def _around(values: Array, whole: tuple[float, float]) -> tuple[float, float]:
    """Return limits around values, no closer than 4% of the whole."""
    low, high = float(values.min()), float(values.max())
    half = max(0.8 * (high - low), 0.02 * (whole[1] - whole[0]))
    return (low + high) / 2 - half, (low + high) / 2 + half


def _cells(values: Array, ends: tuple[float, float], size: int) -> tuple[tuple[float, float], int]:
    """Return limits half way between whole numbers and their count, or the arguments."""
    low, high = np.floor(ends[0] + 0.5) - 0.5, np.ceil(ends[1] - 0.5) + 0.5
    if values.dtype.kind in "iu" and high - low <= size:
        return (float(low), float(high)), int(high - low)
    return ends, size
