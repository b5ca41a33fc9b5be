"""What pictures of the explorer have in common: tools, ranges that the user changes, boxes and lassos.

A picture is a HoloViews element that is rendered once. Later only the data of its glyphs is replaced: that takes
milliseconds, where a HoloViews DynamicMap takes a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import panel as pn

from daskclust.app.look import Look
from daskclust.app.selection import Box, Lasso, corners
from daskclust.app.views._scene import Choose
from daskclust.plot._look import hv

Ranges = tuple[tuple[float, float], tuple[float, float]]
Array = npt.NDArray[Any]

NOTHING = np.zeros((1, 1, 4), np.uint8)
"""A picture of nothing."""

_PLAIN = """
const size = Math.abs(tick), plain = Number(tick.toPrecision(12))
return size >= 1e6 || (size > 0 && size < 1e-3) ? plain.toExponential() : plain.toString()
"""


def span(values: Array, margin: float = 0.03) -> tuple[float, float]:
    """Return a range that holds all values, and a little more."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    more = margin * (high - low) or 0.5
    return low - more, high + more


def alike(ranges: Ranges, size: tuple[int, int]) -> Ranges:
    """Return ranges in which a unit is as long on both axes, unless one of them is a strip."""
    (left, right), (low, high) = ranges
    width, height = right - left, high - low
    if max(width, height) > 4 * min(width, height):
        return ranges
    unit = max(width / size[0], height / size[1])
    x, y, half = (left + right) / 2, (low + high) / 2, (unit * size[0] / 2, unit * size[1] / 2)
    return (x - half[0], x + half[0]), (y - half[1], y + half[1])


def image(kdims: list[Any], ranges: Ranges) -> Any:
    """Return the element for a picture of pixels, which is empty."""
    (left, right), (low, high) = ranges
    return hv.RGB(NOTHING, bounds=(left, low, right, high), kdims=kdims, vdims=list("RGBA"))


class Canvas:
    """A rendered picture of HoloViews elements, the first one below, with further options of the overlay."""

    def __init__(self, elements: list[Any], size: tuple[int, int], ranges: Ranges, **more: Any) -> None:
        options = {"frame_width": size[0], "frame_height": size[1], "xlim": ranges[0], "ylim": ranges[1]} | more
        letters = {"title": "10pt", "labels": "10pt", "ticks": "9pt", "legend": "9pt"}
        overlay = hv.Overlay(elements).opts(
            backend="bokeh", default_tools=[], toolbar="above", show_legend=False, fontsize=letters, **options
        )
        plot = hv.Store.renderers["bokeh"].get_plot(overlay)
        self.figure = plot.state
        self._sources = [subplot.handles["source"] for subplot in plot.subplots.values()]
        self._glyphs = [subplot.handles["glyph"] for subplot in plot.subplots.values()]
        self.figure.sizing_mode = None
        self.figure.title.text = " "  # there is room for one from the beginning
        self.figure.output_backend = "canvas"  # there are few marks, and pixels of WebGL are copied each time
        if size[0] < 450 and hasattr(self.figure.xaxis[0].ticker, "desired_num_ticks"):
            self.figure.xaxis[0].ticker.desired_num_ticks = 4  # their labels would touch
        self._tools()
        self.panel = pn.pane.Bokeh(self.figure)

    def _tools(self) -> None:
        from bokeh.models import BoxSelectTool, LassoSelectTool, PanTool, ResetTool, SaveTool, WheelZoomTool

        # glyphs are left alone: what is chosen is drawn anew
        box, lasso = BoxSelectTool(renderers=[]), LassoSelectTool(renderers=[])
        wheel = WheelZoomTool()
        self.figure.toolbar.tools = [PanTool(), box, lasso, wheel, SaveTool(), ResetTool()]
        self.figure.toolbar.logo = None
        self.figure.toolbar.active_drag, self.figure.toolbar.active_scroll = box, wheel

    # ------------------------------------------------------------------------------------------------------- what comes
    def watch(self, axes: tuple[str, str], choose: Choose, moved: Callable[[], None] | None = None) -> None:
        """Call `choose` with what is drawn with the mouse, and `moved` when axes have changed."""
        from bokeh.events import SelectionGeometry

        def on_geometry(event: Any) -> None:
            shape = event.geometry
            if event.final and shape["type"] == "rect":
                x, y = (tuple(sorted((float(shape[f"{axis}0"]), float(shape[f"{axis}1"])))) for axis in "xy")
                choose(Box(axes, x, y))  # type: ignore[arg-type]
            elif event.final and shape["type"] == "poly":
                choose(Lasso(axes, corners(list(shape["x"]), list(shape["y"]))))

        self.figure.on_event(SelectionGeometry, on_geometry)
        if moved is not None:
            for ends in (self.figure.x_range, self.figure.y_range):
                for end in ("start", "end"):
                    ends.on_change(end, lambda attr, old, new: moved())

    @property
    def ends(self) -> tuple[Any, Any]:
        """Return bokeh's ranges."""
        return self.figure.x_range, self.figure.y_range

    @property
    def ranges(self) -> Ranges:
        """What axes show now."""
        x, y = self.figure.x_range, self.figure.y_range
        return (float(x.start), float(x.end)), (float(y.start), float(y.end))

    # ------------------------------------------------------------------------------------------------------- what goes
    def paint(self, number: int, rgba: npt.NDArray[np.uint8], ranges: Ranges) -> None:
        """Replace the pixels (height, width, 4), the lowest row first, of an element."""
        (left, right), (low, high) = ranges
        packed = np.ascontiguousarray(rgba).view(np.uint32)[..., 0]
        self.fill(number, image=[packed], x=[left], y=[low], dw=[right - left], dh=[high - low])

    def fill(self, number: int, **columns: Any) -> None:
        """Replace the data of an element."""
        self._sources[number].data = columns

    def dress(self, look: Look) -> None:
        """Draw what is around the data in other colours."""
        figure = self.figure
        figure.update(background_fill_color=look.paper, border_fill_color=look.page, outline_line_color=look.line)
        figure.title.text_color = look.ink
        for axis in (*figure.xaxis, *figure.yaxis):
            axis.update(axis_label_text_color=look.ink, major_label_text_color=look.ink, axis_line_color=look.line)
            axis.update(major_tick_line_color=look.line, minor_tick_line_color=look.line)

    def color(self, number: int, **colors: Any) -> None:
        """Give all marks of an element other colours."""
        self._glyphs[number].update(**colors)

    def palette(self, number: int, of: str, colors: Sequence[str]) -> None:
        """Replace the colours of an element whose marks have colours by number; `of` is their fill or their line."""
        getattr(self._glyphs[number], of).transform.palette = list(colors)

    def title(self, words: str) -> None:
        """Replace the title."""
        self.figure.title.text = words or " "

    def plain_ticks(self) -> None:
        """Write numbers on the axes in full, with an exponent where they are very large or small."""
        from bokeh.models import CustomJSTickFormatter

        for axis in (*self.figure.xaxis, *self.figure.yaxis):
            axis.formatter = CustomJSTickFormatter(code=_PLAIN)
