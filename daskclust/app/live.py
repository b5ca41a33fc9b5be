"""A page whose views follow its state: what is wanted is computed, and then shown all at once.

Work that takes seconds runs in a process that can be ended, work that takes minutes only where the user agrees. What is
seen of it stands above the pictures: how long it has taken, and what ends it.
"""

from __future__ import annotations

import functools
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import panel as pn
from panel.viewable import Viewer

from daskclust.app.look import LIGHT
from daskclust.app.page.board import Board
from daskclust.app.selection import Selection
from daskclust.app.state import Outcome, Request, State, prepared_system
from daskclust.app.systems import SYSTEMS, ExplorerSystem, Workload
from daskclust.app.views._scene import Scene, View
from daskclust.app.widgets import button
from daskclust.app.worker import LONG, Later, Latest, Show, Worker, later_in
from daskclust.core.data.quote import in_html
from daskclust.core.device.machine_code.compiling import Clock, Compiling, listening

MINUTES = 20.0  # seconds; of which more is expected is not begun without a question
_PATIENCE = 0.2  # seconds until a process begins: a slider that is dragged asks for something else by then
_SEEN = 1.0  # seconds; what takes less is not told
_TICK = 0.3  # seconds from one look at work to the next
_MANY = 100_000  # points
Picked = tuple[Selection | None, Outcome]

_BOX = {
    "position": "absolute", "top": "34px", "left": "50%", "transform": "translateX(-50%)", "z-index": "9",
    "padding": "4px 8px", "background": "Canvas", "color": "CanvasText", "border": "1px solid #888888",
    "border-radius": "6px", "box-shadow": "0 2px 8px rgba(0, 0, 0, 0.25)",
}  # fmt: skip


class LongJob(NamedTuple):
    """What is to be done, and what is said of it."""

    request: Request | str
    work: Workload
    words: str
    back: str  # where the user can go back to


class Live(Viewer):
    """Computes and shows what the user asks for; `Explorer` says what is on the page, and what the user does there."""

    _panel: Any  # the page
    chooser: Any  # of the system
    _built: ExplorerSystem  # whose views there are

    def __init__(self, state: State) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.state = state
        self._system = state.system.name
        self._slice = None if state.slices is None else state.slices.first
        self._clock, self._took = Clock(), ""
        self.views: list[View] = []
        self._pictures: list[View] = []
        self._shown: dict[View, Hashable] = {}
        self._later = later_in(pn.state.curdoc)
        self.latest = Latest(self._begin, self._fail, self._rest, self._later)
        self.job: LongJob | None = None  # that is under way, or of which the user is asked
        self._began: float | None = None  # when it began
        self.worker = Worker(state.ds)
        weakref.finalize(self, self.worker.stop)
        self._picked: Picked | None = None  # what is to be chosen, and of which clusters
        self._has_failed = self._is_refused = self._is_ticking = False
        self._look = LIGHT
        self.head = pn.pane.HTML("", sizing_mode="stretch_width", height=26, margin=(5, 10, 0, 10))
        self.note = pn.pane.Alert("", alert_type="warning", visible=False, sizing_mode="stretch_width")
        self._words = pn.pane.HTML("", margin=(0, 4), align="center")
        how: dict[str, Any] = {"height": 28, "margin": (0, 2), "align": "center"}
        self.run_anyway = button("Run anyway", self._allow, **how)
        self.cancel = button("Cancel", self._back, **how)
        self.work = pn.Row(self._words, self.run_anyway, self.cancel, visible=False, styles=_BOX, margin=0)
        self.board = Board(self._keep)

    def _build(self) -> None:
        """Lay out widgets and views of the present system."""
        raise NotImplementedError

    def _keep(self) -> None:
        """Let the address keep what is seen."""
        raise NotImplementedError

    def _set(self, values: dict[str, Any]) -> None:
        """Want other values of parameters."""
        raise NotImplementedError

    def _ask(self) -> None:
        """Let what is wanted now be done: at once, or in a process where it takes long."""
        self._clock = Clock()
        if self.job is not None and self.job.request != self._wanted():
            self._stop()
        self.latest.ask()

    def _wanted(self) -> Request | str:
        """Return what is to be computed, or the system that must be prepared for that."""
        return self.state.request(self._system) if self.state.knows(self._system) else self._system

    def _begin(self) -> Iterator[Show]:
        self._has_failed = False
        self._say("working …")
        self._since = time.monotonic()
        self._wait()
        settings = {view: view.setting() for view in self.views}
        return self._telling(self._steps(self._wanted(), self._scene(), self._picked, settings))

    def _telling(self, steps: Iterator[Show]) -> Iterator[Show]:
        """Do steps, and tell of kernels that are compiled meanwhile."""
        with listening(self._tell):
            yield from steps

    def _tell(self, told: Compiling) -> None:
        say = functools.partial(self._say, f"{told} …" if told.is_busy else "working …")
        say() if self._later is None else self._later(say)

    def _scene(self) -> Scene:
        return Scene(self.state.present, self.state.chosen, self._slice, self._look)

    def _steps(
        self, request: Request | str, scene: Scene, picked: Picked | None, settings: dict[View, Any]
    ) -> Iterator[Show]:
        """Compute what is wanted, if that is not long, and yield what shows all of it."""
        if isinstance(request, str) and SYSTEMS[request].seconds_to_begin(self.state.ds) <= LONG:
            self.state.prepare(request)
            request = self.state.request(request)
        if request != scene.outcome.request:
            job = self._job(request, scene.outcome.request)
            if isinstance(request, str) or job.work.seconds > (LONG if self._later else MINUTES):
                yield functools.partial(self._want, job)
            else:
                scene = scene._replace(outcome=request.outcome())
        if picked is not None:
            scene = scene._replace(chosen=self.state.choice(*picked))
        if scene.outcome.request.system is not self._built:
            scene.outcome.table  # noqa: B018 (made here, not in the thread of the widgets)
            yield functools.partial(self._enter, scene)
            return
        keys = {view: self._key(view, scene, settings[view]) for view in self.views}
        changed = [view for view in self.views if self._shown.get(view) != keys[view]]
        # the table is made beside the pictures; of few points it is quick, and a hierarchy uses the same kernels
        making = _beside().submit(getattr, scene.outcome, "table") if len(scene.outcome.label) > _MANY else None
        pictures = {view: view.prepare(scene, settings[view]) for view in changed if view in self._pictures}
        if making is not None:
            making.result()
        shows = {view: pictures.get(view) or view.prepare(scene, settings[view]) for view in changed}
        yield functools.partial(self._show, scene, picked, shows, keys)

    def _job(self, request: Request | str, before: Request) -> LongJob:
        """Return how to do what is wanted in another process."""
        if isinstance(request, str):
            kind = SYSTEMS[request]
            work = Workload(kind.seconds_to_begin(self.state.ds))
            return LongJob(request, work, kind.title, "Back")
        work = request.system.seconds(request.values)
        new = {name: value for name, value in request.values.items() if before.values.get(name) != value}
        words = ", ".join(f"{name} = {_number(value)}" for name, value in new.items())
        is_one = len(new) == 1 and request.system is before.system
        back = f"Back to {_number(before.values[next(iter(new))])}" if is_one else "Back"
        return LongJob(request, work, words, back)

    def _key(self, view: View, scene: Scene, setting: Hashable) -> Hashable:
        """Return what tells whether a view must be shown anew."""
        number = scene.slice if view in self._pictures else None
        return scene.outcome, id(scene.chosen), number, scene.look, setting

    def _enter(self, scene: Scene) -> None:
        """Show another system."""
        self.state.choose(scene.outcome.request.system.name)
        self._adopt(scene, None)
        self._build()

    def _adopt(self, scene: Scene, picked: Picked | None) -> None:
        self.state.outcome, self.state.chosen = scene.outcome, scene.chosen
        if self._picked is picked:
            self._picked = None

    def _show(self, scene: Scene, picked: Picked | None, shows: dict[View, Show], keys: dict[View, Hashable]) -> None:
        """Show all views, and what is said of them, at once."""
        is_new = scene.outcome is not self.state.outcome
        self._adopt(scene, picked)
        for view, show in shows.items():
            show()
            self._shown[view] = keys[view]
        if is_new or self.views[0] in shows:
            self._took = " · ".join(filter(None, (f"{1e3 * self._clock.seconds:.0f} ms", self._clock.aside)))
        self._say("working …")
        pn.io.push_notebook(self._panel)  # nothing else tells a notebook of what is done to figures

    def _fail(self, error: Exception) -> None:
        """Tell of parameters that do not do; what was there stays."""
        self._has_failed = True
        self.note.param.update(object=in_html(str(error) or type(error).__name__), visible=True)
        self._system = self.chooser.value = self.state.system.name

    def _calm(self) -> None:
        """Take back what was told of values that are others now."""
        self._has_failed = self._is_refused = self.note.visible = False

    # ------------------------------------------------------------------------------------------------------- long work
    def _want(self, job: LongJob) -> None:
        """Do a job, or ask whether to, unless it is the one that is under way."""
        if self.job is not None and self.job.request == job.request:
            return
        self._stop()
        self.job = job
        if job.work.seconds <= MINUTES:
            self._start()
            return
        reason = f" ({job.work.words})" if job.work.words else ""
        self._show_work(f"{in_html(job.words)} needs {duration(job.work.seconds)}{in_html(reason)}", job.back)

    def _allow(self) -> None:
        self._start()
        self._ask()

    def _start(self) -> None:
        job = self.job
        assert job is not None
        self._began, self.work.visible = time.monotonic(), False
        if self._later is None:  # there is nothing to wait in
            self._end(job, self._taken, prepared_system(self.state.ds, job.request))
        else:
            threading.Thread(target=self._compute, args=(job, self._later), daemon=True).start()

    def _compute(self, job: LongJob, later: Later) -> None:
        time.sleep(_PATIENCE)
        if self.job is not job:
            return
        try:
            system = self.worker.call(prepared_system, job.request, compiles=self._tell)
            end = functools.partial(self._end, job, self._taken, system)
        except Exception as error:
            end = functools.partial(self._end, job, self._fail, error)
        if self.job is job:  # it was not stopped
            later(end)

    def _end(self, job: LongJob, then: Callable[[Any], None], result: Any) -> None:
        """Go on with the result of a job, or with its error."""
        if self.job is job:
            self.job = self._began = None
            then(result)

    def _taken(self, system: ExplorerSystem) -> None:
        """Take over what the process has computed."""
        self.state.take(system)
        self._ask()

    def _stop(self) -> None:
        """End the job, if there is one, and with it what it computes."""
        is_running = self._began is not None
        self.job = self._began = None
        self.work.visible = False
        if is_running:
            self.worker.stop()

    def close(self) -> None:
        """End the job and the process: nobody sees the page any more."""
        self._stop()
        self.worker.stop()

    def _back(self) -> None:
        """Want again what is shown: a job is ended, numbers and lines are as they were."""
        self._stop()
        request = self.state.present.request
        self._calm()
        self._system = self.chooser.value = request.system.name
        self._set(dict(request.values))

    def _show_work(self, words: str, back: str, *, asks: bool = True) -> None:
        self._words.object = f"<span role='status' style='white-space:nowrap'>{words}</span>"
        self.cancel.label, self.run_anyway.visible = back, asks
        self.work.visible = True

    # --------------------------------------------------------------------------------------------------------- waiting
    def _wait(self) -> None:
        """Look again in a moment, and tell then of what is still under way."""
        if self._later is not None and not self._is_ticking:
            self._is_ticking = True
            timer = threading.Timer(_TICK, self._later, (self._tick,))
            timer.daemon = True
            timer.start()

    def _tick(self) -> None:
        self._is_ticking = False
        if self.latest.is_busy or self._began is not None:
            seconds = time.monotonic() - (self._since if self._began is None else self._began)
            if seconds > _TICK:
                self._dim(is_former=True)
                self._tell_seconds(seconds)
            self._wait()

    def _tell_seconds(self, seconds: float) -> None:
        """Tell how long the present work has taken, and let it be cancelled, if that is worth telling."""
        if seconds < _SEEN or (self.job is not None and self._began is None):
            return
        of = ends = ""
        if self.job is not None:
            whole = self.job.work.seconds
            of = f" of {duration(whole)}" if seconds < whole else ", a little longer"
            ends = f" max='{max(whole, seconds):.1f}' value='{seconds:.1f}'"
        self._show_work(f"<progress style='width:9em'{ends}></progress> {seconds:.0f} s{of}", "Cancel", asks=False)

    def _dim(self, *, is_former: bool) -> None:
        """Let pictures be seen to be of former values."""
        self.board.__panel__().css_classes = ["former"] if is_former else []

    def _rest(self) -> None:
        if not self._has_failed and not self._is_refused:
            self.note.visible = False
        if self._began is not None:
            self._say("working …")
            self._wait()
            return
        self._keep()
        self.work.visible = self.job is not None
        self._dim(is_former=self.job is not None)
        self._say(kind="now rest")

    def _say(self, now: str = "", kind: str = "now") -> None:
        """Tell how many clusters there are, and whether others are under way, or how long the last picture took."""
        outcome = self.state.present
        n = len(outcome.label) - outcome.n_hidden
        words = [f"{outcome.n_clusters:,} clusters", f"{n:,} points", f"{outcome.n_noise / max(n, 1):.1%} noise"]
        if outcome.n_hidden:
            words.append(f"{outcome.n_hidden:,} hits of noisy pixels hidden")
        if self.state.part is not None:
            words.append(self.state.part.words)
        if self.state.mask is not None:
            words.insert(0, f"{int(np.count_nonzero(self.state.mask)):,} points chosen")
        now = now or self._took
        look, told = self._look, in_html(" · ".join(words))
        self.head.object = (
            f"<h1><b>{outcome.request.system.title}</b></h1><span class='counts {look.name}'>{told}</span> &ensp;"
            f"<span class='{kind}' role='status'>{in_html(now)}</span>"
        )


@functools.cache
def _beside() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="daskclust-explore-table")


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def duration(seconds: float) -> str:
    """Return about how long something takes, in words."""
    if seconds < 90:
        return f"about {max(seconds, 1):.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.0f} h"
