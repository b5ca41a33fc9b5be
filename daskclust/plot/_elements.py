"""Parts of pictures: HoloViews elements with options for bokeh and matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.merge.labels import NOISE
from daskclust.plot._look import ACCENT, COLORS, INK, NOISE_ALPHA, NOISE_COLOR, finished, hv, log_ticks, shades, styled

Array = npt.NDArray[Any]
Limits = tuple[tuple[float, float], tuple[float, float]]

MOST_GLYPHS = 100_000
"""A picture of more points than this is rasterized."""

FEW = 10_000
"""In a rasterized picture, kinds of no more points than this are still drawn as markers."""

_PIXELS = 360  # of a side of what is rasterized
_SHARPER = 1.5  # times as many where colours are mixed
_POINT = 0.75  # of a pixel, in which bokeh measures, and matplotlib in points
_MPL_MARKER = {"circle": "o", "square": "s", "star": "*"}
_EDGE = "#222222"  # of stars among points of the same colour


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
    pixels: tuple[int, int] = (_PIXELS, _PIXELS),
    log: tuple[bool, bool] = (False, False),
) -> list[Any]:
    """Return the points of one kind, as markers, or as counts with a point nowhere for the legend."""
    elements = []
    if raster:
        elements.append(_counts(xy, kdims, label, color, limits or _limits(xy), pixels, log))
        xy = (np.full(1, np.nan), np.full(1, np.nan))
    points = hv.Points(xy, kdims, label=label)
    alpha = NOISE_ALPHA if color == NOISE_COLOR else 1.0
    return [*elements, styled(points, *_marker(marker, size, color), color=color, alpha=alpha)]


def labelled(
    xy: tuple[Array, Array], columns: dict[str, Array], dims: list[Any], label: str, marker: str, size: float
) -> Any:
    """Return points in the colours of their clusters; bokeh shows `columns` under the mouse."""
    points = hv.Points((*xy, *columns.values()), dims[:2], dims[2:], label=label)
    is_seed = marker == "star"
    bokeh, matplotlib = _marker(marker, size, _EDGE if is_seed else None)
    by_label = hv.dim("label") % len(COLORS)
    bokeh |= {"fill_color": by_label, "tools": ["hover"]}
    matplotlib |= {"color": by_label}
    limits = (-0.5, len(COLORS) - 0.5)
    return styled(points, bokeh, matplotlib, cmap=list(COLORS), clim=limits, show_legend=is_seed)


def point_size(n: int) -> float:
    """Return the size of points, smaller where there are many."""
    return 5.0 if n < 2_000 else 3.5 if n < 20_000 else 2.0


def pixels_for(n: int, pictures: int = 1) -> int:
    """Return the pixels of a side of what so many points are rasterized to, 0 for markers.

    Several pictures have as many pixels as four, all together, so that a page of them stays small.
    """
    return 0 if n <= MOST_GLYPHS else round(_PIXELS * min(1.0, 2.0 / pictures**0.5))


def is_few(n: int, pixels: int) -> bool:
    """Return whether so many points are drawn as markers: with no `pixels` all are, in small pictures less."""
    return pixels == 0 or n <= FEW * (pixels / _PIXELS) ** 2


def by_cluster(
    xy: tuple[Array, Array], columns: dict[str, Array], dims: list[Any], size: float, pixels: int
) -> tuple[list[Any], Any]:
    """Return points that are noise, in grey, and those that are in a cluster, by its ``columns["label"]``."""
    labels = columns["label"]
    is_noise = labels == NOISE
    grey, coloured = ((xy[0][which], xy[1][which]) for which in (is_noise, ~is_noise))
    how: dict[str, Any] = {"raster": not is_few(len(grey[0]), pixels), "pixels": (pixels, pixels)}
    noise = cloud(grey, dims[:2], "noise", NOISE_COLOR, "circle", 0.6 * size, **how)
    if pixels and len(coloured[0]):
        return noise, shaded(coloured, labels[~is_noise], dims[:2], "member", pixels)
    columns = {name: values[~is_noise] for name, values in columns.items()}
    return noise, labelled(coloured, columns, dims, "member", "circle", size)


def _marker(marker: str, size: float, edge: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of markers for bokeh and for matplotlib."""
    width = 0.0 if edge is None else 0.6
    bokeh = {"marker": marker, "size": size, "line_color": edge, "line_width": width}
    area = (_POINT * size) ** 2
    return bokeh, {"marker": _MPL_MARKER[marker], "s": area, "edgecolors": edge or "none", "linewidth": width}


def spanned(low: Any, high: Any) -> tuple[float, float]:
    """Return limits that hold all, and more than nothing where all is equal, or NaN as of nothing."""
    low, high = float(low), float(high)
    return (low, high) if high > low else (low - 0.5, high + 0.5) if high == low else (0.0, 1.0)


def _limits(xy: tuple[Array, Array]) -> Limits:
    """Return what values span along both axes."""
    x, y = (spanned(values.min(), values.max()) if len(values) else (0.0, 1.0) for values in xy)
    return x, y


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
    import datashader
    import pandas as pd

    scales = ["log" if is_log else "linear" for is_log in log]
    canvas = datashader.Canvas(*pixels, *limits, *scales)
    number = canvas.points(pd.DataFrame({"x": xy[0], "y": xy[1]}), "x", "y").values.astype(np.float32)
    number[number == 0] = np.nan
    vdim = hv.Dimension("points", label=f"points ({label})")
    if any(log):  # the pixels of an image have equal size; on logarithmic axes they do as cells of a mesh that grow
        edges = [
            (np.geomspace if is_log else np.linspace)(*ends, count + 1)
            for ends, count, is_log in zip(limits, pixels, log, strict=True)
        ]
        picture = hv.QuadMesh((*edges, number), kdims, [vdim], label=label)
    else:
        (left, right), (low, high) = limits
        picture = hv.Image(number[::-1], bounds=(left, low, right, high), kdims=kdims, vdims=[vdim], label=label)
    return styled(picture, cmap=shades(color), cnorm="log")


def shaded(xy: tuple[Array, Array], labels: Array, kdims: list[Any], label: str, pixels: int) -> Any:
    """Return a raster in the mean colour of the clusters' points in each pixel."""
    import datashader
    import pandas as pd
    from holoviews.operation.datashader import datashade, dynspread

    limits, side = _limits(xy), round(_SHARPER * pixels)
    names = [str(k) for k in range(len(COLORS))]
    colour = pd.Categorical.from_codes(labels % len(COLORS), names)
    frame = pd.DataFrame({kdims[0].name: xy[0], kdims[1].name: xy[1], "colour": colour})
    picture = datashade(
        hv.Points(frame, kdims, ["colour"]),
        aggregator=datashader.by("colour", datashader.count()),
        color_key=dict(zip(names, COLORS, strict=True)),
        min_alpha=160,
        dynamic=False,
        width=side,
        height=side,
        x_range=limits[0],
        y_range=limits[1],
    )
    return styled(dynspread(picture, max_px=2, threshold=0.6, dynamic=False).relabel(label), show_legend=False)


def segments(starts: tuple[Array, Array], stops: tuple[Array, Array], kdims: list[Any], label: str, pixels: int) -> Any:
    """Return lines from points to points; more than some thousands are rasterized where there are `pixels`."""
    # labels must differ too: HoloViews finds columns by them
    ends = [hv.Dimension(f"{kdim.name}_end", label=f"{kdim.label} (end)", unit=kdim.unit) for kdim in kdims]
    lines = hv.Segments((*starts, *stops), [*kdims, *ends], label=label)
    if not is_few(len(lines), pixels):
        from holoviews.operation.datashader import rasterize

        image = rasterize(lines, dynamic=False, width=pixels, height=pixels).relabel(label)
        return styled(image, cmap=shades(INK), cnorm="log")
    return styled(lines, {"line_width": 0.8}, {"linewidth": 0.6}, color=INK, alpha=0.8)


def line(start: tuple[float, float], stop: tuple[float, float], kdims: list[Any], label: str, style: str) -> Any:
    """Return a straight line for the legend; `style` is a colour and a dash, as in "#000000 dotted"."""
    color, dash = style.split()
    curve = hv.Curve([start, stop], kdims[0], kdims[1], label=label)
    bokeh, matplotlib = {"line_dash": dash, "line_width": 1.5}, {"linestyle": dash, "linewidth": 1.3}
    return styled(curve, bokeh, matplotlib, color=color)


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
    bokeh = {"fill_color": ACCENT, "line_color": ACCENT}
    matplotlib = {"facecolor": ACCENT, "edgecolor": ACCENT}
    both: dict[str, Any] = {"logx": log, "xticks": log_ticks(float(edges[0]), float(edges[-1])) if log else None}
    if logy and number.any():  # bars of one are seen, and those of none, whose height has no logarithm, are not
        seen = height[height > 0]
        both |= {"logy": True, "ylim": (0.5 * float(seen.min()), 2.0 * float(seen.max()))}
    title = f"{int(number.sum()):,} {what}{note}"
    return finished(bars, title, height=300, bokeh=bokeh, matplotlib=matplotlib, **both)


def overlay(elements: list[Any], kdims: list[Any], title: str, **how: Any) -> Any:
    """Return an overlay with labels of its axes; `how` is as of `finished`."""
    return finished(hv.Overlay(elements), title, xlabel=kdims[0].pprint_label, ylabel=kdims[1].pprint_label, **how)
