"""``daskclust bench``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from daskclust.cli._benchmarks import BENCHMARKS
from daskclust.cli._console import emit
from daskclust.cli._job import naming
from daskclust.cli._options import OUTPUT, RUNNING, Quiet, check_place
from daskclust.cli._progress import progress

_POINTS, _TIMING = "Points", "Timing"

MANUALS = {
    "bench": """
Reads
  nothing                       points are made, the same ones each time

Times
  clue                          CLUE on its paper's calorimeter, by step: table 2 and figure 5
  events                        hits/s of event building against lanes; stream: the same online
  fof, dbscan                   points that programs for them are compared on; fof at 3.7e7 points of kind cosmo is
                                the headline of ArborX
  chunks                        each system in chunks on this machine, against all points at once
  large                         files larger than the memory of the --workers: zarr, Parquet, raw .tpx3
  scaling                       what each step takes on numbers of --workers: what the model of scaling is fitted to
  hca, thesis                   Mahalanobis clustering: figures 3.3 and 3.4 of its thesis, and 3.1 and 3.5 to 3.7
  all                           the headline of each but stream, at no more points than memory holds

Writes
  standard output               a table in Markdown: milliseconds, median of --repeats; peak, bytes of memory a point;
                                floor, the time that reading the input, writing the answer and the least arithmetic
                                take at the measured ceilings of this machine; of roofline, floor over time
  -o                            the same (.md), the report as --json prints it (.json), a page of pictures that opens
                                offline (.html; needs the extra app)

Keys of --json
  system, device, threads       what was timed, where; threads where there is one number of them
  parameters                    of the system
  machine                       what `daskclust info --json` says
  ceilings                      what was measured: bytes_per_second, operations_per_second
  runs                          one for each size, kind and number of threads: total_ms and kernels_ms or
                                steps_ms (ms), points, clusters, peak_bytes_per_point (B); events:
                                mhits_per_second (million hits/s); bytes, operations, floor_ms, of_roofline
  exponents                     hca: how time grows with the number of points
  neighbours, ratios, heights   thesis: in the place of runs
  hits_in, hits_out, ...        stream: in the place of runs, with seconds, mhits_per_second, late_hits and
                                equal
  peers                         --peers: timed, with ms and ours_ms (ms), ratio, agrees; missing, and how to install it
  memory_ms, chunked_ms, ...    chunks, in runs: with ratio, tasks, longest_s (s), in_range
  seconds, process_bytes, ...   large, in runs: with file, bytes, clusters, spilled_bytes (B)
  reports                       all: one for each benchmark, in the place of the others

Examples
  # CLUE at two sizes
  daskclust bench clue --sizes 1e5,1e6
  # every headline, beside the other programs that are installed, as a table, a record and a page
  daskclust bench all --peers -o bench.md -o bench.json -o bench.html
  # the same in a minute
  daskclust bench all --sizes 1e4
  # DBSCAN on 1 and 2 threads, into a file
  daskclust bench dbscan --kinds cosmo --threads 1,2 -o dbscan.json
  # a readout of ten million hits/s, for a minute
  daskclust bench stream --rate 1e7 --seconds 60 --json
""",
}


def bench(
    context: typer.Context,
    system: Annotated[
        Literal["clue", "events", "stream", "dbscan", "fof", "hca", "thesis", "chunks", "large", "scaling", "all"],
        typer.Argument(help="What is timed, see Times."),
    ] = "clue",
    sizes: Annotated[
        str | None,
        typer.Option(
            help="Numbers of points, e.g. 1e5,1e6; of all: the most of any.  \\[default: the paper's, or 1e6]",
            rich_help_panel=_POINTS,
        ),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(
            help="Points. For events: gamma,pion0,pion45,lead; for dbscan, fof: cosmo,ss2d,ss3d,uniform2d; for hca: "
            "gaussian,cytometry,apriori; for chunks, scaling: clue-space,clue-layers,events,fof,dbscan,hca; for large: "
            "fof,clue,events.  \\[default: all]",
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
            min=1,
            help="Runs of each size, after a warm-up; the median counts.  \\[default: 7; hca: 3; thesis: 1]",
            rich_help_panel=_TIMING,
        ),
    ] = None,
    peers: Annotated[
        bool,
        typer.Option(
            "--peers",
            help="Time other programs that are installed, too, in turn with this one.",
            rich_help_panel=_TIMING,
        ),
    ] = False,
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
    blocks: Annotated[
        str | None, typer.Option(help="For scaling: points in a chunk, e.g. 1e5,5e5.", rich_help_panel=_POINTS)
    ] = None,
    orders: Annotated[
        str,
        typer.Option(
            help="For scaling: random, or space, where a chunk has points of one slab.", rich_help_panel=_POINTS
        ),
    ] = "random,space",
    merges: Annotated[
        str,
        typer.Option(
            help="For scaling: points and chunks whose merge is timed on one worker and in a tree; '': none.",
            rich_help_panel=_POINTS,
        ),
    ] = "4e6x125,4e6x500",
    workers: Annotated[
        str | None,
        typer.Option(
            help="For large, scaling: processes of the Dask cluster.  \\[default: 2; scaling: 1,2,4]",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            help="For large, scaling: memory of each of them.  \\[default: 1GiB; scaling: 2GB]", rich_help_panel=RUNNING
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="For scaling: of one that runs, with as many workers.", rich_help_panel=RUNNING
        ),
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="<path>",
            help="The report: .md, .json or .html; may be given for each of them.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON, not the table.", rich_help_panel=RUNNING)
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Time a system on this machine, on the points of its paper."""
    values = {
        "sizes": sizes, "kinds": kinds, "groups": groups, "min_samples": min_samples, "rate": rate, "seconds": seconds,
        "repeats": repeats, "peers": peers, "threads": threads, "device": device,
        "workers": workers, "memory_limit": memory_limit, "blocks": blocks, "orders": orders, "merges": merges,
        "scheduler": scheduler,
    }  # fmt: skip
    given = {name: value for name, value in values.items() if _is_given(context, name)}
    benchmark = BENCHMARKS[system]
    for name in given:
        if name not in benchmark.takes:
            raise ValueError(f"--{name.replace('_', '-')} is not for the benchmark {system}; leave it out")
    if peers and device != "cpu":
        raise ValueError("--peers are programs for the CPU, got --device cuda; leave one of them out")
    outputs = output or []
    _check_outputs(outputs, system)
    from daskclust.bench import markdown, write_report

    with progress(f"timing {system}", quiet=quiet) as work:
        report = benchmark.run(work, benchmark.asked(given))
        for path in outputs:
            work.write(path)
            with naming(path):
                write_report(report, path)
    if as_json:
        emit(report)
    elif not quiet:
        print(markdown(report))


def _is_given(context: typer.Context, option: str) -> bool:
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _check_outputs(outputs: Sequence[Path], system: str) -> None:
    """Refuse, before any work, files that cannot be written."""
    from daskclust.bench.output import FORMATS

    for path in outputs:
        if path.suffix not in FORMATS:
            raise ValueError(f"-o must be a .json, .md or .html file, got {path}")
    check_place(*outputs)
    if len({path.resolve() for path in outputs}) < len(outputs):
        raise ValueError(f"-o names {outputs[-1]} twice; give each file once")
    if any(path.suffix == ".html" for path in outputs):
        if system in ("stream", "chunks", "large", "scaling"):
            raise ValueError(f"there is nothing to draw of the benchmark {system}; write it to .json or .md")
        import daskclust.plot._look  # noqa: F401 (says what to install where the extra app is missing)
