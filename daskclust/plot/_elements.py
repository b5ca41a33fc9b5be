"""Parts of pictures: HoloViews elements with options for bokeh and matplotlib."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    import holoviews as hv
except ImportError as error:
    raise ImportError('plots need HoloViews: pip install "daskclust[app]"') from error

__all__ = [
    "COLORS",
    "FEW",
    "MOST_GLYPHS",
    "NOISE_COLOR",
    "amounts",
    "cloud",
    "framed",
    "histogram",
    "hv",
    "labelled",
    "line",
    "load_backends",
    "segments",
    "shaded",
    "with_options",
]

Array = npt.NDArray[Any]
Limits = tuple[tuple[float, float], tuple[float, float]]

COLORS = ("#332288", "#88CCEE", "#44AA99", "#117733", "#999933", "#DDCC77", "#CC6677", "#882255", "#AA4499")
"""Colours of clusters, by label modulo their number: Paul Tol's muted scheme."""

MOST_GLYPHS = 100_000
"""A picture of more points than this is rasterized."""

FEW = 10_000
"""In a rasterized picture, kinds of no more points than this are still drawn as markers."""

NOISE_COLOR = "#C4C4C4"

_MOST_EDGED = 80  # bars; edges would hide more of them

_MPL_MARKER = {"circle": "o", "square": "s", "star": "*"}
_BY_LABEL = {
    "color": hv.dim("label") % len(COLORS),
    "cmap": list(COLORS),
    "clim": (-0.5, len(COLORS) - 0.5),
}


def cloud(
    xy: tuple[Array, Array],
    kdims: list[Any],
    label: str,
    color: str,
    marker: str,
    size: float,
    *,
    raster: bool = False,
    limits: Limits | None = None,
    pixels: tuple[int, int] = (360, 360),
    log: tuple[bool, bool] = (False, False),
) -> list[Any]:
    """Return the points of one kind, as markers, or as counts with a point nowhere for the legend."""
    elements = []
    if raster:
        elements.append(_counts(xy, kdims, label, color, limits or _limits(xy), pixels, log))
        xy = (np.full(1, np.nan), np.full(1, np.nan))
    points = hv.Points(xy, kdims, label=label)
    edge = "#000000" if marker == "star" else color
    elements.append(with_options(points, _marker(marker, size, edge), both={"color": color}))
    return elements


def labelled(
    xy: tuple[Array, Array],
    columns: dict[str, Array],
    dims: list[Any],
    label: str,
    marker: str,
    size: float,
) -> Any:
    """Return points in the colours of their clusters; bokeh shows `columns` under the mouse."""
    points = hv.Points((*xy, *columns.values()), dims[:2], dims[2:], label=label)
    each = _marker(marker, size, "#000000" if marker == "star" else None)
    each["bokeh"]["tools"] = ["hover"]
    return with_options(points, each, both=_BY_LABEL | {"show_legend": marker == "star"})


def _marker(marker: str, size: float, edge: str | None) -> dict[str, dict[str, Any]]:
    width = 0.0 if edge is None else 0.6
    return {
        "bokeh": {"marker": marker, "size": size, "line_color": edge, "line_width": width},
        "matplotlib": {"marker": _MPL_MARKER[marker], "s": size**2, "edgecolors": edge or "none", "linewidth": width},
    }


def _limits(xy: tuple[Array, Array]) -> Limits:
    """Return what values span, and more than nothing where they are all equal."""
    spans = []
    for values in xy:
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        spans.append((low, high) if high > low else (low - 0.5, high + 0.5))
    return spans[0], spans[1]


def _counts(
    xy: tuple[Array, Array],
    kdims: list[Any],
    label: str,
    color: str,
    limits: Limits,
    pixels: tuple[int, int],
    log: tuple[bool, bool],
) -> Any:
    """Return how many points are in each pixel, in shades of a colour."""
    from holoviews.operation.datashader import rasterize

    # the pixels of an image have equal size; on logarithmic axes they do as cells of a mesh that grow
    columns = tuple(np.log10(values) if is_log else values for values, is_log in zip(xy, log, strict=True))
    spans = [
        (float(np.log10(low)), float(np.log10(high))) if is_log else (low, high)
        for (low, high), is_log in zip(limits, log, strict=True)
    ]
    width, height = pixels
    image = rasterize(
        hv.Points(columns, kdims), dynamic=False, width=width, height=height, x_range=spans[0], y_range=spans[1]
    )
    number = image.dimension_values(2, flat=False).astype(np.float64)
    number[number == 0] = np.nan
    vdim = hv.Dimension("points", label=f"points ({label})")
    both = {"cmap": [_tint(color, share) for share in np.linspace(0.35, 1.0, 32)], "cnorm": "log"}
    if not any(log):
        bounds = (spans[0][0], spans[1][0], spans[0][1], spans[1][1])
        picture = hv.Image(number[::-1], bounds=bounds, kdims=kdims, vdims=[vdim], label=label)
        return with_options(picture, {}, both)
    edges = [np.linspace(low, high, cells + 1) for (low, high), cells in zip(spans, pixels, strict=True)]
    edges = [10**column if is_log else column for column, is_log in zip(edges, log, strict=True)]
    return with_options(hv.QuadMesh((*edges, number), kdims, [vdim], label=label), {}, both)


def _tint(color: str, share: float) -> str:
    """Return a colour mixed with white."""
    parts = [int(color[k : k + 2], 16) for k in (1, 3, 5)]
    return "#" + "".join(f"{round(255 + (part - 255) * share):02x}" for part in parts)


def shaded(xy: tuple[Array, Array], labels: Array, kdims: list[Any], label: str) -> Any:
    """Return a raster in the mean colour of the clusters' points in each pixel."""
    import datashader
    import pandas as pd
    from holoviews.operation.datashader import datashade, dynspread

    limits = _limits(xy)
    names = [str(k) for k in range(len(COLORS))]
    colour = pd.Categorical.from_codes(labels % len(COLORS), names)
    frame = pd.DataFrame({kdims[0].name: xy[0], kdims[1].name: xy[1], "colour": colour})
    picture = datashade(
        hv.Points(frame, kdims, ["colour"]),
        aggregator=datashader.by("colour", datashader.count()),
        color_key=dict(zip(names, COLORS, strict=True)),
        min_alpha=160,
        dynamic=False,
        width=700,
        height=700,
        x_range=limits[0],
        y_range=limits[1],
    )
    picture = dynspread(picture, max_px=2, threshold=0.6, dynamic=False).relabel(label)
    return with_options(picture, {}, {"show_legend": False})


def segments(starts: tuple[Array, Array], stops: tuple[Array, Array], kdims: list[Any], label: str) -> Any:
    """Return lines from points to points; very many are rasterized."""
    # labels must differ too: HoloViews finds columns by them
    ends = [hv.Dimension(f"{kdim.name}_end", label=f"{kdim.label} (end)", unit=kdim.unit) for kdim in kdims]
    lines = hv.Segments((*starts, *stops), [*kdims, *ends], label=label)
    if len(lines) > MOST_GLYPHS:
        from holoviews.operation.datashader import rasterize

        image = rasterize(lines, dynamic=False, width=700, height=700).relabel(label)
        return with_options(image, {}, {"cmap": ["#CCCCCC", "#444444"], "cnorm": "log"})
    each = {"bokeh": {"line_width": 0.8}, "matplotlib": {"linewidth": 0.6}}
    return with_options(lines, each, both={"color": "#555555", "alpha": 0.7})


def line(start: tuple[float, float], stop: tuple[float, float], kdims: list[Any], label: str, style: str) -> Any:
    """Return a straight line for the legend; `style` is a colour and a dash, as in "#000000 dotted"."""
    color, dash = style.split()
    curve = hv.Curve([start, stop], kdims[0], kdims[1], label=label)
    each = {"bokeh": {"line_dash": dash, "line_width": 1.5}, "matplotlib": {"linestyle": dash, "linewidth": 1.3}}
    return with_options(curve, each, both={"color": color})


def histogram(
    values: Array,
    edges: Array,
    kdim: Any,
    *,
    log: bool,
    logy: bool = False,
    what: str = "clusters",
    note: str = "",
    per: tuple[float, str] | None = None,
) -> Any:
    """Return how many of the values are in each bin; `what` they are and `note` are in the title.

    With `per`, a width and what to call it, bars are as high as there are values in bins of that width.
    """
    number, _ = np.histogram(values, edges)
    vdim, height = hv.Dimension(what), number
    if per is not None:
        vdim, height = hv.Dimension(what, label=f"{what} per {per[1]}"), number * per[0] / np.diff(edges)
    bars = hv.Histogram((edges, height), kdims=[kdim], vdims=[vdim])
    edge = "#FFFFFF" if len(number) <= _MOST_EDGED else COLORS[1]
    each: dict[str, dict[str, Any]] = {
        "bokeh": {"fill_color": COLORS[1], "line_color": edge, "frame_width": 480, "frame_height": 300},
        "matplotlib": {"facecolor": COLORS[1], "edgecolor": edge, "fig_inches": (5.5, 3.4), "aspect": "auto"},
    }
    both: dict[str, Any] = {"logx": log, "title": f"{int(number.sum()):,} {what}{note}"}
    if logy and number.any():  # bars of one are seen, and those of none, whose height has no logarithm, are not
        seen = height[height > 0]
        both |= {"logy": True, "ylim": (0.5 * float(seen.min()), 2.0 * float(seen.max()))}
    return with_options(bars, each, both=both)


def amounts(values: Array, log: bool) -> dict[str, Any]:
    """Return the options for colours by amount, those of viridis."""
    there = values[values > 0]
    low = float(there.min(initial=np.inf)) if there.size else 1.0
    high = max(float(there.max(initial=low)), 2.0 * low)  # one colour for all has no scale
    return {
        "cmap": "viridis",
        "cnorm": "log" if log else "linear",
        "colorbar": True,
        "clim": (low if log else 0.0, high),
    }


def framed(elements: list[Any], kdims: list[Any], title: str, *, aspect: float | None = None, **both: Any) -> Any:
    """Return an overlay with the size, labels and legend that all pictures have.

    With `aspect`, height by width of what is drawn, a unit is as long on both axes, and the longer one has a fixed
    size.
    """
    each: dict[str, dict[str, Any]] = {
        "bokeh": {"frame_width": 520, "frame_height": 400},
        "matplotlib": {"fig_inches": (6, 4.4), "aspect": "auto"},
    }
    if aspect is not None:
        each = {
            "bokeh": {"frame_width": round(520 / max(1.0, aspect)), "data_aspect": 1},
            "matplotlib": {"fig_inches": 6, "aspect": "equal"},
        }
    words = {"title": title, "xlabel": kdims[0].pprint_label, "ylabel": kdims[1].pprint_label}
    return with_options(hv.Overlay(elements), each, both={"legend_position": "right"} | words | both)


def with_options(element: Any, each: dict[str, dict[str, Any]], both: dict[str, Any]) -> Any:
    """Return an element with options for both backends."""
    load_backends()
    for backend in ("bokeh", "matplotlib"):
        element = element.opts(backend=backend, **both, **each.get(backend, {}))
    return element


@functools.cache
def load_backends() -> None:
    """Make the options of both backends known, as `holoviews.extension` does, without choosing one for a notebook."""
    import holoviews.plotting.bokeh
    import holoviews.plotting.mpl  # noqa: F401
