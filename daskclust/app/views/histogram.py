"""How many clusters have which size, energy or other property; a box chooses those of a range."""

from __future__ import annotations

import functools

import numpy as np
import xarray as xr
from bokeh.models import BasicTicker, LogTicker

from daskclust.app.look import LIGHT, Look
from daskclust.app.raster import Array
from daskclust.app.selection import ChosenClusters, Range, Selection, span_of
from daskclust.app.state import State
from daskclust.app.views._frame import Canvas, none
from daskclust.app.views._scene import Choose, Scene, View
from daskclust.app.worker import Show
from daskclust.plot._data import dimension

_BINS = 40
_MOST_LINES = 10  # chosen clusters that have a line each
_SIDES = ("left", "right", "top")


class Histogram(View):
    """A histogram of a column of the table, of all clusters, pale, and of those with chosen points."""

    share = 3

    def __init__(self, state: State, column: str, choose: Choose) -> None:
        self.title, self._state, self._choose = column, state, choose
        table = state.present.table
        values = table[column].values
        finite = values[np.isfinite(values)]
        self._log = bool(finite.size and (finite > 0).all())
        word = dimension(table[column], "points of a cluster" if column == "size" else f"{column} of a cluster")
        kind = "log" if self._log else "linear"
        self.canvas = canvas = Canvas(((0.5, 100.0), (0.0, 1.0)), (word.pprint_label, "clusters"), x_axis_type=kind)
        sides = {name: name for name in _SIDES}
        self._bars = [canvas.figure.quad(source=none(*_SIDES), **sides, bottom=0) for _ in LIGHT.bars]
        # one cluster is no bar that could be seen among thousands
        self._lines = canvas.figure.vspan(x="x", source=none("x"), line_width=2)
        if self._log:
            canvas.figure.xaxis[0].ticker = LogTicker(mantissas=[1, 2, 5], num_minor_ticks=0, desired_num_ticks=4)
        # of whole numbers
        canvas.figure.yaxis[0].ticker = BasicTicker(min_interval=1, num_minor_ticks=0, desired_num_ticks=4)
        canvas.plain_ticks()
        canvas.watch(("value", "clusters"), self.choose)
        self.panel, self.caption = canvas.panel, canvas.caption

    def choose(self, selection: Selection | None) -> None:
        """Choose the clusters between the sides of a box or of a lasso."""
        ends = span_of(selection)
        if ends is not None:
            within = Range(self.title, *ends)
            numbers = np.flatnonzero(within.mask({self.title: self._state.present.table[self.title].values}))
            self._choose(ChosenClusters(tuple(numbers.tolist()), within) if len(numbers) else None)

    def dress(self, look: Look) -> None:
        self.canvas.dress(look)
        for bars, color in zip(self._bars, look.bars, strict=True):
            bars.glyph.update(fill_color=color, line_color=look.paper)
        self._lines.glyph.line_color = look.title

    def setting(self) -> str:
        return self.title

    def prepare(self, scene: Scene, setting: str) -> Show:
        """Count the clusters."""
        values = scene.outcome.table[setting].values.astype(np.float64)
        good = np.isfinite(values) & ((values > 0) if self._log else True)
        edges = _edges(values[good], scene.outcome.table[setting], log=self._log)
        number, _ = np.histogram(values[good], edges)
        chosen, lines = np.zeros(len(number)), values[:0]
        title = f"{int(good.sum()):,} clusters"
        if scene.mask is not None:
            mine = good & (scene.outcome.count(scene.mask) > 0)
            chosen, _ = np.histogram(values[mine], edges)
            lines = values[mine] if np.count_nonzero(mine) <= _MOST_LINES else lines
            title = f"{int(mine.sum()):,} of {title}"
        return functools.partial(self._show, edges, number, chosen, lines, title)

    def _show(self, edges: Array, number: Array, chosen: Array, lines: Array, title: str) -> None:
        self._lines.data_source.data = {"x": lines}
        for bars, tops in zip(self._bars, (number, chosen), strict=True):
            bars.data_source.data = {"left": edges[:-1], "right": edges[1:], "top": tops.astype(np.float64)}
        self.canvas.show(((edges[0], edges[-1]), (0.0, 1.08 * max(float(number.max(initial=0)), 1.0))))
        self.canvas.title(title)


def _edges(values: Array, column: xr.DataArray, *, log: bool) -> Array:
    """Return edges of bins, half way between whole numbers where values are such."""
    if not values.size:
        return np.array([0.5, 1.5])
    low, high = float(values.min()), float(values.max())
    if column.dtype.kind in "iu":
        steps = (np.geomspace if log else np.linspace)(max(low, 1.0) if log else low, high + 1, _BINS + 1)
        return np.unique(np.concatenate([[low], steps.round(), [high + 1]])) - 0.5
    if high <= low:
        low, high = (low / 1.1, high * 1.1) if log else (low - 0.5, high + 0.5)
    edges = (np.geomspace if log else np.linspace)(low, high, _BINS + 1)
    edges[[0, -1]] = low, high
    return np.asarray(edges)
