"""Progress of a command: one bar on standard error, for its steps one after the other."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from daskclust.cli._console import errors
from daskclust.core.device.machine_code import compiling

_LONG = 24 * 3600  # s; more is no forecast
_UNMEASURED = (".root",)  # is mapped into memory: nothing counts what is read of it


class _Figures(ProgressColumn):
    """How much is done, how fast, the time since the step began, and the time left if the rest goes as fast.

    Times are without those of compiling.
    """

    def render(self, task: Task) -> Text:
        done, total, unit, clock = task.completed, task.total, task.fields["unit"], task.fields["clock"]
        elapsed = (task.elapsed or 0.0) if clock is None else clock.seconds
        share = done / total if total else 0.0
        n, points = task.fields["points"] or (0, "")  # where tasks are counted, the rate is that of points
        counted = n * share if n else done
        parts = []
        if unit:
            parts.append(f"{_short(done, unit)}{'' if total is None else f'/{_short(total, unit)}'} {unit}")
        if unit and counted and elapsed:
            parts.append(f"{_short(counted / elapsed, unit)} {points or unit}/s")
        left = max(elapsed / share - elapsed, 0) if share else _LONG
        parts.append(str(timedelta(seconds=int(elapsed))))
        if left < _LONG:
            parts[-1] += f", {timedelta(seconds=int(left))} left"
        return Text(" ".join(parts), style="progress.data.speed")


class _Bar(Progress):
    """A bar that asks how far it is whenever it is drawn, so that steps need not tell."""

    ask: Callable[[], None] | None = None

    def stop(self) -> None:
        with suppress(OSError):  # of a terminal that is gone: the work is to be told of
            super().stop()

    def refresh(self) -> None:
        with suppress(OSError):
            super().refresh()

    def get_renderables(self) -> Iterable[RenderableType]:
        if self.ask is not None:
            self.ask()
        yield from super().get_renderables()


class Work:
    """What a command does: it says which step begins, and how far it is."""

    def __init__(self, bar: _Bar, name: str) -> None:
        self._bar = bar
        self._task = bar.add_task(escape(name), total=None, unit="", points=None, clock=compiling.Clock())

    def begin(
        self, name: str, total: float | None = None, unit: str = "", points: tuple[int, str] | None = None
    ) -> None:
        """Begin a step of so many hits, tasks or MB; of tasks, the rate is that of `points`, number and name."""
        self._bar.ask = None
        before = next(task for task in self._bar.tasks if task.id == self._task)
        new: dict[str, Any] = {"unit": unit, "points": points, "clock": compiling.Clock()}
        # A new task, not reset(): that keeps the total where the new one is None, and takes what is told late.
        self._task = self._bar.add_task(escape(name), total=total, visible=before.visible, **new)
        self._bar.remove_task(before.id)

    def at(self, done: float, name: str | None = None, total: float | None = None) -> None:
        """Tell how much of the step is done."""
        description = None if name is None else escape(name)
        self._bar.update(self._task, completed=done, total=total, description=description)

    def read(self, path: Path, *, is_lazy: bool = False) -> None:
        """Begin to read a file: bytes are counted, with those of the file as total, if all are read now."""
        is_measured = path.suffix.lower() not in _UNMEASURED
        files = [] if is_lazy or not is_measured else path.rglob("*") if path.is_dir() else [path]
        size = sum(file.stat().st_size for file in files if file.is_file()) or None
        self._count(f"reading {path.name}", "rchar", size, "MB" if is_measured else "")

    def write(self, path: Path) -> None:
        """Begin to write a file: bytes are counted."""
        self._count(f"writing {path.name}", "wchar", None, "MB")

    @contextmanager
    def tasks(self, name: str, points: tuple[int, str] | None = None) -> Iterator[None]:
        """Count the tasks of what workers compute meanwhile."""
        from daskclust.workers import following

        with following(self._begin_tasks(name, points)):
            yield

    def compute(self, dataset: Any, name: str, points: tuple[int, str]) -> Any:
        """Compute a lazy Dataset on the workers, where its arrays stay, and return it; tasks are counted."""
        from daskclust.workers import persist

        return persist(dataset, self._begin_tasks(name, points))

    def _begin_tasks(self, name: str, points: tuple[int, str] | None) -> Callable[[int, int, str], None]:
        self.begin(name, unit="tasks", points=points)
        return lambda done, total, step: self.at(done, f"{name}: {step}" if step else name, total)

    def _count(self, name: str, counter: str, total: int | None, unit: str) -> None:
        before = _bytes_so_far(counter)
        self.begin(name, *(() if before is None else (total, unit)))
        step = self._task

        def ask() -> None:
            done = (_bytes_so_far(counter) or 0) - (before or 0)
            with suppress(KeyError):  # the step has ended meanwhile
                self._bar.update(step, completed=min(done, total or done))

        self._bar.ask = None if before is None else ask


@contextmanager
def progress(name: str, console: Console = errors, *, quiet: bool = False) -> Iterator[Work]:
    """Show a bar, and remove it at the end; where the console is no terminal nothing, but a line on compiling."""
    step = TextColumn("{task.description}", table_column=Column())  # wraps on a narrow terminal; figures do not
    columns = (SpinnerColumn(), step, BarColumn(20), _Figures(Column(no_wrap=True)))
    if not gc.isenabled():
        gc.freeze()  # what was imported stays
        gc.enable()
    with _Bar(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as shown:
        work = Work(shown, name)
        with compiling.listening(_in_place_of(shown) if console.is_terminal else _in_one_line(console, quiet)):
            yield work


def _in_place_of(bar: _Bar) -> compiling.Listener:
    """Return what shows, while kernels are compiled, how many were, and the bar's own task again after it."""
    ours = bar.add_task("", start=False, visible=False, total=None, unit="", points=None, clock=None)

    def tell(told: compiling.Compiling) -> None:
        bar.start_task(ours)
        total = max(told.expected, told.number) if told.expected else None
        bar.update(ours, description=str(told), completed=told.number - told.is_busy, total=total)
        for task in bar.task_ids:
            bar.update(task, visible=(task == ours) == told.is_busy)

    return tell


def _in_one_line(console: Console, quiet: bool) -> compiling.Listener:
    """Return what says once that kernels are compiled, for logs and pipes."""
    to_tell = [] if quiet else [compiling.COMPILING]

    def tell(_: compiling.Compiling) -> None:
        while to_tell:
            console.print(to_tell.pop(), highlight=False, soft_wrap=True)

    return tell


def _bytes_so_far(counter: str) -> int | None:
    """Return how many bytes this process has read (rchar) or written (wchar), None where nobody tells."""
    try:
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{counter}:")), None)


def _short(number: float, unit: str) -> str:
    if unit == "MB":
        return f"{number / 1e6:,.1f}"
    return f"{number / 1e6:.1f}M" if number >= 1e6 else f"{number:,.0f}"
