"""Time every system in ten chunks on all cores of this process, in turn with all points at once.

    python docs/explanation/scaling/chunks.py chunks-cpu.json

makes the record of docs/benchmarks anew. ``--help`` lists the options.
"""

import argparse
import json
import statistics
import time
from contextlib import contextmanager
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from dask.callbacks import Callback
from points import CASES, arrays_of, results_of

from daskclust.machine import describe

_CHUNKS = 10


def main(arguments=None):
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--points", type=int, default=10**7, help="of hca a tenth")
    parser.add_argument("--repeats", type=int, default=3, help="pairs of runs after a warm-up")
    asked = parser.parse_args(arguments)
    runs = [_against_memory(case, asked.points // (10 if case == "hca" else 1), asked.repeats) for case in asked.cases]
    report = {"system": "chunks", "device": "cpu", "parameters": {"chunks": _CHUNKS}, "machine": describe()}
    asked.output.write_text(json.dumps({**report, "runs": runs}, indent=1) + "\n")


def _against_memory(case, points, repeats):
    """Return times of both, their ``ratio``, the median over pairs, and how many tasks took how long.

    Both go from arrays in memory to results in memory, in chunks if the points are. ``in_range`` is the share of all
    tasks' time in those that took 0.1 to 2 s.
    """
    made = arrays_of(case, points, -(-points // _CHUNKS))
    arrays = dict(zip(made, dask.compute(*made.values()), strict=True))
    points = len(next(iter(arrays.values())))
    rows = -(-points // _CHUNKS)

    def chunked():
        given = {
            name: da.from_array(array, chunks=(rows, *array.shape[1:]), name=False) for name, array in arrays.items()
        }
        return results_of(case, given, points)[0].persist(scheduler="threads")

    def at_once():
        return results_of(case, arrays, points)[0]

    if not np.array_equal(at_once(), chunked().compute()):
        raise RuntimeError(f"{case}: chunks of {points:,} points gave another answer; please report this")
    pairs = []
    for _ in range(repeats):
        with _tasks() as seconds:
            pairs.append((_seconds(at_once), _seconds(chunked)))
    return {
        "system": case,
        "points": points,
        "memory_ms": 1e3 * statistics.median(whole for whole, _ in pairs),
        "chunked_ms": 1e3 * statistics.median(parts for _, parts in pairs),
        "ratio": statistics.median(parts / whole for whole, parts in pairs),
        "tasks": len(seconds),
        "longest_s": max(seconds),
        "in_range": sum(took for took in seconds if 0.1 <= took <= 2) / sum(seconds),
    }


def _seconds(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


@contextmanager
def _tasks():
    """Give the list of the times of all tasks that Dask's threads do meanwhile."""
    begun, taken = {}, []

    def begin(key, *_):
        begun[key] = time.perf_counter()

    def end(key, *_):
        taken.append(time.perf_counter() - begun.pop(key))

    with Callback(pretask=begin, posttask=end):
        yield taken


if __name__ == "__main__":
    main()
