"""The condensed tree of HDBSCAN*, with a cut that is dragged with the mouse; a box chooses clusters."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from bokeh.transform import linear_cmap

from daskclust.app.look import Look
from daskclust.app.raster import Array, Ranges
from daskclust.app.selection import ChosenClusters, Selection, span_of
from daskclust.app.state import State
from daskclust.app.systems import Condensed
from daskclust.app.views._frame import Canvas, none
from daskclust.app.views._scene import Choose, Scene, View
from daskclust.app.views._thresholds import Drag, Style, Thresholds
from daskclust.app.worker import Show
from daskclust.core.merge.labels import NOISE
from daskclust.plot._condensed import INSIDE, nodes_of_labels, shapes
from daskclust.plot._look import COLORS, MARK

_MOST = 100  # clusters that are drawn
_CUT = "cluster_selection_epsilon"
_PALE = 0.15  # opacity of clusters without chosen points
_NAMES = ("xs", "ys", "color", "alpha")


class CondensedView(View):
    """The largest clusters of the tree by distance, those of the result in their colours, with a line for the cut."""

    title = Condensed.title

    def __init__(self, state: State, choose: Choose, moved: Any, drag: Drag) -> None:
        self._choose = choose
        self._left, self._right, self._label = np.empty((3, 0))
        cut = next(each for each in state.system.parameters if each.name == _CUT)
        self._lowest = math.log10(cut.low)
        words = "distance" + (f" ({cut.unit})" if cut.unit else "")
        self.canvas = canvas = Canvas(((0.0, 1.0), (self._lowest, 1.0)), ("points", words))
        canvas.power_ticks(canvas.figure.yaxis)
        colors = linear_cmap("color", [*COLORS, COLORS[0]], -0.5, len(COLORS) + 0.5)
        style = {"xs": "xs", "ys": "ys", "fill_color": colors, "fill_alpha": "alpha", "line_width": 0.5}
        self._patches = canvas.figure.patches(source=none(*_NAMES), **style)
        canvas.watch(_NAMES[:2], self.choose)
        places = {_CUT: self._place(state.values[_CUT])}
        lines = {_CUT: Style("width", MARK, "solid")}
        self.thresholds = Thresholds(canvas, lines, places, lambda name, place: drag(name, 10.0**place))
        self.panel, self.caption = canvas.panel, canvas.caption

    def _place(self, distance: float) -> float:
        return max(math.log10(distance), self._lowest) if distance > 0 else self._lowest

    def choose(self, selection: Selection | None) -> None:
        """Choose the clusters between the sides of a box or of a lasso."""
        ends = span_of(selection)
        if ends is not None:
            labels = self._label[(self._left <= ends[1]) & (self._right >= ends[0])]
            self._choose(ChosenClusters(tuple(np.unique(labels[labels != NOISE]).astype(int).tolist())))

    def follow(self, values: Mapping[str, Any]) -> None:
        self.thresholds.move(_CUT, self._place(values[_CUT]))

    def dress(self, look: Look) -> None:
        self.canvas.dress(look)
        self._patches.glyph.line_color = look.ink
        self._patches.glyph.fill_color.transform.palette = [*COLORS, look.noise]

    def prepare(self, scene: Scene, setting: Any) -> Show:
        """Lay out the largest clusters, with distances in the logarithm."""
        outcome = scene.outcome
        assert isinstance(outcome.ground, Condensed)
        tree = outcome.ground.tree
        drawn = shapes(tree, _MOST, log=True)
        label, is_chosen = drawn.owners(nodes_of_labels(tree, outcome.label))
        x, lambdas = drawn.outlines()
        y = -np.log10(lambdas)
        alpha = np.where(is_chosen | (label == NOISE), 1.0, INSIDE)
        if scene.mask is not None:
            chosen = np.append(outcome.count(scene.mask) > 0, False)  # the last for noise, -1
            alpha[~chosen[label]] = _PALE
        color = np.where(label == NOISE, len(COLORS), label % len(COLORS))
        columns = _by_look(x, y, color, alpha)
        total = len(tree.parent)
        title = f"{outcome.n_clusters:,} clusters of {total:,}"
        title += f", the largest {len(label):,} drawn" if len(label) < total else ""
        ends = x[is_chosen].min(axis=1), x[is_chosen].max(axis=1), label[is_chosen]
        ranges = (0.0, float(len(outcome.label))), (min(self._lowest, float(y.min())), float(y.max()))
        return functools.partial(self._show, columns, ends, ranges, title)

    def _show(self, columns: dict[str, Any], ends: tuple[Array, Array, Array], ranges: Ranges, title: str) -> None:
        self._left, self._right, self._label = ends
        self._patches.data_source.data = columns
        if ranges != self.canvas.whole:
            self.canvas.show(ranges)
        self.canvas.title(title)


def _by_look(x: Array, y: Array, color: Array, alpha: Array) -> dict[str, Any]:
    """Return a patch for each look, with gaps between its shapes: Bokeh sends two messages for each patch and axis."""
    looks, number = np.unique(np.stack([color, alpha]), axis=1, return_inverse=True)
    xs, ys = (np.pad(each, ((0, 0), (0, 1)), constant_values=np.nan) for each in (x, y))
    mine = [number == k for k in range(looks.shape[1])]
    columns = {name: [each[which].ravel() for which in mine] for name, each in (("xs", xs), ("ys", ys))}
    return {"color": looks[0], "alpha": looks[1], **columns}
