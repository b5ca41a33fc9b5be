"""The median of each channel in each cluster, as a heat map."""

from __future__ import annotations

from typing import Any

import pandas as pd

from daskclust.core.hierarchy import leaf_order
from daskclust.core.merge.labels import NOISE
from daskclust.plot._data import Array, Ids, cells_of, linkage_of
from daskclust.plot._look import WIDTH, finished, hv

_ROW = 18  # pixels of a row of the heat map
_INCHES = 0.22  # the same on paper


def channel_medians(
    data: Any,
    labels: Any = None,
    *,
    Z: Any = None,
    scaled: bool = False,
) -> hv.HeatMap:
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
