"""What pictures of the explorer have in common: tools, ranges that the user changes, boxes and lassos.

The glyphs of a picture are made once. Later only their data is replaced: that takes milliseconds, where a HoloViews
DynamicMap takes a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import panel as pn
from bokeh.core.property.descriptors import UnsetValueError
from bokeh.events import Reset, SelectionGeometry, Tap
from bokeh.models import (
    BoxSelectTool,
    CustomJSTickFormatter,
    LassoSelectTool,
    NoOverlap,
    PanTool,
    ResetTool,
    SaveTool,
    WheelZoomTool,
)
from bokeh.plotting import figure

from daskclust.app.look import Look
from daskclust.app.raster import Array, Ranges
from daskclust.app.selection import ChosenBox, Lasso, corners
from daskclust.app.views._scene import Choose
from daskclust.core.data.quote import in_html

Frame = tuple[Ranges, tuple[int, int]]  # what axes show, and on how many pixels

NOTHING = np.zeros((1, 1, 4), np.uint8)  # a picture of nothing
IMAGE, PLACES = ("image", "x", "y", "dw", "dh"), ("x", "y")  # columns of an `image_rgba`, and of marks
STARS: dict[str, Any] = {"marker": "star", "size": 9, "fill_color": None, "line_width": 1.2}  # seeds

_REACH = 10.0  # pixels from a click to a point
_SIZE = (500, 400)  # in pixels, before a browser has told
# the panel's buttons are on the right
_TOOLBAR = ":host { box-sizing: border-box; padding-right: 76px } * { --button-width: 24px }"
_PLAIN = """
const value = tick / unit, size = Math.abs(value), plain = Number(value.toPrecision(12))
return size >= 1e6 || (size > 0 && size < 1e-3) ? plain.toExponential() : plain.toString()
"""


_POWER = """
const value = 10 ** tick
return value >= 1e5 || value < 1e-4 ? value.toExponential(1) : Number(value.toPrecision(2)).toString()
"""


def span(values: Array, margin: float = 0.03) -> tuple[float, float]:
    """Return the range of values with a margin."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    more = margin * (high - low) or 0.5
    return low - more, high + more


def alike(ranges: Ranges, size: tuple[int, int]) -> Ranges:
    """Return ranges with equal units on both axes, unless one is more than four times as long."""
    lengths = [high - low for low, high in ranges]
    if max(lengths) > 4 * min(lengths):
        return ranges
    unit = max(length / pixels for length, pixels in zip(lengths, size, strict=True))
    x, y = (
        ((low + high - unit * pixels) / 2, (low + high + unit * pixels) / 2)
        for (low, high), pixels in zip(ranges, size, strict=True)
    )
    return x, y


def none(*columns: str) -> dict[str, Array]:
    """Return columns without values."""
    return dict.fromkeys(columns, np.empty(0))


class Canvas:
    """A figure that fills its panel; `more` are options of `bokeh.plotting.figure`.

    With `equal`, a unit is as long on both axes, whatever the size.
    """

    def __init__(self, ranges: Ranges, words: Sequence[str], *, equal: bool = False, **more: Any) -> None:
        # select tools leave glyphs alone: what is chosen is drawn anew
        box, lasso, wheel = BoxSelectTool(renderers=[]), LassoSelectTool(renderers=[]), WheelZoomTool()
        more |= {"x_range": ranges[0], "y_range": ranges[1], "x_axis_label": words[0], "y_axis_label": words[1]}
        made: Callable[..., Any] = figure  # its types are those of many versions
        self.figure = made(
            sizing_mode="stretch_both",
            width=None,
            height=None,
            min_border=8,
            min_border_right=20,
            tools=[PanTool(), box, lasso, wheel, SaveTool(), ResetTool()],
            active_drag=box,
            active_scroll=wheel,
            toolbar_location="above",
            **more,
        )
        self.figure.toolbar.logo = None
        self.figure.grid.grid_line_color = None
        self.figure.toolbar.stylesheets = [_TOOLBAR]
        self.figure.axis.axis_label_text_font_size = self.figure.axis.major_label_text_font_size = "9pt"
        self.figure.axis.axis_label_standoff = 2
        self.panel = pn.pane.Bokeh(self.figure, sizing_mode="stretch_both", margin=0)
        self.caption = pn.pane.HTML("")
        self._equal, self._wanted, self._fitted = equal, ranges, ranges  # what is to be seen, and what is
        self.show(ranges)
        self.figure.on_event(Reset, lambda _: self.zoom(self.whole))
        if equal:
            self._on_size(self._fit)

    # ------------------------------------------------------------------------------------------------------- what comes
    def watch(self, axes: tuple[str, str], choose: Choose, moved: Callable[[], None] | None = None) -> None:
        """Call `choose` with a box or a lasso that was drawn, and `moved` when axes have changed."""

        def on_geometry(event: Any) -> None:
            shape = event.geometry
            if event.final and shape["type"] == "rect":
                x, y = (tuple(sorted((float(shape[f"{axis}0"]), float(shape[f"{axis}1"])))) for axis in "xy")
                choose(ChosenBox(axes, x, y))  # type: ignore[arg-type]
            elif event.final and shape["type"] == "poly":
                choose(Lasso(axes, corners(list(shape["x"]), list(shape["y"]))))

        self.figure.on_event(SelectionGeometry, on_geometry)
        if moved is not None:
            for ends in (self.figure.x_range, self.figure.y_range):
                for end in ("start", "end"):
                    ends.on_change(end, lambda attr, old, new: moved())
            self._on_size(moved)

    def on_click(self, call: Callable[[float, float], None]) -> None:
        """Call a function with the coordinates of a click."""

        def on_tap(event: Any) -> None:
            (left, right), (low, high) = self.ranges
            if left <= event.x <= right and low <= event.y <= high:
                call(event.x, event.y)

        self.figure.on_event(Tap, on_tap)

    def nearest(self, at: tuple[float, float], x: Array, y: Array) -> int | None:
        """Return the nearest point within ten pixels of a click, or None."""
        pixels = [count / (high - low) for count, (low, high) in zip(self.size, self.ranges, strict=True)]
        away = np.hypot((x - at[0]) * pixels[0], (y - at[1]) * pixels[1])
        cell = 0.75 * min(pixels) if x.dtype.kind in "iu" else 0.0  # a pixel of a detector is clicked anywhere
        nearest = int(np.argmin(away)) if len(away) else -1
        return nearest if nearest >= 0 and away[nearest] <= max(_REACH, cell) else None

    def _on_size(self, call: Callable[[], None]) -> None:
        for side in ("inner_width", "inner_height"):
            self.figure.on_change(side, lambda attr, old, new: call())

    def _fit(self) -> None:
        """Fit the axes to a frame of another size, with equal units."""
        if self.ranges != self._fitted:  # the user has changed it
            self._wanted = self.ranges
        self.zoom(self._wanted)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the frame in pixels."""
        try:
            return max(self.figure.inner_width, 1), max(self.figure.inner_height, 1)
        except UnsetValueError:
            return _SIZE

    @property
    def ranges(self) -> Ranges:
        """Present limits of the axes."""
        x, y = ((float(ends.start), float(ends.end)) for ends in (self.figure.x_range, self.figure.y_range))
        return x, y

    def link(self, other: Canvas) -> None:
        """Link the axes with those of another picture, both ways.

        Ranges are not shared: a page that is given a picture beside others that are there does not find them.
        """
        for axis in ("x_range", "y_range"):
            mine, its = getattr(self.figure, axis), getattr(other.figure, axis)
            mine.update(start=its.start, end=its.end)
            for one, two in ((mine, its), (its, mine)):
                for end in ("start", "end"):
                    one.on_change(end, lambda attr, old, new, two=two: setattr(two, attr, new))

    # ------------------------------------------------------------------------------------------------------- what goes
    def show(self, ranges: Ranges) -> None:
        """Set the limits of the axes, to which the reset tool comes back."""
        self.whole = ranges
        self.zoom(ranges)

    def zoom(self, ranges: Ranges) -> None:
        """Set the present limits of the axes."""
        self._wanted = ranges
        self._fitted = alike(ranges, self.size) if self._equal else ranges
        for ends, (low, high) in zip((self.figure.x_range, self.figure.y_range), self._fitted, strict=True):
            ends.update(start=float(low), end=float(high))

    def paint(self, image: Any, rgba: npt.NDArray[np.uint8], ranges: Ranges) -> None:
        """Replace the pixels (height, width, 4), the lowest row first, of an `image_rgba`."""
        (left, right), (low, high) = ranges
        packed = np.ascontiguousarray(rgba).view(np.uint32)[..., 0]
        image.data_source.data = {"image": [packed], "x": [left], "y": [low], "dw": [right - left], "dh": [high - low]}

    def dress(self, look: Look) -> None:
        """Apply the colours of a look."""
        figure = self.figure
        figure.update(background_fill_color=look.paper, border_fill_color=look.page, outline_line_color=look.line)
        for axis in figure.axis:
            axis.update(axis_label_text_color=look.ink, major_label_text_color=look.ink, axis_line_color=look.line)
            axis.update(major_tick_line_color=look.line, minor_tick_line_color=look.line)

    def title(self, words: str) -> None:
        """Write a caption in the bar of the panel."""
        self.caption.object = in_html(words)

    def plain_ticks(self, across: float = 1.0, up: float = 1.0) -> None:
        """Write numbers on the axes in full, or with an exponent where very large or small, in units of such sizes."""
        for axis, unit in zip((*self.figure.xaxis, *self.figure.yaxis), (across, up), strict=True):
            formatter = CustomJSTickFormatter(args={"unit": unit}, code=_PLAIN)
            axis.update(formatter=formatter, major_label_policy=NoOverlap(min_distance=8))

    def power_ticks(self, axes: Sequence[Any]) -> None:
        """Write numbers on axes of logarithms to base 10 in full."""
        for axis in axes:
            axis.formatter, axis.ticker.num_minor_ticks = CustomJSTickFormatter(code=_POWER), 0
