"""Cells in two channels: clusters with ellipses of their covariance."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.checks import check_positive, check_whole
from daskclust.core.merge.labels import NOISE
from daskclust.plot._data import CellMatrix, Channel, Ids, cells_of
from daskclust.plot._elements import by_cluster, overlay, pixels_for, point_size
from daskclust.plot._look import hv, panel, side_by_side, styled

Float = npt.NDArray[np.float64]

SIGMA = "\N{GREEK SMALL LETTER SIGMA}"

_CORNERS = 72  # of what is drawn as an ellipse
_MOST_PANELS = 12


def ellipses(
    data: Any,
    labels: Any,
    x: Channel,
    y: Channel,
    *,
    sigma: float = 2.0,
    most: int = 30,
) -> hv.Overlay:
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
    """Draw one pair of channels."""
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
    """Return the pairs of channels to draw."""
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
