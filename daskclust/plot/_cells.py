"""Cells in two channels: clusters with ellipses of their covariance."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.data.checks import check_positive, check_whole
from daskclust.core.merge.labels import NOISE
from daskclust.plot._channels import Channel, Ids, columns_of, labels_of, length, matrix, names_of, place_of
from daskclust.plot._data import unit_of
from daskclust.plot._elements import by_cluster, overlay, pixels_for, point_size
from daskclust.plot._look import hv, panel, side_by_side, with_options

Array = npt.NDArray[Any]
Float = npt.NDArray[np.float64]

SIGMA = "\N{GREEK SMALL LETTER SIGMA}"

_CORNERS = 72  # of what is drawn as an ellipse
_MOST_PANELS = 12


def ellipses(
    data: xr.Dataset | npt.ArrayLike,
    labels: npt.ArrayLike,
    x: Channel,
    y: Channel,
    *,
    sigma: float = 2.0,
    most: int = 30,
) -> hv.Overlay:
    """Draw cells in two channels in the colours of their clusters, with ellipses of the clusters' covariance.

    Parameters
    ----------
    data : xarray.Dataset or array of shape (n, d)
        Cells: variable ``X`` of shape (cell, channel) with channel names as coordinate ``channel``, or an array.
    labels : array_like of int, shape (n,)
        Cluster of each cell, -1 noise.
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
        below a dark one, and `holoviews.Labels` with the clusters' numbers at their centroids. Of more than 100 000
        cells, members are rasterized (`holoviews.RGB`), and noise if it is more than 10 000 (`holoviews.Image`).

    Raises
    ------
    ValueError
        For channels that are not there, `labels` of another length, and `sigma` that is not positive.

    Notes
    -----
    The covariance is that of the two channels, divided by the number of cells. O(n) time.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0], [9.0, 9.0]])
    >>> {element.label: len(element) for element in ellipses(X, [0, 0, 0, 0, -1], 0, 1).values()}
    {'noise': 1, 'member': 4, 'edge': 1, 'ellipse': 1, 'ground': 1, 'number': 1}
    """
    sigma, most = check_positive("sigma", sigma), check_whole("most", most, 0)
    there = labels_of(labels, length(data))
    return _draw(data, there, (x, y), sigma, most)


def ellipse_grid(
    data: xr.Dataset | npt.ArrayLike,
    labels: npt.ArrayLike,
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

    Raises
    ------
    ValueError
        As of `ellipses`, and for fewer than two channels.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> len(ellipse_grid(X, np.zeros(100, int), [0, 1, 2]))
    3
    """
    sigma, most = check_positive("sigma", sigma), check_whole("most", most, 0)
    columns = check_whole("columns", columns, 1)
    pairs = _pairs(channels, len(names_of(data)))
    there = labels_of(labels, length(data))
    panels = [panel(_draw(data, there, pair, sigma, most, size=2.0), "", aspect="square") for pair in pairs]
    return side_by_side(hv.Layout(panels), columns)


def _draw(
    data: Any, labels: Ids, pair: tuple[Channel, Channel], sigma: float, most: int, *, size: float | None = None
) -> Any:
    """Draw one pair of channels."""
    places = [place_of(data, channel) for channel in pair]
    names = names_of(data)
    if names[places[0]] == names[places[1]]:
        raise ValueError(f"x and y must be two channels, got {pair[0]!r} twice")
    kdims = [hv.Dimension(f"channel_{k}", label=names[k], unit=unit_of(matrix(data)) or None) for k in places]
    columns = columns_of(data, places)
    xs, ys = columns.T
    dims, pixels = [*kdims, hv.Dimension("label")], pixels_for(len(labels))
    noise, member = by_cluster((xs, ys), {"label": labels}, dims, size or point_size(len(labels)), pixels)
    elements = [*noise, member]
    numbers, sizes, centroids, covariances = _moments(columns, labels)
    chosen = np.sort(np.argsort(-sizes, kind="stable")[:most])
    paths = [
        dict(zip((kdim.name for kdim in kdims), _ellipse(centroids[k], covariances[k], sigma), strict=True))
        | {"cluster": int(numbers[k]), "cells": int(sizes[k])}
        for k in chosen
    ]
    for label, color, width in (("edge", "#FFFFFF", 3.2), ("ellipse", "#222222", 1.4)):
        lines = hv.Contours(paths, kdims=kdims, vdims=["cluster", "cells"], label=label)
        each: dict[str, dict[str, Any]] = {
            "bokeh": {"color": color, "line_width": width, "tools": ["hover"] if label == "ellipse" else []},
            "matplotlib": {"color": color, "linewidth": 0.8 * width},
        }
        elements.append(with_options(lines, each, {"show_legend": False}))
    elements += _badges(centroids[chosen], numbers[chosen], kdims)
    count = np.count_nonzero(labels == NOISE)
    title = f"{len(numbers):,} clusters, {count:,} of {len(labels):,} cells noise; ellipses at {sigma:g} {SIGMA}"
    return overlay(elements, kdims, title)


def _badges(centroids: Float, numbers: Ids, kdims: list[Any]) -> list[Any]:
    """Return the numbers of clusters on white ground."""
    ground = hv.Points(centroids, kdims, label="ground")
    each: dict[str, dict[str, Any]] = {
        "bokeh": {"size": 16, "line_color": None},
        "matplotlib": {"s": 130, "edgecolors": "none"},
    }
    ground = with_options(ground, each, {"color": "#FFFFFF", "alpha": 0.75, "show_legend": False})
    text = hv.Labels((*centroids.T, numbers.astype(str)), kdims, ["number"], label="number")
    each = {
        "bokeh": {"text_font_size": "9pt", "text_font_style": "bold", "text_color": "#222222"},
        "matplotlib": {"size": 9, "weight": "bold", "color": "#222222"},
    }
    return [ground, with_options(text, each, {})]


def _ellipse(centroid: Float, covariance: Float, sigma: float) -> tuple[list[float], list[float]]:
    """Return the points at Mahalanobis distance sigma, a line or a point where the covariance is singular."""
    angle = 2 * np.pi * np.arange(_CORNERS + 1) / _CORNERS
    values, vectors = np.linalg.eigh(covariance)
    axes = vectors * np.sqrt(np.maximum(values, 0.0))
    x, y = centroid[:, None] + sigma * (axes @ np.stack([np.cos(angle), np.sin(angle)]))
    return x.tolist(), y.tolist()


def _moments(columns: Array, labels: Ids) -> tuple[Ids, Ids, Float, Float]:
    """Return number, size, centroid and covariance (by 1 / size) of each cluster that is not noise."""
    inside = labels != NOISE
    numbers, row = np.unique(labels[inside], return_inverse=True)
    values = columns[inside].astype(np.float64)
    sizes = np.bincount(row, minlength=len(numbers))

    def mean(weights: Float) -> Float:
        return np.bincount(row, weights, len(numbers)) / sizes

    centroids = np.stack([mean(column) for column in values.T], axis=1)
    away = values - centroids[row]
    products = {(a, b): mean(away[:, a] * away[:, b]) for a in (0, 1) for b in (a, 1)}
    covariances = np.stack([products[min(a, b), max(a, b)] for a in (0, 1) for b in (0, 1)], axis=1)
    return numbers, sizes, centroids, covariances.reshape(-1, 2, 2)


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
