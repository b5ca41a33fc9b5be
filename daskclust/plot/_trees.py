"""Hierarchies of clusters: the top of the tree, and heights of points in two of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.hierarchy import SEVERAL, Top, check_linkage, condense, leaf_order, node_labels
from daskclust.core.hierarchy.linkage import sizes_of
from daskclust.core.merge.labels import NOISE
from daskclust.metrics import point_height_correlation, point_heights
from daskclust.plot._data import labels_of, linkage_of, source_of
from daskclust.plot._elements import MOST_GLYPHS, cloud, line, overlay
from daskclust.plot._look import ACCENT, COLORS, INK, MARK, NOISE_COLOR, Float, Ids, hv, styled

Lines = list[tuple[float, float, float, float]]

_STUB = 0.3  # length of the line to what is left out, in leaves
_MOST_NAMED = 12  # clusters in a legend
_MOST_TICKS = 60  # leaves with their sizes
_LEVEL_TICKS = 10  # leaves whose sizes fit side by side
_ALIKE = 3.0  # axes whose ends differ by no more have the same scale


def dendrogram(Z: Any, p: int = 30, *, labels: Any = None, min_size: int | float = 1) -> hv.Overlay:
    """Draw the top of a hierarchy, with the sizes of clusters at its leaves.

    Parameters
    ----------
    Z : array_like, shape (n - 1, 4), fitted MahalanobisHCA or xarray.Dataset
        SciPy's linkage, or what has one: a Dataset as of ``ds.clust.hca``. Merges that are lower
        than those below them are drawn as they are.
    p : int, default 30
        Most leaves: there are fewer if there are not so many clusters of `min_size` points.
    labels : array_like of int, shape (n,), str or fitted estimator, optional
        Labels of the points, -1 noise, an array as of `daskclust.core.hierarchy.cut`, a variable of the Dataset, or an
        estimator: branches of one cluster, with noise or
        without, have its colour, those of noise are grey and those of several clusters dark.
    min_size : int or float, default 1
        Smaller clusters, as a fraction of all points if it is a float, are no leaves: where one joins a branch there is
        a grey stub.

    Returns
    -------
    holoviews.Overlay
        `holoviews.Segments` for "several clusters", for noise and for each cluster, or for each colour if there are
        many; `holoviews.Points` "left out" at the ends of stubs, with the number of points under the mouse. Leaves
        are in the order of `daskclust.core.hierarchy.leaf_order`, which is that of SciPy's dendrograms.

    Raises
    ------
    ValueError
        For what is no linkage, labels that do not fit, and `min_size` over the number of points.
    """
    data, Z = Z, check_linkage(linkage_of(Z))
    n, top = len(Z) + 1, condense(Z, p, min_size)
    labels = "label" if labels is None and "label" in getattr(data, "variables", ()) else labels
    given = None if labels is None else labels_of(data, labels)
    of_node = np.full(2 * n - 1, SEVERAL) if given is None else node_labels(Z, given)
    x, y = places(top)
    lines = branches(top, x, y, of_node[top.nodes])
    stubs = (x[top.branch] + _STUB, top.noise_heights)
    for begin, end, height, label in zip(x[top.branch], *stubs, of_node[top.noise], strict=True):
        lines.setdefault(NOISE if given is None else int(label), []).append((begin, height, end, height))
    kdims = [hv.Dimension("leaf", label="points of the cluster"), hv.Dimension("height")]
    elements = _lines(lines, given, kdims)
    left_out = sizes_of(Z)[top.noise]
    if len(left_out) or not elements:  # an overlay of nothing cannot be drawn
        dots = hv.Points((*stubs, left_out), kdims, ["points"], label="left out")
        bokeh = {"size": 3.5, "tools": ["hover"]}
        elements.append(styled(dots, bokeh, {"s": 8}, color=NOISE_COLOR, show_legend=False))
    count = len(top.linkage) + 1
    sizes = top.sizes[leaf_order(top.linkage)].tolist() if count <= _MOST_TICKS else []
    ticks = [(place, f"{size:,}") for place, size in enumerate(sizes)] or [(0, "")]
    title = f"{n:,} points, {count:,} clusters at the top"
    title += f", {len(left_out):,} smaller ones of {int(left_out.sum()):,} points left out" if len(left_out) else ""
    xlim, ylim = axis_limits(top)
    both: dict[str, Any] = {"xticks": ticks, "xrotation": 0 if count <= _LEVEL_TICKS else 90}
    return overlay(elements, kdims, title + source_of(data), **both, xlim=xlim, ylim=ylim)


def point_height_scatter(Z1: Any, Z2: Any, *, names: tuple[str, str] = ("first", "second")) -> hv.Overlay:
    """Draw the height of each point in one hierarchy against that in another [1]_.

    Parameters
    ----------
    Z1, Z2 : array_like, shape (n - 1, 4), fitted MahalanobisHCA or xarray.Dataset
        SciPy's linkages of the same points, or what has them, as for `dendrogram`.
    names : tuple of str, default ("first", "second")
        What they are called on the axes.

    Returns
    -------
    holoviews.Overlay
        `holoviews.Points` "points", and a `holoviews.Curve` where both are equal. More than 100 000 points are
        rasterized into counts (`holoviews.Image`). `daskclust.metrics.point_height_correlation` is in the title.

    Raises
    ------
    ValueError
        For what is no linkage, and for different numbers of points.

    References
    ----------
    .. [1] Smelko, "Mahalanobis based hierarchical clustering accelerated on GPU", Charles University (2020), figures
       3.6 and 3.7.
    """
    sides = linkage_of(Z1), linkage_of(Z2)
    correlation = point_height_correlation(*sides)
    xy = point_heights(sides[0]), point_heights(sides[1])
    kdims = [hv.Dimension(f"height{k}", label=f"height of a point, {name}") for k, name in enumerate(names)]
    ends = [(float(side.min()), float(side.max())) for side in xy]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    is_alike = high <= _ALIKE * min(end[1] for end in ends)
    limits = [_margins(low, high)] * 2 if is_alike else [_margins(*end) for end in ends]
    size = 4.0 if len(xy[0]) < 2_000 else 2.5 if len(xy[0]) < 20_000 else 1.5
    frame: dict[str, Any] = {"limits": (limits[0], limits[1]), "raster": len(xy[0]) > MOST_GLYPHS}
    elements = cloud(xy, kdims, "points", ACCENT, "circle", size, **frame)
    begin, end = max(limits[0][0], limits[1][0]), min(limits[0][1], limits[1][1])
    if end > begin:
        elements.append(line((begin, begin), (end, end), kdims, "equal heights", f"{MARK} dashed"))
    title = f"{len(xy[0]):,} points, correlation {correlation:.4f}"
    shape = {"aspect": 1.0} if is_alike else {}
    return overlay(elements, kdims, title, xlim=limits[0], ylim=limits[1], **shape)


def places(top: Top) -> tuple[Float, Float]:
    """Return where nodes are: leaves side by side at height 0, merges between their two."""
    p = len(top.linkage) + 1
    x, y = np.empty(2 * p - 1), np.zeros(2 * p - 1)
    x[leaf_order(top.linkage)] = np.arange(p)
    for node, (a, b, height, _) in enumerate(top.linkage, p):
        x[node], y[node] = (x[int(a)] + x[int(b)]) / 2, height
    return x, y


def branches(top: Top, x: Float, y: Float, labels: Ids) -> dict[int, Lines]:
    """Return lines by label: a bar for each merge, and for each node one up to where it is merged."""
    lines: dict[int, Lines] = {}
    lowest, highest = y.copy(), y.copy()
    np.minimum.at(lowest, top.branch, top.noise_heights)
    np.maximum.at(highest, top.branch, top.noise_heights)
    p = len(top.linkage) + 1
    for node, (a, b, height, _) in enumerate(top.linkage, p):
        pair = [int(a), int(b)]
        lines.setdefault(int(labels[node]), []).append((x[pair[0]], height, x[pair[1]], height))
        lowest[pair], highest[pair] = np.minimum(lowest[pair], height), np.maximum(highest[pair], height)
    for node in np.flatnonzero(highest > lowest).tolist():
        lines.setdefault(int(labels[node]), []).append((x[node], lowest[node], x[node], highest[node]))
    return lines


def axis_limits(top: Top) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return what the axes show: all leaves, and all heights of merges and of what is left out."""
    highest = max([0.0, *top.linkage[:, 2], *top.noise_heights]) or 1.0
    return (-0.7, len(top.linkage) + 0.7), (0.0, 1.05 * highest)


def _lines(lines: dict[int, Lines], labels: npt.NDArray[Any] | None, kdims: list[Any]) -> list[Any]:
    """Return an element for each label, or each colour where a legend would be too long."""
    named = len(lines) <= _MOST_NAMED and labels is not None
    merged: dict[int, Lines] = {}
    for label in sorted(lines, key=lambda label: (label >= 0, label)):  # noise above trunks, clusters above both
        merged.setdefault(label if named or label < 0 else label % len(COLORS), []).extend(lines[label])
    ends = [hv.Dimension(f"{kdim.name}_end") for kdim in kdims]
    elements = []
    for label, some in merged.items():
        color = COLORS[label % len(COLORS)]
        if label < 0:
            words, color = ("noise", NOISE_COLOR) if label == NOISE else ("several clusters", INK)
        elif named:
            words = f"cluster {label}: {np.count_nonzero(labels == label):,}"
        else:
            words = f"clusters {label}, {label + len(COLORS)}, ..."
        segments = hv.Segments(some, [*kdims, *ends], label=words)
        elements.append(styled(segments, {"line_width": 1.8}, {"linewidth": 1.5}, color=color, show_legend=named))
    return elements


def _margins(low: float, high: float) -> tuple[float, float]:
    """Return limits a little outside."""
    margin = 0.03 * (high - low) or 0.5
    return low - margin, high + margin
