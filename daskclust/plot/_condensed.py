"""The condensed tree of HDBSCAN*: clusters that shrink and divide as distances get smaller."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.merge.labels import NOISE
from daskclust.plot._data import source_of
from daskclust.plot._elements import overlay
from daskclust.plot._look import COLORS, INK, NOISE_COLOR, hv, styled

Float = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]

_CORNERS = 64  # on each side of a shape


class Shape(NamedTuple):
    """A cluster of the tree: its middle along the points, and its number of points from each lambda on."""

    middle: float
    lambdas: Float  # ascending, the first at its birth
    sizes: Ids

    def outline(self) -> tuple[Float, Float]:
        """Return the corners, down on the left side and up on the right one."""
        chosen = np.unique(np.linspace(0, len(self.lambdas) - 1, _CORNERS).round().astype(np.int64))
        lambdas, sizes = np.repeat(self.lambdas[chosen], 2)[1:], np.repeat(self.sizes[chosen], 2)[:-1]
        half = sizes / 2
        return np.concatenate([self.middle - half, self.middle + half[::-1]]), np.concatenate([lambdas, lambdas[::-1]])


def condensed_tree(tree: Any, p: int = 100, *, labels: Any = None) -> hv.Overlay:
    """Draw how clusters shrink and divide as distances get smaller: each is as wide as it has points [1]_.

    Parameters
    ----------
    tree : fitted HDBSCAN, or structured array
        What has a ``condensed_tree_``, or such a tree: ``parent``, ``child``, ``lambda_val`` and ``child_size``.
    p : int, default 100
        Most clusters that are drawn: those with most points.
    labels : array_like of int, shape (n,), optional
        Labels of the points, -1 noise; clusters that they are of have their colours. Default: those of the estimator.

    Returns
    -------
    holoviews.Overlay
        `holoviews.Polygons` "cluster" and, where labels are known, "chosen". The vertical axis is lambda, one by the
        distance, downwards; where it is infinite (equal points) shapes end at the largest finite one.

    Raises
    ------
    ValueError
        For what is no such tree.

    References
    ----------
    .. [1] R. J. G. B. Campello, D. Moulavi and J. Sander, Density-based clustering based on hierarchical density
       estimates, PAKDD 2013, https://doi.org/10.1007/978-3-642-37456-2_14
    """
    rows = np.asarray(getattr(tree, "condensed_tree_", tree))
    if rows.dtype.names is None or not {"parent", "child", "lambda_val", "child_size"} <= set(rows.dtype.names):
        raise ValueError(f"tree must be a fitted HDBSCAN or its condensed_tree_, got {type(tree).__name__}")
    labels = getattr(tree, "labels_", None) if labels is None else labels
    label_of = {} if labels is None else labels_of_clusters(rows, np.asarray(labels))
    kdims = [hv.Dimension("points"), hv.Dimension("lambda", label="lambda, 1 / distance")]
    kinds: dict[str, list[Any]] = {"cluster": [], "chosen": []}
    for node, shape in shapes(rows, p).items():
        label = label_of.get(node, NOISE)
        color = NOISE_COLOR if label == NOISE else COLORS[label % len(COLORS)]
        about = {"label": label, "size": int(shape.sizes[0]), "color": color}
        kinds["cluster" if label == NOISE else "chosen"].append(
            dict(zip(("points", "lambda"), shape.outline(), strict=True)) | about
        )
    bokeh = {"fill_color": "color", "line_color": INK, "line_width": 0.6, "tools": ["hover"]}
    matplotlib = {"facecolor": "color", "edgecolor": INK, "linewidth": 0.5}
    elements = [
        styled(hv.Polygons(some, kdims, ["label", "size", "color"], label=name), bokeh, matplotlib, show_legend=False)
        for name, some in kinds.items()
    ]
    drawn, count = sum(map(len, kinds.values())), len(np.unique(rows["parent"]))
    title = f"{int(rows['parent'].min()):,} points, {count:,} clusters in the tree"
    title += f", the largest {drawn:,} drawn" if drawn < count else ""
    title += f", {len(label_of):,} chosen" if labels is not None else ""
    return overlay(elements, kdims, title + source_of(tree), invert_yaxis=True)


def shapes(rows: Any, p: int) -> dict[int, Shape]:
    """Return the `p` largest clusters by number, children side by side in the middle of their parent."""
    n = int(rows["parent"].min())
    is_finite = np.isfinite(rows["lambda_val"])
    highest = float(rows["lambda_val"][is_finite].max(initial=0.0)) or 1.0
    inner = rows[rows["child"] >= n]
    inner = inner[np.argsort(-inner["child_size"], kind="stable")[: p - 1]]
    birth, size = {n: 0.0}, {n: n}
    for child, at, members in inner[["child", "lambda_val", "child_size"]].tolist():
        birth[child], size[child] = min(at, highest), members
    by_parent = rows[np.argsort(rows["parent"], kind="stable")]
    found, middle = {}, {n: n / 2}
    for node in sorted(birth):  # parents have smaller numbers
        own = by_parent[slice(*np.searchsorted(by_parent["parent"], [node, node + 1]))]
        own = own[np.argsort(own["lambda_val"], kind="stable")]
        left = size[node] - np.cumsum(own["child_size"])
        lambdas = np.minimum(own["lambda_val"], highest)
        found[node] = Shape(middle[node], np.append(birth[node], lambdas), np.append(size[node], left))
        children = [child for child in own["child"].tolist() if child in birth]
        at = middle[node] - sum(size[child] for child in children) / 2
        for child in children:
            middle[child] = at + size[child] / 2
            at += size[child]
    return found


def labels_of_clusters(rows: Any, labels: Ids) -> dict[int, int]:
    """Return the label of each cluster that was chosen: the lowest one that has all points of the label."""
    n = int(rows["parent"].min())
    above = np.zeros(int(rows["parent"].max()) + 1 - n, np.int64)
    inner, points = rows[rows["child"] >= n], rows[rows["child"] < n]
    above[inner["child"] - n] = inner["parent"] - n
    own, leaves = labels[points["child"]], points["parent"] - n
    pairs = np.unique(own[own != NOISE] * len(above) + leaves[own != NOISE])
    found: dict[int, int] = {}
    for label, node in zip((pairs // len(above)).tolist(), (pairs % len(above)).tolist(), strict=True):
        other = found.setdefault(label, node)
        while other != node:  # parents have smaller numbers
            node, other = min(node, other), int(above[max(node, other)])
        found[label] = node
    return {n + node: label for label, node in found.items()}
