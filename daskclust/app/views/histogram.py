"""How many clusters have which size, energy or other property; a box chooses those of a range."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from daskclust.app.latest import Show
from daskclust.app.look import LIGHT, Look
from daskclust.app.selection import Selection, span_of
from daskclust.app.state import State
from daskclust.app.views._frame import Canvas
from daskclust.app.views._scene import Scene, View
from daskclust.plot._data import dimension
from daskclust.plot._look import hv

_BINS = 40

Array = npt.NDArray[Any]


class Histogram(View):
    """A histogram of a column of the table, of all clusters, pale, and of those with chosen points."""

    def __init__(
        self, state: State, column: str, size: tuple[int, int], choose: Callable[[str, float, float], None]
    ) -> None:
        self.column, self._choose = column, choose
        table = state.present.table
        values = table[column].values
        finite = values[np.isfinite(values)]
        self._log = bool(finite.size and (finite > 0).all())
        kdim = dimension(table[column], "points of a cluster" if column == "size" else f"{column} of a cluster")
        vdim = hv.Dimension("clusters")
        bars = [
            hv.Histogram((np.array([1.0, 2.0]), np.array([0.0])), kdims=[kdim], vdims=[vdim]).opts(
                fill_color=color, line_color="#FFFFFF", backend="bokeh"
            )
            for color in LIGHT.bars
        ]
        ranges = ((0.5, 100.0), (0.0, 1.0))
        self._canvas = Canvas(bars, size, ranges, logx=self._log)
        self._ticks()
        self._canvas.watch(("value", "clusters"), self._on_choice)
        self.panel = self._canvas.panel

    def _ticks(self) -> None:
        from bokeh.models import BasicTicker, LogTicker

        figure = self._canvas.figure
        if self._log:
            figure.xaxis[0].ticker = LogTicker(mantissas=[1, 2, 5], num_minor_ticks=0, desired_num_ticks=4)
        figure.yaxis[0].ticker = BasicTicker(min_interval=1, num_minor_ticks=0, desired_num_ticks=4)  # of whole numbers
        self._canvas.plain_ticks()

    def _on_choice(self, selection: Selection | None) -> None:
        """Choose the clusters between the sides of a box or of a lasso."""
        ends = span_of(selection)
        if ends is not None:
            self._choose(self.column, *ends)

    def dress(self, look: Look) -> None:
        """Draw axes and bars in other colours."""
        self._canvas.dress(look)
        for number, color in enumerate(look.bars):
            self._canvas.color(number, fill_color=color, line_color=look.paper)

    def setting(self) -> str:
        """Return the column."""
        return self.column

    def prepare(self, scene: Scene, setting: str) -> Show:
        """Count the clusters."""
        values = scene.outcome.table[setting].values.astype(np.float64)
        good = np.isfinite(values) & ((values > 0) if self._log else True)
        edges = _edges(values[good], scene.outcome.table[setting], log=self._log)
        number, _ = np.histogram(values[good], edges)
        chosen = np.zeros(len(number))
        title = f"{int(good.sum()):,} clusters"
        if scene.mask is not None:
            mine = good & (scene.outcome.count(scene.mask) > 0)
            chosen, _ = np.histogram(values[mine], edges)
            title = f"{int(mine.sum()):,} of {title}"
        return functools.partial(self._show, edges, number, chosen, title)

    def _show(self, edges: Array, number: Array, chosen: Array, title: str) -> None:
        for k, tops in enumerate((number, chosen)):
            self._canvas.fill(k, left=edges[:-1], right=edges[1:], top=tops.astype(np.float64))
        x, y = self._canvas.ends
        x.update(start=float(edges[0]), end=float(edges[-1]))
        y.update(start=0.0, end=1.08 * max(float(number.max(initial=0)), 1.0))
        self._canvas.title(title)


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
