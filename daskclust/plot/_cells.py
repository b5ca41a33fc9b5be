"""Cells: clusters in two channels with ellipses of their covariance, and the median of each channel in each cluster."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from daskclust.core.data.checks import check_positive, check_whole
from daskclust.core.hierarchy import leaf_order
from daskclust.core.merge.labels import NOISE
from daskclust.plot._data import CellMatrix, Channel, cells_of, linkage_of
from daskclust.plot._elements import by_cluster, overlay, pixels_for, point_size
from daskclust.plot._look import WIDTH, Array, Float, Ids, finished, hv, panel, side_by_side, styled

SIGMA = "\N{GREEK SMALL LETTER SIGMA}"

_CORNERS = 72  # of what is drawn as an ellipse
_MOST_PANELS = 12
_ROW = 18  # pixels of a row of the heat map
_INCHES = 0.22  # the same on paper


def ellipses(data: Any, labels: Any, x: Channel, y: Channel, *, sigma: float = 2.0, most: int = 30) -> hv.Overlay:
    """Draw cells in two channels in the colours of their clusters, with ellipses of the clusters' covariance.

    Parameters
    ----------
    data : xarray.Dataset, DataFrame, mapping, or array of shape (n, d)
        Cells: variable ``X`` of shape (cell, channel) with channel names as coordinate ``channel``, a table with a
        column for each channel, or an array.
    labels : array_like of int, shape (n,), str, fitted estimator or None
        Cluster of each cell, -1 noise: an array, a variable or column of `data`, or the estimator that was fitted to
        it; None: the variable or column ``label``.
    x, y : str or int
        Channels: names, or numbers from 0.
    sigma : float, default 2.0
        Mahalanobis distance from the centroid that ellipses are drawn at. 2 holds 86 % of a normal distribution.
    most : int, default 30
        Draw ellipses of so many clusters at most, the largest ones.

    Returns
    -------
    holoviews.Overlay
        `holoviews.Points` "noise" and "member" (all that are in a cluster), `holoviews.Contours` "ellipse", a white one
        below a dark one, of the covariance of the two channels divided by the number of cells, and `holoviews.Labels`
        with the clusters' numbers at their centroids. Of more than 100 000 cells, members are rasterized
        (`holoviews.RGB`), and noise if it is more than 10 000 (`holoviews.Image`).
    """
    sigma, most, cells = check_positive("sigma", sigma), check_whole("most", most, 0), cells_of(data, labels)
    return _draw(cells, (x, y), sigma, most)


def ellipse_grid(
    data: Any,
    labels: Any = None,
    channels: Sequence[Channel] | Sequence[tuple[Channel, Channel]] | None = None,
    *,
    sigma: float = 2.0,
    most: int = 30,
    columns: int = 3,
) -> hv.Layout:
    """Draw what `ellipses` draws for several pairs of channels, side by side.

    Parameters
    ----------
    data, labels, sigma, most
        As for `ellipses`.
    channels : sequence, optional
        Pairs of channels, or channels of which all pairs are drawn. Default: the first with the second, the third with
        the fourth and so on, the last one with the one before, up to 12 pairs.
    columns : int, default 3
        Pictures in a row.

    Returns
    -------
    holoviews.Layout
        Of what `ellipses` returns.
    """
    sigma, most, cells = check_positive("sigma", sigma), check_whole("most", most, 0), cells_of(data, labels)
    pairs = _pairs(channels, len(cells.names))
    panels = [panel(_draw(cells, pair, sigma, most, size=2.0), "", aspect="square") for pair in pairs]
    return side_by_side(hv.Layout(panels), columns)


def _draw(
    cells: CellMatrix, pair: tuple[Channel, Channel], sigma: float, most: int, *, size: float | None = None
) -> Any:
    labels = cells.labels
    places = [cells.place(channel) for channel in pair]
    if cells.names[places[0]] == cells.names[places[1]]:
        raise ValueError(f"x and y must be two channels, got {pair[0]!r} twice")
    kdims = [hv.Dimension(f"channel_{k}", label=cells.names[k], unit=cells.unit or None) for k in places]
    columns = cells.columns(places)
    xs, ys = columns.T
    dims, pixels = [*kdims, hv.Dimension("label")], pixels_for(len(labels))
    noise, member = by_cluster((xs, ys), {"label": labels}, dims, size or point_size(len(labels)), pixels)
    clusters, sizes = np.unique(labels[labels != NOISE], return_counts=True)
    numbers = clusters[np.sort(np.argsort(-sizes, kind="stable")[:most])]
    members = {int(number): columns[labels == number].astype(np.float64) for number in numbers}
    paths = [
        dict(zip((kdim.name for kdim in kdims), _ellipse(mine, sigma), strict=True))
        | {"cluster": number, "cells": len(mine)}
        for number, mine in members.items()
    ]
    centroids = np.array([mine.mean(axis=0) for mine in members.values()]).reshape(-1, 2)
    elements = [*noise, member]
    for label, color, width, tools in (("edge", "#FFFFFF", 3.2, []), ("ellipse", "#222222", 1.4, ["hover"])):
        lines = hv.Contours(paths, kdims=kdims, vdims=["cluster", "cells"], label=label)
        bokeh, matplotlib = {"line_width": width, "tools": tools}, {"linewidth": 0.8 * width}
        elements.append(styled(lines, bokeh, matplotlib, color=color, show_legend=False))
    elements += _badges(centroids, numbers, kdims)
    count = np.count_nonzero(labels == NOISE)
    title = f"{len(clusters):,} clusters, {count:,} of {len(labels):,} cells noise; ellipses at {sigma:g} {SIGMA}"
    return overlay(elements, kdims, title + cells.source)


def _badges(centroids: Float, numbers: Ids, kdims: list[Any]) -> list[Any]:
    """Return the numbers of clusters on white ground."""
    bokeh: dict[str, Any] = {"size": 16, "line_color": None}
    matplotlib: dict[str, Any] = {"s": 130, "edgecolors": "none"}
    ground = hv.Points(centroids, kdims, label="ground")
    ground = styled(ground, bokeh, matplotlib, color="#FFFFFF", alpha=0.75, show_legend=False)
    text = hv.Labels((*centroids.T, numbers.astype(str)), kdims, ["number"], label="number")
    bokeh = {"text_font_size": "9pt", "text_font_style": "bold", "text_color": "#222222"}
    return [ground, styled(text, bokeh, {"size": 9, "weight": "bold", "color": "#222222"})]


def _ellipse(members: Float, sigma: float) -> tuple[list[float], list[float]]:
    """Return the points at Mahalanobis distance sigma, a line or a point where the covariance is singular."""
    angle = 2 * np.pi * np.arange(_CORNERS + 1) / _CORNERS
    values, vectors = np.linalg.eigh(np.cov(members.T, bias=True))
    axes = vectors * np.sqrt(np.maximum(values, 0.0))
    x, y = members.mean(axis=0)[:, None] + sigma * (axes @ np.stack([np.cos(angle), np.sin(angle)]))
    return x.tolist(), y.tolist()


def _pairs(channels: Any, count: int) -> Sequence[tuple[Channel, Channel]]:
    if channels is None:
        if count < 2:
            raise ValueError(f"pairs of channels need at least two, got {count}")
        return [(min(k, count - 2), min(k, count - 2) + 1) for k in range(0, count, 2)][:_MOST_PANELS]
    given = list(channels)
    if given and all(not isinstance(each, str) and np.ndim(each) == 1 for each in given):
        return [(a, b) for a, b in given]
    if len(given) < 2:
        raise ValueError(f"pairs of channels need at least two, got {given}")
    return list(itertools.combinations(given, 2))


def channel_medians(data: Any, labels: Any = None, *, Z: Any = None, scaled: bool = False) -> hv.HeatMap:
    """Draw the median of each channel in each cluster.

    Parameters
    ----------
    data, labels
        As for `ellipses`.
    Z : array_like, shape (n - 1, 4), fitted MahalanobisHCA or xarray.Dataset, optional
        SciPy's linkage of the cells, or what has one: clusters are from top to bottom as from left to right in
        its dendrogram. By default they are in the order of their numbers. Noise is last.
    scaled : bool, default False
        Scale medians of each channel to run from 0 to 1, where channels have different units.

    Returns
    -------
    holoviews.HeatMap
        A row for each cluster, with its number and number of cells, and a column for each channel.

    Raises
    ------
    ValueError
        For no cells, and for channels of the same name.
    """
    cells = cells_of(data, labels)
    names = cells.names
    if len(set(names)) < len(names):
        raise ValueError(f"channels must have different names, got {names}")
    there = cells.labels
    if not len(there):
        raise ValueError("there are no cells to draw")
    groups = pd.DataFrame(cells.columns(range(len(names)))).groupby(there)
    medians, sizes = groups.median(), groups.size()
    if scaled:
        low, high = medians.min(), medians.max()
        medians = (medians - low) / (high - low).where(high > low, 1.0)
    rows = _row_order(medians.index.to_numpy(), there, Z)
    words = [f"{'noise' if row == NOISE else row}: {sizes[row]:,}" for row in rows]
    unit = None if scaled else cells.unit or None
    vdim = hv.Dimension("median", label="scaled median" if scaled else "median", unit=unit)
    title = f"{len(there):,} cells, {len(set(rows) - {NOISE}):,} clusters{cells.source}"
    return _heat_map(medians.loc[rows].to_numpy(), names, words, vdim, title)


def _heat_map(medians: Array, names: list[str], words: list[str], vdim: hv.Dimension, title: str) -> hv.HeatMap:
    """Return a row of colours for each row of numbers."""
    places = [(name, word) for word in words for name in names]
    cells = [(*place, value) for place, value in zip(places, medians.ravel(), strict=True)]
    picture = hv.HeatMap(cells, ["channel", "cluster"], [vdim])
    low, high = float(medians.min()), float(medians.max())
    both: dict[str, Any] = {"cmap": "viridis", "colorbar": True, "clim": (low, high if high > low else low + 1.0)}
    both |= {"xrotation": 90, "xlabel": "", "ylabel": "cluster: cells", "clabel": vdim.pprint_label}
    width, height = max(8, len(names)), max(6, len(words))
    # HoloViews sorts rows for matplotlib, from the last to the first if they are not in the order of their names, and
    # would write the names beside them unsorted
    drawn = picture.gridded.dimension_values("cluster", expanded=False).tolist()
    bokeh = {"frame_width": 2 * _ROW * width, "frame_height": _ROW * height, "tools": ["hover"], "invert_yaxis": True}
    matplotlib = {"yticks": list(enumerate(drawn)), "invert_yaxis": drawn == words, "show_values": False}
    matplotlib["fig_inches"] = (2 * _INCHES * width + 1.5, _INCHES * height + 1.5)
    both |= {"bokeh": bokeh, "matplotlib": matplotlib, "height": round(WIDTH * height / (2 * width))}
    return finished(picture, title, **both)


def _row_order(numbers: Ids, labels: Ids, Z: Any) -> list[int]:
    """Return the labels of rows: by leaf of the tree, or number, noise last."""
    if Z is not None:
        order = leaf_order(linkage_of(Z))
        if len(order) != len(labels):
            raise ValueError(f"Z must be of the same cells, got {len(order)} for {len(labels)} labels")
        numbers = pd.unique(labels[order])
    return sorted(numbers.tolist(), key=lambda number: number == NOISE)
