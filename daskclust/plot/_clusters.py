"""Points in the colours of their clusters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.merge.labels import NOISE
from daskclust.plot._data import dimension, in_memory, source_of
from daskclust.plot._elements import by_cluster, cloud, is_few, labelled, overlay, pixels_for, point_size, segments
from daskclust.plot._look import INK, Array, hv, panel, side_by_side

_STRIP = 2  # what is longer by this factor fills the frame, whatever the scales


def clusters(
    data: Any,
    x: str = "x",
    y: str = "y",
    *,
    labels: Any = None,
    layer: int | None = None,
    links: bool = False,
    seeds: bool | None = None,
) -> hv.Overlay:
    """Draw points in the colour of their cluster, noise in grey below all others.

    Parameters
    ----------
    data : xarray.Dataset, DataFrame, mapping, or array of shape (n, d)
        Points, with ``label`` where `labels` are not given, and ``is_seed`` and ``nearest_higher`` of CLUE, as of
        ``ds.clust``. The columns of an array are ``x``, ``y`` and ``z``.
    x, y : str
        Variables for the axes.
    labels : array_like of int, shape (n,), str or fitted estimator, optional
        Cluster of each point, -1 noise: an array, a variable or column of `data`, or the estimator that was fitted to
        it.
    layer : int, optional
        Draw this layer only.
    links : bool, default False
        Draw a line from each follower to its nearest higher, out of the picture across the seam of a periodic axis.
    seeds : bool, optional
        Draw seeds as stars. Default: where they are known.

    Returns
    -------
    holoviews.Overlay
        `holoviews.Points` "noise", `holoviews.Segments` "link", `holoviews.Points` "member" (all that are in a cluster)
        and "seed", in this order. Of more than 100 000 points, the third is rasterized (`holoviews.RGB`), noise
        seeds and links if they are more than 10 000 (`holoviews.Image` of counts).

    Examples
    --------
    >>> from daskclust import DBSCAN
    >>> X = [[1, 2], [2, 2], [2, 3], [8, 7], [8, 8], [25, 80]]
    >>> picture = clusters(X, labels=DBSCAN(eps=3, min_samples=2).fit(X))
    """
    result, seeds = _loaded(data, x, y, labels, layer=layer is not None, links=links, seeds=seeds)
    if layer is not None and (there := np.unique(result["layer"].values)).size and layer not in there:
        raise ValueError(f"no hit is in layer {layer!r}; choose one from {there[0]} to {there[-1]}")
    return _draw(result, x, y, layer, links=links, seeds=seeds)


def layers(
    data: Any,
    layers: Iterable[int] | None = None,
    x: str = "x",
    y: str = "y",
    *,
    labels: Any = None,
    links: bool = False,
    seeds: bool | None = None,
    columns: int = 3,
    slider: bool = False,
) -> hv.NdLayout | hv.HoloMap:
    """Draw several layers side by side, or one at a time with a slider.

    Parameters
    ----------
    data : xarray.Dataset, DataFrame or mapping
        As for `clusters`, with ``layer``.
    layers : iterable of int, optional
        Which ones. Default: with a slider all, else up to 12, evenly spaced among those that have points.
    x, y, labels, links, seeds
        As for `clusters`.
    columns : int, default 3
        Pictures in a row.
    slider : bool, default False
        Return a HoloMap, which HoloViews shows with a slider.

    Returns
    -------
    holoviews.NdLayout or holoviews.HoloMap
        Of what `clusters` returns, by layer; rasterized where all layers together have more than 100 000 points.

    Raises
    ------
    ValueError
        Where there are no layers.
    """
    result, seeds = _loaded(data, x, y, labels, layer=True, links=links, seeds=seeds)
    if layers is None:
        there = np.unique(result["layer"].values)
        evenly = np.linspace(0, len(there) - 1, min(12, len(there))).round().astype(int)
        layers = there if slider else there[evenly]
    numbers = [int(each) for each in layers]
    if not numbers:
        raise ValueError("there are no layers to draw; the Dataset has no points, or layers= is empty")
    pixels = pixels_for(int(np.isin(result["layer"].values, numbers).sum()), len(numbers))
    how: dict[str, Any] = {"links": links, "seeds": seeds, "pixels": pixels}
    if slider:
        return hv.HoloMap({each: _draw(result, x, y, each, **how) for each in numbers}, kdims=["layer"])
    panels = {each: panel(_draw(result, x, y, each, **how, size=2.5), f"layer {each}") for each in numbers}
    return side_by_side(hv.NdLayout(panels, kdims=["layer"]), columns)


def _loaded(
    data: Any, x: str, y: str, labels: Any, *, layer: bool, links: bool, seeds: bool | None
) -> tuple[xr.Dataset, bool]:
    """Return what `_draw` needs in memory, and whether there are seeds to draw."""
    needed = [x, y, "label"]
    needed += ["is_seed"] * (seeds or links) + ["nearest_higher", "delta"] * links + ["layer"] * layer
    result = in_memory(data, needed, ("energy", "density", "is_seed"), labels=labels)
    result = result.assign_attrs(source=source_of(data, labels))
    return result, "is_seed" in result if seeds is None else seeds


def _draw(
    result: xr.Dataset,
    x: str,
    y: str,
    layer: int | None,
    *,
    links: bool,
    seeds: bool,
    pixels: int | None = None,
    size: float | None = None,
) -> hv.Overlay:
    """Draw one layer, or all; links need the indices of all points, so the layer is cut out here."""
    chosen = np.arange(result["label"].size) if layer is None else np.flatnonzero(result["layer"].values == layer)
    xs, ys, labels = (result[name].values[chosen] for name in (x, y, "label"))
    pixels = pixels_for(len(chosen)) if pixels is None else pixels
    size = size or point_size(len(chosen))
    kdims = [dimension(result[x], x), dimension(result[y], y)]
    vdims = [name for name in ("label", "energy", "density") if name in result]
    dims = [*kdims, *(dimension(result[name], name) for name in vdims)]
    columns = {name: result[name].values[chosen] for name in vdims}
    noise, member = by_cluster((xs, ys), columns, dims, size, pixels)
    elements = [*noise, *([_links(result, chosen, (x, y), kdims, pixels)] if links else []), member]
    if seeds:
        which = result["is_seed"].values[chosen].astype(bool)
        columns = {name: values[which] for name, values in columns.items()}
        stars, size = (xs[which], ys[which]), size + 5.0
        if is_few(len(stars[0]), pixels):
            elements.append(labelled(stars, columns, dims, "seed", "star", size))
        else:  # they would hide each other: how many there are
            elements += cloud(stars, kdims, "seed", INK, "star", size, raster=True, pixels=(pixels, pixels))
    is_noise = labels == NOISE
    count = len(np.unique(labels[~is_noise]))
    title = f"{count:,} clusters, {int(is_noise.sum()):,} of {len(labels):,} points noise{result.attrs['source']}"
    title = title if layer is None else f"layer {layer}: {title}"
    return overlay(elements, kdims, title, aspect=aspect_of(result, (x, y), (xs, ys)))


def _links(
    result: xr.Dataset, chosen: npt.NDArray[np.int64], axes: tuple[str, str], kdims: list[Any], pixels: int
) -> Any:
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
    return segments((starts[0], starts[1]), (stops[0], stops[1]), kdims, "link", pixels)


def _period(result: xr.Dataset, name: str) -> float:
    """Return the period of an axis that the clustering knew, 0 for an open one."""
    attrs = result["delta"].attrs
    periods = dict(zip(str(attrs.get("axes", "")).split(), np.ravel(attrs.get("periods", [])), strict=False))
    return float(periods.get(name, 0.0))


def aspect_of(result: xr.Dataset, axes: tuple[str, str], values: tuple[Array, Array]) -> float | None:
    """Return height by width where a unit should be as long on both axes: the same unit, and no strip; else None."""
    units = [result[name].attrs.get("units") for name in axes]
    width, height = (float(np.ptp(column)) if column.size else 0.0 for column in values)
    is_equal = units[0] == units[1] and min(width, height) > 0 and max(width, height) < _STRIP * min(width, height)
    return height / width if is_equal else None
