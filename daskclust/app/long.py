"""Work that takes seconds runs in a process that can be ended, work that takes minutes only where the user agrees.

What is seen of it stands above the pictures: how long it has taken, and what ends it.
"""

from __future__ import annotations

import functools
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import panel as pn

from daskclust.app.latest import Later, Show
from daskclust.app.process import Process, StoppedError
from daskclust.app.systems import Workload
from daskclust.app.widgets import labelled
from daskclust.core.data.quote import in_html
from daskclust.core.device.machine_code.compiling import Compiling

LONG = 2.0  # seconds; work of which more is expected is done in a process
MINUTES = 20.0  # seconds; of which more is expected is not begun without a question
_PATIENCE = 0.2  # seconds until a process begins: a slider that is dragged has other wishes by then
_SEEN = 1.0  # seconds; what takes less is not told

_BOX = {
    "position": "absolute", "top": "34px", "left": "50%", "transform": "translateX(-50%)", "z-index": "9",
    "padding": "4px 8px", "background": "Canvas", "color": "CanvasText", "border": "1px solid #888888",
    "border-radius": "6px", "box-shadow": "0 2px 8px rgba(0, 0, 0, 0.25)",
}  # fmt: skip
_FORMER = ":host(.former) { opacity: 0.5; transition: opacity 0.2s }"  # pictures of former values


class LongJob(NamedTuple):
    """What is to be done: `function` of the data and `arguments`, for a wish; and what is said of it."""

    wish: Any
    work: Workload
    words: str
    back: str  # where the user can go back to
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Long:
    """The one job of an explorer; `done` gets its result, `fail` its error, in the thread of the widgets.

    The user calls `back` for what was there before; `begun` is called as the user lets a job begin, `tell` with kernels
    that the process compiles.
    """

    def __init__(
        self,
        ds: Any,
        later: Later | None,
        done: Callable[[Any], None],
        fail: Callable[[Exception], None],
        back: Show,
        begun: Show,
        tell: Callable[[Compiling], None],
    ) -> None:
        self.job: LongJob | None = None
        self.is_running, self.began = False, 0.0
        self._later, self._done, self._fail, self._tell = later, done, fail, tell
        self._ds, self._process = ds, Process(ds)
        weakref.finalize(self, self._process.stop)
        self._words = pn.pane.HTML("", margin=(0, 4), align="center")
        self._begun = begun
        self._run = _button("Run anyway", self._allow)
        self._cancel = _button("Cancel", back)
        self.panel = pn.Row(self._words, self._run, self._cancel, visible=False, styles=_BOX, margin=0)

    # ---------------------------------------------------------------------------------------------------------- doing
    def want(self, job: LongJob) -> None:
        """Do a job, or ask whether to, unless it is the one that is under way."""
        if self.job is not None and self.job.wish == job.wish:
            return
        self.stop()
        self.job = job
        if job.work.seconds <= MINUTES:
            self._begin()
            return
        reason = f" ({job.work.words})" if job.work.words else ""
        self._show(f"{in_html(job.words)} needs {duration(job.work.seconds)}{in_html(reason)}", job.back, asks=True)

    def _allow(self) -> None:
        self._begin()
        self._begun()

    def stop(self) -> None:
        """End the job, if there is one, and with it what it computes."""
        if self.is_running:
            self._process.stop()
        self.job, self.is_running = None, False
        self.panel.visible = False

    def close(self) -> None:
        """End the process: nobody sees the page any more."""
        self.job, self.is_running = None, False
        self._process.stop()

    def _begin(self) -> None:
        job = self.job
        assert job is not None
        self.is_running, self.began = True, time.monotonic()
        self.panel.visible = False
        if self._later is None:  # there is nothing to wait in
            self._end(job, self._done, job.function(self._ds, *job.arguments))
        else:
            threading.Thread(target=self._compute, args=(job, self._later), daemon=True).start()

    def _compute(self, job: LongJob, later: Later) -> None:
        time.sleep(_PATIENCE)
        if self.job is not job:
            return
        try:
            result = self._process.call(job.function, *job.arguments, compiles=self._tell)
        except StoppedError:
            return
        except Exception as error:
            later(functools.partial(self._end, job, self._fail, error))
        else:
            later(functools.partial(self._end, job, self._done, result))

    def _end(self, job: LongJob, then: Callable[[Any], None], result: Any) -> None:
        if self.job is job:
            self.job, self.is_running = None, False
            then(result)

    # ---------------------------------------------------------------------------------------------------------- telling
    def tell(self, seconds: float) -> None:
        """Tell how long the present work has taken, and let it be cancelled, if that is worth telling."""
        if seconds < _SEEN or (self.job is not None and not self.is_running):
            return
        of, bar = "", "<progress style='width:9em'></progress>"
        if self.job is not None:
            whole = max(self.job.work.seconds, seconds)
            of = f" of {duration(self.job.work.seconds)}" if seconds < self.job.work.seconds else ", a little longer"
            bar = f"<progress style='width:9em' max='{whole:.1f}' value='{seconds:.1f}'></progress>"
        self._show(f"{bar} {seconds:.0f} s{of}", "Cancel", asks=False)

    def hide(self) -> None:
        """Tell nothing any more, but what the user is asked."""
        self.panel.visible = self.job is not None and not self.is_running

    def _show(self, words: str, back: str, *, asks: bool) -> None:
        self._words.object = f"<span role='status' style='white-space:nowrap'>{words}</span>"
        self._cancel.name, self._run.visible = back, asks
        self.panel.visible = True


def duration(seconds: float) -> str:
    """Return about how long something takes, in words."""
    if seconds < 90:
        return f"about {max(seconds, 1):.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.0f} h"


def dim(grid: Any, is_former: bool) -> None:
    """Let pictures be seen to be of former values."""
    if _FORMER not in grid.stylesheets:
        grid.stylesheets = [*grid.stylesheets, _FORMER]
    classes = ["former"] if is_former else []
    if grid.css_classes != classes:
        grid.css_classes = classes


def _button(words: str, do: Show) -> Any:
    return labelled(pn.widgets.Button, words, on_click=lambda _: do(), height=28, margin=(0, 2), align="center")
