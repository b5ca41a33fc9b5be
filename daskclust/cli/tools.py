"""``daskclust demo``, ``info`` and ``bench``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from daskclust.cli._frame import console, progress


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
_NOT_FOR = {
    "clue": ("rate", "seconds"),
    "events": ("rate", "seconds"),
    "stream": ("device", "sizes", "threads", "repeats"),
}


def bench(
    context: typer.Context,
    system: Annotated[str, typer.Argument(help="clue, events, or stream: events online, through a socket.")] = "clue",
    device: Annotated[str, typer.Option(help="cpu, or cuda.")] = "cpu",
    sizes: Annotated[str | None, typer.Option(help="Numbers of points.  \\[default: the paper's]")] = None,
    threads: Annotated[str, typer.Option(help="Threads of kernels, 0: all; for events data lanes, e.g. 1,2,4.")] = "0",
    rate: Annotated[float, typer.Option(help="For stream: hits a second.")] = 10e6,
    seconds: Annotated[float, typer.Option(help="For stream: how long.")] = 60.0,
    repeats: Annotated[int, typer.Option(help="Runs of each size, after a warm-up; the median counts.")] = 7,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write the figures as JSON.")] = None,
) -> None:
    """Time a system on this machine, step by step, on its paper's own points, and print a table in Markdown."""
    from daskclust.bench import bench_clue, bench_events, bench_stream, clue_markdown, events_markdown
    from daskclust.core.files import replacing

    if system not in ("clue", "events", "stream"):
        raise ValueError(f"there are benchmarks for 'clue', 'events' and 'stream', got {system!r}")
    for option in _NOT_FOR[system]:
        source = context.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"--{option} is not for the benchmark {system}; leave it out")
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device must be 'cpu' or 'cuda', got {device!r}")
    counts = [int(number) for number in threads.split(",")]
    if system == "clue" and len(counts) > 1:
        raise ValueError(f"clue is timed with one number of threads, got --threads {threads}; run it once for each")
    with progress(f"timing {system}"):
        if system == "clue":
            numbers = [round(float(size)) for size in (sizes or "1e5,3e5,1e6,3e6,1e7").split(",")]
            report = bench_clue(numbers, device=device, threads=counts[0], repeats=repeats)
            table = clue_markdown(report)
        elif system == "stream":
            report = bench_stream(rate, seconds)
            table = "\n".join(f"{name}: {report[name]}" for name in list(report)[3:])
        else:
            lanes = None if counts == [0] else counts
            if "," in (sizes or ""):
                raise ValueError(f"events are timed at one size, the hits of each stream; got --sizes {sizes}")
            report = bench_events(round(float(sizes or "4e6")), device=device, lanes=lanes, repeats=repeats)
            table = events_markdown(report)
    print(table)
    if output is not None:
        with replacing(output) as stream:
            stream.write(f"{json.dumps(report, indent=1)}\n".encode())
