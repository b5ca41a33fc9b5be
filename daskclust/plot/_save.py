"""Pictures to files."""

from __future__ import annotations

import html
import io
import os
import re
import textwrap
from pathlib import Path
from typing import Any

from daskclust.core.data.checks import check_positive
from daskclust.io.files import known_suffix
from daskclust.io.replacing import replacing
from daskclust.plot._look import hv, load_backends

_BY_MATPLOTLIB = (".png", ".svg", ".pdf")
_PAGE = "<style>:root {color-scheme: light dark} body {margin: 1em; font-family: sans-serif}</style>"
"""Pictures have no ground: a page is white or black as the reader has chosen for all pages."""

_ELSEWHERE = re.compile(r'^\s*<(link rel="stylesheet" href|script src)=[^>]*>(</script>)?\n', re.MULTILINE)
"""A page of Bokeh refers to files for all models that the process has imported, so also for those of Panel."""

_ROUNDS = 8  # until the width is right: letters do not grow with the figure
_LEGEND = 8  # points


def save(element: Any, path: str | os.PathLike[str], *, dpi: int = 150, width: float | None = None) -> None:
    """Write a picture to a file, completely or not at all.

    Parameters
    ----------
    element : HoloViews object
        What the functions of this module return, or any other.
    path : str or path
        ``.html``: interactive, by bokeh (by plotly in three dimensions), with all that it needs inside, so that it
        opens offline; ``.png``, ``.svg`` or ``.pdf``: by matplotlib. A file that exists is replaced.
    dpi : int, default 150
        Resolution of PNG, and of what is rasterized in the others.
    width : float, optional
        Width of the whole picture in inches, such as 3.4 for a column of a paper; letters have the same size at any
        width. Not for ``.html``.

    Raises
    ------
    ValueError
        For other extensions, and for pictures with a slider in a format that cannot have one.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "curve.png")
    ...     save(hv.Curve([1, 3, 2]), file)
    ...     file.read_bytes()[1:4]
    b'PNG'
    """
    target = Path(path)
    suffix = known_suffix(path, (".html", *_BY_MATPLOTLIB))
    has_slider = bool(element.traverse(lambda part: part, [hv.HoloMap]))
    if has_slider and suffix != ".html":
        raise ValueError(f"a picture with a slider cannot be {suffix}; save one frame of it, or .html")
    is_solid = bool(element.traverse(lambda part: part, [hv.core.Element3D]))
    if has_slider and is_solid:
        raise ValueError("a picture in three dimensions has no slider in a file; save one frame of it")
    if width is not None and suffix == ".html":
        raise ValueError(f"width={width!r} is for {', '.join(_BY_MATPLOTLIB)}; pictures in .html have a size in pixels")
    width = width if width is None else check_positive("width", width)
    load_backends()
    if suffix == ".html":
        content = _solid_html(element, target.stem) if is_solid else _html(element, target.stem)
    else:
        content = _on_paper(element, suffix[1:], dpi, width)
    with replacing(target) as stream:
        stream.write(content)


def _on_paper(element: Any, kind: str, dpi: int, width: float | None) -> bytes:
    """Return a picture by matplotlib, cut to what is drawn."""
    from matplotlib import pyplot

    renderer = hv.renderer("matplotlib").instance(dpi=dpi)
    figure = renderer.get_plot(element).state
    try:
        if width is None:
            for axes in figure.axes:
                axes.title.set_wrap(True)
        else:
            _fit(figure, width)
        stream = io.BytesIO()
        figure.savefig(stream, format=kind, dpi=dpi, bbox_inches="tight", pad_inches=0.02)
    finally:
        pyplot.close(figure)
    return stream.getvalue()


def _fit(figure: Any, width: float) -> None:
    """Give what is drawn a width in inches; legends go below, titles get the lines they need: neither takes width."""
    legends = [axes.get_legend() for axes in figure.axes if axes.get_legend() is not None]
    titles = [axes.title for axes in figure.axes if axes.title.get_text()]
    for part in (*legends, *titles):
        part.set_visible(False)
    for _ in range(_ROUNDS):
        inches = figure.get_size_inches()
        figure.set_size_inches(inches * max(0.2, 1 + (width - figure.get_tightbbox().width) / inches[0]))
    drawn = figure.get_tightbbox()
    for title in titles:
        title.set_visible(True)
        _wrap(title, drawn.x0 * figure.dpi, drawn.x1 * figure.dpi)
    for legend in legends:
        axes, words = legend.axes, [text.get_text() for text in legend.get_texts()]
        bottom = axes.transAxes.inverted().transform((0.0, axes.get_tightbbox().y0))[1]
        below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, bottom), "ncols": 2, "frameon": False}
        axes.legend(legend.legend_handles, words, fontsize=_LEGEND, **below)


def _wrap(title: Any, low: float, high: float) -> None:
    """Break a title into lines that stay between two places, in pixels; a single word may be longer."""
    words = " ".join(title.get_text().split())
    for letters in range(len(words), max(map(len, words.split())) - 1, -1):
        title.set_text(textwrap.fill(words, letters, break_long_words=False))
        box = title.get_window_extent()
        if low <= box.x0 and box.x1 <= high:
            return


def _html(element: Any, title: str) -> bytes:
    """Return a page without references to other places."""
    from bokeh.core.validation import silence
    from bokeh.core.validation.warnings import FIXED_SIZING_MODE
    from bokeh.embed import file_html
    from bokeh.resources import INLINE

    plot = hv.renderer("bokeh").get_plot(element)
    model = plot.state if len(plot) == 1 else _with_slider(element, plot)
    silence(FIXED_SIZING_MODE)  # HoloViews gives the size of the frame and not that of the picture: both will do
    try:
        page = str(file_html(model, INLINE, title))
    finally:
        silence(FIXED_SIZING_MODE, False)
    return _ELSEWHERE.sub("", page).replace("<head>", f"<head>{_PAGE}", 1).encode("utf-8")


def _solid_html(element: Any, title: str) -> bytes:
    """Return a page by plotly, without references to other places."""
    import plotly.io

    figure = hv.renderer("plotly").get_plot(element).state
    page = str(plotly.io.to_html(figure, include_plotlyjs=True, div_id="picture", validate=False))
    return page.replace("<head>", f"<head>{_PAGE}<title>{html.escape(title)}</title>", 1).encode("utf-8")


def _with_slider(element: Any, plot: Any) -> Any:
    """Return all frames below a slider, which shows one of them; it needs no server."""
    from bokeh.layouts import column
    from bokeh.models.callbacks import CustomJS
    from bokeh.models.widgets import Slider

    names = [dimension.name for dimension in plot.dimensions]
    words = [", ".join(f"{name} {value}" for name, value in zip(names, key, strict=True)) for key in plot.keys]
    frames = []
    for key in plot.keys:
        frame = element.select(selection_specs=[hv.HoloMap], **dict(zip(names, key, strict=True)))
        frames.append(hv.renderer("bokeh").get_plot(frame).state)
        frames[-1].visible = len(frames) == 1
    slider = Slider(start=0, end=len(frames) - 1, value=0, step=1, title=words[0], show_value=False, width=400)
    code = "frames.forEach((frame, k) => { frame.visible = k == this.value }); this.title = words[this.value]"
    slider.js_on_change("value", CustomJS(args={"frames": frames, "words": words}, code=code))
    return column(slider, *frames)
