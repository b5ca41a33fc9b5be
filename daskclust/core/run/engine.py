"""Run a plan: on one chunk in memory, or lazily on dask.

A system is a plan, an object with four steps. On dask the first two run once for each chunk on a worker, `merge` runs
once, on the small frontiers of all chunks, and `finish` on a worker again, with its chunk's slice of the merge table:

    points -> split -> chunk -> measure -> local -> frontier -+
                                   |         |                merge
                           (carry, early)    +---> finish <- slice

Where chunks are many and frontiers are `Fragments`, `core/merge/steps.py` has the merge in steps, on all workers.
Where chunks follow each other, a plan may have a fifth step, `carry`: what a chunk hands on to the next. Another one,
`early`, gives results that do not need the merge: they do not wait for it, and are made only where they are asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from daskclust.core.data.columns import named_for_kernels
from daskclust.core.merge import steps as merge_steps
from daskclust.core.merge.steps import Ranges
from daskclust.core.run import steps
from daskclust.core.run.exchange import Take, exchange, take_from
from daskclust.core.run.graph import Tasks
from daskclust.core.run.plan import Plan, WholePlan
from daskclust.core.space.partition import Chunk, Division, Partition


def run_in_memory(plan: Plan, columns: dict[str, Any]) -> dict[str, Any]:
    """Return the results of a plan for points in memory, which are one chunk.

    Parameters
    ----------
    plan : Plan
        The system.
    columns : dict of arrays
        One or more of shape (n,) or (n, d), numpy or cupy, a row for each point.

    Returns
    -------
    dict of arrays
        What `Plan.finish` gives, and `Plan.before_merge`.
    """
    return finish_in_memory(plan, plan.measure(Chunk(named_for_kernels(columns))))


def finish_in_memory(plan: Plan, measures: Any) -> dict[str, Any]:
    """Return the results of a plan for points in memory, from what `Plan.measure` gave."""
    local, _ = plan.local(measures)
    _, early = plan.before_merge(measures) if plan.before_merge else (None, {})
    return {**plan.finish(local, None), **early}


def gather_in_memory(plan: WholePlan, columns: dict[str, Any]) -> Any:
    """Return the results of `plan` about the data set as a whole (see `Lazy.gather`)."""
    _, frontier = plan.local(plan.measure(Chunk(named_for_kernels(columns))))
    return plan.merge([frontier])


class Lazy:
    """A plan on a data set divided into dask chunks: nothing is computed before a result is.

    Parameters
    ----------
    columns : dict of dask arrays
        One or more of shape (n,) or (n, d), all with the same chunks, of known size, along the points. The first one's
        class and device are those of the results.
    division : Division, Partition or None
        How the points are divided for the plan; None takes the chunks as they are.
    positions : str
        Column that the partition's planes cut.
    group : str
        Column whose values keep points together where the partition goes by groups.
    """

    def __init__(
        self,
        columns: dict[str, Any],
        division: Division | Partition | None,
        positions: str = "X",
        group: str = "layer",
    ) -> None:
        first = next(iter(columns.values()))
        self._lengths = first.chunks[0]
        self._meta = first._meta
        partition, rows, reached = division if isinstance(division, Division) else Division(division)
        self._runs = runs_of(self._lengths, rows)
        starts = np.concatenate([[0], np.cumsum(self._lengths)]).astype(np.int64)
        self._starts = starts[[0, *(end for _, end in self._runs)]]
        self._partition = partition
        self._measures: list[Any] | None = None
        blocks = [_blocks(array) for array in columns.values()]
        tasks = Tasks([column[0] for column in blocks], columns, partition, rows)
        pieces = [[[block.key for block in column[a:b]] for column in blocks] for a, b in self._runs]
        given = list(zip(pieces, map(int, self._starts[:-1]), strict=True))
        names = list(columns)
        if partition is None:
            own = [[run] for run in range(len(self._runs))]
            self._ranges = Ranges(self._starts, own, own)
            self._chunks = tasks.delayed([tasks.add("chunk", steps.as_chunk, names, *pair) for pair in given])
            return
        among = reached_by(self._runs, reached, len(partition))
        self._ranges = Ranges(self._starts, among, turned_round(among, len(partition)))
        # dask makes one task of reading and dividing, but only without another step before; planes of many are long
        its = tasks.add("partition", steps.itself, partition) if len(partition) > merge_steps.WIDTH else partition
        splits = [
            tasks.add("split", steps.split, its, names, *pair, positions, group, numbers)
            for pair, numbers in zip(given, among, strict=True)
        ]
        parts = exchange(tasks, "part", take_from(tasks, "part", splits), among, len(partition))
        self._chunks = tasks.delayed([tasks.add("chunk", steps.join, part) for part in parts])

    def measures(self, plan: WholePlan) -> list[Any]:
        """Return what `measure` gives for each chunk.

        Parameters
        ----------
        plan : WholePlan
            The system. Measures are made once: a later plan gets those of the first one.

        Returns
        -------
        list of Delayed
            One for each chunk.
        """
        if self._measures is None:
            tasks = Tasks(self._chunks[:1], plan, [chunk.key for chunk in self._chunks])
            name = f"{plan.name}-measure"
            self._measures = tasks.delayed([tasks.add(name, plan.measure, chunk.key) for chunk in self._chunks])
        return self._measures

    def persist(self, plan: Plan) -> None:
        """Compute the measures now and keep them on the workers, for runs with other thresholds.

        Parameters
        ----------
        plan : Plan
            The system.
        """
        import dask

        self._measures = list(dask.persist(*self.measures(plan)))

    def run(self, plan: Plan, dtypes: dict[str, Any], early: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return results as dask arrays.

        Parameters
        ----------
        plan : Plan
            The system.
        dtypes : dict of str to dtype
            Names of the results that `Plan.finish` gives, and their dtypes.
        early : dict of str to dtype, optional
            Names of those that `Plan.before_merge` gives, and their dtypes.

        Returns
        -------
        dict of dask arrays
            The results, shape (n,), with the order and the chunks of the input, and the scalar ``n_clusters``.
        """
        import dask
        import dask.array as da

        width = int(dask.config.get("daskclust.merge-width", merge_steps.WIDTH))
        if width < 2:
            raise ValueError(f"daskclust.merge-width of dask's configuration must be at least 2, got {width}")
        tasks, locals_ = self._locals(plan, width)
        slices = merge_steps.slices(tasks, plan, locals_, self._partition, self._ranges, width)
        arrays = self._arrays(tasks, plan.name, self._finished(tasks, plan, locals_, slices), dtypes)
        if early:
            arrays |= self._arrays(tasks, f"{plan.name}-early", self._early(tasks, plan), early)
        (count,) = tasks.delayed([tasks.add(f"{plan.name}-count", steps.n_clusters, slices[0])])
        arrays["n_clusters"] = da.from_delayed(count, (), dtype=np.int64)
        return arrays

    def _arrays(self, tasks: Tasks, name: str, parts: list[Any], dtypes: dict[str, Any]) -> dict[str, Any]:
        """Return the results for all runs of the input's chunks as arrays."""
        import dask.array as da

        arrays = {}
        # dask leaves empty blocks out when it joins arrays, but not when it maps over them
        boxes = tasks.delayed([tasks.add(f"{name}-result", steps.boxed, *part) for part in self._one_by_one(parts)])
        boxed = da.concatenate([da.from_delayed(box, (1,), dtype=object) for box in boxes])
        for result, dtype in dtypes.items():
            meta = self._meta.ravel()[:0].astype(dtype)
            step = {"chunks": (self._lengths,), "dtype": dtype, "meta": meta, "token": f"daskclust-{name}-{result}"}
            arrays[result] = da.map_blocks(steps.from_box, boxed, result, **step)
        return arrays

    def gather(self, plan: WholePlan) -> Any:
        """Return what `merge` makes of the frontiers of all chunks: results about the data set as a whole.

        Parameters
        ----------
        plan : WholePlan
            The system.

        Returns
        -------
        Delayed
            What ``plan.merge`` returns.
        """
        tasks, locals_ = self._locals(plan)
        table, _ = merge_steps.merged(tasks, plan, locals_)
        return tasks.delayed([table])[0]

    def _locals(self, plan: WholePlan, width: int = 0) -> tuple[Tasks, list[Any]]:
        """Return the steps up to local results, and the keys of these; the `width` of the merge changes all names."""
        measures = self.measures(plan)
        tasks = Tasks(measures, plan, [measure.key for measure in measures], width)
        carried = self._carried(tasks, plan, [measure.key for measure in measures])
        return tasks, [tasks.add(f"{plan.name}-local", plan.local, *pair) for pair in carried]

    def _carried(self, tasks: Tasks, plan: WholePlan, measures: list[Any]) -> list[tuple[Any, ...]]:
        """Return each chunk's measures, and what the chunks before it carry to it."""
        if plan.carry is None:
            return [(measure,) for measure in measures]
        carried: list[Any] = [None]
        for measure in measures[:-1]:
            carried.append(tasks.add(f"{plan.name}-carry", plan.carry, measure, carried[-1]))
        return list(zip(measures, carried, strict=True))

    def _finished(self, tasks: Tasks, plan: Plan, locals_: list[Any], slices: list[Any]) -> list[Any]:
        """Add what makes results of local results and slices, and return those of each run of the input's chunks."""
        name = f"{plan.name}-finish"
        if self._partition is None:
            pairs = zip(locals_, slices, strict=True)
            return [tasks.add(name, steps.finish, plan, local, mine) for local, mine in pairs]

        ends = self._ends()

        def take(k: int, a: int, b: int) -> Any:
            # piece by piece, when they are needed: all results at once take more memory than what waits for them
            return tasks.add(name, steps.finish, plan, locals_[k], slices[k], ends[k][a:b])

        return self._in_order(tasks, name, take)

    def _early(self, tasks: Tasks, plan: Plan) -> list[Any]:
        """Add what makes early results, and return those of each run of the input's chunks."""
        name, measures = f"{plan.name}-early", [measure.key for measure in self.measures(plan)]
        if self._partition is None:
            return [tasks.add(name, steps.early, plan, measure) for measure in measures]
        given = zip(measures, self._ends(), strict=True)
        cuts = [tasks.add(name, steps.early, plan, measure, ends) for measure, ends in given]
        return self._in_order(tasks, name, take_from(tasks, name, cuts))

    def _ends(self) -> list[list[tuple[int, int]]]:
        """Return for each chunk of the partition where the runs that it has points of begin and end, in ids."""
        starts, _, reached = self._ranges
        ends = list(itertools.pairwise(starts.tolist()))
        return [[ends[run] for run in runs] for runs in reached]

    def _in_order(self, tasks: Tasks, name: str, take: Take) -> list[Any]:
        """Return the results for each run of the input's chunks, put together from those of the partition's chunks."""
        starts = self._starts
        pieces = exchange(tasks, name, take, self._ranges.reached, len(self._runs))
        given = zip(pieces, starts, np.diff(starts), strict=False)
        return [tasks.add(f"{name}-gather", steps.gather, piece, int(start), int(size)) for piece, start, size in given]

    def _one_by_one(self, parts: list[Any]) -> list[tuple[Any, ...]]:
        """Return for each chunk of the input the results for its run, and where in these it is."""
        places: list[tuple[Any, ...]] = []
        for part, (a, b) in zip(parts, self._runs, strict=True):
            ends = [0, *itertools.accumulate(self._lengths[a:b])]
            places += [(part,)] if b == a + 1 else [(part, *pair) for pair in itertools.pairwise(ends)]
        return places


def runs_of(lengths: Sequence[int], rows: int) -> list[tuple[int, int]]:
    """Return runs of consecutive chunks, first and behind the last, with up to `rows` points where there are several.

    Parameters
    ----------
    lengths : sequence of int
        Points of each chunk.
    rows : int
        The most that chunks are put together for.

    Returns
    -------
    list of (int, int)
        Runs, of one chunk at least.
    """
    runs, begin, total = [], 0, 0
    for chunk, length in enumerate(lengths):
        if chunk > begin and total + length > rows:
            runs.append((begin, chunk))
            begin, total = chunk, 0
        total += length
    return [*runs, (begin, len(lengths))]


def reached_by(runs: list[tuple[int, int]], reached: list[Any] | None, count: int) -> list[Sequence[int]]:
    """Return for each run of chunks the chunks of the partition that it has points for; none of these is left out."""
    if reached is None:
        return [range(count) for _ in runs]
    among = [set(np.concatenate(reached[a:b]).tolist()) for a, b in runs]
    among[0] |= set(range(count)).difference(*among)
    return [range(count) if len(numbers) == count else sorted(numbers) for numbers in among]


def turned_round(among: Sequence[Sequence[int]], count: int) -> Sequence[Sequence[int]]:
    """Return for each of `count` chunks of a partition the runs that have it among theirs, ascending."""
    if all(len(numbers) == count for numbers in among):
        return [range(len(among))] * count
    runs: list[list[int]] = [[] for _ in range(count)]
    for run, numbers in enumerate(among):
        for number in numbers:
            runs[number].append(run)
    return runs


# ----------------------------------------------------------------------------------------------------- dask's own calls
def _blocks(array: Any) -> list[Any]:
    """Return the delayed blocks of a dask array that is cut along its first axis only."""
    return list(array.to_delayed(optimize_graph=False).ravel())
