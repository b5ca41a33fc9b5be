"""A model of time and traffic against workers: few parameters for each case, and what they predict."""

import math
from collections import Counter
from dataclasses import dataclass, make_dataclass

import numpy as np
from points import GROUP, IN_TREES, geometry_of

from daskclust.core.merge.steps import WIDTH, runs_in_range
from daskclust.core.run.exchange import bundled_steps, in_bundles

UNITS = {
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


Parameters = make_dataclass("Parameters", ["system", *UNITS], frozen=True)
"""What the model knows of a case."""

_IN_TREE = 2  # bytes of a shared point in a tree over those in a frontier: which chunks have it, besides id and set


# --------------------------------------------------------------------------------------------------------------- halos
def grid_of(blocks, axes):
    """Return how many blocks there are along each axis of a cube that is cut into `blocks`, in the mean over rows."""
    if not axes:
        return ()
    grid = [max(1, int(blocks ** (1 / axes)) - 1)] * axes
    while math.prod(grid) < blocks:
        grid[grid.index(min(grid))] += 1
    means, rows = [], Counter({blocks: 1})  # rows by the number of blocks that they are cut into
    for axis, most in enumerate(grid):
        parts = Counter()
        for wanted, times in rows.items():
            along = wanted if axis == axes - 1 else min(most, wanted)
            each, more = divmod(wanted, along)
            parts[each] += times * (along - more)
            parts[each + 1] += times * more
        means.append(parts.total() / rows.total())
        rows = +parts
    return tuple(means)


def halo_share(side, grid, reach, *, period):
    """Return how many points halos of width `reach` have for each point, in a cube of uniform density.

    Each plane between two of the `grid`'s blocks gives a layer of `reach` on both its sides to the block beyond. Along
    one axis with q planes, a point is thus in 1 + 2 q reach / side blocks in the mean, at most in all; axes are
    independent.
    """
    times = 1.0
    for blocks in grid:
        planes = 0.0 if blocks <= 1 else blocks if period else blocks - 1
        times *= min(1 + 2 * planes * reach / side, blocks)
    return times - 1


def halo_points(case, points, grid):
    """Return the number of points in the halos of blocks."""
    space = geometry_of(case)
    if not space.axes:
        return 0.0
    side = (points / space.density) ** (1 / space.axes)
    return points * halo_share(side, grid, space.reach, period=space.period)


def frontier_bytes(known, points, grid, blocks):
    """Return the bytes of all frontiers."""
    return known.volume * points + known.surface * halo_points(known.system, points, grid) + known.border * (blocks - 1)


# -------------------------------------------------------------------------------------------------------------- predict
@dataclass(frozen=True)
class Prediction:
    """What the model says of a run, in seconds and bytes.

    `parts` are seconds. ``client`` comes before anything runs; then, at the same time, ``workers``, the mean time of
    one worker's processor, ``network``, what goes through one worker's link, ``scheduler``, ``chain``, chunks that
    wait for the chunk before; then ``merge``. `traffic` is bytes between workers: ``chunks``, ``results``,
    ``frontiers``, ``tables``, of which each chunk takes its own part, ``copies`` of all of them, and ``strays``, points
    that go to another worker before they are divided, or with what is carried.
    """

    parts: dict[str, float]
    traffic: dict[str, float]
    seconds: float  # in all
    wall: str  # the part that takes longest
    tasks: float
    blocks: float
    halo: float  # points of halos for each point
    merge_bytes: float  # what the worker with the largest merge holds of frontiers
    worker_bytes: float  # what a worker keeps until the merge is done


def predict(
    known,
    points,
    workers,
    block_points,
    *,
    merge=None,
    group=WIDTH,
    reached=None,
    grid=None,
    stages=None,
    levels=1,
    cores=None,
    bandwidth=1e9,
):
    """Predict time and traffic of a run on workers of one thread, with so many points in a chunk.

    By default points are in random order, and all is as the engine does it. Otherwise:

    - `merge`: all frontiers go to ``"one"`` worker, or are merged in a ``"tree"`` of groups of `group`; each level
      keeps what reaches out of its group's region, and clusters are numbered by ranges of ids on all workers;
    - `reached`: chunks that a chunk of the input has points of, where points are not in random order;
    - `grid`: number of chunks along each axis;
    - `stages`: in how many steps points go from chunks of the input to those of the partition. With two, in bundles,
      there are 2 n**(3/2) pairs instead of n**2, and all is moved twice;
    - `levels` of apriori clusters of a hierarchy, each of 250 of the level below;
    - `cores` that workers and scheduler share; else each has its own;
    - `bandwidth` of a worker's link, B/s.
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


def tree_steps(inputs, blocks, reached, group, *, axes):
    """Return how many steps a merge on all workers adds to those of one on one worker.

    Of `inputs` chunks, of which one has points of `reached` of the partition's `blocks`; without cut `axes` there is no
    tree, only ranges of ids.
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


def _merging(known, points, grid, blocks, workers, merge, group, bandwidth):
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


def _reaching_out(known, points, regions, axes):
    """Return the bytes that reach out of so many regions, over all of them."""
    grid = grid_of(int(regions), axes) if regions > 1 else (1,) * axes
    return _IN_TREE * known.surface * halo_points(known.system, points, grid)


def best_block(known, points, workers, most=1e8, **how):
    """Return how many points in a chunk, of forty sizes up to `most`, are predicted to take least time."""
    sizes = np.geomspace(min(1e4, points), min(most, points), 40)
    return float(min(sizes, key=lambda size: predict(known, points, workers, size, **how).seconds))
