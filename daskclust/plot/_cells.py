"""Cells in the space of their channels: clusters with ellipses of their covariance, and their medians."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.core.checks import check_positive, check_whole
from daskclust.core.labels import NOISE
from daskclust.core.tree import leaf_order
from daskclust.plot._data import on_host
from daskclust.plot._elements import FEW, MOST_GLYPHS, NOISE_COLOR, cloud, framed, hv, labelled, shaded, with_options

Array = npt.NDArray[Any]
Float = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
Channel = str | int

SIGMA = "\N{GREEK SMALL LETTER SIGMA}"

_CORNERS = 72  # of what is drawn as an ellipse
_MOST_PANELS = 12
_ROW = 18  # pixels of a row of the heat map
_INCHES = 0.22  # the same on paper


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
    there = _labels(labels, _length(data))
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
    pairs = _pairs(channels, len(_names(data)))
    there = _labels(labels, _length(data))
    small: dict[str, dict[str, Any]] = {
        "bokeh": {"frame_width": 260, "frame_height": 260},
        "matplotlib": {"aspect": 1},
    }
    panels = [
        with_options(_draw(data, there, pair, sigma, most, size=2.0), small, {"title": "", "show_legend": False})
        for pair in pairs
    ]
    each = {"matplotlib": {"hspace": 0.3, "vspace": 0.3, "sublabel_format": ""}}
    return with_options(hv.Layout(panels).cols(columns), each, {})


def channel_medians(
    data: xr.Dataset | npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    Z: npt.ArrayLike | None = None,
    scaled: bool = False,
) -> hv.HeatMap:
    """Draw the median of each channel in each cluster.

    Parameters
    ----------
    data, labels
        As for `ellipses`.
    Z : array_like, shape (n - 1, 4), optional
        SciPy's linkage of the cells: clusters are from top to bottom as from left to right in its dendrogram. By
        default they are in the order of their numbers. Noise is last.
    scaled : bool, default False
        Scale medians of each channel to run from 0 to 1, where channels have different units.

    Returns
    -------
    holoviews.HeatMap
        A row for each cluster, with its number and number of cells, and a column for each channel.

    Raises
    ------
    ValueError
        For `labels` or `Z` of another length, no cells, and for channels of the same name.

    Notes
    -----
    O(n d) time, beside sorting the labels.

    Examples
    --------
    >>> picture = channel_medians(np.array([[1.0, 5.0], [3.0, 5.0], [7.0, 6.0]]), [0, 0, 1])
    >>> picture.dimension_values("median").tolist()
    [2.0, 5.0, 7.0, 6.0]
    """
    names = _names(data)
    if len(set(names)) < len(names):
        raise ValueError(f"channels must have different names, got {names}")
    there = _labels(labels, _length(data))
    order, starts, numbers = _groups(there)
    if not len(numbers):
        raise ValueError("there are no cells to draw")
    X = _columns(data, list(range(len(names))))
    sizes = np.diff(starts)
    medians = np.stack([np.median(X[order[a:b]], axis=0) for a, b in itertools.pairwise(starts)])
    if scaled:
        low, high = medians.min(axis=0), medians.max(axis=0)
        medians = (medians - low) / np.where(high > low, high - low, 1.0)
    rows = _row_order(numbers, there, Z)
    words = [f"{'noise' if numbers[row] == NOISE else numbers[row]}: {sizes[row]:,}" for row in rows]
    unit = None if scaled else _unit(data)
    vdim = hv.Dimension("median", label="scaled median" if scaled else "median", unit=unit)
    cells = [
        (name, word, value)
        for word, row in zip(words, rows, strict=True)
        for name, value in zip(names, medians[row], strict=True)
    ]
    picture = hv.HeatMap(cells, ["channel", "cluster"], [vdim])
    low, high = float(medians.min()), float(medians.max())
    both: dict[str, Any] = {"cmap": "viridis", "colorbar": True, "clim": (low, high if high > low else low + 1.0)}
    both |= {"xrotation": 90, "xlabel": "", "ylabel": "cluster: cells", "clabel": vdim.pprint_label}
    count = int((numbers >= 0).sum())
    both |= {"title": f"{len(there):,} cells, {count:,} clusters"}
    width, height = max(8, len(names)), max(6, len(rows))
    # HoloViews sorts rows for matplotlib, from the last to the first if they are not in the order of their names, and
    # would write the names beside them unsorted
    drawn = picture.gridded.dimension_values("cluster", expanded=False).tolist()
    each: dict[str, dict[str, Any]] = {
        "bokeh": {
            "frame_width": 2 * _ROW * width,
            "frame_height": _ROW * height,
            "tools": ["hover"],
            "invert_yaxis": True,
        },
        "matplotlib": {
            "yticks": list(enumerate(drawn)),
            "invert_yaxis": drawn == words,
            "fig_inches": (2 * _INCHES * width + 1.5, _INCHES * height + 1.5),
            "aspect": "auto",
            "show_values": False,
        },
    }
    return with_options(picture, each, both)


# ------------------------------------------------------------------------------------------------------------- pictures
def _draw(
    data: Any, labels: Ids, pair: tuple[Channel, Channel], sigma: float, most: int, *, size: float | None = None
) -> Any:
    """Draw one pair of channels."""
    places = [_place(data, channel) for channel in pair]
    names = _names(data)
    if names[places[0]] == names[places[1]]:
        raise ValueError(f"x and y must be two channels, got {pair[0]!r} twice")
    kdims = [hv.Dimension(f"channel_{k}", label=names[k], unit=_unit(data)) for k in places]
    columns = _columns(data, places)
    is_noise = labels == NOISE
    n = len(labels)
    size = size or (5.0 if n < 2_000 else 3.5 if n < 20_000 else 2.0)
    raster = n > MOST_GLYPHS
    xs, ys = columns.T
    xy = xs[is_noise], ys[is_noise]
    elements = cloud(xy, kdims, "noise", NOISE_COLOR, "circle", 0.6 * size, raster=raster and len(xy[0]) > FEW)
    xy, member = (xs[~is_noise], ys[~is_noise]), labels[~is_noise]
    if raster and len(member):
        elements.append(shaded(xy, member, kdims, "member"))
    else:
        elements.append(labelled(xy, {"label": member}, [*kdims, hv.Dimension("label")], "member", "circle", size))
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
            "bokeh": {"line_color": color, "line_width": width, "tools": ["hover"] if label == "ellipse" else []},
            "matplotlib": {"color": color, "linewidth": 0.8 * width},
        }
        elements.append(with_options(lines, each, {"show_legend": False}))
    elements += _badges(centroids[chosen], numbers[chosen], kdims)
    title = f"{len(numbers):,} clusters, {int(is_noise.sum()):,} of {n:,} cells noise; ellipses at {sigma:g} {SIGMA}"
    return framed(elements, kdims, title)


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


def _groups(labels: Ids) -> tuple[Ids, Ids, Ids]:
    """Return the order that sorts cells by label, where each label starts and all end, and the labels."""
    order = np.argsort(labels, kind="stable")
    numbers, starts = np.unique(labels[order], return_index=True)
    return order, np.append(starts, len(labels)), numbers


def _row_order(numbers: Ids, labels: Ids, Z: npt.ArrayLike | None) -> Ids:
    """Return the order of rows: by leaf of the tree, or number, noise last."""
    key = numbers.astype(np.int64)
    if Z is not None:
        order = leaf_order(on_host(Z))
        if len(order) != len(labels):
            raise ValueError(f"Z must be of the same cells, got {len(order)} for {len(labels)} labels")
        first = np.unique(labels[order], return_index=True)[1]
        key = first.astype(np.int64)
    key[numbers == NOISE] = np.iinfo(np.int64).max
    return np.argsort(key, kind="stable")


# ----------------------------------------------------------------------------------------------------------------- data
def _matrix(data: Any) -> Any:
    """Return X (cell, channel) of what the user gave, as it is."""
    if isinstance(data, xr.Dataset):
        if "X" not in data.variables:
            known = ", ".join(map(str, data.variables)) or "none"
            raise ValueError(f"the Dataset has no variable 'X', which the picture needs; it has {known}")
        data = data["X"]
    values = data if hasattr(data, "shape") else np.asarray(data)
    if len(values.shape) != 2:
        raise ValueError(f"X must have shape (cell, channel), got {tuple(values.shape)}")
    return values


def _length(data: Any) -> int:
    return int(_matrix(data).shape[0])


def _names(data: Any) -> list[str]:
    """Return the names of channels, "channel 0" and so on where there are none."""
    X = _matrix(data)
    if isinstance(X, xr.DataArray) and X.dims[1] in X.coords:
        return [str(name) for name in on_host(X.coords[X.dims[1]])]
    return [f"channel {k}" for k in range(X.shape[1])]


def _unit(data: Any) -> str | None:
    """Return the unit of the channels, if there is one."""
    unit = str(getattr(_matrix(data), "attrs", {}).get("units", "1"))
    return None if unit == "1" else unit


def _place(data: Any, channel: Channel) -> int:
    """Return the number of a channel."""
    names = _names(data)
    if isinstance(channel, str):
        if channel not in names:
            raise ValueError(f"there is no channel {channel!r}; there are {', '.join(names)}")
        return names.index(channel)
    if not 0 <= channel < len(names):
        raise ValueError(f"channels must be names, or numbers from 0 to {len(names) - 1}, got {channel!r}")
    return int(channel)


def _columns(data: Any, places: list[int]) -> Array:
    """Return channels (n, k) on the host."""
    X = _matrix(data)
    return on_host((X.data if isinstance(X, xr.DataArray) else X)[:, places])


def _labels(labels: Any, n: int) -> Ids:
    """Return labels as int64, if there is one for each cell; all that are negative are noise."""
    there = on_host(labels)
    if there.shape != (n,) or there.dtype.kind not in "iu":
        raise ValueError(
            f"labels must be integers, one for each of the {n} cells, got shape {there.shape} of {there.dtype}"
        )
    return np.maximum(there.astype(np.int64), NOISE)


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
