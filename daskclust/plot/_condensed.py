"""The trees of HDBSCAN*: clusters that shrink and divide as distances get smaller, and the edges between points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.data.checks import check_whole
from daskclust.core.merge.labels import NOISE
from daskclust.plot._clusters import aspect_of
from daskclust.plot._data import dimension, in_memory, source_of
from daskclust.plot._elements import MOST_GLYPHS, overlay, pixels_for, spanned
from daskclust.plot._look import COLORS, INK, NOISE_ALPHA, NOISE_COLOR, amounts, finished, hv, log_ticks, styled

Float = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]

_CORNERS = 64  # on each side of a shape, without the first
_MOST_NAMED = 12  # clusters in a legend
_ABOVE = 1.25  # times the density at which the first point leaves, on logarithmic axes: where roots begin
INSIDE = 0.55  # opacity of clusters within a chosen one
_ROUNDED = 1e-6  # of a length


class Tree(NamedTuple):
    """Clusters by number, each after its parent, and where points leave them; lambda is 1 / distance."""

    cluster: npt.NDArray[Any]  # (n,) last cluster of each point
    left: Float  # (n,) lambda at which the point leaves it
    parent: npt.NDArray[Any]  # (k,) -1 of the root, which has all points
    birth: Float  # (k,) lambda
    death: Float  # (k,)
    size: npt.NDArray[Any]  # (k,) points at birth


class DrawnTree(NamedTuple):
    """The largest clusters as they are drawn, each after its parent."""

    node: Ids  # (p,) numbers of clusters
    parent: Ids  # (p,) places of their parents among them, -1 of the root
    middle: Float  # (p,) along the points
    lambdas: Float  # (p, corners) from birth to death
    sizes: Ids  # (p, corners) points that are still there

    def outlines(self) -> tuple[Float, Float]:
        """Return the corners of each shape: down on the left side and up on the right one."""
        half = self.sizes / 2
        sides = self.middle[:, None] - half, self.middle[:, None] + half[:, ::-1]
        return np.concatenate(sides, axis=1), np.concatenate([self.lambdas, self.lambdas[:, ::-1]], axis=1)

    def owners(self, node_of_label: Ids) -> tuple[Ids, npt.NDArray[np.bool_]]:
        """Return the label that each shape is of, or is within, or else -1; and which are those of labels."""
        label_of = {node: label for label, node in enumerate(node_of_label.tolist())}
        own = [label_of.get(node, NOISE) for node in self.node.tolist()]
        labels = list(own)
        for place, parent in enumerate(self.parent.tolist()):
            if labels[place] == NOISE and parent >= 0:
                labels[place] = labels[parent]
        return np.array(labels), np.array(own) != NOISE


def condensed_tree(tree: Any, p: int = 100, *, labels: Any = None, logy: bool = False) -> hv.Overlay:
    """Draw how clusters shrink and divide as distances get smaller: each is as wide as it has points [1]_.

    Parameters
    ----------
    tree : fitted HDBSCAN, or structured array
        An estimator, or a ``condensed_tree_``: ``parent``, ``child``, ``lambda_val`` and ``child_size``.
    p : int, default 100
        Most clusters that are drawn: those with most points.
    labels : array_like of int, shape (n,), optional
        Labels of the points, -1 noise: the lowest cluster that has all points of a label is drawn in its colour, and
        those within it are paler. Default: those of the estimator.
    logy : bool, default False
        Logarithmic axis of lambda.

    Returns
    -------
    holoviews.Overlay
        `holoviews.Polygons` "not chosen" and one for each label, or for each colour if there are many. The vertical
        axis is lambda, 1 / distance, downwards. Equal points would be at infinity: shapes end at the largest finite
        lambda.

    Raises
    ------
    ValueError
        For what is no such tree.

    References
    ----------
    .. [1] R. J. G. B. Campello, D. Moulavi and J. Sander, Density-based clustering based on hierarchical density
       estimates, PAKDD 2013, https://doi.org/10.1007/978-3-642-37456-2_14
    """
    read, labels = tree_of(tree), getattr(tree, "labels_", None) if labels is None else labels
    labels = np.full(len(read.cluster), NOISE) if labels is None else np.asarray(labels)
    drawn = shapes(read, p, log=logy)
    owner, is_chosen = drawn.owners(nodes_of_labels(read, labels))
    kdims = [hv.Dimension("points"), hv.Dimension("lambda", label="λ = 1 / distance")]
    count = int(labels.max(initial=NOISE)) + 1
    named = count <= _MOST_NAMED
    elements = []
    group = owner if named else np.where(owner < 0, owner, owner % len(COLORS))
    for label in np.unique(group).tolist():
        is_own, color, words = group == label, COLORS[label % len(COLORS)], "not chosen"
        kinds = [(is_own, NOISE_COLOR, NOISE_ALPHA)]
        if label >= 0:
            size = np.count_nonzero(labels == label)
            words = f"cluster {label}: {size:,}" if named else f"clusters {label}, {label + len(COLORS)}, ..."
            kinds = [(is_own & is_chosen, color, 1.0), (is_own & ~is_chosen, color, INSIDE)]
        for which, color, alpha in kinds:
            if not which.any():
                continue
            some = _polygons(drawn, owner, np.flatnonzero(which), kdims, words)
            bokeh = {"line_color": INK, "line_width": 0.5, "fill_alpha": alpha, "tools": ["hover"]}
            matplotlib = {"facecolor": color, "edgecolor": INK, "linewidth": 0.4, "alpha": alpha}
            is_named = named and alpha != INSIDE
            elements.append(styled(some, bokeh, matplotlib, color=color, show_legend=is_named))
    total = len(read.parent)
    title = f"{len(read.cluster):,} points, {count:,} clusters of {total:,} in the tree"
    title += f", the largest {len(drawn.node):,} drawn" if len(drawn.node) < total else ""
    low, high = float(drawn.lambdas[0, 0]), float(drawn.lambdas.max())
    axes = {"ylim": (low, high), "yticks": log_ticks(low, high) if logy else None}
    return overlay(elements, kdims, title + source_of(tree), invert_yaxis=True, logy=logy, **axes)


def _polygons(drawn: DrawnTree, owner: Ids, places: Ids, kdims: list[Any], words: str) -> Any:
    """Return some of the shapes, with their numbers of points and labels."""
    x, y = (each[places] for each in drawn.outlines())
    columns = drawn.sizes[places, 0].tolist(), owner[places].tolist()
    names = (kdims[0].name, kdims[1].name, "size", "label")
    rows = [dict(zip(names, each, strict=True)) for each in zip(x, y, *columns, strict=True)]
    return hv.Polygons(rows, kdims, ["size", "label"], label=words)


def tree_of(tree: Any) -> Tree:
    """Return the tree of a fitted HDBSCAN, or of a structured array."""
    made = getattr(tree, "_condensed", None)
    if made is not None:
        return Tree(made.cluster, made.left, made.parent, 1 / made.birth, made.death, made.size)
    rows = np.asarray(tree)
    if rows.dtype.names is None or not {"parent", "child", "lambda_val", "child_size"} <= set(rows.dtype.names):
        raise ValueError(f"tree must be a fitted HDBSCAN or its condensed_tree_, got {type(tree).__name__}")
    n = int(rows["parent"].min())
    points, inner = rows[rows["child"] < n], rows[rows["child"] >= n]
    k = int(rows["parent"].max()) + 1 - n
    cluster, left, (birth, death) = np.empty(n, np.int64), np.empty(n), np.zeros((2, k))
    parent, size = np.full(k, NOISE), np.full(k, n)
    cluster[points["child"]], left[points["child"]] = points["parent"] - n, points["lambda_val"]
    child = inner["child"] - n
    parent[child], birth[child], size[child] = inner["parent"] - n, inner["lambda_val"], inner["child_size"]
    np.maximum.at(death, rows["parent"] - n, rows["lambda_val"])
    return Tree(cluster, left, parent, birth, death, size)


def shapes(tree: Tree, p: int, *, log: bool = False) -> DrawnTree:
    """Return the `p` largest clusters, children side by side in the middle of their parent.

    Corners are at even steps of lambda, or of its logarithm.
    """
    node = np.sort(np.argsort(-tree.size, kind="stable")[: check_whole("p", p, 1)])  # no parent is smaller
    place = np.full(len(tree.parent), -1)
    place[node] = np.arange(len(node))
    parent = np.where(tree.parent[node] < 0, -1, place[tree.parent[node]])
    of = place[tree.cluster]
    drawn = np.flatnonzero(of >= 0)
    of, left = of[drawn], tree.left[drawn]
    known = np.concatenate([tree.left, tree.death])
    known = known[(known > 0) & np.isfinite(known)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (1.0, 1.0)
    low = low / _ABOVE if log else 0.0
    scale = np.log if log else np.asarray
    birth, death = (scale(np.clip(each[node], low, high)) for each in (tree.birth, tree.death))
    span = np.where(death > birth, death - birth, 1.0)
    share = (scale(np.clip(left, low, high)) - birth[of]) / span[of]
    step = np.clip(_CORNERS * share, 0, _CORNERS).astype(np.int64)  # the last corner at which a point is there
    gone = np.bincount(of * (_CORNERS + 1) + step, minlength=len(node) * (_CORNERS + 1))
    gone = gone.reshape(len(node), -1)
    sizes = tree.size[node][:, None] - np.cumsum(gone, axis=1) + gone
    lambdas = np.linspace(birth, death, _CORNERS + 1, axis=1)
    return DrawnTree(node, parent, _middles(parent, sizes), np.exp(lambdas) if log else lambdas, sizes)


def _middles(parent: Ids, sizes: Ids) -> Float:
    """Return where shapes are along the points."""
    at_birth = sizes[:, 0]
    below = np.bincount(parent[1:], at_birth[1:], len(parent))
    middle, used = np.empty(len(parent)), np.zeros(len(parent))
    middle[0] = at_birth[0] / 2
    for place, above in enumerate(parent.tolist()[1:], 1):
        middle[place] = middle[above] - below[above] / 2 + used[above] + at_birth[place] / 2
        used[above] += at_birth[place]
    return middle


def nodes_of_labels(tree: Tree, labels: Ids) -> Ids:
    """Return the lowest cluster that has all points of each label, the number of clusters where there are none."""
    label_of, inside = np.full(len(tree.parent), NOISE), np.flatnonzero(labels != NOISE)
    label_of[tree.cluster[inside]] = labels[inside]
    at = np.flatnonzero(label_of != NOISE)
    own = label_of[at]
    lowest = np.full(int(labels.max(initial=NOISE)) + 1, len(tree.parent))
    while True:  # parents have smaller numbers
        np.minimum.at(lowest, own, at)
        is_below = at > lowest[own]
        if not is_below.any():
            return lowest
        at[is_below] = tree.parent[at[is_below]]


# ------------------------------------------------------------------------------------------------------- spanning tree
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
