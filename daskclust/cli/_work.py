"""Progress of a command: one bar on standard error, for its steps one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

_LONG = 24 * 3600  # s; more is no forecast
_UNMEASURED = (".root",)  # is mapped into memory: nothing counts what is read of it


class _Amount(ProgressColumn):
    """How much is done, of how much."""

    def render(self, task: Task) -> Text:
        unit = task.fields["unit"]
        done, total = (None if x is None else _short(x, unit) for x in (task.completed, task.total))
        if not unit:
            return Text("")
        return Text(f"{done} {unit}" if total is None else f"{done}/{total} {unit}", style="progress.download")


class _Rate(ProgressColumn):
    """Throughput since the step began: of what is counted, or of points, by the share of tasks that are done."""

    def render(self, task: Task) -> Text:
        points, unit = task.fields["points"], task.fields["unit"]
        if points is not None:
            n, unit = points
            done = n * task.completed / task.total if task.total else 0.0
        else:
            done = task.completed
        if not unit or not task.elapsed or not done:
            return Text("")
        return Text(f"{_short(done / task.elapsed, unit)} {unit}/s", style="progress.data.speed")


class _Times(ProgressColumn):
    """The time since the step began, and the time left if the rest goes as fast."""

    def render(self, task: Task) -> Text:
        elapsed = task.elapsed or 0.0
        text = _clock(elapsed)
        if task.total and task.completed:
            left = elapsed * max(task.total - task.completed, 0) / task.completed
            text += f", {_clock(left)} left" if left < _LONG else ""
        return Text(text, style="progress.elapsed")


class _Bar(Progress):
    """A bar that asks how far it is whenever it is drawn, so that steps need not tell."""

    ask: Callable[[], None] | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        if self.ask is not None:
            self.ask()
        yield from super().get_renderables()


class Work:
    """What a command does: it says which step begins, and how far it is."""

    def __init__(self, bar: _Bar, name: str) -> None:
        self._bar = bar
        self._task = bar.add_task(escape(name), total=None, unit="", points=None)

    def begin(
        self, name: str, total: float | None = None, unit: str = "", points: tuple[int, str] | None = None
    ) -> None:
        """Begin a step.

        Parameters
        ----------
        name : str
            What it does.
        total : float, optional
            How much there is to do; None: nobody knows.
        unit : str, default ""
            Of what: ``"hits"``, or ``"MB"`` for bytes.
        points : (int, str), optional
            Number and name of points, where tasks are counted: the rate is theirs.
        """
        self._bar.ask = None
        self._bar.reset(self._task, total=total, description=escape(name), unit=unit, points=points)

    def at(self, done: float, name: str | None = None) -> None:
        """Tell how much of the step is done."""
        self._bar.update(self._task, completed=done, description=None if name is None else escape(name))

    def read(self, path: Path) -> None:
        """Begin to read a file: bytes are counted, with those of the file as total."""
        measured = path.suffix not in _UNMEASURED
        self._count(f"reading {path.name}", "rchar", _bytes_of(path) if measured else None, "MB" if measured else "")

    def write(self, path: Path) -> None:
        """Begin to write a file: bytes are counted."""
        self._count(f"writing {path.name}", "wchar", None, "MB")

    def compute(self, dataset: Any, name: str, points: tuple[int, str]) -> Any:
        """Compute a lazy Dataset on the workers, where its arrays stay, and return it; tasks are counted."""
        from daskclust.workers import persist

        self.begin(name, unit="tasks", points=points)

        def report(done: int, total: int, step: str) -> None:
            self._bar.update(self._task, completed=done, total=total, description=escape(f"{name}: {step}"))

        return persist(dataset, report)

    def _count(self, name: str, counter: str, total: int | None, unit: str) -> None:
        """Begin a step whose bytes the system counts."""
        before = _bytes_so_far(counter)
        if before is None:  # not on this system
            self.begin(name)
            return
        self.begin(name, total, unit)

        def ask() -> None:
            done = (_bytes_so_far(counter) or before) - before
            self._bar.update(self._task, completed=min(done, total or done))

        self._bar.ask = ask


@contextmanager
def bar(name: str, console: Console, *, quiet: bool = False) -> Iterator[Work]:
    """Show a bar, and remove it at the end; nothing where the console is no terminal."""
    figures = [
        kind(table_column=Column(no_wrap=True)) for kind in (_Amount, _Rate, _Times)
    ]  # the name wraps, they do not
    columns = (SpinnerColumn(), TextColumn("{task.description}", table_column=Column()), BarColumn(20), *figures)
    with _Bar(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as shown:
        yield Work(shown, name)


def _bytes_so_far(counter: str) -> int | None:
    """Return how many bytes this process has read (rchar) or written (wchar), None where nobody tells."""
    try:
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{counter}:")), None)


def _bytes_of(path: Path) -> int | None:
    """Return the size of a file, or of a folder's files together."""
    try:
        if not path.is_dir():
            return path.stat().st_size or None
        return sum(os.path.getsize(os.path.join(top, name)) for top, _, names in os.walk(path) for name in names)
    except OSError:
        return None  # the reader tells more


def _short(number: float, unit: str) -> str:
    """Return a number in a few digits: bytes in MB, counts with commas or in millions."""
    if unit == "MB":
        return f"{number / 1e6:,.1f}"
    return f"{number / 1e6:.1f}M" if number >= 1e6 else f"{number:,.0f}"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
