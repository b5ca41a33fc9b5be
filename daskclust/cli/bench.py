"""``daskclust bench``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from daskclust.cli._frame import emit, naming, progress
from daskclust.cli._options import OUTPUT, RUNNING, Quiet, check_place

if TYPE_CHECKING:
    from daskclust.cli._work import Work

_POINTS, _TIMING = "Points", "Timing"

MANUALS = {
    "bench": """
Reads
  nothing                       points are made, the same ones each time

Writes
  standard output               a table in Markdown: milliseconds, median of --repeats; for dbscan, fof, hca and
                                clue also bytes of memory a point
  -o                            the report as JSON, as --json prints it

Keys of --json
  system, device, threads       what was timed, where; threads where there is one number of them
  parameters                    of the system
  machine                       what `daskclust info --json` says
  runs                          one for each size, kind and number of threads: total_ms and kernels_ms or
                                steps_ms (ms), points, clusters, peak_bytes_per_point (B); events:
                                mhits_per_second (million hits/s)
  exponents                     hca: how time grows with the number of points
  neighbours, ratios, heights   thesis: in the place of runs
  hits_in, hits_out, ...        stream: in the place of runs, with seconds, mhits_per_second, late_hits and
                                equal

Examples
  # CLUE at two sizes
  $ daskclust bench clue --sizes 1e5,1e6
  # DBSCAN on 1 and 2 threads, into a file
  $ daskclust bench dbscan --kinds cosmo --threads 1,2 -o dbscan.json
  # a readout of ten million hits/s, for a minute
  $ daskclust bench stream --rate 1e7 --seconds 60 --json
""",
}

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
        Literal["clue", "events", "stream", "dbscan", "fof", "hca", "thesis"],
        typer.Argument(help="What is timed. stream: events online; thesis: more of hca's source."),
    ] = "clue",
    sizes: Annotated[
        str | None,
        typer.Option(
            help="Numbers of points, e.g. 1e5,1e6.  \\[default: the paper's, or 1e6]", rich_help_panel=_POINTS
        ),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(
            help="Points. For dbscan, fof: cosmo,ss2d,ss3d,uniform2d; for hca: gaussian,cytometry,apriori.  "
            "\\[default: all]",
            rich_help_panel=_POINTS,
        ),
    ] = None,
    groups: Annotated[
        str,
        typer.Option(
            help="For hca: number and size of apriori clusters, e.g. 100x1000,1000x1000.", rich_help_panel=_POINTS
        ),
    ] = "100x1000",
    min_samples: Annotated[
        str, typer.Option(help="For dbscan: neighbours of core points, e.g. 2,10.", rich_help_panel=_POINTS)
    ] = "10",
    rate: Annotated[float, typer.Option(help="For stream: hits a second.", rich_help_panel=_POINTS)] = 10e6,
    seconds: Annotated[float, typer.Option(help="For stream: how long, s.", rich_help_panel=_TIMING)] = 60.0,
    repeats: Annotated[
        int | None,
        typer.Option(
            help="Runs of each size, after a warm-up; the median counts.  \\[default: 7; hca: 3; thesis: 1]",
            rich_help_panel=_TIMING,
        ),
    ] = None,
    threads: Annotated[
        str | None,
        typer.Option(
            help="Threads of kernels, 0: all; for events data lanes, e.g. 1,2,4.  \\[default: 0; hca: 1,0]",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    device: Annotated[
        Literal["cpu", "cuda"], typer.Option(help="Where kernels run: CPU, or an NVIDIA GPU.", rich_help_panel=RUNNING)
    ] = "cpu",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The report as JSON: .json.", rich_help_panel=OUTPUT)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON, not the table.", rich_help_panel=RUNNING)
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Time a system on this machine, on the points of its paper."""
    from daskclust.core.files import replacing

    given = {"sizes": sizes, "threads": threads, "kinds": kinds, "repeats": repeats}
    chosen = {name: value for name, value in given.items() if value is not None}
    usual: dict[str, Any] = {"sizes": "1e6", "threads": "0", "kinds": "", "repeats": 7, **_USUAL.get(system, {})}
    asked = {**usual, **chosen, "device": device}
    _check_bench(context, system, asked["threads"])
    check_place(output)
    asked |= {"sizes": _numbers("--sizes", asked["sizes"]), "threads": _numbers("--threads", asked["threads"], least=0)}
    with progress(f"timing {system}", quiet=quiet) as work:
        if system == "stream":
            work.begin(f"{rate:,.0f} hits/s for {seconds:g} s, and some to begin")
            report, table = _bench_stream(rate, seconds)
        elif system == "clue":
            report, table = _bench_clue(work, **asked)
        elif system == "events":
            report, table = _bench_events(**asked)
        elif system == "thesis":
            report, table = _bench_thesis(**asked)
        elif system == "hca":
            report, table = _bench_hca(groups, **asked)
        else:
            least = None if system == "fof" else _numbers("--min-samples", min_samples)
            report, table = _bench_dbscan(work, least, **asked)
    if as_json:
        emit(report)
    elif not quiet:
        print(table)
    if output is not None:
        with naming(output), replacing(output) as stream:
            stream.write(f"{json.dumps(report, indent=1)}\n".encode())


def _one_by_one(work: Work, sizes: Sequence[int], call: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    """Time each size on its own, and put the reports together; points that are done are shown."""
    work.begin("timing", sum(sizes), "points")
    report: dict[str, Any] = {}
    for number, size in enumerate(sizes):
        work.at(sum(sizes[:number]), f"timing {size:,} points")
        part = call(size)
        report = {**part, "runs": report.get("runs", []) + part["runs"]}
    return report


def _check_bench(context: typer.Context, system: str, threads: str) -> None:
    """Refuse options that are not for a benchmark."""
    for option in _NOT_FOR[system]:
        source = context.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"--{option.replace('_', '-')} is not for the benchmark {system}; leave it out")
    if system == "clue" and "," in threads:
        raise ValueError(f"clue is timed with one number of threads, got --threads {threads}; run it once for each")


def _numbers(option: str, text: str, least: int = 1) -> list[int]:
    """Return the whole numbers in ``1e5, 2000``."""
    try:
        numbers = [round(float(number)) for number in text.split(",")]
    except (ValueError, OverflowError):
        numbers = []
    if not numbers or min(numbers) < least:
        raise ValueError(f"{option} must be whole numbers from {least} on, such as 1e5,2000, got {text!r}")
    return numbers


def _bench_clue(
    work: Work, sizes: list[int], device: str, threads: list[int], repeats: int, **_: Any
) -> tuple[dict[str, Any], str]:
    from daskclust.bench import bench_clue, clue_markdown

    def call(size: int) -> dict[str, Any]:
        return bench_clue([size], device=device, threads=threads[0], repeats=repeats)

    report = _one_by_one(work, sizes, call)
    return report, clue_markdown(report)


def _bench_events(
    sizes: list[int], device: str, threads: list[int], repeats: int, **_: Any
) -> tuple[dict[str, Any], str]:
    from daskclust.bench import bench_events, events_markdown

    if len(sizes) > 1:
        raise ValueError(f"events are timed at one size, the hits of each stream, got --sizes {sizes}; give one")
    given = None if threads == [0] else threads
    report = bench_events(sizes[0], device=device, lanes=given, repeats=repeats)
    return report, events_markdown(report)


def _bench_stream(rate: float, seconds: float) -> tuple[dict[str, Any], str]:
    from daskclust.bench import bench_stream
    from daskclust.core.checks import check_positive

    report = bench_stream(check_positive("--rate", rate), check_positive("--seconds", seconds))
    return report, "\n".join(f"{name}: {report[name]}" for name in list(report)[3:])


def _bench_dbscan(
    work: Work,
    min_samples: list[int] | None,
    sizes: list[int],
    kinds: str,
    device: str,
    threads: list[int],
    repeats: int,
) -> tuple[dict[str, Any], str]:
    from daskclust.bench import bench_dbscan, dbscan_markdown

    of_kinds = kinds.split(",")

    def call(size: int) -> dict[str, Any]:
        return bench_dbscan(
            [size], kinds=of_kinds, min_samples=min_samples, device=device, threads=threads, repeats=repeats
        )

    report = _one_by_one(work, sizes, call)
    report["runs"].sort(key=lambda run: of_kinds.index(run["kind"]))  # stable: sizes stay in order
    return report, dbscan_markdown(report)


def _bench_thesis(sizes: list[int], threads: list[int], repeats: int, **_: Any) -> tuple[dict[str, Any], str]:
    from daskclust.bench import bench_thesis, thesis_markdown

    if len(sizes) != 2:
        raise ValueError(
            f"thesis takes a size of single sets and one of apriori clusters, got --sizes {sizes}; give two"
        )
    report = bench_thesis(sizes[0], total=sizes[1], threads=threads[0], repeats=repeats)
    return report, thesis_markdown(report)


def _bench_hca(
    groups: str, sizes: list[int], kinds: str, device: str, threads: list[int], repeats: int
) -> tuple[dict[str, Any], str]:
    from daskclust.bench import bench_hca, hca_markdown

    try:
        pairs = [(int(number), int(size)) for number, size in (pair.split("x") for pair in groups.split(","))]
    except ValueError:
        raise ValueError(f"--groups must be numbers and sizes of clusters, e.g. 100x1000, got {groups!r}") from None
    report = bench_hca(sizes, kinds=kinds.split(","), groups=pairs, device=device, threads=threads, repeats=repeats)
    return report, hca_markdown(report)
