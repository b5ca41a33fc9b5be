"""What commands share: consoles, progress, a cluster, the summary."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

console = Console()
errors = Console(stderr=True)


def check_writable(*paths: Path | None) -> None:
    """Refuse, before any work, to write where there is no folder."""
    for path in paths:
        if path is not None and not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} to; make it first")


def check_outputs(source: str | Path, outputs: Mapping[str, Path | None], suffixes: Sequence[str]) -> None:
    """Refuse, before any work, outputs by option that are no files of a kind, the input, or one and the same.

    A suffix in brackets may be used, too, and is not told of.
    """
    given = {option: path for option, path in outputs.items() if path is not None}
    check_writable(*given.values())
    known = [suffix.strip("()") for suffix in suffixes]
    told = [suffix for suffix in suffixes if not suffix.startswith("(")]
    for option, path in given.items():
        if path.suffix not in known:
            raise ValueError(f"{option} must be a {' or '.join(told)} file, got {path}")
        if path.resolve() == Path(source).resolve():
            raise ValueError(f"{option} {path} is the input; write to another file")
    if len({path.resolve() for path in given.values()}) < len(given):
        raise ValueError(f"{' and '.join(given)} are one file, {path}; write to different ones")


def show(summary: dict[str, Any], as_json: bool, title: str, to: Console = console) -> None:
    if as_json:
        print(json.dumps(summary))
        return
    table = Table(title=escape(title), show_header=False, title_justify="left", min_width=len(title))
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in summary.items():
        table.add_row(name.replace("_", " "), f"{value:,}" if type(value) is int else escape(str(value)))
    to.print(table)


# ------------------------------------------------------------------------------------------------------------- progress
class Work:
    """Shows what goes on, once it takes over a second."""

    def __init__(self, progress: Any, name: str) -> None:
        self._bar = progress
        self._task = progress.add_task(name, total=None)

    def compute(self, dataset: Any) -> Any:
        """Compute a lazy Dataset on the workers, where its arrays stay, and return it."""
        from daskclust.workers import persist

        return persist(dataset, lambda done, total: self._bar.update(self._task, completed=done, total=total))

    def tell(self, words: str) -> None:
        """Show how far it is."""
        self._bar.update(self._task, description=words)


@contextmanager
def progress(name: str, *, quiet: bool = False) -> Iterator[Work]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )  # fmt: skip

    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=errors, transient=True, disable=quiet or not errors.is_terminal) as progress:
        yield Work(progress, name)


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """Run on a local cluster, or, without workers, on none."""
    if workers == 0:
        yield None
        return
    from daskclust.workers import start

    with start(workers) as client:
        yield client
