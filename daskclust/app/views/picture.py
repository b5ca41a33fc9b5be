"""Points on two of their variables, in the colours of their clusters."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.app import raster
from daskclust.app.latest import Show
from daskclust.app.look import LIGHT, Look
from daskclust.app.state import Outcome, State
from daskclust.app.views._frame import NOTHING, Canvas, Ranges, alike, image, span
from daskclust.app.views._scene import Choose, Scene, View
from daskclust.plot._data import dimension
from daskclust.plot._look import COLORS, hv

_MOST_MARKERS = 8_000  # more points than this within the axes are drawn as pixels
_MOST_SEEDS = 300

Array = npt.NDArray[Any]


class Picture(View):
    """A picture that is drawn again as the user zooms in, down to single points."""

    def __init__(
        self,
        state: State,
        axes: tuple[str, str],
        size: tuple[int, int],
        choose: Choose,
        moved: Any,
        *,
        titled: bool = True,
    ) -> None:
        self.axes, self._size, self._titled, self._slices = axes, size, titled, state.slices
        outcome = state.present
        x, y = raster.as_columns(outcome.columns, axes)
        units = [outcome.result[name].attrs.get("units") for name in axes]
        ranges: Ranges = (span(x), span(y))
        ranges = alike(ranges, size) if units[0] == units[1] else ranges
        kdims = [dimension(outcome.result[name], name) for name in axes]
        none = np.empty(0)
        marks = hv.Points((none, none, none, none, none), kdims, ["kind", "opacity", "width"]).opts(
            color="kind", cmap=[*COLORS, LIGHT.noise], clim=(-0.5, len(COLORS) + 0.5), alpha="opacity",
            size="width", line_color=None, backend="bokeh",
        )  # fmt: skip
        stars = hv.Points((none, none), kdims).opts(
            marker="star", size=11, color="#FFFFFF", line_color="#000000", line_width=0.9, backend="bokeh"
        )
        self._canvas = Canvas([image(kdims, ranges), marks, stars], size, ranges)
        self._canvas.plain_ticks()
        self._names = [kdim.name for kdim in kdims]
        self._seen: tuple[Any, Any] = (None, None)
        self._colored: tuple[Outcome | None, npt.NDArray[np.int8]] = (None, np.empty(0, np.int8))
        self._canvas.watch(axes, choose, moved)
        self.panel = self._canvas.panel

    def look(self, outcome: Outcome, number: int | None) -> None:
        """Let an axis of time show all of a slice."""
        for name, ends in zip(self.axes, self._canvas.ends, strict=True):
            if name == "toa" and self._slices is not None:
                times = outcome.columns[name]
                low, high = span(times if number is None else times[self._slices.of_point == number])
                ends.update(start=low, end=high)

    def dress(self, look: Look) -> None:
        """Draw axes and marks in other colours."""
        self._canvas.dress(look)
        self._canvas.palette(1, "fill_color", (*COLORS, look.noise))

    def setting(self) -> Ranges:
        """Return what the axes show."""
        return self._canvas.ranges

    def prepare(self, scene: Scene, setting: Ranges) -> Show:
        """Paint pixels, or take out the points within the axes if they are few."""
        outcome, mask, _, number, look = scene
        if self._seen[0] != (setting, number):
            self._seen = ((setting, number), self._within(outcome, setting, number))
        there, x, y = self._seen[1]
        label, chosen, kind = outcome.label, mask, self._kinds(outcome)
        if there is not None:
            label, kind, chosen = label[there], kind[there], None if mask is None else mask[there]
        none = np.empty(0)
        pixels, marks, stars = NOTHING, (none, none, none, none), (none, none)  # marks are x, y, kind, opacity
        if len(label) > _MOST_MARKERS:
            setting, size = zip(*map(_cells, (x, y), setting, self._size), strict=True)
            pixels = raster.paint((x, y), kind, chosen, setting, size, look=look, spread=size == self._size)
        else:
            order = np.argsort(kind < len(COLORS), kind="stable")  # noise below
            opacity = np.ones(len(kind)) if chosen is None else np.where(chosen, 1.0, 0.15)
            marks = (x[order], y[order], kind[order].astype(np.float64), opacity[order])
        if "is_seed" in outcome.result:
            is_seed = outcome.result["is_seed"].values
            is_seed = is_seed if there is None else is_seed[there]
            where = np.flatnonzero(is_seed if chosen is None else is_seed & chosen)
            stars = (x[where], y[where]) if len(where) <= _MOST_SEEDS else stars
        return functools.partial(self._show, setting, pixels, marks, stars, self._title(outcome, number, label))

    def _show(self, ranges: Ranges, pixels: raster.Pixels, marks: Any, stars: Any, title: str) -> None:
        x, y, kind, opacity = marks
        size = 7.0 if len(x) < 500 else 5.0 if len(x) < 2_000 else 3.5
        self._canvas.paint(0, pixels, ranges)
        how = {"color": kind, "alpha": opacity, "size": np.full(len(x), size)}
        self._canvas.fill(1, **dict(zip(self._names, (x, y), strict=True)), **how)
        self._canvas.fill(2, **dict(zip(self._names, stars, strict=True)))
        self._canvas.title(title if self._titled else "")

    def _kinds(self, outcome: Outcome) -> npt.NDArray[np.int8]:
        """Return the number of each point's colour; they are kept while others are chosen, or axes change."""
        if self._colored[0] is not outcome:
            self._colored = (outcome, raster.kinds(outcome.label))
        return self._colored[1]

    def _within(
        self, outcome: Outcome, ranges: Ranges, number: int | None
    ) -> tuple[npt.NDArray[np.int64] | None, Array, Array]:
        """Return which points of the slice are within the axes, None for all, and where they are."""
        x, y = raster.as_columns(outcome.columns, self.axes)
        (left, right), (low, high) = ranges
        inside = (x >= left) & (x <= right) & (y >= low) & (y <= high)
        if number is not None and self._slices is not None:
            inside &= self._slices.of_point == number
        there = np.flatnonzero(inside)
        return (None, x, y) if len(there) == len(x) else (there, x[there], y[there])

    def _title(self, outcome: Outcome, number: int | None, label: npt.NDArray[np.int64]) -> str:
        """Return how many clusters there are, and how much of what is seen, with the labels `label`, is noise."""
        n = len(outcome.label)
        noise = outcome.n_noise if len(label) == n else int(np.count_nonzero(label < 0))
        if number is not None and self._slices is not None:
            clusters = len(np.unique(label[label >= 0]))
            return f"{self._slices.name} {number}: {clusters:,} clusters, {noise:,} of {len(label):,} points noise"
        in_view = " in view" if len(label) < n else ""
        return f"{outcome.n_clusters:,} clusters, {noise:,} of {len(label):,} points{in_view} noise"


def _cells(values: Array, ends: tuple[float, float], size: int) -> tuple[tuple[float, float], int]:
    """Return limits half way between whole numbers, and how many these are; or what was given."""
    low, high = np.floor(ends[0] + 0.5) - 0.5, np.ceil(ends[1] - 0.5) + 0.5
    if values.dtype.kind in "iu" and high - low <= size:
        return (float(low), float(high)), int(high - low)
    return ends, size
