"""Run every system on worker processes and write down what each step takes: what the model is fitted to.

    python docs/explanation/scaling/runs.py scaling-cpu.json

makes the record of docs/benchmarks anew, in some minutes on two cores. Points are made by chunks on the workers and
results stay there, as in a pipeline of lazy steps. ``--help`` lists the options.
"""

import argparse
import itertools
import os
import sys
from functools import partial
from pathlib import Path

import cloudpickle
import dask
import points as points_module
import tasks as tasks_module
from dask.delayed import Delayed
from distributed import wait
from merges import run_merges, size_of
from points import CASES, GROUP, fitted
from tasks import idle_rates, wait_until_forgotten, watched

from daskclust.bench import write_report
from daskclust.machine import describe
from daskclust.workers import start

SIZES = {"events": (2_000_000, 4_000_000, 8_000_000), "hca": (200_000, 400_000, 800_000)}
USUAL_SIZES = (1_000_000, 2_000_000, 4_000_000)
BLOCKS = {"hca": (25_000, 100_000)}
USUAL_BLOCKS = (125_000, 500_000)
MERGES = ((4_000_000, 125), (4_000_000, 500))
_KERNELS = {"clue-space": "clue", "clue-layers": "clue", "fof": "dbscan"}
_AS_ASKED = {"daskclust.task-seconds": 0}  # chunks are to be as large as asked for; of other sizes the model tells


def main(arguments=None):
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--sizes", nargs="+", type=int, help="points; default: three for each case")
    parser.add_argument("--blocks", nargs="+", type=int, help="points in a chunk; default: two for each case")
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4], help="processes of one thread")
    parser.add_argument("--memory-limit", default="2GB", help="of each")
    parser.add_argument("--scheduler", help="address of one that runs, with as many workers as --workers says")
    parser.add_argument("--merges", nargs=2, type=int, action="append", help="points and chunks that are merged, too")
    asked = parser.parse_args(arguments)
    for module in (points_module, tasks_module):  # which workers on other machines do not have
        cloudpickle.register_pickle_by_value(module)
    runs, facts = [], {}
    for count in asked.workers:
        with _cluster(count, asked) as client:
            rates = idle_rates(client)
            for case in asked.cases:
                sizes = asked.sizes or SIZES.get(case, USUAL_SIZES)
                blocks = asked.blocks or BLOCKS.get(case, USUAL_BLOCKS)
                for amount in itertools.product(sizes, blocks):
                    _say(f"{case}: {amount[0]:,} points in chunks of {amount[1]:,}, {count} workers")
                    run = {**_run(client, case, amount), "workers": count, "idle_rates": rates}
                    if (case, *amount) not in facts:
                        facts[case, *amount] = facts_of(case, *amount)
                    runs.append(run | {"facts": facts[case, *amount]})
    parameters = {"group": GROUP, "memory_limit": asked.memory_limit, "workers": asked.workers, "orders": ["random"]}
    report = {"system": "scaling", "device": "cpu", "parameters": parameters, "machine": describe(), "runs": runs}
    write_report({**report, "merges": run_merges(asked.cases, asked.merges or MERGES, say=_say)}, asked.output)


def _say(line):
    sys.stderr.write(f"{line}\n")


def _cluster(count, asked):
    """Return a client of workers that have every kernel, and have run each case once."""
    kernels = tuple({_KERNELS.get(case, case) for case in asked.cases})
    where = {"memory_limit": asked.memory_limit} if asked.scheduler is None else {"scheduler": asked.scheduler}
    client = start(count, warm=kernels, **where)
    for case in asked.cases:
        _computed(case, (2000, 1000))
    return client


def _run(client, case, amount):
    """Run a case and return what it takes."""
    named = {"system": case, "points": amount[0], "block": amount[1], "order": "random", "load": os.getloadavg()[0]}
    results, record = watched(client, partial(_computed, case, amount))
    clusters = int(results[0].shape[0]) if case == "hca" else int(results[1].compute())  # of a hierarchy merges
    del results
    wait_until_forgotten(client)
    return {**named, **record, "clusters": clusters}


def _computed(case, amount):
    """Return results that are there, on the workers."""
    with dask.config.set({"scheduler": "distributed", **_AS_ASKED}):
        results = list(dask.persist(*fitted(case, *amount)))
    wait(results)
    return results


# ------------------------------------------------------------------------------------------------------ facts of chunks
def facts_of(case, points, block):
    """Return what chunks have of the points, and how large their frontiers are.

    ``blocks``; ``own`` and ``halo`` points; ``grid``, blocks along each axis in the mean; ``frontier``, bytes of its
    fields over all chunks, and ``frontier_most``, bytes of the largest.
    """
    with dask.config.set(_AS_ASKED):
        graph = fitted(case, points, block)[0].dask
    steps = [(key, layer) for layer, keys in graph.layers.items() for key in keys if isinstance(key, tuple)]
    chunks = sorted(step for step in steps if step[0][0].startswith("daskclust-chunk-"))
    frontiers = sorted(step for step in steps if "-frontier-" in step[0][0])
    asked = [dask.delayed(_of_chunk)(Delayed(key, graph, layer=layer)) for key, layer in chunks]
    asked += [dask.delayed(_of_frontier)(Delayed(key, graph, layer=layer)) for key, layer in frontiers]
    found = dask.compute(*asked)
    of_chunks, of_frontiers = found[: len(chunks)], found[len(chunks) :]
    names = sorted({name for each in of_frontiers for name in each})
    return {
        "blocks": len(chunks),
        "own": sum(own for own, _, _ in of_chunks),
        "halo": sum(halo for _, halo, _ in of_chunks),
        "grid": _grid([region for _, _, region in of_chunks]),
        "frontier": {name: sum(each.get(name, 0) for each in of_frontiers) for name in names},
        "frontier_most": max((sum(each.values()) for each in of_frontiers), default=0),
    }


def _of_chunk(chunk):
    n = len(next(iter(chunk.columns.values())))
    own = n if chunk.owned is None else int(chunk.owned.sum())
    return own, n - own, chunk.region


def _of_frontier(frontier):
    return {name: size_of(value) for name, value in frontier._asdict().items()}


def _grid(regions):
    """Return the number of blocks along each axis, in the mean over what the axes before it make."""
    counts = []
    for axis in range(len(regions[0]) if regions else 0):
        rows = {region[:axis] for region in regions}
        counts.append(len({region[: axis + 1] for region in regions}) / len(rows))
    return counts


if __name__ == "__main__":
    main()
