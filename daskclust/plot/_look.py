"""The style of all pictures: colours, sizes and fonts, as options of bokeh and matplotlib.

bokeh draws for screens: its pictures have no ground of their own, and letters and colours that can be seen on white
and on black. matplotlib draws for paper: black letters on white.
"""

from __future__ import annotations

import functools
import math
import textwrap
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    import holoviews
except ImportError as error:
    raise ImportError('plots need HoloViews: pip install "daskclust[app]"') from error

from daskclust.core.data.checks import check_whole

hv = holoviews

Array = npt.NDArray[Any]
Float = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
Options = dict[str, Any]

# ------------------------------------------------------------------------------------------------------------- colours
COLORS = (
    "#3650AF", "#DEA609", "#259829", "#BE67AF", "#3CC8FE", "#EF615E", "#7C5FDD", "#89C780", "#0A9AE8",
)  # fmt: skip
"""Colours of clusters, by label modulo their number.

They are the outcome of a search for nine colours that differ most from each other and from the grey of noise, for
people with any colour vision, and that are seen on white and on black.
"""

NOISE_COLOR = "#A0A0A0"
NOISE_ALPHA = 0.6
"""Noise is between the colour and the ground: paler than clusters on white, darker on black."""

ACCENT = COLORS[8]
"""Of what has one colour: bars, dots."""

MARK = COLORS[5]
"""Of what is to be seen on top of others: circles of halos, lines of equality."""

INK = "#7B7B7B"
"""Of letters, axes and thin lines on screens: as far from white as from black."""

FOLLOWER_COLOR, OUTLIER_COLOR, SEED_COLOR = COLORS[8], NOISE_COLOR, COLORS[5]
"""Of what points are in decision plots."""

BLANK: Options = {"cmap": ["#FFFFFF00", "#FFFFFF00"], "clim": (0.0, 1.0)}
"""Options of an image of nothing."""


def amounts(values: Array, log: bool) -> Options:
    """Return the options for colours by amount, those of viridis."""
    there = values[values > 0]
    low = float(there.min(initial=np.inf)) if there.size else 1.0
    high = max(float(there.max(initial=low)), 2.0 * low)  # one colour for all has no scale
    limits = (low if log else 0.0, high)
    return {"cmap": "viridis", "cnorm": "log" if log else "linear", "colorbar": True, "clim": limits}


def shades(color: str) -> list[str]:
    """Return a colour from faint to full, for counts."""
    return [f"{color}{round(255 * share):02X}" for share in np.linspace(0.35, 1.0, 32)]


# --------------------------------------------------------------------------------------------------------------- sizes
WIDTH, _HEIGHT = 520, 380  # of the frame on a screen; axes, a legend and tools fit beside it in a notebook
_PANEL = 230  # the same, of one of several side by side
_INCHES = 5.2  # of a figure, with its axes
_ROW_INCHES = 8.0  # of panels side by side, as HoloViews has it for two pictures
_LETTERS = {"title": 11, "labels": 10, "xlabel": 10, "ylabel": 10, "clabel": 10, "legend": 9, "ticks": 9, "cticks": 9}
_LETTER = 8  # pixels of a letter of a title
_MOST_DECADES = 2  # of logarithmic axes with more ticks than powers of ten
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def finished(
    element: Any,
    title: str,
    *,
    height: int = _HEIGHT,
    aspect: float | None = None,
    bokeh: Options | None = None,
    matplotlib: Options | None = None,
    **both: Any,
) -> Any:
    """Return a picture with title, size, look and options, beside a frame 520 pixels wide.

    With `aspect`, height by width of what is drawn, a unit is as long on both axes, the longer one has a fixed size.
    """
    screen: Options = {"frame_width": WIDTH, "frame_height": height}
    paper: Options = {"fig_inches": (_INCHES, _INCHES * height / WIDTH), "aspect": "auto"}
    if aspect is not None:
        screen = {"frame_width": round(WIDTH / max(1.0, aspect)), "data_aspect": 1}
        paper = {"fig_inches": _INCHES, "aspect": "equal"}
    if isinstance(element, hv.Overlay):
        both = {"legend_position": "right"} | both
    title = textwrap.fill(title, max(24, screen["frame_width"] // _LETTER))
    screen = _bokeh() | screen | (bokeh or {})
    paper = _matplotlib(height / WIDTH if aspect is None else None) | paper | (matplotlib or {})
    return styled(element, screen, paper, title=title, **both)


def panel(element: Any, title: str, *, aspect: str = "equal") -> Any:
    """Return a finished picture as one of several side by side; `aspect` "square" is for axes of two kinds."""
    screen = _bokeh() | {"frame_width": _PANEL, "frame_height": _PANEL}
    paper = _matplotlib(None) | {"aspect": aspect}
    both = {"show_legend": False} if isinstance(element, hv.Overlay) else {}
    return styled(element, screen, paper, title=title, **both)


def side_by_side(layout: Any, columns: int) -> Any:
    """Return panels in rows of so many, without the letters that matplotlib gives them."""
    columns = min(check_whole("columns", columns, 1), max(1, len(layout)))
    paper = {"hspace": 0.5, "vspace": 0.3, "sublabel_format": "", "fig_inches": _ROW_INCHES / max(2, columns)}
    return styled(layout.cols(columns), None, paper)


def log_ticks(low: float, high: float) -> list[tuple[float, str]] | None:
    """Return where a logarithmic axis has ticks, None where powers of ten are enough."""
    if not 0 < low < high or math.log10(high / low) > _MOST_DECADES:
        return None
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    places = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    ticks = [(place, _words(place)) for place in places if low <= place <= high]
    return ticks if len(ticks) > 1 else None


def _words(value: float) -> str:
    """Return a number of one digit with few letters."""
    if 1e-3 <= value < 1e5:
        return f"{value:g}"
    power = math.floor(math.log10(value) + 1e-9)
    digit = round(value / 10.0**power)
    return ("" if digit == 1 else f"{digit}\N{MULTIPLICATION SIGN}") + "10" + str(power).translate(_SUPERSCRIPT)


# ------------------------------------------------------------------------------------------------------------ backends
def styled(element: Any, bokeh: Options | None = None, matplotlib: Options | None = None, **both: Any) -> Any:
    """Return an element with options for each backend, and for both."""
    load_backends()
    for backend, options in (("bokeh", bokeh), ("matplotlib", matplotlib)):
        element = element.opts(backend=backend, **both, **(options or {}))
    return element


@functools.cache
def load_backends() -> None:
    """Make the options of both backends known, as `holoviews.extension` does, without choosing one for a notebook."""
    try:
        import holoviews.plotting.bokeh
        import holoviews.plotting.mpl  # noqa: F401
    except ImportError as error:
        raise ImportError('plots need bokeh and matplotlib: pip install "daskclust[app]"') from error


def _bokeh() -> Options:
    letters = {name: f"{size}pt" for name, size in _LETTERS.items()}
    return {"fontsize": letters, "active_tools": ["box_zoom"], "hooks": [_style_figure]}


def _matplotlib(box: float | None) -> Options:
    letters = {name: size - 1 for name, size in _LETTERS.items()}
    return {"fontsize": letters, "show_frame": True, "hooks": [functools.partial(_style_axes, box)]}


def _style_figure(plot: Any, _: Any) -> None:
    """Make the background of a bokeh figure transparent, and draw its text and axes in grey."""
    from bokeh.models.annotations import ColorBar, Legend, Title
    from bokeh.models.axes import Axis

    figure = plot.state
    figure.update(background_fill_color=None, border_fill_color=None, outline_line_color=INK, outline_line_alpha=0.4)
    figure.toolbar.logo = None
    figure.output_backend = "canvas"  # WebGL draws lines one by one: 4 s for a thousand circles where there is no GPU
    ink = {"axis_line_color": INK, "major_tick_line_color": INK, "minor_tick_line_color": INK}
    words = {"axis_label_text_color": INK, "axis_label_text_font_style": "normal", "major_label_text_color": INK}
    for axis in figure.select(Axis):
        axis.update(**ink, **words)
    for title in figure.select(Title):
        title.text_color = INK
    for legend in figure.select(Legend):
        legend.update(label_text_color=INK, background_fill_color=None, border_line_color=None)
    for bar in figure.select(ColorBar):
        bar.update(background_fill_color=None, bar_line_color=None, major_tick_line_color=INK)
        bar.update(major_label_text_color=INK, title_text_color=INK, title_text_font_style="normal", title_standoff=6)


def _style_axes(box: float | None, plot: Any, _: Any) -> None:
    """Set the aspect of matplotlib axes, and remove labels of minor logarithmic ticks.

    HoloViews gives all that is free to those side by side, and matplotlib writes words of such ticks over each other.
    """
    from matplotlib.ticker import NullFormatter

    axes = plot.handles["axis"]
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_minor_formatter(NullFormatter())
    if box is not None:
        axes.set_box_aspect(box)
