"""A clustering that was kept, A, beside the present one: its picture, what moved, and what became of its clusters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import panel as pn

from daskclust.app.selection import Moved, Range
from daskclust.app.state import Outcome, State
from daskclust.app.tools.compare import Comparison, compare
from daskclust.app.views._scene import Choose, Scene, View
from daskclust.app.views.picture import Picture
from daskclust.app.widgets import button
from daskclust.app.worker import Show
from daskclust.core.data.quote import in_html

_TITLES = {"change": "change", "A": "A", "B": "now", "points": "points"}


class Kept:
    """An outcome that later ones are compared with."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self._last: tuple[Outcome, Comparison, Outcome] | None = None

    def against(self, present: Outcome) -> tuple[Comparison, Outcome]:
        """Return the comparison, and the kept outcome with the numbers, and so the colours, of matching clusters."""
        if self._last is None or self._last[0] is not present:
            found = compare(self.outcome.label, present.label)
            alone = found.partner < 0
            own = found.n_clusters[1] + np.cumsum(alone) - 1
            label = np.append(np.where(alone, own, found.partner), -1)[self.outcome.label]
            kept = self.outcome.result
            dims = present.result["label"].dims
            variables: dict[str, Any] = {"label": (dims, label)}
            if "is_seed" in kept:
                variables["is_seed"] = (dims, kept["is_seed"].values)
            drawn = present.result.drop_vars("is_seed", errors="ignore").assign(variables)
            self._last = present, found, Outcome(self.outcome.request, drawn)
        return self._last[1], self._last[2]

    def moved(self) -> Moved:
        """Return the selection of points that moved."""
        request = self.outcome.request
        return Moved(self.outcome.label, tuple(request.system.lines(request.values, "kept")), compare)


class KeptPicture(Picture):
    """The picture of the kept outcome, with the axes of the present picture."""

    title = "A"
    where = "right"

    def __init__(self, kept: Kept, state: State, present: Picture, choose: Choose, moved: Any) -> None:
        super().__init__(state, present.axes, choose, moved, linked=present)
        self._kept = kept

    def prepare(self, scene: Scene, setting: Any) -> Show:
        return super().prepare(scene._replace(outcome=self._kept.against(scene.outcome)[1]), setting)

    def _title(self, outcome: Outcome, within: tuple[Range, ...], label: npt.NDArray[np.int64]) -> str:
        kept = self._kept.outcome  # numbers of clusters have gaps here
        return f"{kept.n_clusters:,} clusters, {kept.n_noise / max(len(kept.label) - kept.n_hidden, 1):.1%} noise"


class Changes(View):
    """Similarity of both, and clusters that were split or merged, that appeared or vanished."""

    title = "changes"

    def __init__(self, kept: Kept, choose: Choose, forget: Callable[[], None]) -> None:
        self._kept = kept
        self.words = pn.pane.HTML("", sizing_mode="stretch_width", margin=(28, 10, 0, 10))
        moved = button("Choose the points that moved", lambda: choose(kept.moved()))
        drop = button("Forget A", forget)
        self._table = pn.widgets.Tabulator(
            None, disabled=True, show_index=False, layout="fit_columns", pagination="remote",
            theme="simple", sizing_mode="stretch_both", titles=_TITLES, min_height=60,
        )  # fmt: skip
        self.panel = pn.Column(self.words, pn.Row(moved, drop, margin=0), self._table, sizing_mode="stretch_both")

    def prepare(self, scene: Scene, setting: Any) -> Show:
        found, _ = self._kept.against(scene.outcome)
        return functools.partial(self._show, found)

    def _show(self, found: Comparison) -> None:
        self.words.object = f"<span class='compared'>{in_html(found.words)}</span>"
        self._table.value = found.changes
