"""The top of a hierarchy, with a cut that is dragged with the mouse; a box chooses the cells below branches."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from bokeh.transform import linear_cmap

from daskclust.app.look import Look
from daskclust.app.raster import Array, Ranges
from daskclust.app.selection import Branches, Selection, span_of
from daskclust.app.state import State
from daskclust.app.systems import Hierarchy
from daskclust.app.views._frame import Canvas, none
from daskclust.app.views._scene import Choose, Scene, View
from daskclust.app.views._thresholds import Drag, Style, Thresholds
from daskclust.app.worker import Show
from daskclust.core import hierarchy as tree
from daskclust.core.merge.labels import NOISE
from daskclust.plot._look import COLORS, MARK
from daskclust.plot._trees import axis_limits, branches, places

_LEAVES = 30  # at least, where there are so many
_MOST_LEAVES = 60
_MOST_TICKS = 40  # leaves whose sizes can be read
_LEVEL_TICKS = 8  # leaves whose sizes fit side by side
_ENDS = ("x0", "y0", "x1", "y1")
_PALE = 0.25  # opacity of branches without chosen cells


class Dendrogram(View):
    """The last merges, in the colours of clusters, with a line for the height of the cut."""

    title = Hierarchy.title

    def __init__(self, state: State, choose: Choose, moved: Any, drag: Drag) -> None:
        self._choose = choose
        self.leaves = np.empty(0, np.int64)
        self._cut = state.values["cut"]
        words = ("points of the cluster", "height")
        self.canvas = canvas = Canvas(((-0.7, _LEAVES - 0.3), (0.0, 1.0)), words)
        colors = linear_cmap("color", [*COLORS, *COLORS[:2]], -0.5, len(COLORS) + 1.5)
        style = {name: name for name in _ENDS} | {"line_color": colors, "line_alpha": "alpha", "line_width": 1.8}
        self._segments = canvas.figure.segment(source=none(*_ENDS, "color", "alpha"), **style)
        canvas.watch(_ENDS[:2], self.choose)
        self.thresholds = Thresholds(
            canvas,
            {"height": Style("width", MARK, "solid")},
            {"height": state.values["height"]},
            lambda name, place: drag(name, max(place, 0.0)),
        )
        self.panel, self.caption = canvas.panel, canvas.caption

    def choose(self, selection: Selection | None) -> None:
        """Choose the cells of the leaves between the sides of a box or of a lasso."""
        ends = span_of(selection)
        if ends is not None:
            place = np.arange(len(self.leaves))
            self._choose(Branches(tuple(self.leaves[(place >= ends[0]) & (place <= ends[1])].tolist())))

    def follow(self, values: Mapping[str, Any]) -> None:
        self._cut = values["cut"]
        if self._cut == "height":
            self.thresholds.move("height", float(values["height"]), dash="solid")

    def dress(self, look: Look) -> None:
        self.canvas.dress(look)
        self._segments.glyph.line_color.transform.palette = [*COLORS, look.noise, look.ink]

    def prepare(self, scene: Scene, setting: Any) -> Show:
        """Lay out the top of the hierarchy, with more leaves than there are clusters."""
        outcome, values = scene.outcome, scene.outcome.request.values
        assert isinstance(outcome.ground, Hierarchy)
        Z = outcome.ground.linkage
        wanted = min(max(_LEAVES, outcome.n_clusters + 5), _MOST_LEAVES)
        top = tree.condense(Z, wanted, values["min_size"])
        labels = tree.node_labels(Z, outcome.label)
        x, y = places(top)
        of_node = branches(top, x, y, np.arange(len(top.nodes)))
        lines = np.array([line for some in of_node.values() for line in some] or np.empty((0, 4)))
        nodes = top.nodes[np.repeat(np.array(list(of_node), np.int64), [len(some) for some in of_node.values()])]
        order = tree.leaf_order(top.linkage)
        leaves, sizes = top.nodes[order], top.sizes[order]
        by_number = values["cut"] == "number"
        level = outcome.ground.height(outcome.n_clusters, values["min_size"]) if by_number else None
        left_out = int(len(outcome.label) - sizes.sum())
        title = f"{len(leaves):,} branches" + (f", {left_out:,} points left out" if left_out else "")
        is_chosen = True if scene.mask is None else tree.node_labels(Z, np.where(scene.mask, 0, NOISE))[nodes] >= 0
        opacity = np.where(is_chosen, np.ones(len(lines)), _PALE)
        columns = dict(zip(_ENDS, lines.T, strict=True)) | {"color": _kinds(labels[nodes]), "alpha": opacity}
        words = [f"{size:,}" for size in sizes]
        return functools.partial(self._show, columns, leaves, words, axis_limits(top), level, title)

    def _show(
        self,
        columns: dict[str, Array],
        leaves: Array,
        words: list[str],
        limits: Ranges,
        level: float | None,
        title: str,
    ) -> None:
        self.leaves, count = leaves, len(leaves)
        self._segments.data_source.data = columns
        self.canvas.show(limits)
        axis = self.canvas.figure.xaxis[0]
        ticks = list(range(count)) if count <= _MOST_TICKS else []
        axis.ticker = ticks
        axis.major_label_overrides = dict(zip(ticks, words, strict=False))
        axis.major_label_orientation = 0.0 if count <= _LEVEL_TICKS else np.pi / 2
        if level is not None and self._cut == "number":
            self.thresholds.move("height", level, dash="dashed")
        self.canvas.title(title)


def _kinds(label: npt.NDArray[np.int64]) -> Array:
    """Return the number of each line's colour: that of noise after those of clusters, then that of several."""
    several = np.where(label == NOISE, len(COLORS), len(COLORS) + 1)
    return np.where(label < 0, several, label % len(COLORS)).astype(np.float64)
