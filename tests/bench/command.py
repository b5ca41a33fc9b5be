"""``daskclust bench``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from daskclust.cli._console import emit
from daskclust.cli._options import Quiet, check_outputs, option, running, writing
from daskclust.cli._progress import Work, progress
from daskclust.core.data.files import naming

_points, _timing = partial(option, "Points"), partial(option, "Timing")

MANUAL = """
Reads
  nothing                       points are made, the same ones each time

Times
  clue                          CLUE on its paper's calorimeter, by step: table 2 and figure 5
  events                        hits/s of event building against lanes; stream: the same online
  fof, dbscan                   points that programs for them are compared on; fof at 3.7e7 points of kind cosmo is
                                the headline of ArborX
  hca                           Mahalanobis clustering: figures 3.3 and 3.4 of its thesis
  all                           the headline of each but stream, at no more points than memory holds

Writes
  standard output               a table in Markdown: milliseconds, median of --repeats; peak, bytes of memory a point;
                                floor, the time that reading the input, writing the answer and the least arithmetic
                                take at the measured ceilings of this machine; of roofline, floor over time
  -o                            the same (.md), the report as --json prints it (.json), a page of pictures that opens
                                offline (.html; needs the extra app)

Keys of --json
  system, device                what was timed, where
  parameters                    of the system
  machine                       what `daskclust info --json` says
  ceilings                      what was measured: bytes_per_second, operations_per_second
  runs                          one for each size, kind and number of threads: total_ms, kernels_ms and steps_ms (ms),
                                points, clusters, peak_bytes_per_point (B); events: mhits_per_second (million
                                hits/s); bytes, operations, floor_ms, of_roofline
  exponents                     how time grows with the number of points, where there are several sizes
  hits_in, hits_out, ...        stream: in the place of runs, with seconds, mhits_per_second (both without
                                seconds_compiling), late_hits and equal
  peers                         --peers: timed, with ms and ours_ms (ms), ratio, agrees; missing, and how to install it
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
"""


def bench(
    system: Annotated[
        Literal["clue", "events", "stream", "dbscan", "fof", "hca", "all"],
        typer.Argument(help="What is timed, see Times."),
    ] = "clue",
    *,
    sizes: Annotated[
        str | None,
        _points("Numbers of points, e.g. 1e5,1e6; of all: the most of any.", default="the paper's, or 1e6"),
    ] = None,
    kinds: Annotated[
        str | None,
        _points(
            "Points. For events: gamma,pion0,pion45,lead; for dbscan, fof: cosmo,ss2d,ss3d,uniform2d; for hca: "
            "gaussian,cytometry,apriori.",
            default="all",
        ),
    ] = None,
    groups: Annotated[
        str | None,
        _points("For hca: number and size of apriori clusters, e.g. 100x1000,1000x1000.", default="100x1000"),
    ] = None,
    min_samples: Annotated[
        str | None, _points("For dbscan: neighbours of core points, e.g. 2,10.", default="10")
    ] = None,
    rate: Annotated[float | None, _points("For stream: hits a second.", default="1e7")] = None,
    seconds: Annotated[float | None, _timing("For stream: how long, s.", default="60")] = None,
    repeats: Annotated[
        int | None,
        _timing("Runs of each size, after a warm-up; the median counts.", default="7; hca: 3", min=1),
    ] = None,
    peers: Annotated[
        bool, _timing("Time other programs that are installed, too, in turn with this one.", "--peers")
    ] = False,
    threads: Annotated[
        str | None,
        running("Threads of kernels, 0: all; for events data lanes, e.g. 1,2,4.", default="0; hca: 1,0"),
    ] = None,
    device: Annotated[
        Literal["cpu", "cuda"] | None, running("Where kernels run: CPU, or an NVIDIA GPU.", default="cpu")
    ] = None,
    output: Annotated[
        list[Path] | None,
        writing("The report: .md, .json or .html; may be given for each of them.", "--output", "-o", metavar="<path>"),
    ] = None,
    as_json: Annotated[bool, running("Print the report as JSON, not the table.", "--json")] = False,
    quiet: Quiet = False,
) -> None:
    """Time a system on this machine, on the points of its paper."""
    values = {
        "sizes": _numbers("--sizes", sizes), "kinds": kinds and tuple(kinds.split(",")), "groups": _pairs(groups),
        "min_samples": _numbers("--min-samples", min_samples), "rate": rate, "seconds": seconds, "repeats": repeats,
        "peers": peers or None, "threads": _numbers("--threads", threads, least=0), "device": device,
    }  # fmt: skip
    given = {name: value for name, value in values.items() if value is not None}
    _check_options(system, given)
    outputs = output or []
    _check_outputs(outputs, system)
    from daskclust.bench import markdown, write_report

    with progress(f"timing {system}", quiet=quiet) as work:
        report = _timed(work, system, given)
        for path in outputs:
            work.write(path)
            with naming(path):
                write_report(report, path)
    if as_json:
        emit(report)
    elif not quiet:
        print(markdown(report))


def _timed(work: Work, system: str, given: Mapping[str, Any]) -> dict[str, Any]:
    from daskclust import bench
    from daskclust.core.data.checks import check_positive

    def show(name: str, done: int, total: int) -> None:
        if not done:  # a system begins
            work.begin(name, total or None, "points" if total else "")
        work.at(done, name)

    if system == "stream":
        for name, value in given.items():
            check_positive(f"--{name}", value)
        work.begin("sending and clustering")
        return bench.bench_stream(**given)
    if system == "all":
        most, *more = given.get("sizes", [37_000_000])
        if more:
            numbers = ",".join(map(str, given["sizes"]))
            raise ValueError(f"all takes one number, the most points of any benchmark, got --sizes {numbers}; give one")
        return bench.bench_all({name: value for name, value in given.items() if name != "sizes"}, most, show)
    return bench.bench(system, bench.options_of(system, given), show)


def _check_options(system: str, given: Mapping[str, Any]) -> None:
    takes: Sequence[str] = ("rate", "seconds")
    if system != "stream":
        from daskclust.bench import SYSTEMS

        takes = ("sizes", "repeats", "peers", "threads", "device")
        takes += () if system == "all" else SYSTEMS[system].takes
    for name in given:
        if name not in takes:
            raise ValueError(f"--{name.replace('_', '-')} is not for the benchmark {system}; leave it out")
    if "peers" in given and given.get("device") == "cuda":
        raise ValueError("--peers are programs for the CPU, got --device cuda; leave one of them out")


def _check_outputs(outputs: Sequence[Path], system: str) -> None:
    """Refuse, before any work, files that cannot be written."""
    from daskclust.bench.report import FORMATS

    for path in outputs:
        check_outputs([], {"-o": path}, FORMATS)
    if len({path.resolve() for path in outputs}) < len(outputs):
        raise ValueError(f"-o names {outputs[-1]} twice; give each file once")
    if any(path.suffix == ".html" for path in outputs):
        if system == "stream":
            raise ValueError("there is nothing to draw of the benchmark stream; write it to .json or .md")
        import daskclust.plot._look  # noqa: F401 (says what to install where the extra app is missing)


def _numbers(option: str, text: str | None, least: int = 1) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        numbers = tuple(round(float(number)) for number in text.split(","))
    except (ValueError, OverflowError):
        numbers = ()
    if not numbers or min(numbers) < least:
        raise ValueError(f"{option} must be whole numbers from {least} on, such as 1e5,2000, got {text!r}")
    return numbers


def _pairs(text: str | None) -> tuple[tuple[int, int], ...] | None:
    if text is None:
        return None
    try:
        return tuple((int(a), int(b)) for a, b in (pair.split("x") for pair in text.split(",")))
    except ValueError:
        raise ValueError(f"--groups must be numbers and sizes of clusters, e.g. 100x1000, got {text!r}") from None
