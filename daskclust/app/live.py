"""A page whose views follow its state: the newest request is computed, then all views change at once.

Work of seconds runs in a process that can be ended, work of minutes only after the user agrees. A box above the
pictures shows how long it has taken, with the buttons.
"""

from __future__ import annotations

import functools
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np
import panel as pn
from panel.viewable import Viewer

from daskclust.app.look import LIGHT
from daskclust.app.page.board import Board
from daskclust.app.selection import Range, Selection
from daskclust.app.state import Outcome, Request, State, prepared_system
from daskclust.app.systems import SYSTEMS, ExplorerSystem, Workload
from daskclust.app.tools.comparing import Kept
from daskclust.app.tools.export import Seen
from daskclust.app.views._scene import Scene, View
from daskclust.app.widgets import button
from daskclust.app.worker import LONG, Later, Latest, Show, Worker, later_in, thread_named
from daskclust.core.data.quote import in_html
from daskclust.core.device.machine_code.compiling import Clock, Compiling, listening

MINUTES = 20.0  # seconds; longer work needs the user's consent
_PATIENCE = 0.2  # seconds until a process begins: a slider that is dragged asks for something else by then
_SEEN = 1.0  # seconds; shorter work has no progress bar
_TICK = 0.3  # seconds between updates of the progress bar
_MANY = 100_000  # points
Picked = tuple[Selection | None, Outcome]

_BOX = {
    "position": "absolute", "top": "34px", "left": "50%", "transform": "translateX(-50%)", "z-index": "9",
    "padding": "4px 8px", "background": "Canvas", "color": "CanvasText", "border": "1px solid #888888",
    "border-radius": "6px", "box-shadow": "0 2px 8px rgba(0, 0, 0, 0.25)",
}  # fmt: skip


class LongJob(NamedTuple):
    """Work of seconds or more: a clustering, or the system that is to be prepared."""

    request: Request | str
    work: Workload
    words: str
    back: str  # label of the button that gives it up


class Live(Viewer):
    """Computes and shows what the user requests; `Explorer` lays out the page, and handles what the user does."""

    _panel: Any  # the page
    chooser: Any  # of the system
    _built: ExplorerSystem  # whose views there are
    _build: Callable[[], None]  # lays out widgets and views of the present system
    _update_address: Callable[[], None]
    draw: Callable[[tuple[str, str]], None]
    seen: Callable[[], Seen]
    set_values: Callable[[dict[str, Any]], None]

    def __init__(self, state: State) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.state = state
        self._system = state.system.name
        self._slice = None if state.slices is None else state.slices.first  # the one that is shown
        self._chip = None if state.chips is None else state.chips.first
        self._clock, self._took = Clock(), ""
        self.views: list[View] = []
        self._pictures: list[View] = []
        self._shown: dict[View, Hashable] = {}
        self._later = later_in(pn.state.curdoc)
        self.latest = Latest(self._begin, self._show_error, self._finish, self._later)
        self.job: LongJob | None = None  # that is running, or waits for the user's consent
        self._began: float | None = None  # when it began
        self._kept: Kept | None = None  # an outcome that the present one is compared with
        self._drawn_kept: Kept | None = None  # the one that views were made for
        self.worker = Worker(state.ds)
        weakref.finalize(self, self.worker.stop)
        self._picked: Picked | None = None  # what is to be chosen, and of which clusters
        self._has_failed = self._is_refused = self._is_ticking = False
        self._look = LIGHT
        self.head = pn.pane.HTML("", sizing_mode="stretch_width", height=26, margin=(5, 10, 0, 10))
        self.note = pn.pane.Alert("", alert_type="warning", visible=False, sizing_mode="stretch_width")
        self._words = pn.pane.HTML("", margin=(0, 4), align="center")
        how: dict[str, Any] = {"height": 28, "margin": (0, 2), "align": "center"}
        self.run_anyway = button("Run anyway", self._run_anyway, **how)
        self.cancel = button("Cancel", self._cancel_job, **how)
        self.work = pn.Row(self._words, self.run_anyway, self.cancel, visible=False, styles=_BOX, margin=0)
        self.board = Board(self._update_address)

    def _request_update(self) -> None:
        """Compute and show the present request: at once, or in a process where it takes long."""
        self._clock = Clock()
        if self.job is not None and self.job.request != self._requested():
            self._stop_job()
        self.latest.ask()

    def _requested(self) -> Request | str:
        """Return the request, or the name of the system that must be prepared first."""
        return self.state.request(self._system) if self.state.knows(self._system) else self._system

    def _begin(self) -> Iterator[Show]:
        self._has_failed = False
        self._write_header("working …")
        self._since = time.monotonic()
        self._schedule_tick()
        settings = {view: view.setting() for view in self.views}
        return self._listening(self._steps(self._requested(), self._scene(), self._picked, self._kept, settings))

    def _listening(self, steps: Iterator[Show]) -> Iterator[Show]:
        """Run steps, and report the kernels that are compiled meanwhile."""
        with listening(self._report_compiling):
            yield from steps

    def _report_compiling(self, state: Compiling) -> None:
        write = functools.partial(self._write_header, f"{state} …" if state.is_busy else "working …")
        write() if self._later is None else self._later(write)

    def _scene(self) -> Scene:
        return Scene(self.state.present, self.state.chosen, self.within, self._look)

    @property
    def within(self) -> tuple[Range, ...]:
        """The slice and the chip that are shown, none where all are."""
        return tuple(each for each in (self._slice, self._chip) if each is not None)

    def _steps(
        self, request: Request | str, scene: Scene, picked: Picked | None, kept: Kept | None, settings: dict[View, Any]
    ) -> Iterator[Show]:
        """Compute a request, if that is not long, and yield the function that shows it."""
        if isinstance(request, str) and SYSTEMS[request].seconds_to_begin(self.state.ds) <= LONG:
            self.state.prepare(request)
            request = self.state.request(request)
        if request != scene.outcome.request:
            job = self._job_of(request, scene.outcome.request)
            if isinstance(request, str) or job.work.seconds > (LONG if self._later else MINUTES):
                yield functools.partial(self._propose_job, job)
            else:
                scene = scene._replace(outcome=request.outcome())
        if picked is not None:
            scene = scene._replace(chosen=self.state.choice(*picked))
        if scene.outcome.request.system is not self._built or kept is not self._drawn_kept:
            scene.outcome.table  # noqa: B018 (made here, not in the thread of the widgets)
            if kept is not None:
                kept.against(scene.outcome)  # likewise
            yield functools.partial(self._show_anew, scene, picked)
            return
        keys = {view: self._key(view, scene, settings[view]) for view in self.views}
        changed = [view for view in self.views if self._shown.get(view) != keys[view]]
        # the table is made beside the pictures; of few points it is quick, and a hierarchy uses the same kernels
        beside = thread_named("daskclust-explore-table")
        making = beside.submit(getattr, scene.outcome, "table") if len(scene.outcome.label) > _MANY else None
        pictures = {view: view.prepare(scene, settings[view]) for view in changed if view in self._pictures}
        if making is not None:
            making.result()
        shows = {view: pictures.get(view) or view.prepare(scene, settings[view]) for view in changed}
        yield functools.partial(self._show, scene, picked, shows, keys)

    def _job_of(self, request: Request | str, before: Request) -> LongJob:
        """Return how to do what is wanted in another process."""
        if isinstance(request, str):
            work = Workload(SYSTEMS[request].seconds_to_begin(self.state.ds))
            return LongJob(request, work, SYSTEMS[request].title, "Back")
        work = request.system.seconds(request.values)
        new = {name: value for name, value in request.values.items() if before.values.get(name) != value}
        words = ", ".join(f"{name} = {_number(value)}" for name, value in new.items())
        is_one = len(new) == 1 and request.system is before.system
        back = f"Back to {_number(before.values[next(iter(new))])}" if is_one else "Back"
        return LongJob(request, work, words, back)

    def _key(self, view: View, scene: Scene, setting: Hashable) -> Hashable:
        """Return a key that changes when a view must be drawn anew."""
        within = scene.within if view in self._pictures else ()
        return scene.outcome, id(scene.chosen), within, scene.look, setting

    def _show_anew(self, scene: Scene, picked: Picked | None) -> None:
        """Make the views of another system, or of another comparison."""
        system = scene.outcome.request.system
        self._adopt(scene, picked)
        if system is not self._built:
            self.state.choose(system.name)
            self._build()
        else:
            self.draw(self.seen().axes)

    def _adopt(self, scene: Scene, picked: Picked | None) -> None:
        self.state.outcome, self.state.chosen = scene.outcome, scene.chosen
        if self._picked is picked:
            self._picked = None

    def _show(self, scene: Scene, picked: Picked | None, shows: dict[View, Show], keys: dict[View, Hashable]) -> None:
        """Show all views and the header at once."""
        is_new = scene.outcome is not self.state.outcome
        self._adopt(scene, picked)
        for view, show in shows.items():
            show()
            self._shown[view] = keys[view]
        if is_new or self.views[0] in shows:
            self._took = " · ".join(filter(None, (f"{1e3 * self._clock.seconds:.0f} ms", self._clock.aside)))
        self._write_header("working …")
        pn.io.push_notebook(self._panel)  # nothing else tells a notebook of what is done to figures

    def _show_error(self, error: Exception) -> None:
        """Show an error; the last valid result stays."""
        self._has_failed = True
        self.note.param.update(object=in_html(str(error) or type(error).__name__), visible=True)
        self._system = self.chooser.value = self.state.system.name

    def _show_warning(self) -> None:
        """Show the estimator's warning of the present result, if there is one."""
        warning = self.state.present.warning
        self.note.param.update(object=in_html(warning), visible=bool(warning))

    def _clear_error(self) -> None:
        self._has_failed = self._is_refused = self.note.visible = False

    # ------------------------------------------------------------------------------------------------------- long work
    def _propose_job(self, job: LongJob) -> None:
        """Start a job, or ask for consent, unless it is running."""
        if self.job is not None and self.job.request == job.request:
            return
        self._stop_job()
        self.job = job
        if job.work.seconds <= MINUTES:
            self._start_job()
            return
        reason = f" ({job.work.words})" if job.work.words else ""
        self._show_work(f"{in_html(job.words)} needs {duration(job.work.seconds)}{in_html(reason)}", job.back)

    def _run_anyway(self) -> None:
        self._start_job()
        self._request_update()

    def _start_job(self) -> None:
        job = self.job
        assert job is not None
        self._began, self.work.visible = time.monotonic(), False
        if self._later is None:  # there is nothing to wait in
            self._end_job(job, self._use_result, prepared_system(self.state.ds, job.request))
        else:
            threading.Thread(target=self._run_job, args=(job, self._later), daemon=True).start()

    def _run_job(self, job: LongJob, later: Later) -> None:
        time.sleep(_PATIENCE)
        if self.job is not job:
            return
        try:
            system = self.worker.call(prepared_system, job.request, compiles=self._report_compiling)
            end = functools.partial(self._end_job, job, self._use_result, system)
        except Exception as error:
            end = functools.partial(self._end_job, job, self._show_error, error)
        if self.job is job:  # it was not stopped
            later(end)

    def _end_job(self, job: LongJob, then: Callable[[Any], None], result: Any) -> None:
        if self.job is job:
            self.job = self._began = None
            then(result)

    def _use_result(self, system: ExplorerSystem) -> None:
        """Take over the results of the process."""
        self.state.take(system)
        self._request_update()

    def _stop_job(self) -> None:
        """End the job, if there is one, and its process."""
        is_running = self._began is not None
        self.job = self._began = None
        self.work.visible = False
        if is_running:
            self.worker.stop()

    def close(self) -> None:
        """End the job and the process: nobody sees the page any more."""
        self._stop_job()
        self.worker.stop()

    def _cancel_job(self) -> None:
        """End the job, and put parameters back to those of the result that is shown."""
        self._stop_job()
        request = self.state.present.request
        self._clear_error()
        self._system = self.chooser.value = request.system.name
        self.set_values(dict(request.values))

    def _show_work(self, words: str, back: str, *, asks: bool = True) -> None:
        self._words.object = f"<span role='status' style='white-space:nowrap'>{words}</span>"
        self.cancel.label, self.run_anyway.visible = back, asks
        self.work.visible = True

    # --------------------------------------------------------------------------------------------------------- waiting
    def _schedule_tick(self) -> None:
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
                self._mark_outdated(is_former=True)
                self._show_progress(seconds)
            self._schedule_tick()
        else:  # Panel leaves a message that comes while it sends others until there is another one: here it is
            self.head.object += " "

    def _show_progress(self, seconds: float) -> None:
        """Show how long the work has taken, and *Cancel*, once it takes more than a second."""
        if seconds < _SEEN or (self.job is not None and self._began is None):
            return
        of = ends = ""
        if self.job is not None:
            whole = self.job.work.seconds
            of = f" of {duration(whole)}" if seconds < whole else ", a little longer"
            ends = f" max='{max(whole, seconds):.1f}' value='{seconds:.1f}'"
        self._show_work(f"<progress style='width:9em'{ends}></progress> {seconds:.0f} s{of}", "Cancel", asks=False)

    def _mark_outdated(self, *, is_former: bool) -> None:
        """Draw views pale while they show former values."""
        self.board.__panel__().css_classes = ["former"] if is_former else []

    def _finish(self) -> None:
        if not self._has_failed and not self._is_refused:
            self._show_warning()
        if self._began is not None:
            self._write_header("working …")
            self._schedule_tick()
            return
        self._update_address()
        self.work.visible = self.job is not None
        self._mark_outdated(is_former=self.job is not None)
        self._write_header(kind="now rest")

    def _write_header(self, now: str = "", kind: str = "now") -> None:
        """Write the numbers of clusters and points, and the state: working, or how long the last picture took."""
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
        look, counts = self._look, in_html(" · ".join(words))
        self.head.object = (
            f"<h1><b>{outcome.request.system.title}</b></h1><span class='counts {look.name}'>{counts}</span> &ensp;"
            f"<span class='{kind}' role='status'>{in_html(now)}</span>"
        )


def _number(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def duration(seconds: float) -> str:
    """Return about how long something takes, in words."""
    if seconds < 90:
        return f"about {max(seconds, 1):.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.0f} h"
