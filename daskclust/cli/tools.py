"""``daskclust demo``, ``info`` and ``bench``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from daskclust.cli._frame import check_writable, console, progress


# ---------------------------------------------------------------------------------------------------------------- demo
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

    with progress("clustering an event on a Dask cluster"):
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
_OF_POINTS = ("kinds", "min_samples")
_OF_STREAM = ("rate", "seconds")
_OF_TREES = ("groups",)
_NOT_FOR = {
    "clue": (*_OF_STREAM, *_OF_POINTS, *_OF_TREES),
    "events": (*_OF_STREAM, *_OF_POINTS, *_OF_TREES),
    "stream": ("device", "sizes", "threads", "repeats", *_OF_POINTS, *_OF_TREES),
    "dbscan": (*_OF_STREAM, *_OF_TREES),
    "fof": (*_OF_STREAM, *_OF_TREES, "min_samples"),
    "hca": (*_OF_STREAM, "min_samples"),
    "thesis": (*_OF_STREAM, *_OF_POINTS, *_OF_TREES, "device"),
}
_USUAL: dict[str, dict[str, Any]] = {
    "clue": {"sizes": "1e5,3e5,1e6,3e6,1e7"},
    "events": {"sizes": "4e6"},
    "dbscan": {"kinds": "cosmo,ss2d,ss3d,uniform2d"},
    "fof": {"kinds": "cosmo,ss2d,ss3d,uniform2d"},
    "hca": {"sizes": "5e3,1e4,2e4,4.4e4", "kinds": "gaussian,cytometry,apriori", "threads": "1,0", "repeats": 3},
    "thesis": {"sizes": "4.4e4,1e6", "repeats": 1},
}
"""Defaults of options that differ between benchmarks."""


def bench(
    context: typer.Context,
    system: Annotated[
        str,
        typer.Argument(help="clue, events, dbscan, fof, hca, thesis: more of hca's source; stream: events online."),
    ] = "clue",
    device: Annotated[str, typer.Option(help="cpu, or cuda.")] = "cpu",
    sizes: Annotated[str | None, typer.Option(help="Numbers of points.  \\[default: the paper's, or 1e6]")] = None,
    threads: Annotated[
        str | None,
        typer.Option(help="Threads of kernels, 0: all; for events data lanes, e.g. 1,2,4.  \\[default: 0; hca: 1,0]"),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(
            help="Points. For dbscan, fof: cosmo,ss2d,ss3d,uniform2d; for hca: gaussian,cytometry,apriori.  "
            "\\[default: all]"
        ),
    ] = None,
    groups: Annotated[
        str, typer.Option(help="For hca: number and size of apriori clusters, e.g. 100x1000,1000x1000.")
    ] = "100x1000",
    min_samples: Annotated[str, typer.Option(help="For dbscan: neighbours of core points, e.g. 2,10.")] = "10",
    rate: Annotated[float, typer.Option(help="For stream: hits a second.")] = 10e6,
    seconds: Annotated[float, typer.Option(help="For stream: how long.")] = 60.0,
    repeats: Annotated[
        int | None,
        typer.Option(help="Runs of each size, after a warm-up; the median counts.  \\[default: 7; hca: 3; thesis: 1]"),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write the figures as JSON.")] = None,
) -> None:
    """Time a system on this machine, on the points of its paper, and print a table in Markdown."""
    from daskclust.core.files import replacing

    given = {"sizes": sizes, "threads": threads, "kinds": kinds, "repeats": repeats}
    chosen = {name: value for name, value in given.items() if value is not None}
    usual: dict[str, Any] = {"sizes": "1e6", "threads": "0", "kinds": "", "repeats": 7, **_USUAL.get(system, {})}
    sizes, threads, kinds, repeats = {**usual, **chosen}.values()
    _check_bench(context, system, device, threads)
    check_writable(output)
    counts = [int(number) for number in threads.split(",")]
    with progress(f"timing {system}"):
        if system == "stream":
            report, table = _bench_stream(rate, seconds)
        elif system == "clue":
            report, table = _bench_clue(sizes, device, counts[0], repeats)
        elif system == "events":
            report, table = _bench_events(sizes, device, counts, repeats)
        elif system == "thesis":
            report, table = _bench_thesis(sizes, counts[0], repeats)
        elif system == "hca":
            report, table = _bench_hca(sizes, kinds.split(","), groups, device, counts, repeats)
        else:
            least = None if system == "fof" else [int(number) for number in min_samples.split(",")]
            report, table = _bench_dbscan(sizes, kinds.split(","), least, device, counts, repeats)
    print(table)
    if output is not None:
        with replacing(output) as stream:
            stream.write(f"{json.dumps(report, indent=1)}\n".encode())


def _check_bench(context: typer.Context, system: str, device: str, threads: str) -> None:
    if system not in _NOT_FOR:
        raise ValueError(f"there are benchmarks for {', '.join(map(repr, _NOT_FOR))}, got {system!r}")
    for option in _NOT_FOR[system]:
        source = context.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"--{option.replace('_', '-')} is not for the benchmark {system}; leave it out")
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device must be 'cpu' or 'cuda', got {device!r}")
    if system == "clue" and "," in threads:
        raise ValueError(f"clue is timed with one number of threads, got --threads {threads}; run it once for each")


def _numbers(sizes: str) -> list[int]:
    return [round(float(size)) for size in sizes.split(",")]


def _bench_clue(sizes: str, device: str, threads: int, repeats: int) -> tuple[dict[str, Any], str]:
    from daskclust.bench import bench_clue, clue_markdown

    report = bench_clue(_numbers(sizes), device=device, threads=threads, repeats=repeats)
    return report, clue_markdown(report)


def _bench_events(sizes: str, device: str, lanes: list[int], repeats: int) -> tuple[dict[str, Any], str]:
    from daskclust.bench import bench_events, events_markdown

    if "," in sizes:
        raise ValueError(f"events are timed at one size, the hits of each stream; got --sizes {sizes}")
    given = None if lanes == [0] else lanes
    report = bench_events(_numbers(sizes)[0], device=device, lanes=given, repeats=repeats)
    return report, events_markdown(report)


def _bench_stream(rate: float, seconds: float) -> tuple[dict[str, Any], str]:
    from daskclust.bench import bench_stream

    report = bench_stream(rate, seconds)
    return report, "\n".join(f"{name}: {report[name]}" for name in list(report)[3:])


def _bench_dbscan(
    sizes: str, kinds: list[str], min_samples: list[int] | None, device: str, threads: list[int], repeats: int
) -> tuple[dict[str, Any], str]:
    from daskclust.bench import bench_dbscan, dbscan_markdown

    report = bench_dbscan(
        _numbers(sizes), kinds=kinds, min_samples=min_samples, device=device, threads=threads, repeats=repeats
    )
    return report, dbscan_markdown(report)


def _bench_thesis(sizes: str, threads: int, repeats: int) -> tuple[dict[str, Any], str]:
    from daskclust.bench import bench_thesis, thesis_markdown

    numbers = _numbers(sizes)
    if len(numbers) != 2:
        raise ValueError(f"thesis takes the points of single sets and those in apriori clusters, got --sizes {sizes}")
    report = bench_thesis(numbers[0], total=numbers[1], threads=threads, repeats=repeats)
    return report, thesis_markdown(report)


def _bench_hca(
    sizes: str, kinds: list[str], groups: str, device: str, threads: list[int], repeats: int
) -> tuple[dict[str, Any], str]:
    from daskclust.bench import bench_hca, hca_markdown

    try:
        pairs = [(int(number), int(size)) for number, size in (pair.split("x") for pair in groups.split(","))]
    except ValueError:
        raise ValueError(f"--groups must be numbers and sizes of clusters, e.g. 100x1000, got {groups!r}") from None
    report = bench_hca(_numbers(sizes), kinds=kinds, groups=pairs, device=device, threads=threads, repeats=repeats)
    return report, hca_markdown(report)
