"""Fit the model's parameters to runs, and put what it says beside what was measured.

All times that are fitted are seconds of processor, so that runs on a machine with fewer cores than workers serve, too;
the time of a run is predicted from them and never fitted.
"""

import math
import operator
from functools import partial

import numpy as np
from model import Parameters, frontier_bytes, grid_of, halo_points, predict
from points import GROUP, geometry_of
from scipy.optimize import nnls
from tasks import ROLES


def fit(runs):
    """Return the parameters of one case by its runs: least squares of relative deviations, none below zero."""
    kinds = {(run["system"], run["order"]) for run in runs}
    if len(kinds) != 1:
        raise ValueError(f"the runs of one system and order are needed, got those of {sorted(kinds) or 'none'}")
    system, runs = runs[0]["system"], _divided(runs)

    def column(value):
        return np.array([value(run) for run in runs], np.float64)

    points, tasks, workers = (column(operator.itemgetter(name)) for name in ("points", "tasks", "workers"))
    client_s, scheduler_s, worker_s = (column(partial(_of_work, who=who)) for who in ("client", "scheduler", "workers"))
    blocks, pairs, received, frontier = map(column, (_blocks, _pairs, _received_bytes, _frontier))
    in_chunks = column(lambda run: run["facts"]["own"] + run["facts"]["halo"])
    halo = column(lambda run: halo_points(system, run["points"], run["facts"]["grid"]))
    roots = points * (system == "hca") / GROUP
    seconds = {role: column(partial(_role_seconds, role=role)) for role in ROLES}
    beside, one, away = worker_s - sum(seconds.values()), np.ones(len(runs)), points * (1 - 1 / workers)
    route, pair = _nonnegative(seconds["route"], points, pairs)
    cluster, block = _nonnegative(seconds["cluster"], in_chunks, blocks)
    merge, pairs_of_roots = _nonnegative(seconds["merge"], frontier, roots**2)
    task, transfer = _nonnegative(beside, tasks, received)
    client, start = _nonnegative(client_s, tasks, one)
    per_chunk, per_pair = _nonnegative(tasks, blocks, pairs)
    borders = one * 0 if geometry_of(system).axes else blocks - 1
    volume, surface, border = _nonnegative(frontier, points, halo, borders)
    is_many = blocks > (4 if blocks.max() > 4 else 0)
    source, made = _nonnegative(seconds["source"], points, blocks)
    return Parameters(
        system=system,
        source=source,
        made=made,
        route=route,
        pair=pair,
        cluster=cluster,
        block=block,
        carry=_nonnegative(seconds["carry"], blocks)[0],
        merge=merge,
        pairs_of_roots=pairs_of_roots,
        task=task,
        transfer=transfer,
        scheduler=_share(scheduler_s, tasks),
        client=client,
        start=start,
        tasks_per_chunk=per_chunk,
        tasks_per_pair=per_pair,
        volume=volume,
        surface=surface,
        border=border,
        table=_share(column(partial(_left, step="slice")), frontier),
        moved=_share(column(partial(_left, step="part")), in_chunks),
        returned=_share(column(partial(_left, step="finish")), points),
        carried=_share(column(partial(_received, step="measure")), away),
        # with fewer chunks Dask takes what divides them for beginnings of the graph, and spreads it over workers
        strayed=_share(column(_strayed)[is_many], away[is_many]),
        copied=_copied(runs),
        kept=_share(column(partial(_left, step="local")), points),
    )


def _of_work(run, who):
    """Return seconds of processor, without those that go by where there is no work, too."""
    spent = run["worker_s" if who == "workers" else f"{who}_s"]
    return float(max(spent - run["idle_rates"][who] * run["wall_s"], 0.0))


def _divided(runs):
    """Return the runs of several chunks, if there are any: points of one chunk go nowhere."""
    return [run for run in runs if run["facts"]["blocks"] > 1] or runs


def _blocks(run):
    return float(run["facts"]["blocks"])


def _frontier(run):
    return float(sum(run["facts"]["frontier"].values()))


def _pairs(run):
    """Return how many pairs of a chunk of the input and one that it reaches there are."""
    return float(sum(step["tasks"] for name, step in run["steps"].items() if name == "part"))


def _received(run, step):
    """Return the bytes of a step's results that went to other workers."""
    return float(run["received"].get(step, {"bytes": 0})["bytes"])


def _copied(runs):
    """Return the share of other workers that took the whole merge table, where chunks are more than two a worker."""
    many = [run for run in runs if run["workers"] > 1 and run["facts"]["blocks"] > 2 * run["workers"]]
    tables = sum((run["workers"] - 1) * _left(run, "merge") for run in many)
    return sum(_received(run, "merge") for run in many) / tables if tables else 0.0


def _strayed(run):
    """Return the bytes of points that went to other workers before they were divided."""
    known = ("part", "finish", "frontier", "slice", "measure", "carry", "merge", "sample")
    return float(sum(entry["bytes"] for step, entry in run["received"].items() if step.split("+")[-1] not in known))


def _left(run, step):
    """Return the bytes that the tasks which end with a step leave."""
    return float(sum(entry["bytes"] for steps, entry in run["steps"].items() if steps.split("+")[-1] == step))


def _share(measured, of):
    """Return how much there is of one for the other, over all runs."""
    return float(measured.sum() / of.sum()) if of.sum() > 0 else 0.0


def _nonnegative(measured, *columns):
    """Return factors of columns whose sum comes closest to what is measured, relative to that; none below zero."""
    if not measured.any():
        return (0.0,) * len(columns)
    # what is far below the mean is not asked to fit as closely: a few milliseconds are noise
    weight = 1 / (np.abs(measured) + 0.1 * np.abs(measured).mean())
    rows = np.stack(columns, axis=1) * weight[:, None]
    scale = np.abs(rows).max(axis=0)
    scale[scale == 0] = 1
    found, _ = nnls(rows / scale, measured * weight)
    return tuple(float(value) for value in found / scale)


# --------------------------------------------------------------------------------------------- beside what was measured
def compare(runs, cores):
    """Return what was measured beside what the model says, by parameters fitted to all runs, and to all other runs.

    For each run of a case ``points``, ``block``, ``workers``; for each of ``wall_s``, ``worker_s``, ``tasks``,
    ``halo``, ``frontier`` and ``received`` a dict of ``measured``, ``fitted`` and ``left_out``: by parameters fitted
    without the runs of that number of points and chunks, on any number of workers. `cores` are those of the machine.
    """
    runs = _divided(runs)
    everything, rows = fit(runs), []
    for run in runs:
        others = [other for other in runs if (other["points"], other["block"]) != (run["points"], run["block"])]
        row = {name: run[name] for name in ("points", "block", "workers")}
        guesses = {"fitted": _guess(everything, run, cores)}
        if others:
            guesses["left_out"] = _guess(fit(others), run, cores)
        facts = run["facts"]
        measured = {
            "wall_s": run["wall_s"],
            "worker_s": _of_work(run, "workers"),
            "tasks": run["tasks"],
            "halo": facts["halo"] / max(facts["own"], 1),
            "frontier": _frontier(run),
            "received": _received_bytes(run),
        }
        for name, value in measured.items():
            row[name] = {"measured": value, **{kind: guess[name] for kind, guess in guesses.items()}}
        rows.append(row)
    return rows


def _guess(known, run, cores):
    grid = grid_of(math.ceil(run["points"] / run["block"]), geometry_of(known.system).axes)
    said = predict(known, run["points"], run["workers"], run["block"], cores=cores, grid=grid)
    merging = known.merge * frontier_bytes(known, run["points"], grid, said.blocks)
    merging += known.pairs_of_roots * (run["points"] / GROUP) ** 2
    return {
        "wall_s": said.seconds,
        "worker_s": said.parts["cores"] * cores - known.scheduler * said.tasks + merging,
        "tasks": said.tasks,
        "halo": said.halo,
        "frontier": frontier_bytes(known, run["points"], grid, said.blocks),
        "received": sum(said.traffic.values()),
    }


def _role_seconds(run, role):
    """Return the seconds of processor of the steps of a run that have a role."""
    return float(sum(step["cpu_s"] for step in run["steps"].values() if step["role"] == role))


def _received_bytes(run):
    """Return the bytes that workers of a run took from each other."""
    return int(sum(entry["bytes"] for entry in run["received"].values()))
