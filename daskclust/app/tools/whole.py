"""All of a data set of which a part is seen, clustered on Dask; its points stay where they are."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import panel as pn
import xarray as xr

from daskclust.app.opening import OpenedPart
from daskclust.app.state import State
from daskclust.app.systems import ExplorerSystem
from daskclust.app.widgets import button
from daskclust.app.worker import Later
from daskclust.core.data.quote import in_html

Report = Callable[[int, int, str], None]

_SUFFIXES = (".parquet", ".h5", ".csv")


class Clustering:
    """Name of the output, a button and a progress bar; the page can be used meanwhile."""

    def __init__(self, state: State, part: OpenedPart, later: Later | None) -> None:
        self._state, self._part, self._later = state, part, later
        self._call: Later = later or (lambda show: show())  # in the thread of the widgets
        wide: dict[str, Any] = {"sizing_mode": "stretch_width"}
        text = f"A part is seen. All {part.of:,} points are clustered on Dask with these parameters, into files here."
        self._name: Any = pn.widgets.TextInput(label="file for labels", value="labels.parquet", **wide)
        self.button = button("Cluster all on Dask", self.begin, **wide)
        self.words = pn.pane.HTML("", margin=(0, 10), **wide)
        self._bar = pn.indicators.Progress(value=0, max=100, visible=False, **wide)
        what = pn.pane.HTML(text, margin=(5, 10, 0, 10), **wide)
        self.panel = pn.Column(what, self._name, self.button, self._bar, self.words, margin=0, **wide)

    def begin(self) -> None:
        self.button.disabled, self.words.object = True, "starting workers …"
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
            words = work()
        except Exception as error:  # of a worker, a disk, a scheduler: the page goes on
            words = f"It failed: {error}"
        self._call(functools.partial(self._end, words))

    def _report(self, done: int, total: int, step: str) -> None:
        self._call(functools.partial(self._show, done, total, step))

    def _show(self, done: int, total: int, step: str) -> None:
        self._bar.param.update(visible=True, value=round(100 * done / total) if total else 0)
        self.words.object = in_html(f"{step or 'reading'}: {done:,} of {total:,} tasks")

    def _end(self, words: str) -> None:
        self._bar.visible = self.button.disabled = False
        self.words.object = in_html(words)


def files_of(name: str) -> tuple[Path, Path]:
    """Return the paths of points with labels and of the table beside them, in this folder.

    Whoever sees the page chooses the name: it names no other folder, and no file that is there.
    """
    labels = Path(name.strip())
    table = labels.with_name(f"{labels.stem}-clusters{labels.suffix}") if labels.name else labels
    if labels.suffix not in _SUFFIXES or labels.name != name.strip() or "\\" in name:
        raise ValueError(f"give a name such as labels.parquet ({', '.join(_SUFFIXES)}) without a folder, got {name!r}")
    there = next((each for each in (labels, table) if each.exists()), None)
    if there is not None:
        raise ValueError(f"{there} is there already; give another name")
    return labels.absolute(), table.absolute()


def cluster_whole(
    whole: xr.Dataset, system: ExplorerSystem, values: Mapping[str, Any], name: str, report: Report
) -> str:
    """Cluster all with the current Dask client, or own workers; write labels and table; return a summary."""
    from distributed import default_client

    from daskclust import io, workers
    from daskclust.accessor import ClustAccessor
    from daskclust.core.run.graph import only_needed

    labels, table = files_of(name)
    with ExitStack() as stack:
        try:
            default_client()
        except ValueError:
            stack.enter_context(workers.start())
        stack.enter_context(only_needed())  # what is computed, counted and written has steps in common
        found: xr.Dataset = getattr(ClustAccessor(whole), system.name)(**system.options(values))
        given = {name: whole[name] for name in found.data_vars if name in whole.data_vars}  # read again, and not kept
        found = workers.persist(found.drop_vars(list(given)), report).assign(given)
        rows = system.table(found)
        rows = workers.persist(rows, report) if rows.chunks else rows
        io.write_hits(found, labels)
        try:
            io.write_hits(rows, table)
        except BaseException:
            labels.unlink()
            raise
        noise = int((found["label"] < 0).sum())
    counts = f"{rows.sizes['cluster']:,} clusters, {noise:,} of {found['label'].size:,} points noise"
    return f"{counts}. Points with labels are in {labels}, the table of clusters in {table}."
