"""Points in three dimensions in the colours of their clusters, to be turned with the mouse."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from daskclust.core.data.checks import check_whole
from daskclust.core.data.units import hit_column
from daskclust.core.merge.labels import NOISE
from daskclust.plot._data import TIMES, dimension, in_memory, in_time_units, opened, source_of
from daskclust.plot._elements import MOST_GLYPHS, point_size
from daskclust.plot._look import COLORS, INK, NOISE_COLOR, WIDTH, Array, Options, hv, load_backends

_DEPTHS = ("z", "toa", "layer")
_STRIP = 4  # what is longer by this factor fills the cube, whatever the units


def scatter3d(
    data: Any, x: str = "x", y: str = "y", z: str | None = None, *, labels: Any = None, most: int = MOST_GLYPHS
) -> hv.Scatter3D:
    """Draw points in three dimensions in the colour of their cluster, noise in grey.

    Parameters
    ----------
    data : xarray.Dataset, DataFrame, mapping, or array of shape (n, d)
        Points, with ``label`` where `labels` are not given: hits of a calorimeter, particles of a box, hits of a
        detector (of one chip: all chips are drawn into the same pixels). The columns of an array are ``x``, ``y`` and
        ``z``.
    x, y, labels
        As for `clusters`.
    z : str, optional
        The third axis. Default: the first of ``z``, ``toa`` and ``layer`` that `data` has.
    most : int, default 100_000
        Of more points so many are drawn, chosen at random and the same ones each time; the title tells.

    Returns
    -------
    holoviews.Scatter3D
        The points with their ``label``, noise smaller and grey. Times are since the first one that is drawn, in ns, µs,
        ms or s. A unit is as long on all axes where all have the same one, unless one is longer than another by a
        factor of 4.

    Raises
    ------
    ImportError
        Without plotly.

    Notes
    -----
    In a notebook call ``holoviews.extension("plotly")``, and the picture turns with the mouse; matplotlib draws a still
    one, bokeh has no third dimension. `save` writes HTML by plotly.

    Examples
    --------
    >>> from daskclust import DBSCAN
    >>> X = [[1, 2, 0], [2, 2, 0], [2, 3, 1], [8, 7, 5], [8, 8, 5], [25, 80, 9]]
    >>> picture = scatter3d(X, labels=DBSCAN(eps=3, min_samples=2).fit(X))
    >>> picture.dimension_values("label").tolist()
    [0, 0, 0, 1, 1, -1]
    """
    most = check_whole("most", most, 1)
    _load_plotly()
    if z is None:
        known = opened(data, (x, y), _DEPTHS, labels=labels).variables
        z = next((name for name in _DEPTHS if name in known), _DEPTHS[0])
    names = [x, y, z]
    result = in_memory(data, [*names, "label"], labels=labels)
    labels_there, n = result["label"].values, result["label"].size
    chosen = np.arange(n) if n <= most else np.sort(np.random.default_rng(0).permutation(n)[:most])
    columns, kdims = zip(*(_axis(result[name], name, chosen) for name in names), strict=True)
    points = hv.Scatter3D((*columns, labels_there[chosen]), list(kdims), ["label"])
    is_noise = labels_there == NOISE
    title = f"{len(np.unique(labels_there[~is_noise])):,} clusters, {is_noise.sum():,} of {n:,} points noise"
    title += f", {most:,} drawn" if n > most else ""
    return _drawn(points, title + source_of(data, labels), _ratio(kdims, columns))


def _axis(column: xr.DataArray, name: str, chosen: Array) -> tuple[Array, hv.Dimension]:
    """Return the values of the chosen points along an axis, times from the first one on."""
    if name not in TIMES:
        return column.values[chosen], dimension(column, name)
    times = np.asarray(hit_column(column, name).values[chosen], dtype=np.float64)
    times, unit = in_time_units(times - times.min(initial=np.inf))
    return times, hv.Dimension(name, label=f"{name} since the first", unit=unit)


def _ratio(kdims: Sequence[hv.Dimension], columns: Sequence[Array]) -> tuple[float, float, float]:
    """Return the lengths of the axes: those of a cube where units differ, or one is far longer than another."""
    low, *_, high = lengths = sorted(float(np.ptp(column)) if column.size else 0.0 for column in columns)
    if len({kdim.unit for kdim in kdims}) > 1 or not 0 < high < _STRIP * low:
        return 1.0, 1.0, 1.0
    a, b, c = (float(np.ptp(column)) / lengths[-1] for column in columns)
    return a, b, c


def _drawn(points: hv.Scatter3D, title: str, ratio: tuple[float, float, float]) -> hv.Scatter3D:
    """Return points with colours, sizes, title and axes for plotly and matplotlib."""
    size = 0.8 * point_size(len(points))
    noise = hv.dim("label") < 0
    both: Options = {"color": hv.dim("label", _color), "cmap": [*COLORS, NOISE_COLOR], "clim": (0, len(COLORS))}
    words = textwrap.fill(title, WIDTH // 8)
    plotly: Options = {"size": size * (1 - 0.4 * noise), "width": WIDTH, "height": WIDTH, "hooks": [_style_scene]}
    plotly |= {"aspect": dict(zip("xyz", ratio, strict=True)), "title": words.replace("\n", "<br>")}
    paper: Options = {"s": size**2 * (1 - 0.6 * noise), "linewidth": 0, "fig_inches": 5.2, "title": words}
    paper |= {"fontsize": {"title": 10, "labels": 9, "ticks": 8}, "hooks": [functools.partial(_style_box, ratio)]}
    return points.opts(backend="plotly", **both, **plotly).opts(backend="matplotlib", **both, **paper)


def _color(labels: Array) -> Array:
    """Return which colour each point has; that of noise is the last one."""
    return np.where(labels < 0, len(COLORS), labels % len(COLORS))


def _style_scene(plot: Any, points: hv.Scatter3D) -> None:
    """Make the ground of plotly's scene transparent, its text and axes grey, and show clusters under the mouse."""
    trace, layout = plot.state["data"][0], plot.state["layout"]
    trace["marker"]["line"] = {"width": 0}  # points of several sizes have a white one
    trace["customdata"] = points.dimension_values("label")
    names = ("%{x}", "%{y}", "%{z}", "%{customdata}")
    lines = [f"{dim.pprint_label}: {name}" for dim, name in zip(points.dimensions(), names, strict=True)]
    trace["hovertemplate"] = "<br>".join(lines) + "<extra></extra>"
    layout |= {"paper_bgcolor": "rgba(0,0,0,0)", "font": {"color": INK}, "margin": {"l": 0, "r": 0, "b": 0, "t": 60}}
    layout["modebar"] = {"orientation": "v", "bgcolor": "rgba(0,0,0,0)", "color": INK}
    layout["title"] = {"text": layout["title"], "font": {"size": 14}}  # plotly 6 wants more than words
    for axis in (layout["scene"][f"{name}axis"] for name in "xyz"):
        axis |= {"title": {"text": axis["title"]}, "showbackground": False, "gridcolor": INK, "zerolinecolor": INK}


def _style_box(ratio: tuple[float, float, float], plot: Any, _: Any) -> None:
    """Give matplotlib's box its lengths, leaving room for labels, which it would cut off."""
    plot.handles["axis"].set_box_aspect(ratio, zoom=0.85)


@functools.cache
def _load_plotly() -> None:
    """Make the options of plotly known, and those of the other backends."""
    load_backends()
    try:
        import holoviews.plotting.plotly  # noqa: F401
    except ImportError as error:
        raise ImportError('pictures in three dimensions need plotly: pip install "daskclust[app]"') from error
