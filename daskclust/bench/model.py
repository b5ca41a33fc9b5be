"""A model of time and traffic against workers: few parameters for each system, and what they predict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from daskclust.bench._scaling_data import GROUP, IN_TREES, geometry_of
from daskclust.bench.halos import grid_of, halo_points
from daskclust.core.run.exchange import bundled_steps, in_bundles
from daskclust.core.run.merging import WIDTH, runs_in_range

UNITS: Mapping[str, tuple[str, str]] = {
    "source": ("s/point", "making the points, in every pass over them"),
    "made": ("s/chunk", "the same, for each chunk"),
    "route": ("s/point", "dividing points among chunks, and results among those of the input"),
    "pair": ("s/pair", "the same, for each chunk of the input with each chunk that it reaches"),
    "cluster": ("s/point", "clustering, for each point of a chunk, halo included"),
    "block": ("s/chunk", "clustering, for each chunk"),
    "carry": ("s/chunk", "what a chunk hands on to the next"),
    "merge": ("s/B", "merging frontiers"),
    "pairs_of_roots": ("s/pair", "last level of a hierarchy, for each pair of roots"),
    "task": ("s/task", "a worker's processor beside the steps"),
    "transfer": ("s/B", "a worker's processor for what workers take from each other"),
    "scheduler": ("s/task", "the scheduler's event loop"),
    "client": ("s/task", "building the graph and sending it"),
    "start": ("s", "the same, for a graph without tasks"),
    "tasks_per_chunk": ("tasks/chunk", "tasks, without those of pairs"),
    "tasks_per_pair": ("tasks/pair", "tasks of a chunk of the input with a chunk that it reaches"),
    "volume": ("B/point", "of a frontier, for sets that end in their chunk, too"),
    "surface": ("B/point", "of a frontier, for each point of a halo"),
    "border": ("B/border", "of a frontier, for each border between chunks that follow each other"),
    "table": ("B/B", "the merge's answers for each byte of frontiers"),
    "copied": ("tables/worker", "whole tables that go to each other worker, where chunks are more than two a worker"),
    "moved": ("B/point", "that go to a chunk, for each of its points"),
    "returned": ("B/point", "of results that go back to the chunks of the input"),
    "carried": ("B/point", "that go to another worker with what is carried"),
    "strayed": ("B/point", "that go to another worker before they are divided, of five chunks and more"),
    "kept": ("B/point", "that a worker keeps until the merge is done"),
}
"""Unit and meaning of each parameter."""


@dataclass(frozen=True)
class Parameters:
    """What the model knows of a system; `UNITS` says what each number is."""

    system: str
    source: float
    made: float
    route: float
    pair: float
    cluster: float
    block: float
    carry: float
    merge: float
    pairs_of_roots: float
    task: float
    transfer: float
    scheduler: float
    client: float
    start: float
    tasks_per_chunk: float
    tasks_per_pair: float
    volume: float
    surface: float
    border: float
    table: float
    copied: float
    moved: float
    returned: float
    carried: float
    strayed: float
    kept: float


_IN_TREE = 2  # bytes of a shared point in a tree over those in a frontier: which chunks have it, besides id and set


def frontier_bytes(known: Parameters, points: float, grid: Sequence[float], blocks: float) -> float:
    """Return the bytes of all frontiers."""
    return known.volume * points + known.surface * halo_points(known.system, points, grid) + known.border * (blocks - 1)


# -------------------------------------------------------------------------------------------------------------- predict
@dataclass(frozen=True)
class Prediction:
    """What the model says of a run, in seconds and bytes.

    Attributes
    ----------
    parts : dict of str to float
        Seconds. ``client`` before anything runs; then, at the same time, ``workers``, the mean time of one worker's
        processor, ``network``, what goes through one worker's link, ``scheduler``, ``chain``, chunks that wait for the
        chunk before; then ``merge``.
    traffic : dict of str to float
        Bytes between workers: ``chunks``, ``results``, ``frontiers``, ``tables``, of which each chunk takes its own
        part, and ``copies`` of all of them; ``strays``, points that go to another worker before they are divided, or
        with what is carried.
    seconds : float
        In all.
    wall : str
        The part that takes longest.
    tasks, blocks : float
        How many.
    halo : float
        Points of halos for each point.
    merge_bytes : float
        What the worker with the largest merge holds of frontiers.
    worker_bytes : float
        What a worker keeps until the merge is done.
    """

    parts: dict[str, float]
    traffic: dict[str, float]
    seconds: float
    wall: str
    tasks: float
    blocks: float
    halo: float
    merge_bytes: float
    worker_bytes: float


def predict(
    known: Parameters,
    points: float,
    workers: int,
    block_points: float,
    *,
    merge: Literal["one", "tree"] | None = None,
    group: int = WIDTH,
    reached: float | None = None,
    grid: Sequence[float] | None = None,
    stages: int | None = None,
    levels: int = 1,
    cores: int | None = None,
    bandwidth: float = 1e9,
) -> Prediction:
    """Predict time and traffic of a run.

    Parameters
    ----------
    known : Parameters
        Of the system.
    points : float
        Number of points.
    workers : int
        Number of workers, of one thread.
    block_points : float
        Points in a chunk.
    merge : {"one", "tree"}, optional
        Whether all frontiers go to one worker, or are merged in groups, and groups of groups: each level keeps what
        reaches out of its group's region, and clusters are numbered by ranges of ids on all workers. Default: as the
        engine does, in a tree where chunks are more than `group`.
    group : int, default 64
        Frontiers that are merged at once in a tree.
    reached : float, optional
        Chunks that a chunk of the input has points of. Default: all, as where points are in random order.
    grid : sequence of float, optional
        Number of chunks along each axis. Default: as the engine cuts a cube of points in random order.
    stages : {1, 2}, optional
        In how many steps points go from chunks of the input to those of the partition: with two, in bundles, there are
        2 n**(3/2) pairs instead of n**2, and all is moved twice. Default: as the engine does, in two where that takes
        half the steps or less.
    levels : int, default 1
        Levels of apriori clusters of a hierarchy, each of 250 of the level below.
    cores : int, optional
        Cores that workers and scheduler share. Default: each has its own.
    bandwidth : float, default 1e9
        Of a worker's link, B/s.

    Returns
    -------
    Prediction
        By part.

    Raises
    ------
    ValueError
        For a tree of groups of one, and for one of systems whose frontiers one step merges.
    """
    in_tree = known.system in IN_TREES
    if merge == "tree" and not in_tree:
        raise ValueError(f"the frontiers of {known.system} are not merged in a tree")
    space = geometry_of(known.system)
    blocks = max(1, math.ceil(points / block_points))  # of the input, too
    grid = grid or grid_of(blocks, space.axes)
    halo = halo_points(known.system, points, grid)
    reaching = min(reached or blocks, blocks)
    stages = stages or (2 if known.tasks_per_pair and in_bundles(blocks, blocks, blocks * reaching) else 1)
    pairs = known.tasks_per_pair and (bundled_steps(blocks, blocks) if stages == 2 else blocks * reaching)
    merge = merge or ("tree" if in_tree and blocks > group else "one")
    tasks = known.tasks_per_chunk * blocks + known.tasks_per_pair * pairs
    frontier = frontier_bytes(known, points, grid, blocks)
    away, copies = 1 - 1 / workers, known.copied if merge == "one" and blocks > 2 * workers else 0.0
    traffic = {
        "chunks": known.moved * (points + halo) * stages * away if pairs else 0.0,
        "results": known.returned * points * stages * away,
        "frontiers": frontier * away,
        "tables": known.table * frontier * away,
        "copies": copies * known.table * frontier * (workers - 1),
        "strays": (known.carried + known.strayed) * points * away,
    }
    merging, held = _merging(known, points, grid, blocks, workers, merge, group, bandwidth)
    if merge == "tree":
        tasks += tree_steps(blocks, blocks, reaching, group, axes=space.axes)
    work = (
        known.source * points
        + known.made * blocks
        + known.route * points * stages
        + known.pair * pairs
        + known.cluster * (points + halo)
        + known.block * blocks
        + known.carry * blocks
        + known.task * tasks
        + known.transfer * sum(traffic.values())
    )
    uneven = math.ceil(blocks / workers) * workers / blocks
    parts = {
        "client": known.start + known.client * tasks,
        "workers": work / workers * uneven,
        "network": sum(traffic.values()) / workers / bandwidth,
        "scheduler": known.scheduler * tasks,
        "chain": (known.carry + known.scheduler + known.task) * blocks if known.carry else 0.0,
    }
    if cores is not None:
        parts["cores"] = (work + known.scheduler * tasks) / cores
    parts["merge"] = merging + known.pairs_of_roots * (points / float(GROUP) ** levels) ** 2
    together = max(seconds for name, seconds in parts.items() if name not in ("client", "merge"))
    return Prediction(
        parts=parts,
        traffic=traffic,
        seconds=parts["client"] + together + parts["merge"],
        wall=max(parts, key=lambda name: parts[name]),
        tasks=tasks,
        blocks=blocks,
        halo=halo / points if points else 0.0,
        merge_bytes=held,
        worker_bytes=known.kept * points / workers,
    )


def tree_steps(inputs: int, blocks: int, reached: float, group: int, *, axes: int) -> float:
    """Return how many steps a merge on all workers adds to those of one on one worker.

    Parameters
    ----------
    inputs, blocks : int
        Chunks of the input, each a run of its own, and of the partition.
    reached : float
        Chunks of the partition that one of the input has points of.
    group : int
        Frontiers that are merged at once.
    axes : int
        Axes that are cut. Without any there is no tree, only ranges of ids.

    Returns
    -------
    float
        Steps.
    """
    ranges = math.ceil(inputs / runs_in_range(group))
    # runs that are ranked together have about half of their chunks in common, where these are not all
    asking = ranges * blocks if reached >= blocks else min(inputs * reached / 2, ranges * blocks)
    asked = bundled_steps(blocks, ranges) if in_bundles(blocks, ranges, asking) else asking
    back = bundled_steps(ranges, blocks) if in_bundles(ranges, blocks, asking) else asking
    # of each chunk: its report and its number, and no turn; of each range: its ranks, in two parts; how many ids are
    # before each; and no table of all
    steps = blocks + 3 * ranges + asked + back
    if not axes:
        return steps
    regions, nodes = blocks, 0
    while regions > 1 or not nodes:
        regions = math.ceil(regions / group)
        nodes += regions
    # of each chunk: what it has at its borders, their numbers, and what comes down, twice; of each node: joining, what
    # it keeps and sends up, two ways down, numbers it has and sends up, and what comes down, twice; and the partition
    return steps + 4 * blocks + 7 * nodes + 2 * (nodes - 1) + 1


def _merging(
    known: Parameters,
    points: float,
    grid: Sequence[float],
    blocks: float,
    workers: int,
    merge: str,
    group: int,
    bandwidth: float,
) -> tuple[float, float]:
    """Return the seconds of a merge, and the most that a worker holds for it.

    A byte of a frontier comes in through a link, is merged, and its answer goes out.
    """
    if group < 2:
        raise ValueError(f"group must be at least 2, got {group}")
    each = known.merge + (1 + known.table) / bandwidth
    if merge == "one":
        held = frontier_bytes(known, points, grid, blocks)
        return each * held, held
    # ranges of ids are ranked on all workers, each for itself
    ranked = known.volume * points
    seconds, most = each * ranked / workers, ranked / math.ceil(blocks / runs_in_range(group))
    regions, axes = blocks, len(grid)
    while regions > 1:
        groups = math.ceil(regions / group)
        held = _reaching_out(known, points, regions, axes) / regions * min(group, regions)
        seconds += each * held * math.ceil(groups / workers)
        most = max(most, held)
        regions = groups
    return seconds, most


def _reaching_out(known: Parameters, points: float, regions: float, axes: int) -> float:
    """Return the bytes that reach out of so many regions, over all of them."""
    grid = grid_of(int(regions), axes) if regions > 1 else (1,) * axes
    return _IN_TREE * known.surface * halo_points(known.system, points, grid)


def best_block(known: Parameters, points: float, workers: int, most: float = 1e8, **how: Any) -> float:
    """Return how many points in a chunk are predicted to take least time.

    Parameters
    ----------
    known : Parameters
        Of the system.
    points, workers : float, int
        As of `predict`.
    most : float, default 1e8
        More do not fit a worker's memory.
    **how
        As of `predict`.

    Returns
    -------
    float
        Of forty sizes from ten thousand points to `most`, or to all points.
    """
    sizes = np.geomspace(min(1e4, points), min(most, points), 40)
    return float(min(sizes, key=lambda size: predict(known, points, workers, size, **how).seconds))
