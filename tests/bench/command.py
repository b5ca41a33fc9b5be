"""The command ``python tests/bench``: what is timed on which points, and where the report goes."""

import argparse
import json
from pathlib import Path

from bench.repeated import bench_repeated
from bench.report import markdown
from bench.runner import SYSTEMS, bench, bench_all, options_of
from bench.stream import bench_stream

HELP = """
Time a system on points that are made, the same ones each time, and print a table in Markdown: milliseconds are medians
of --repeats runs after a warm-up, "peak" is memory beyond the input, and "floor" is the time that the least work takes
at the measured ceilings of this machine (docs/benchmarks.md). In brackets is what is used where nothing is given.
"all" is the headline of each system; "stream" is online event building, "repeated" that
of a file with hits again and again.
"""
COMMON = {"sizes", "threads", "repeats", "device", "peers"}
_TAKES = {"all": COMMON, "stream": {"rate", "seconds"}, "repeated": {"kinds", "sizes", "times"}}


def main(arguments=None):
    """Time what the command line asks for."""
    parser = _parser()
    given = {name: value for name, value in vars(parser.parse_args(arguments)).items() if value is not None}
    system, outputs = given.pop("system"), given.pop("output", [])
    takes = _TAKES.get(system) or {*COMMON, *SYSTEMS[system].takes}
    for name in given.keys() - takes:
        parser.error(f"--{name.replace('_', '-')} is not for the benchmark {system}; leave it out")
    if given.get("peers") and given.get("device") == "cuda":
        parser.error("--peers are programs for the CPU; leave out --device cuda")
    if system == "stream":
        report = bench_stream(**given)
    elif system == "repeated":
        report = bench_repeated(**given)
    elif system == "all":
        report = bench_all(given, max(given.pop("sizes", [37_000_000])))
    else:
        report = bench(system, options_of(system, given))
    for path in outputs:
        path.write_text((json.dumps(report, indent=1) if path.suffix == ".json" else markdown(report)) + "\n")
    print(markdown(report))


def _parser():
    parser = argparse.ArgumentParser("python tests/bench", description=HELP)
    kinds = "; ".join(f"{name}: {', '.join(each.kinds)}" for name, each in SYSTEMS.items() if "kinds" in each.takes)
    add = parser.add_argument
    add("system", choices=[*SYSTEMS, "stream", "repeated", "all"])
    add("--sizes", type=_numbers, help="numbers of points, such as 1e5,1e6 (the paper's); of all: the most of any")
    add("--kinds", type=lambda text: text.split(","), help=f"of points; {kinds} (all)")
    add("--groups", type=_groups, help="hca: number and size of apriori clusters (100x1000)")
    add("--min-samples", type=_numbers, help="dbscan, hdbscan: neighbours of core points, of core distances (10)")
    add("--threads", type=_numbers, help="of kernels, 0: all; of events data lanes (0; events, hca: 1,0)")
    add("--repeats", type=int, help="runs after a warm-up, whose median counts (clue, events: 7; others: 3)")
    add("--device", choices=["cpu", "cuda"], help="where kernels run (cpu)")
    add("--peers", action="store_const", const=True, help="time other installed programs, too, in turn")
    add("--rate", type=float, help="stream: hits a second (1e7)")
    add("--seconds", type=float, help="stream: how long, s (60)")
    add("--times", type=int, help="repeated: how often the hits come (25)")
    add("-o", "--output", type=_report, action="append", help="a .md or .json file; may be repeated")
    return parser


def _numbers(text):
    return tuple(round(float(number)) for number in text.split(","))


def _groups(text):
    return tuple((int(number), int(size)) for number, size in (pair.split("x") for pair in text.split(",")))


def _report(text):
    path = Path(text)
    if path.suffix not in (".md", ".json") or not path.resolve().parent.is_dir():
        raise argparse.ArgumentTypeError(f"give a .md or .json file in a folder that is there, got {text}")
    return path
