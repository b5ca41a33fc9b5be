"""A model of time, memory and traffic against workers: what runs took, and what it says of larger ones."""

import math
import operator
from dataclasses import dataclass

import numpy as np
from points import GROUP, geometry_of
from scipy.optimize import nnls

from daskclust.clue.plan import CluePlan
from daskclust.core.run.exchange import _APART
from daskclust.core.run.merging import NODE, WIDTH
from daskclust.core.run.workers import _OWN, Workers, _Worker, points_per_task
from daskclust.dbscan.plan import DbscanPlan
from daskclust.events.plan import EventPlan
from daskclust.hca.plan import cost_of_points

COSTS = {
    "clue-space": CluePlan.cost,
    "clue-layers": CluePlan.cost,
    "events": EventPlan(200.0, "local", 8, 1).cost,
    "fof": DbscanPlan(0.2, 2, 2, (0.0,) * 3).cost,
    "dbscan": DbscanPlan(0.3, 5, 1, (0.0,) * 3).cost,
    "hca": cost_of_points(np.array([GROUP]), 8),
}
ROW = {"clue-space": 8, "clue-layers": 12, "events": 24, "fof": 12, "dbscan": 12, "hca": 72}  # bytes of a point
LINK = DISK = 1e9  # B/s of a worker, assumed
TURN = 2e-3  # s from the end of a task to the begin of the next one that needs it, elsewhere: assumed
BORDER = 64  # bytes that go up a merge's tree for each point of a halo: 32 on both sides of a face; 63 were measured
_SPILLING = 0.6  # of a worker's memory, at which Dask begins to write results to disk


@dataclass(frozen=True)
class Known:
    """What runs of a system with points in an order, and a simulated scheduler, took."""

    system: str
    order: str
    point: float  # s of workers, for each point of a chunk, halo included
    chunk: float  # s of workers, for each chunk
    shard: float  # s of workers, for each piece of dask's exchange
    merge: float  # s for each point of a halo (of hca: for each point)
    root_pair: float  # s for each pair of roots, of hca
    kept: float  # B/point that wait on a worker until the merge is done
    exchanged: float  # B/point that go through the disk of dask's exchange
    received: float  # B/point that go to another worker otherwise
    tasks: float  # for each chunk
    client: float  # s/task
    graph: float  # B/task that the client sends
    scheduler: float  # s/task
    state: float  # B/task of the scheduler's memory
    simulated: int  # chunks for which these were found
    scheduler_grows: float  # power of the number of chunks with which the time of a task grows
    state_grows: float  # and its memory


def fit(runs, exchanges, simulated):
    """Return what is known by runs of one system in one order: least squares of relative deviations, none negative."""
    system, order = runs[0]["system"], runs[0]["order"]
    get = lambda name: np.array([run.get(name, 0) for run in runs], float)  # noqa: E731
    n, chunks = get("points"), get("chunks")
    pieces = np.array([each["count"] for each in exchanges], float) ** 2
    shard, _ = _factors([each["worker_s"] for each in exchanges], pieces, np.sqrt(pieces))
    shards = np.array([shards_of(system, order, run["chunks"], run["points"], _here(run)) for run in runs], float)
    halo = n * [halo_share(system, *pair) for pair in zip(n, chunks, strict=True)]
    point, chunk = _factors(get("worker_s") - shard * shards, n + halo, chunks)
    of_merge = n if system == "hca" else halo
    merge, _, root_pair = _factors(get("merge_s"), of_merge, chunks, (n / GROUP) ** 2 * (system == "hca"))
    empty = np.mean([each["written_bytes"] for each in exchanges] / pieces)  # B/shard
    written = get("written_bytes") - shards * empty
    many = next(each for each in simulated if (each["system"], each["order"]) == (system, order))
    grows = order == "random" and system != "events"  # as many chunks make many pieces of the exchange
    return Known(
        system=system,
        order=order,
        point=point,
        chunk=chunk,
        shard=shard,
        merge=merge,
        root_pair=root_pair,
        kept=get("kept_bytes").sum() / n.sum(),
        exchanged=max(0.0, written.sum() / n.sum()),
        received=get("received_bytes").sum() / n.sum() / (1 - 1 / runs[0]["workers"]),
        tasks=many["tasks"] / many["chunks"],
        client=many["build_s"] / many["tasks"],
        graph=many["graph_bytes"] / many["tasks"],
        scheduler=_of_scheduler(many),
        state=many["task_bytes"],
        simulated=many["chunks"],
        scheduler_grows=grows * _power(simulated, _of_scheduler),
        state_grows=grows * _power(simulated, operator.itemgetter("task_bytes")),
    )


def _of_scheduler(run):
    """Return the seconds of a task."""
    return run["task_s"] + run["submit_s"] / run["tasks"]


def _power(simulated, value):
    """Return with which power of the number of chunks a value grows, by the simulations of most and fewest chunks."""
    of_chunks = [
        each for each in simulated if (each["system"], each["order"], each["workers"]) == ("fof", "random", 1000)
    ]
    few, *_, many = sorted([*of_chunks, *of_chunks], key=lambda each: each["chunks"])
    ratio = many["chunks"] / few["chunks"]
    return max(0.0, math.log(value(many) / value(few)) / math.log(ratio)) if ratio > 1 else 0.0


def _factors(measured, *columns):
    """Return factors of columns whose sum comes closest to what is measured, relative to that; none is negative."""
    measured = np.maximum(measured, 1e-9)
    found, _ = nnls(np.stack(columns, axis=1) / measured[:, None], np.ones(len(measured)))
    return found.tolist()


def _here(run):
    return Workers(run["workers"], _Worker(1, run["memory"]).share)


# ---------------------------------------------------------------------------------------------- how points are divided
def halo_share(system, points, chunks):
    """Return how many points of halos there are for each point."""
    space = geometry_of(system)
    if not space.axes:
        return 0.0
    side = (points / space.density) ** (1 / space.axes)
    return share_of_halos(side, (chunks ** (1 / space.axes),) * space.axes, space.reach, period=space.period)


def share_of_halos(side, grid, reach, *, period):
    """Return the same for halos of width `reach` in a cube of uniform density, cut into a grid of blocks.

    Each plane between two blocks gives a layer of `reach` on both its sides to the block beyond.
    """
    times = 1.0
    for blocks in grid:
        planes = 0.0 if blocks <= 1 else blocks if period else blocks - 1
        times *= min(1 + 2 * planes * reach / side, blocks)
    return times - 1


def shards_of(system, order, chunks, points, workers):
    """Return how many pieces go through dask's exchange, of as many chunks of the input as of the partition."""
    wanted = max(workers.threads, math.ceil(8 * ROW[system] * points / workers.memory), math.isqrt(chunks))
    groups = math.ceil(chunks / math.ceil(chunks / wanted))
    own = chunks if chunks <= _APART else groups
    out = chunks * own * (system != "events" and order == "random")
    back = chunks * own * (order == "random")
    merged = 2 * chunks * groups * (chunks > WIDTH)
    return out + (0 if system in ("hca", "events") else back + merged)


# ------------------------------------------------------------------------------------------------------------- predict
@dataclass(frozen=True)
class Prediction:
    """What the model says of a run, in seconds and bytes."""

    chunks: int
    tasks: float
    halo: float  # points of halos for each point
    parts: dict[str, float]  # s; ``client`` comes first and ``merge`` last, the others are at the same time
    worker_s: float  # of the processors of all workers
    memory: float  # of a worker, if nothing is written to disk
    traffic: float  # of a worker
    written: float  # to a worker's disk
    merged: float  # bytes that the worker with the largest merge has
    graph: float  # bytes that the client sends
    state: float  # bytes that the scheduler has

    @property
    def seconds(self):
        """The whole time."""
        together = max(value for name, value in self.parts.items() if name not in ("client", "merge"))
        return self.parts["client"] + together + self.parts["merge"]

    @property
    def limit(self):
        """What takes longest."""
        return max(self.parts, key=self.parts.get)


def predict(known, points, workers, memory, *, chunks=None, cores=None):
    """Predict a run on workers of one thread with so many bytes of memory; of more than 64 chunks if order is random.

    By default the engine chooses the number of chunks, and workers have cores of their own.
    """
    system, cost = known.system, COSTS[known.system]
    there = Workers(workers, _Worker(1, memory).share)
    chunks = chunks or math.ceil(points / points_per_task(int(points), cost, there))
    halo, tasks = halo_share(system, points, chunks), known.tasks * chunks
    shards, more = shards_of(system, known.order, chunks, points, there), max(1.0, chunks / known.simulated)
    work = known.point * points * (1 + halo) + known.chunk * chunks + known.shard * shards
    kept = known.kept * points / workers
    needed = _OWN + kept + cost.size * points / chunks
    spilled = min(kept, max(0.0, needed - _SPILLING * memory))
    written = known.exchanged * points / workers + spilled
    away = 1 - 1 / workers
    traffic = (known.exchanged + known.received) * points * away / workers
    merge, merged = _merge(known, points, chunks)
    parts = {
        "client": known.client * tasks,
        "workers": work / workers * math.ceil(chunks / workers) * workers / chunks,
        "scheduler": known.scheduler * tasks * more**known.scheduler_grows,
        "network": traffic / LINK,
        "disk": 2 * written / DISK,  # and read again
        "chain": chunks * TURN * (system == "events"),
        "merge": merge,
    }
    if cores:
        parts["workers"] = (work + parts["scheduler"]) / cores
    graph, state = known.graph * tasks, known.state * tasks * more**known.state_grows
    return Prediction(chunks, tasks, halo, parts, work, needed, traffic, written, merged, graph, state)


def _merge(known, points, chunks):
    """Return the seconds of the longest way through a merge, and the bytes of its largest step."""
    if known.system == "hca":
        merged = 32.0 * points  # rows of the linkage
        return known.merge * points + known.root_pair * (points / GROUP) ** 2 + merged / LINK, merged
    seconds, largest, regions = 0.0, 0.0, chunks
    while regions > 1:
        shared = points / regions * halo_share(known.system, points, regions) * min(NODE, regions)
        largest = max(largest, BORDER * shared)
        seconds += known.merge * shared + BORDER * shared / LINK
        regions = math.ceil(regions / NODE)
    return seconds, largest


def compare(known, run, cores):
    """Return pairs of what was measured of a run and what the model says, by name."""
    said = predict(known, run["points"], run["workers"], run["memory"], chunks=run["chunks"], cores=cores)
    return {
        "processors (s)": (run["worker_s"], said.worker_s),
        "tasks": (run["tasks"], said.tasks),
        "written (B)": (run["written_bytes"], said.written * run["workers"]),
        "memory of a worker (B)": (run["peak_bytes"], said.memory + ROW[known.system] * run["points"] / run["workers"]),
        "elapsed (s)": (run["wall_s"], said.seconds),
    }
