"""Pictures of clusterings: HoloViews elements for bokeh and matplotlib.

In a notebook call ``holoviews.extension("bokeh")`` (or ``"matplotlib"``) once, as for any other HoloViews element.
Clusters have the colours of Paul Tol's muted scheme, which people with any colour vision can tell apart.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.files import replacing
from daskclust.core.labels import NOISE
from daskclust.plot._decision import FOLLOWER, OUTLIER, RHO, SEED, axis, delta_lines, kinds, rhoc_variable, thresholds
from daskclust.plot._elements import (
    MOST_GLYPHS,
    cloud,
    framed,
    histogram,
    hv,
    labelled,
    line,
    load_backends,
    segments,
    shaded,
    with_options,
)

Array = npt.NDArray[Any]

_NOISE_COLOR = "#C4C4C4"

# In a rasterized picture, kinds of no more points than this are still drawn as markers.
_FEW = 10_000

_KIND_STYLE = {
    FOLLOWER: ("#7FA6C9", "circle", 3),
    OUTLIER: ("#8A8A8A", "square", 4),
    SEED: ("#B2182B", "star", 9),
}


# ------------------------------------------------------------------------------------------------------------- pictures
def decision(
    result: xr.Dataset,
    *,
    rhoc: float | None = None,
    delta_c: float | None = None,
    delta_o: float | None = None,
    logx: bool = False,
    logy: bool = False,
) -> hv.Overlay:
    """Draw the decision plot: density against distance to the nearest higher, with thresholds [1]_.

    Parameters
    ----------
    result : xarray.Dataset
        As of ``ds.clust.clue``: ``density``, ``delta``, ``label``, ``is_seed``.
    rhoc, delta_c, delta_o : float, optional
        Thresholds, as lines; points are coloured as seeds, outliers and followers under them. Default: those that
        `result` was clustered with. A `rhoc` of each point has no line.
    logx, logy : bool, default False
        Logarithmic axes. Values that are not positive are drawn at half the smallest positive one.

    Returns
    -------
    holoviews.Overlay
        One `holoviews.Points` for each of "follower", "outlier" and "seed", and a `holoviews.Curve` for each line. Of
        more than 100 000 points, kinds of more than 10 000 are rasterized into counts (`holoviews.Image`, on
        logarithmic axes `holoviews.QuadMesh`), with one point at NaN for the legend. Points without a higher one within
        reach (``delta`` is inf) are on a dotted line of their own at the top.

    Raises
    ------
    ValueError
        For missing variables, and thresholds of distance beyond the reach of the clustering.

    References
    ----------
    .. [1] Rovere et al., figure 4, Front. Big Data 3 (2020) 591315, https://doi.org/10.3389/fdata.2020.591315

    Examples
    --------
    >>> import daskclust.accessor
    >>> from daskclust.datasets import calorimeter
    >>> result = calorimeter(1, 100, rng=0).clust.clue(20.0, 8.0)
    >>> [(points.label, len(points)) for points in decision(result).values() if isinstance(points, hv.Points)]
    [('follower', 86), ('outlier', 6), ('seed', 8)]
    """
    result = _in_memory(result, ("density", "delta"), ("label", "is_seed", rhoc_variable(result)))
    at_rhoc, limits = thresholds(result, rhoc, delta_c, delta_o)
    members = kinds(result, limits)
    _, low_x, high_x, density = axis(result["density"].values, [at_rhoc], log=logx)
    level, low_y, high_y, delta = axis(result["delta"].values, limits[1:], log=logy)
    kdims = [_dimension(result["density"], f"local density {RHO}"), _dimension(result["delta"], "distance to higher δ")]
    elements: list[Any] = []
    if level is not None:
        elements.append(line((low_x, level), (high_x, level), kdims, "δ = ∞ (no higher in reach)", "#555555 dotted"))
    frame: dict[str, Any] = {"limits": ((low_x, high_x), (low_y, high_y)), "pixels": (180, 135)}
    for kind in (FOLLOWER, OUTLIER, SEED):
        xy = (density[members[kind]], delta[members[kind]])
        raster = len(density) > MOST_GLYPHS and len(xy[0]) > _FEW
        elements += cloud(xy, kdims, kind, *_KIND_STYLE[kind], **frame, raster=raster, log=(logx, logy))
    if at_rhoc is not None:
        elements.append(line((at_rhoc, low_y), (at_rhoc, high_y), kdims, f"{RHO}c = {at_rhoc:g}", "#0072B2 solid"))
    for value, words, style in delta_lines(*limits[1:]):
        elements.append(line((low_x, value), (high_x, value), kdims, words, style))
    title = ", ".join(f"{int(members[kind].sum()):,} {kind}s" for kind in (SEED, OUTLIER, FOLLOWER))
    return framed(elements, kdims, title, xlim=(low_x, high_x), ylim=(low_y, high_y), logx=logx, logy=logy)


def clusters(
    result: xr.Dataset,
    x: str = "x",
    y: str = "y",
    *,
    layer: int | None = None,
    links: bool = False,
    seeds: bool = True,
) -> hv.Overlay:
    """Draw points in the colour of their cluster, noise in grey below all others.

    Parameters
    ----------
    result : xarray.Dataset
        As of ``ds.clust.clue``: coordinates and ``label``; ``is_seed`` and ``nearest_higher`` where they are drawn.
    x, y : str
        Variables for the axes.
    layer : int, optional
        Draw this layer only.
    links : bool, default False
        Draw a line from each follower to its nearest higher. Across the seam of a periodic axis it leaves the
        picture.
    seeds : bool, default True
        Draw seeds as stars.

    Returns
    -------
    holoviews.Overlay
        `holoviews.Points` "noise", `holoviews.Segments` "link", `holoviews.Points` "member" (all that are in a cluster)
        and "seed", in this order. Of more than 100 000 points, the third is rasterized (`holoviews.RGB`), noise
        and seeds if they are more than 10 000 (`holoviews.Image` of counts), and links if they are more than 100 000.

    Raises
    ------
    ValueError
        For missing variables.

    Notes
    -----
    There are nine colours: clusters whose labels are equal modulo nine have the same.

    Examples
    --------
    >>> import daskclust.accessor
    >>> from daskclust.datasets import calorimeter
    >>> result = calorimeter(1, 100, rng=0).clust.clue(20.0, 8.0)
    >>> {element.label: len(element) for element in clusters(result).values()}
    {'noise': 10, 'member': 90, 'seed': 8}
    """
    drawn = _loaded(result, x, y, layer=layer is not None, links=links, seeds=seeds)
    return _draw(drawn, x, y, layer, links=links, seeds=seeds)


def layers(
    result: xr.Dataset,
    layers: Iterable[int] | None = None,
    x: str = "x",
    y: str = "y",
    *,
    links: bool = False,
    seeds: bool = True,
    columns: int = 4,
    slider: bool = False,
) -> hv.NdLayout | hv.HoloMap:
    """Draw several layers side by side, or one at a time with a slider.

    Parameters
    ----------
    result : xarray.Dataset
        As for `clusters`, with ``layer``.
    layers : iterable of int, optional
        Which ones. Default: with a slider all, else up to 12, evenly spaced among those that have points.
    x, y, links, seeds
        As for `clusters`.
    columns : int, default 4
        Pictures in a row.
    slider : bool, default False
        Return a HoloMap, which HoloViews shows with a slider.

    Returns
    -------
    holoviews.NdLayout or holoviews.HoloMap
        Of what `clusters` returns, by layer.

    Raises
    ------
    ValueError
        For missing variables, and where there are no layers.

    Examples
    --------
    >>> import daskclust.accessor
    >>> from daskclust.datasets import calorimeter
    >>> result = calorimeter(3, 100, rng=0).clust.clue(20.0, 8.0)
    >>> layers(result, [0, 2]).keys()
    [0, 2]
    """
    result = _loaded(result, x, y, layer=True, links=links, seeds=seeds)
    if layers is None:
        there = np.unique(result["layer"].values)
        evenly = np.linspace(0, len(there) - 1, min(12, len(there))).round().astype(int)
        layers = there if slider else there[evenly]
    numbers = [int(each) for each in layers]
    if not numbers:
        raise ValueError("there are no layers to draw; the Dataset has no points, or layers= is empty")
    if slider:
        frames = {each: _draw(result, x, y, each, links=links, seeds=seeds) for each in numbers}
        return hv.HoloMap(frames, kdims=["layer"])
    small = {"bokeh": {"frame_width": 220, "frame_height": 220}, "matplotlib": {"fig_inches": 3}}
    panels = {
        each: with_options(
            _draw(result, x, y, each, links=links, seeds=seeds, size=2.5),
            small,
            both={"title": f"layer {each}", "show_legend": False},
        )
        for each in numbers
    }
    return hv.NdLayout(panels, kdims=["layer"]).cols(columns)


def energy_spectrum(table: xr.Dataset, *, weight: str = "energy", bins: int = 40, log: bool = True) -> hv.Histogram:
    """Draw how many clusters have which energy.

    Parameters
    ----------
    table : xarray.Dataset
        As of `daskclust.properties.cluster_table`.
    weight : str, default "energy"
        The variable.
    bins : int, default 40
        Number of bins.
    log : bool, default True
        Bins of equal width in the logarithm. Clusters without energy are in the first bin.

    Returns
    -------
    holoviews.Histogram
        Counts of clusters.

    Raises
    ------
    ValueError
        For missing variables.

    Examples
    --------
    >>> table = xr.Dataset({"energy": ("cluster", [1.0, 2.0, 2.5, 9.0])})
    >>> int(energy_spectrum(table, bins=3).dimension_values("clusters").sum())
    4
    """
    values = np.asarray(_in_memory(table, (weight,))[weight].values, dtype=np.float64)
    positive = values[values > 0]
    if log and positive.size:
        low, high = float(positive.min()), float(positive.max())
        edges = np.geomspace(low, high if high > low else 2 * low, bins + 1)
        values = np.clip(values, edges[0], edges[-1])  # rounding may leave the ends outside of their bins
    else:
        edges = np.histogram_bin_edges(values, bins)
    return histogram(values, edges, _dimension(table[weight], f"{weight} of a cluster"), log=log and positive.size > 0)


def cluster_sizes(table: xr.Dataset, *, bins: int = 40, log: bool = True) -> hv.Histogram:
    """Draw how many clusters have how many points.

    Parameters
    ----------
    table : xarray.Dataset
        As of `daskclust.properties.cluster_table`.
    bins : int, default 40
        Most bins; each holds whole numbers of points.
    log : bool, default True
        Bins of equal width in the logarithm, as far as whole numbers allow.

    Returns
    -------
    holoviews.Histogram
        Counts of clusters.

    Raises
    ------
    ValueError
        For missing variables.

    Examples
    --------
    >>> table = xr.Dataset({"size": ("cluster", [1, 2, 2, 9])})
    >>> int(cluster_sizes(table).dimension_values("clusters").sum())
    4
    """
    values = _in_memory(table, ("size",))["size"].values
    largest = max(1, int(values.max(initial=1)))
    steps = (np.geomspace if log else np.linspace)(1, largest + 1, bins + 1)
    edges = np.unique(np.concatenate([[1], steps.round(), [largest + 1]])) - 0.5
    return histogram(np.maximum(values, 1), edges, hv.Dimension("size", label="points of a cluster"), log=log)


def save(element: Any, path: str | os.PathLike[str], *, dpi: int = 150) -> None:
    """Write a picture to a file, completely or not at all.

    Parameters
    ----------
    element : HoloViews object
        What the functions of this module return, or any other.
    path : str or path
        ``.html``: interactive, by bokeh, with all that it needs inside, so that it opens offline; ``.png`` or ``.svg``:
        by matplotlib. A file that exists is replaced.
    dpi : int, default 150
        Resolution of PNG.

    Raises
    ------
    ValueError
        For other extensions, and for pictures with a slider in a format that cannot have one.
    OSError
        Where the folder does not exist or cannot be written to.

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
    suffix = target.suffix.lower()
    if suffix not in (".html", ".png", ".svg"):
        raise ValueError(f"unknown extension {suffix!r} of {os.fspath(path)}; known: .html, .png, .svg")
    has_slider = bool(element.traverse(lambda part: part, [hv.HoloMap]))
    if has_slider and suffix != ".html":
        raise ValueError(f"a picture with a slider cannot be {suffix}; save one frame of it, or .html")
    load_backends()
    if suffix == ".html":
        content = _html(element, target.stem, has_slider=has_slider).encode("utf-8")
    else:
        content = hv.renderer("matplotlib").instance(dpi=dpi)(element, fmt=suffix[1:])[0]
        content = content.encode("utf-8") if isinstance(content, str) else content
    with replacing(target) as stream:
        stream.write(content)


def _html(element: Any, title: str, *, has_slider: bool) -> str:
    """Return a page without references to other places."""
    from bokeh.core.validation import silence
    from bokeh.core.validation.warnings import FIXED_SIZING_MODE
    from bokeh.embed import file_html
    from bokeh.resources import INLINE

    silence(FIXED_SIZING_MODE)  # HoloViews gives the size of the frame and not that of the picture: both will do
    try:
        if not has_slider:
            return str(file_html(hv.renderer("bokeh").get_plot(element).state, INLINE, title))
        import panel

        pane: Any = panel.pane.HoloViews
        page = io.StringIO()
        pane(element).save(page, embed=True, max_opts=1_000, progress=False, resources=INLINE, title=title)
    finally:
        silence(FIXED_SIZING_MODE, False)
    # icons of the page, which are elsewhere
    return re.sub(r'<link\b[^>]*\bhref="https?:[^>]*>\s*', "", page.getvalue())


# ----------------------------------------------------------------------------------------------------------------- data
def _in_memory(ds: xr.Dataset, needed: Sequence[str], wanted: Sequence[str | None] = ()) -> xr.Dataset:
    """Return the variables of a Dataset, those that are `wanted` where they are there, on the host."""
    missing = [name for name in needed if name not in ds.variables]
    if missing:
        known = ", ".join(map(str, ds.variables)) or "none"
        raise ValueError(f"the Dataset has no variable {missing[0]!r}, which the picture needs; it has {known}")
    names = [*needed, *(name for name in wanted if name is not None and name in ds.variables and name not in needed)]
    chosen = ds[list(dict.fromkeys(names))].compute()
    # arrays on a GPU
    return chosen.map(lambda array: array.copy(data=array.data.get()) if hasattr(array.data, "get") else array)


def _dimension(array: xr.DataArray, words: str) -> hv.Dimension:
    """Return the dimension for a variable, with its unit in the label."""
    unit = str(array.attrs.get("units", "1"))
    return hv.Dimension(str(array.name), label=words, unit=None if unit == "1" else unit)


def _loaded(result: xr.Dataset, x: str, y: str, *, layer: bool, links: bool, seeds: bool) -> xr.Dataset:
    """Return what `_draw` needs in memory."""
    needed = [x, y, "label"]
    needed += ["is_seed"] * (seeds or links) + ["nearest_higher", "delta"] * links + ["layer"] * layer
    return _in_memory(result, needed, ("energy", "density"))


def _draw(
    result: xr.Dataset, x: str, y: str, layer: int | None, *, links: bool, seeds: bool, size: float | None = None
) -> hv.Overlay:
    """Draw one layer, or all; links need the indices of all points, so the layer is cut out here."""
    chosen = np.arange(result["label"].size) if layer is None else np.flatnonzero(result["layer"].values == layer)
    xs, ys, labels = (result[name].values[chosen] for name in (x, y, "label"))
    kdims = [_dimension(result[x], x), _dimension(result[y], y)]
    size = size or (5.0 if len(chosen) < 2_000 else 3.5 if len(chosen) < 20_000 else 2.0)
    raster = len(chosen) > MOST_GLYPHS
    is_noise = labels == NOISE
    vdims = [name for name in ("label", "energy", "density") if name in result]
    dims = [*kdims, *(_dimension(result[name], name) for name in vdims)]

    def some(which: npt.NDArray[np.bool_]) -> tuple[tuple[Array, Array], dict[str, Array]]:
        return (xs[which], ys[which]), {name: result[name].values[chosen][which] for name in vdims}

    xy, _ = some(is_noise)
    elements = cloud(xy, kdims, "noise", _NOISE_COLOR, "circle", 0.6 * size, raster=raster and len(xy[0]) > _FEW)
    if links:
        elements.append(_links(result, chosen, (x, y), kdims))
    xy, columns = some(~is_noise)
    if raster and len(xy[0]):
        elements.append(shaded(xy, columns["label"], kdims, "member"))
    else:
        elements.append(labelled(xy, columns, dims, "member", "circle", size))
    if seeds:
        xy, columns = some(result["is_seed"].values[chosen].astype(bool))
        if raster and len(xy[0]) > _FEW:
            elements += cloud(xy, kdims, "seed", "#000000", "star", size + 5, raster=True)
        else:
            elements.append(labelled(xy, columns, dims, "seed", "star", size + 5))
    count = len(np.unique(labels[~is_noise]))
    title = f"{count:,} clusters, {int(is_noise.sum()):,} of {len(labels):,} points noise"
    title = title if layer is None else f"layer {layer}: {title}"
    return framed(elements, kdims, title, equal=_equal_scale(result, (x, y), (xs, ys)))


def _links(result: xr.Dataset, chosen: npt.NDArray[np.int64], axes: tuple[str, str], kdims: list[Any]) -> Any:
    """Return lines from followers to their nearest higher."""
    nearest = result["nearest_higher"].values[chosen]
    linked = (nearest >= 0) & (result["label"].values[chosen] != NOISE) & ~result["is_seed"].values[chosen].astype(bool)
    starts, stops = [], []
    for name in axes:
        here = np.asarray(result[name].values[chosen][linked], dtype=np.float64)
        step = result[name].values[nearest[linked]] - here
        period = _period(result, name)
        starts.append(here)
        stops.append(here + (step - period * np.round(step / period) if period else step))
    return segments((starts[0], starts[1]), (stops[0], stops[1]), kdims, "link")


def _period(result: xr.Dataset, name: str) -> float:
    """Return the period of an axis that the clustering knew, 0 for an open one."""
    attrs = result["delta"].attrs
    periods = dict(zip(str(attrs.get("axes", "")).split(), np.ravel(attrs.get("periods", [])), strict=False))
    return float(periods.get(name, 0.0))


def _equal_scale(result: xr.Dataset, axes: tuple[str, str], values: tuple[Array, Array]) -> bool:
    """Return whether a unit should be as long on both axes: the same unit, and no strip."""
    units = [result[name].attrs.get("units") for name in axes]
    extent = [float(np.ptp(column)) if column.size else 0.0 for column in values]
    return units[0] == units[1] and min(extent) > 0 and max(extent) < 3 * min(extent)
