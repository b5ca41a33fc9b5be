"""The table of clusters; rows that are clicked choose their points, rows of clusters that are clicked are lit."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
import panel as pn

from daskclust.app.selection import ChosenClusters
from daskclust.app.slices import time_unit
from daskclust.app.views._scene import Choose, Scene, View
from daskclust.app.worker import Show
from daskclust.core.data.quote import in_html

_FIRST = ("selected", "size", "energy", "mass", "tot", "layer", "x", "y", "z")
_ROWS = 20  # of a page, before the browser says how many are seen
_LIT = """
.tabulator .tabulator-row.tabulator-selected { font-weight: 600; box-shadow: inset 4px 0 var(--title);
    background-color: color-mix(in srgb, var(--title) 18%, var(--page)) !important }
"""


class _ReadOnly(pn.widgets.Tabulator):  # type: ignore[misc,unused-ignore]
    """A table that ignores values from the page: in notebooks it sends back those it was given, late."""

    def _process_data(self, data: Any) -> None:
        pass


class TableView(View):
    """The clusters with chosen points, or all of them, the largest first.

    Of clusters that were chosen one by one, rows are lit among all the others.
    """

    title = "table"
    where = "left"
    share = 3

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self._is_mine = False
        self.panel = _ReadOnly(  # type: ignore[no-untyped-call]
            pd.DataFrame({"size": []}),
            pagination="remote",
            disabled=True,
            selectable=True,
            layout="fit_data_table",
            theme="simple",
            text_align="right",
            header_align="right",
            stylesheets=[_LIT],
            sizing_mode="stretch_both",
            margin=(28, 0, 0, 0),
        )
        self.panel.param.watch(self._on_rows, "selection")

    def _on_rows(self, event: Any) -> None:
        if not self._is_mine:
            numbers = tuple(sorted(self.panel.value.index[event.new].tolist()))
            self._choose(ChosenClusters(numbers) if numbers else None)

    def prepare(self, scene: Scene, setting: Any) -> Show:
        selection, mask, origin = scene.chosen
        lit: tuple[int, ...] = ()
        if isinstance(selection, ChosenClusters) and selection.by is None and origin is scene.outcome:
            lit, mask = selection.numbers, None
        table = scene.outcome.rows(mask)
        columns = [str(name) for name, v in table.data_vars.items() if v.dims == ("cluster",)]
        names = [name for name in _FIRST if name in columns] + [name for name in columns if name not in _FIRST]
        frame = table[names].to_dataframe()[names] if names else pd.DataFrame()
        order = next((name for name in ("energy", "mass", "tot", "size") if name in names), None)
        frame = frame if order is None else frame.sort_values(order, ascending=False, kind="stable")
        units = {name: str(table[name].attrs.get("units", "1")) for name in names}
        for name in (name for name in names if name.startswith("toa")):
            units[name], size = time_unit(float(frame[name].max()), units[name])
            frame[name] = frame[name] / size
        titles = {name: in_html(name if unit in ("1", "") else f"{name} ({unit})") for name, unit in units.items()}
        rows = np.flatnonzero(np.isin(frame.index, lit)).tolist()
        return functools.partial(self._show, frame, titles, rows)

    def _show(self, frame: pd.DataFrame, titles: dict[str, str], lit: list[int]) -> None:
        from bokeh.models.widgets.tables import NumberFormatter, ScientificFormatter

        floats = [name for name in frame.columns if frame[name].dtype.kind == "f"]
        self._is_mine = True
        if titles != self.panel.titles:
            plain, powers = NumberFormatter(format="0,0.[000]"), ScientificFormatter(precision=4)
            self.panel.formatters = {name: plain if _is_plain(frame[name]) else powers for name in floats}
            self.panel.titles = titles
        if not frame.equals(self.panel.value):
            self.panel.selection, self.panel.value = [], frame
        self.panel.selection = lit
        if lit:
            self.panel.page = lit[0] // (self.panel.page_size or _ROWS) + 1
        self._is_mine = False


def _is_plain(values: pd.Series[float]) -> bool:
    """Return whether numbers are written without an exponent."""
    largest = float(values.abs().max()) if len(values) else 1.0
    return not 0.0 < largest < 0.1 and not largest >= 1e7
