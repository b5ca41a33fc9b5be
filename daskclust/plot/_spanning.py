"""The edges of a minimum spanning tree between its points."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskclust.plot._clusters import aspect_of
from daskclust.plot._data import dimension, in_memory
from daskclust.plot._elements import MOST_GLYPHS, pixels_for, spanned
from daskclust.plot._look import amounts, finished, hv

_ROUNDED = 1e-6  # of a length


def spanning_tree(data: Any, tree: Any, x: str = "x", y: str = "y") -> hv.Segments | hv.Image:
    """Draw the edges of a minimum spanning tree in shades of their lengths.

    Parameters
    ----------
    data : xarray.Dataset, DataFrame, mapping, or array of shape (n, d)
        The points. The columns of an array are ``x``, ``y`` and ``z``.
    tree : fitted EMST or HDBSCAN
        What was fitted to them.
    x, y : str
        Variables for the axes.

    Returns
    -------
    holoviews.Segments or holoviews.Image
        Edges with their ``length`` in the unit of the points; of more than 100 000 points the longest edge in each
        pixel. In a periodic box those across a face are not drawn.

    Raises
    ------
    ValueError
        Where there is no tree, or one of other points.
    """
    result = in_memory(data, (x, y))
    edges, lengths = _edges_of(tree)
    n, of_tree = result[x].size, len(edges) + 1
    if n != of_tree:
        raise ValueError(f"the tree has {of_tree:,} points, the data {n:,}; give those that it was fitted to")
    kdims = [dimension(result[x], x), dimension(result[y], y)]
    ends = [hv.Dimension(f"{kdim.name}_end", label=f"{kdim.label} (end)", unit=kdim.unit) for kdim in kdims]
    points = [result[name].values.astype(np.float64) for name in (x, y)]
    is_inside = np.ones(len(edges), np.bool_)
    for values in points:  # an edge across a face would be drawn through the box
        is_inside &= np.abs(np.diff(values[edges], axis=1)[:, 0]) <= lengths * (1 + _ROUNDED)
    shown = edges[is_inside]
    columns = [values[shown[:, side]] for side in range(2) for values in points]
    length = hv.Dimension("length", unit=kdims[0].unit)
    element = hv.Segments((*columns, lengths[is_inside]), [*kdims, *ends], [length], label="edge")
    options: dict[str, Any] = amounts(lengths, log=True)
    bokeh: dict[str, Any] = {"tools": ["hover"]}
    matplotlib: dict[str, Any] = {}
    if n > MOST_GLYPHS:
        element = _longest(columns, lengths[is_inside], kdims, length, pixels_for(n))
    else:
        bokeh, matplotlib = bokeh | {"line_width": 1.2}, {"linewidth": 1.0}
        options["color"] = "length"
    across = len(edges) - len(shown)
    title = f"{len(edges):,} edges, {lengths.sum():.6g} in all"
    title += f", {across:,} across a face not drawn" if across else ""
    shape = aspect_of(result, (x, y), (points[0], points[1]))
    names = {"xlabel": kdims[0].pprint_label, "ylabel": kdims[1].pprint_label}
    return finished(element, title, aspect=shape, bokeh=bokeh, matplotlib=matplotlib, **names, **options)


def _longest(ends: list[Any], lengths: Any, kdims: list[Any], length: Any, pixels: int) -> Any:
    import datashader
    import pandas as pd

    names = ["x0", "y0", "x1", "y1"]
    limits = [spanned(min(a.min(), b.min()), max(a.max(), b.max())) for a, b in zip(ends[:2], ends[2:], strict=True)]
    frame = pd.DataFrame(dict(zip(names, ends, strict=True)) | {"length": lengths})
    canvas = datashader.Canvas(pixels, pixels, *limits)
    longest = canvas.line(frame, x=names[::2], y=names[1::2], axis=1, agg=datashader.max("length")).values
    (left, right), (low, high) = limits
    return hv.Image(longest[::-1], bounds=(left, low, right, high), kdims=kdims, vdims=[length], label="edge")


def _edges_of(tree: Any) -> tuple[Any, Any]:
    if hasattr(tree, "edges_"):
        return tree.edges_, tree.lengths_
    if not hasattr(tree, "minimum_spanning_tree_"):
        raise ValueError(f"tree must be a fitted EMST or HDBSCAN, got {type(tree).__name__}")
    rows = tree.minimum_spanning_tree_
    return rows[:, :2].astype(np.int64), rows[:, 2]
