"""Run systems on worker processes and write down what each step takes: the ground of the model of time and traffic."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from daskclust.bench._report import check_kinds, table
from daskclust.bench._scaling_data import GROUP, ORDERS, SYSTEMS, fitted, geometry_of
from daskclust.bench._tasks import ROLES, idle_rates, wait_until_forgotten, watched
from daskclust.bench.merging import bench_merges, merges_markdown, size_of

USUAL: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "clue-space": {"sizes": (1_000_000, 2_000_000, 4_000_000), "blocks": (125_000, 500_000)},
    "clue-layers": {"sizes": (1_000_000, 2_000_000, 4_000_000), "blocks": (125_000, 500_000)},
    "events": {"sizes": (2_000_000, 4_000_000, 8_000_000), "blocks": (125_000, 500_000)},
    "fof": {"sizes": (1_000_000, 2_000_000, 4_000_000), "blocks": (125_000, 500_000)},
    "dbscan": {"sizes": (1_000_000, 2_000_000, 4_000_000), "blocks": (125_000, 500_000)},
    "hca": {"sizes": (200_000, 400_000, 800_000), "blocks": (25_000, 100_000)},
}
"""Numbers of points, and of points in a chunk, where none are asked for."""


def bench_scaling(
    systems: str | Sequence[str] = SYSTEMS,
    sizes: Sequence[int] | None = None,
    *,
    blocks: Sequence[int] | None = None,
    workers: Sequence[int] = (1, 2, 4),
    orders: Sequence[str] = ORDERS,
    merges: Sequence[tuple[int, int]] = ((4_000_000, 125), (4_000_000, 500)),
    memory_limit: str | float = "2GB",
    scheduler: str | None = None,
    say: Callable[[str], object] = lambda _: None,
) -> dict[str, Any]:
    """Run systems on numbers of worker processes, and note what each step of the engine takes.

    The points are made by chunks on the workers and results stay there, as in a pipeline of lazy steps. Rows of one
    number of points are strong scaling, rows with as many points for each worker weak scaling.

    Parameters
    ----------
    systems : str or sequence of {"clue-space", "clue-layers", "events", "fof", "dbscan", "hca"}
        What is run: CLUE by blocks of space and by layers, event building, friends-of-friends, DBSCAN, and Mahalanobis
        HCA on apriori clusters of 250 cells.
    sizes : sequence of int, optional
        Numbers of points. Default: three for each system, `USUAL`.
    blocks : sequence of int, optional
        Points in a chunk of the input. Default: two for each system.
    workers : sequence of int, default (1, 2, 4)
        Numbers of worker processes of one thread; more than cores share these.
    orders : sequence of {"random", "space"}, default ("random", "space")
        Whether a chunk of points for blocks of space has some from everywhere, or from one slab.
    merges : sequence of (int, int), default ((4_000_000, 125), (4_000_000, 500))
        Numbers of points and chunks whose merge is run, too; see `bench_merges`.
    memory_limit : str or float, default "2GB"
        Of each worker; see `daskclust.workers.start`.
    scheduler : str, optional
        Address of a scheduler that runs; its workers are used, and `workers` must be their one number.
    say : callable
        Is given a line before each run.

    Returns
    -------
    dict
        ``machine`` facts, ``parameters`` and ``runs``. A run has ``wall_s`` from the call of `fit` until results are
        on the workers; seconds of processor of the client, the scheduler and all workers; ``steps`` with number of
        tasks, seconds of processor and from begin to end, bytes of results; ``received`` bytes and seconds by step;
        ``idle_per_task_s``, the time of workers that no task had; ``idle_rates``, seconds of processor in each second
        without work; the ``load`` of the machine before it. ``facts``
        are of the points: how many chunks own, how many are in halos, bytes of frontiers. ``merges``: what
        `bench_merges` gives.

    Raises
    ------
    ValueError
        For unknown systems and orders.
    """
    from daskclust.machine import describe

    systems = (systems,) if isinstance(systems, str) else tuple(systems)
    check_kinds(systems, SYSTEMS)
    check_kinds(orders, ORDERS)
    runs: list[dict[str, Any]] = []
    facts: dict[tuple[Any, ...], dict[str, Any]] = {}
    for count in workers:
        with _cluster(count, memory_limit, scheduler, systems) as client:
            rates = idle_rates(client)
            for system in systems:
                for case in _cases(system, sizes, blocks, orders):
                    say(f"{system}: {case[0]:,} points in chunks of {case[1]:,}, {case[2]}, {count} workers")
                    run = {**_named(system, case), "workers": count, "load": os.getloadavg()[0], "idle_rates": rates}
                    results, record = watched(client, partial(_computed, system, case))
                    run |= {**record, "clusters": _clusters(system, results)}
                    del results
                    wait_until_forgotten(client)
                    if (system, *case) not in facts:
                        facts[system, *case] = facts_of(system, *case)
                    idle = run["wall_s"] * count - sum(each["seconds"] for each in run["steps"].values())
                    run |= {"idle_per_task_s": idle / max(run["tasks"], 1), "facts": facts[system, *case]}
                    runs.append(run)
    parameters = {"group": GROUP, "memory_limit": memory_limit, "workers": list(workers), "orders": list(orders)}
    report = {"system": "scaling", "device": "cpu", "parameters": parameters, "machine": describe(), "runs": runs}
    return {**report, "merges": bench_merges(systems, merges, say=say)}


def _cases(
    system: str, sizes: Sequence[int] | None, blocks: Sequence[int] | None, orders: Sequence[str]
) -> Iterator[tuple[int, int, str]]:
    by_space = geometry_of(system).axes > 0
    for size, block in itertools.product(sizes or USUAL[system]["sizes"], blocks or USUAL[system]["blocks"]):
        for order in orders if by_space else ("random",):
            yield int(size), int(block), order


def _named(system: str, case: tuple[int, int, str]) -> dict[str, Any]:
    return {"system": system, "points": case[0], "block": case[1], "order": case[2]}


def _cluster(count: int, memory_limit: str | float, scheduler: str | None, systems: Sequence[str]) -> Any:
    """Return a client of workers that have every kernel, and have run each system once."""
    from daskclust.workers import start

    kernels = tuple({_KERNELS.get(system, system) for system in systems})
    if scheduler is None:
        client = start(count, memory_limit=memory_limit, warm=kernels)
    else:
        client = start(count, scheduler=scheduler, warm=kernels)
    for system in systems:
        _computed(system, (2000, 1000, "random"))
    return client


# chunks are to be as large as a case says: what fewer and larger ones would do, the model tells
_AS_ASKED = {"daskclust.task-seconds": 0}

_KERNELS = {"clue-space": "clue", "clue-layers": "clue", "fof": "dbscan"}


def _computed(system: str, case: tuple[int, int, str]) -> list[Any]:
    """Return results of a system that are there, on the workers."""
    import dask
    from distributed import wait

    with dask.config.set({"scheduler": "distributed", **_AS_ASKED}):
        results = list(dask.persist(*fitted(system, *case)))
    wait(results)
    return results


def _clusters(system: str, results: list[Any]) -> int:
    """Return the number of clusters, of a hierarchy that of merges."""
    return int(results[0].shape[0]) if system == "hca" else int(results[1].compute())


# ------------------------------------------------------------------------------------------------------ facts of chunks
def facts_of(system: str, points: int, block: int, order: str = "random") -> dict[str, Any]:
    """Return what chunks have of the points, and how large their frontiers are.

    Parameters
    ----------
    system : str
        Of `SYSTEMS`.
    points, block : int
        Number of points, and of those in a chunk of the input.
    order : {"random", "space"}
        As of `bench_scaling`.

    Returns
    -------
    dict
        ``blocks``; ``own`` and ``halo`` points; ``grid``, blocks along each axis in the mean; ``frontier``, bytes of
        its fields, over all chunks, and ``frontier_most``, bytes of the largest.
    """
    import dask
    from dask.delayed import Delayed

    with dask.config.set(_AS_ASKED):
        graph = fitted(system, points, block, order)[0].dask
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


def _of_chunk(chunk: Any) -> tuple[int, int, Any]:
    n = len(next(iter(chunk.columns.values())))
    own = n if chunk.owned is None else int(chunk.owned.sum())
    return own, n - own, chunk.region


def _of_frontier(frontier: Any) -> dict[str, int]:
    """Return the bytes of the arrays of a frontier, by field."""
    return {name: size_of(value) for name, value in frontier._asdict().items()}


def _grid(regions: Sequence[Any]) -> list[float]:
    """Return the number of blocks along each axis, in the mean over what the axes before it make."""
    counts = []
    axes = len(regions[0]) if regions else 0
    for axis in range(axes):
        rows = {region[:axis] for region in regions}
        counts.append(len({region[: axis + 1] for region in regions}) / len(rows))
    return counts


# ---------------------------------------------------------------------------------------------------------- the report
def markdown(report: dict[str, Any]) -> str:
    """Return a report's runs as a Markdown table: seconds of processor by what they are for, and traffic."""
    head = ["system", "order", "points", "blocks", "workers", "tasks", *[f"{role} (s)" for role in ROLES]]
    head += ["workers (s)", "scheduler (ms/task)", "halo", "frontier (B/point)", "received (B/point)", "wall (s)"]
    rows = []
    for run in report["runs"]:
        n, facts = run["points"], run["facts"]
        row = [run["system"], run["order"], f"{n:,}", facts["blocks"], run["workers"], f"{run['tasks']:,}"]
        row += [f"{role_seconds(run, role):.3f}" for role in ROLES]
        row += [f"{run['worker_s']:.2f}", f"{1e3 * run['scheduler_s'] / run['tasks']:.2f}"]
        row += [f"{facts['halo'] / facts['own']:.1%}", f"{sum(facts['frontier'].values()) / n:.3f}"]
        row += [f"{received_bytes(run) / n:.1f}", f"{run['wall_s']:.2f}"]
        rows.append(row)
    merges = report.get("merges")
    return table(head, rows, words=2) + (f"\n\n{merges_markdown(merges)}" if merges else "")


def role_seconds(run: Mapping[str, Any], role: str) -> float:
    """Return the seconds of processor of the steps of a run that have a role."""
    return float(sum(step["cpu_s"] for step in run["steps"].values() if step["role"] == role))


def received_bytes(run: Mapping[str, Any]) -> int:
    """Return the bytes that workers of a run took from each other."""
    return int(sum(entry["bytes"] for entry in run["received"].values()))
