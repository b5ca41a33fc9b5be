"""Points in the colours of their clusters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.labels import NOISE
from daskclust.plot._data import dimension, in_memory
from daskclust.plot._elements import (
    FEW,
    MOST_GLYPHS,
    NOISE_COLOR,
    cloud,
    framed,
    hv,
    labelled,
    segments,
    shaded,
    with_options,
)

Array = npt.NDArray[Any]


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


def _loaded(result: xr.Dataset, x: str, y: str, *, layer: bool, links: bool, seeds: bool) -> xr.Dataset:
    """Return what `_draw` needs in memory."""
    needed = [x, y, "label"]
    needed += ["is_seed"] * (seeds or links) + ["nearest_higher", "delta"] * links + ["layer"] * layer
    return in_memory(result, needed, ("energy", "density"))


def _draw(
    result: xr.Dataset, x: str, y: str, layer: int | None, *, links: bool, seeds: bool, size: float | None = None
) -> hv.Overlay:
    """Draw one layer, or all; links need the indices of all points, so the layer is cut out here."""
    chosen = np.arange(result["label"].size) if layer is None else np.flatnonzero(result["layer"].values == layer)
    xs, ys, labels = (result[name].values[chosen] for name in (x, y, "label"))
    kdims = [dimension(result[x], x), dimension(result[y], y)]
    size = size or (5.0 if len(chosen) < 2_000 else 3.5 if len(chosen) < 20_000 else 2.0)
    raster = len(chosen) > MOST_GLYPHS
    is_noise = labels == NOISE
    vdims = [name for name in ("label", "energy", "density") if name in result]
    dims = [*kdims, *(dimension(result[name], name) for name in vdims)]

    def some(which: npt.NDArray[np.bool_]) -> tuple[tuple[Array, Array], dict[str, Array]]:
        return (xs[which], ys[which]), {name: result[name].values[chosen][which] for name in vdims}

    xy, _ = some(is_noise)
    elements = cloud(xy, kdims, "noise", NOISE_COLOR, "circle", 0.6 * size, raster=raster and len(xy[0]) > FEW)
    if links:
        elements.append(_links(result, chosen, (x, y), kdims))
    xy, columns = some(~is_noise)
    if raster and len(xy[0]):
        elements.append(shaded(xy, columns["label"], kdims, "member"))
    else:
        elements.append(labelled(xy, columns, dims, "member", "circle", size))
    if seeds:
        xy, columns = some(result["is_seed"].values[chosen].astype(bool))
        if raster and len(xy[0]) > FEW:
            elements += cloud(xy, kdims, "seed", "#000000", "star", size + 5, raster=True)
        else:
            elements.append(labelled(xy, columns, dims, "seed", "star", size + 5))
    count = len(np.unique(labels[~is_noise]))
    title = f"{count:,} clusters, {int(is_noise.sum()):,} of {len(labels):,} points noise"
    title = title if layer is None else f"layer {layer}: {title}"
    return framed(elements, kdims, title, aspect=_aspect(result, (x, y), (xs, ys)))


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


def _aspect(result: xr.Dataset, axes: tuple[str, str], values: tuple[Array, Array]) -> float | None:
    """Return height by width where a unit should be as long on both axes: the same unit, and no strip; else None."""
    units = [result[name].attrs.get("units") for name in axes]
    width, height = (float(np.ptp(column)) if column.size else 0.0 for column in values)
    is_equal = units[0] == units[1] and min(width, height) > 0 and max(width, height) < 2 * min(width, height)
    return height / width if is_equal else None
