"""The command line: ``daskclust demo | clue | info | bench``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

app = typer.Typer(
    no_args_is_help=True,
    help="Exact clustering of large point data, in memory, on Dask and on GPUs.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
console = Console()
errors = Console(stderr=True)

_USER_ERRORS = (ValueError, TypeError, OSError, ImportError)


def main() -> None:
    """Run the command line; an error of the user's is told in a line or two, without a traceback."""
    try:
        app()
    except _USER_ERRORS as error:
        text = escape(str(error) or type(error).__name__)
        errors.print(f"[bold red]error:[/] {text}", highlight=False, soft_wrap=True)
        sys.exit(1)


# ---------------------------------------------------------------------------------------------------------------- clue
@app.command()
def clue(
    path: Annotated[Path, typer.Argument(metavar="IN", help="Hits: CSV, Parquet, ROOT, .npy or .npz.")],
    dc: Annotated[float, typer.Option(help="Radius of the local density, in the unit of the coordinates.")],
    rhoc: Annotated[str, typer.Option(help="Density of seeds: a number, or the name of a column with one a hit.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Hits with results: .parquet, .csv or .npz.")
    ] = None,
    delta_c: Annotated[float | None, typer.Option(help="Separation of seeds.  [default: dc]")] = None,
    delta_o: Annotated[float | None, typer.Option(help="Separation of outliers.  [default: delta-c]")] = None,
    kernel: Annotated[str, typer.Option(help="flat, gaussian or exponential.")] = "flat",
    neighbor_weight: Annotated[float, typer.Option(help="Factor for neighbours: 1 in the paper, 0.5 in CMSSW.")] = 1.0,
    coordinates: Annotated[str | None, typer.Option(help="Columns, e.g. x,y or eta,phi.  [default: x,y]")] = None,
    wrap: Annotated[
        list[str] | None, typer.Option(help="Period of an axis, e.g. phi=6.283185307; may be repeated.")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Names of the columns of a file without a header.")] = None,
    table: Annotated[Path | None, typer.Option(help="Also write a table with a row for each cluster.")] = None,
    workers: Annotated[int, typer.Option(help="Dask workers; 0: in memory, on all cores.")] = 0,
    chunks: Annotated[int, typer.Option(help="Hits a chunk, with --workers.")] = 1_000_000,
    partition: Annotated[str, typer.Option(help="How chunks are divided: auto, layers, space or chunks.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Cluster calorimeter hits with CLUE.

    Points of different layers are never neighbours; energies are the weights. Columns: x, y, and layer, energy where
    there are any. The answer is the same with any number of workers and chunks.
    """
    from daskclust.accessor import ClustAccessor
    from daskclust.io import read_hits, write_hits

    began = time.perf_counter()
    parameters: dict[str, Any] = {
        "dc": dc,
        "rhoc": _number_or_name(rhoc),
        "delta_c": delta_c,
        "delta_o": delta_o,
        "kernel": kernel,
        "neighbor_weight": neighbor_weight,
        "coordinates": _names(coordinates),
        "wrap": dict(map(_period, wrap or [])) or None,
        "partition": partition,
    }
    _check_writable(output, table)
    with _cluster(workers), _progress(f"clustering {path.name}", quiet=as_json) as progress:
        hits = read_hits(path, columns=_names(columns), chunks=chunks if workers else None)
        result = ClustAccessor(hits).clue(**parameters)
        if workers:
            result = progress.compute(result)
        summary = _summary(result)
        for target, data in ((output, result), (table, None)):
            if target is not None:
                write_hits(_table_of(result, summary) if data is None else data, target)
    summary["seconds"] = round(time.perf_counter() - began, 3)
    if output is not None:
        summary["output"] = str(output)
    _show(summary, as_json, f"CLUE: {path}")


def _number_or_name(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _period(text: str) -> tuple[str, float]:
    axis, _, period = text.partition("=")
    try:
        return axis.strip(), float(period)
    except ValueError:
        raise ValueError(f"--wrap must be AXIS=PERIOD, e.g. phi=6.283185307, got {text!r}") from None


def _check_writable(*paths: Path | None) -> None:
    """Refuse, before any work, to write where there is no folder."""
    for path in paths:
        if path is not None and not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} to; make it first")


def _table_of(result: Any, summary: dict[str, Any]) -> Any:
    from daskclust.properties import cluster_table

    table = cluster_table(result, weight="energy" if "energy" in result else None, n_clusters=summary["clusters"])
    return table.compute().drop_vars([name for name, values in table.variables.items() if values.ndim == 0])


def _summary(result: Any) -> dict[str, Any]:
    """Count hits, clusters and noise of a result in memory or on workers."""
    label = result["label"]
    return {
        "hits": int(label.size),
        "clusters": int(result["is_seed"].sum()),
        "noise": int((label < 0).sum()),
    }


def _show(summary: dict[str, Any], as_json: bool, title: str) -> None:
    if as_json:
        print(json.dumps(summary))
        return
    table = Table(title=escape(title), show_header=False, title_justify="left", min_width=len(title))
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in summary.items():
        table.add_row(name.replace("_", " "), f"{value:,}" if isinstance(value, int) else escape(str(value)))
    console.print(table)


# ------------------------------------------------------------------------------------------------------------- progress
class _Work:
    """Shows what goes on, once it takes over a second."""

    def __init__(self, progress: Any, name: str) -> None:
        self._progress = progress
        self._task = progress.add_task(name, total=None)

    def compute(self, dataset: Any) -> Any:
        """Compute a lazy Dataset on the workers, where its arrays stay, and return it."""
        from daskclust.workers import persist

        return persist(dataset, lambda done, total: self._progress.update(self._task, completed=done, total=total))


@contextmanager
def _progress(name: str, *, quiet: bool = False) -> Iterator[_Work]:
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
        yield _Work(progress, name)


@contextmanager
def _cluster(workers: int) -> Iterator[Any]:
    """Run on a local cluster, or, without workers, on none."""
    if workers == 0:
        yield None
        return
    from daskclust.workers import start

    with start(workers) as client:
        yield client


# ---------------------------------------------------------------------------------------------------------------- demo
@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--output", "-o", help="Folder for the page.")] = Path("daskclust-demo"),
    workers: Annotated[int, typer.Option(help="Dask workers.")] = 2,
    seed: Annotated[int, typer.Option(help="Seed of the event.")] = 1,
) -> None:
    """Cluster a calorimeter event on a local Dask cluster, check the answer, and show it.

    Makes an event like those of CMS's HGCAL, clusters it layer by layer on workers, compares with the answer in memory,
    prints a table of the largest clusters and writes a page with pictures.
    """
    from daskclust.demo import run_demo

    with _progress("clustering an event on a Dask cluster"):
        report = run_demo(folder, workers, seed)
    largest = report.clusters.sortby("energy", ascending=False).isel(cluster=slice(10))
    table = Table(title="The ten clusters with most energy", title_justify="left")
    columns = {"cluster": "d", "layer": "d", "size": "d", "energy": ".2f", "x": ".1f", "y": ".1f", "rms": ".2f"}
    for name in columns:
        unit = largest[name].attrs.get("units", "1")
        table.add_column(name if unit == "1" else f"{name} ({unit})", justify="right")
    for row in zip(*[largest[name].values for name in columns], strict=True):
        table.add_row(*[format(value, form) for value, form in zip(row, columns.values(), strict=True)])
    console.print(table)
    for line in report.lines():
        console.print(escape(line), highlight=False, soft_wrap=True)
    if not report.equal:
        raise ValueError("the answers on Dask and in memory differ: please report this with the seed and the versions")


# ---------------------------------------------------------------------------------------------------------------- info
@app.command()
def info(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show versions, the CPU, GPUs, and what is missing for a GPU."""
    from daskclust.machine import describe

    facts = describe()
    if as_json:
        print(json.dumps(facts))
        return
    for section, entries in facts.items():
        table = Table(title=section, show_header=False, title_justify="left")
        table.add_column(style="bold")
        table.add_column()
        for name, value in entries.items():
            table.add_row(name, escape(str(value)))
        console.print(table)


# --------------------------------------------------------------------------------------------------------------- bench
@app.command()
def bench(
    system: Annotated[str, typer.Argument(help="clue")] = "clue",
    device: Annotated[str, typer.Option(help="cpu, or cuda.")] = "cpu",
    sizes: Annotated[str, typer.Option(help="Numbers of points.")] = "1e5,3e5,1e6,3e6,1e7",
    threads: Annotated[int, typer.Option(help="Threads of kernels; 0: all.")] = 0,
    repeats: Annotated[int, typer.Option(help="Runs of each size, after a warm-up; the median counts.")] = 7,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write the figures as JSON.")] = None,
) -> None:
    """Time a system on this machine, step by step, on its paper's own points, and print a table in Markdown."""
    from daskclust.bench import bench_clue, markdown
    from daskclust.core.files import replacing

    if system != "clue":
        raise ValueError(f"there is a benchmark for 'clue', got {system!r}")
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device must be 'cpu' or 'cuda', got {device!r}")
    numbers = [round(float(size)) for size in sizes.split(",")]
    with _progress("timing CLUE"):
        report = bench_clue(numbers, device=device, threads=threads, repeats=repeats)
    print(markdown(report))
    if output is not None:
        with replacing(output) as stream:
            stream.write(f"{json.dumps(report, indent=1)}\n".encode())


if __name__ == "__main__":
    main()
