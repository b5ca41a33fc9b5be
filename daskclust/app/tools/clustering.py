"""The button that clusters all of a data set of which a part is seen."""

from __future__ import annotations

import functools
import threading
from typing import Any

import panel as pn

from daskclust.app.opening import OpenedPart
from daskclust.app.state import State
from daskclust.app.tools.whole import cluster_whole
from daskclust.app.widgets import labelled
from daskclust.app.worker import Later, Show
from daskclust.core.data.quote import in_html


class Clustering:
    """A name for the files, a button, and how far the work is; the page can be used meanwhile."""

    def __init__(self, state: State, part: OpenedPart, later: Later | None) -> None:
        self._state, self._part, self._later = state, part, later
        wide: dict[str, Any] = {"sizing_mode": "stretch_width"}
        told = f"A part is seen. All {part.of:,} points are clustered on Dask with these parameters, into files here."
        self._name = labelled(pn.widgets.TextInput, "file for labels", value="labels.parquet", **wide)
        self._button = labelled(pn.widgets.Button, "Cluster all on Dask", on_click=lambda _: self._begin(), **wide)
        self._words = pn.pane.HTML("", margin=(0, 10), **wide)
        self._bar = pn.indicators.Progress(value=0, max=100, visible=False, **wide)
        what = pn.pane.HTML(told, margin=(5, 10, 0, 10), **wide)
        self.panel = pn.Column(what, self._name, self._button, self._bar, self._words, margin=0, **wide)

    def _begin(self) -> None:
        self._button.disabled, self._words.object = True, "starting workers …"
        request = self._state.request()
        work = functools.partial(
            cluster_whole, self._part.whole, request.system, request.values, self._name.value, self._report
        )
        if self._later is None:
            self._work(work)
        else:
            threading.Thread(target=self._work, args=(work,), daemon=True).start()

    def _work(self, work: Any) -> None:
        try:
            words = work().words
        except Exception as error:  # of a worker, a disk, a scheduler: the page goes on
            words = f"It failed: {error}"
        self._tell(functools.partial(self._end, words))

    def _report(self, done: int, total: int, step: str) -> None:
        self._tell(functools.partial(self._show, done, total, step))

    def _tell(self, show: Show) -> None:
        if self._later is None:
            show()
        else:
            self._later(show)

    def _show(self, done: int, total: int, step: str) -> None:
        self._bar.param.update(visible=True, value=round(100 * done / total) if total else 0)
        self._words.object = in_html(f"{step or 'reading'}: {done:,} of {total:,} tasks")

    def _end(self, words: str) -> None:
        self._bar.visible = self._button.disabled = False
        self._words.object = in_html(words)
