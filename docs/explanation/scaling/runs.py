"""Run every system on worker processes and write down what they take: what the model is fitted to.

    python docs/explanation/scaling/runs.py scaling-cpu.json

makes the record of docs/benchmarks anew. Points are on the workers before the clocks start, and results stay there.
``--help`` lists the options.
"""

import argparse
import itertools
import json
import os
import sys
from functools import partial
from pathlib import Path

import cloudpickle
import dask
import dask.array as da
import numpy as np
import points as points_module
import tasks as tasks_module
from dask.utils import parse_bytes
from distributed import wait
from points import CASES, IN_SPACE, arrays_of, results_of
from tasks import watched

from daskclust.core.run.graph import boxed
from daskclust.machine import describe
from daskclust.workers import start

_KERNELS = {"clue-space": "clue", "clue-layers": "clue", "fof": "dbscan"}
_AS_ASKED = {"daskclust.task-seconds": 0}  # blocks are as many as asked for


def main(arguments=None):
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--cases", nargs="*", choices=CASES, default=CASES)
    parser.add_argument("--orders", nargs="+", choices=["random", "blocks"], default=["random", "blocks"])
    parser.add_argument("--rows", nargs="+", type=int, default=[10_000, 50_000], help="points of a chunk")
    parser.add_argument("--chunks", nargs="+", type=int, default=[100, 300])
    parser.add_argument("--exchanges", nargs="*", type=int, default=[50, 100, 200], help="senders, and receivers")
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread")
    parser.add_argument("--memory-limit", default="4GB", help="of each")
    asked = parser.parse_args(arguments)
    for module in (points_module, tasks_module, sys.modules[__name__]):  # workers do not have these
        cloudpickle.register_pickle_by_value(module)
    kernels = tuple({_KERNELS.get(case, case) for case in asked.cases})
    report = {"system": "scaling", "device": "cpu", "parameters": {}, "machine": describe()}
    with start(asked.workers, memory_limit=asked.memory_limit, warm=kernels) as client, dask.config.set(_AS_ASKED):
        report["exchanges"] = [_exchanged(client, count) for count in asked.exchanges]
        report["runs"] = []
        for case, order in itertools.product(asked.cases, asked.orders):
            if order == "blocks" and case not in IN_SPACE:
                continue
            _computed(_results(case, _made(case, 2000, 1000, order), 2000))  # kernels are there
            for rows, chunks in itertools.product(asked.rows, asked.chunks):
                where = {"workers": asked.workers, "memory": parse_bytes(asked.memory_limit)}
                report["runs"].append(where | _run(client, case, order, rows, chunks))
                asked.output.write_text(json.dumps(report, indent=1) + "\n")
    asked.output.write_text(json.dumps(report, indent=1) + "\n")


def _run(client, case, order, rows, chunks):
    """Run a case and return what it takes."""
    n, load = rows * chunks, os.getloadavg()[0]
    arrays = _made(case, n, rows, order)
    _, record = watched(client, lambda: _computed(_results(case, arrays, n)))
    found = {"system": case, "order": order, "points": n, "chunks": chunks, "load": load} | record
    sys.stderr.write(f"{found}\n")
    return found


def _made(case, points, rows, order):
    """Return points, which are on the workers."""
    arrays = arrays_of(case, points, rows, order)
    return dict(zip(arrays, _computed(list(arrays.values())), strict=True))


def _results(case, arrays, points):
    return partial(results_of, case, arrays, points)


def _computed(asked):
    """Return results, or what a function gives, that are there, on the workers."""
    results = list(dask.persist(*(asked() if callable(asked) else asked)))
    wait(results)
    return results


def _exchanged(client, count):
    """Return what Dask's P2P exchange takes for a small piece from each of `count` senders to each receiver."""
    kind = {"dtype": object, "meta": np.empty((0, 0), object)}
    rows = da.map_blocks(_row, count, chunks=((1,) * count, (count,)), **kind)
    _, record = watched(
        client, lambda: _computed([rows.rechunk(((count,), (1,) * count), method="p2p").map_blocks(_none, **kind)])
    )
    sys.stderr.write(f"{count} {record}\n")
    return {"count": count} | record


def _row(count):
    return boxed([np.zeros(10)] * count, (1, count))


def _none(block):
    return block[:1]


if __name__ == "__main__":
    main()
