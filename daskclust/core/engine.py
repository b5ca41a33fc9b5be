"""Run a plan: on one chunk in memory, or lazily on dask.

A system is a plan, an object with four steps. On dask the first two run once for each chunk on a worker, `merge` runs
once, on the small frontiers of all chunks, and `finish` on a worker again, with its chunk's slice of the merge table:

    points -> split -> chunk -> measure -> local -> frontier -+
                                   |         |                merge
                                 (carry)     +---> finish <- slice

Where chunks follow each other, a plan may have a fifth, `carry`: what a chunk hands on to the next.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from daskclust.core.arrays import device_of
from daskclust.core.contract import Plan, WholePlan
from daskclust.core.graph import Tasks
from daskclust.core.inputs import on_device_of
from daskclust.core.partition import Chunk, Division, Partition


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
        What `Plan.finish` gives.
    """
    local, _ = plan.local(plan.measure(Chunk(columns)))
    return plan.finish(local, None)


def gather_in_memory(plan: WholePlan, columns: dict[str, Any]) -> Any:
    """Return the results of `plan` about the data set as a whole (see `Lazy.gather`)."""
    _, frontier = plan.local(plan.measure(Chunk(columns)))
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
        self._among: list[list[int]] | None = None
        self._measures: list[Any] | None = None
        blocks = [_blocks(array) for array in columns.values()]
        tasks = Tasks([column[0] for column in blocks], columns, partition, rows)
        pieces = [[[block.key for block in column[a:b]] for column in blocks] for a, b in self._runs]
        given = list(zip(pieces, map(int, self._starts[:-1]), strict=True))
        names = list(columns)
        if partition is None:
            self._chunks = tasks.delayed([tasks.add("chunk", _as_chunk, names, *pair) for pair in given])
            return
        self._among = reached_by(self._runs, reached, len(partition))
        parts: list[list[Any]] = [[] for _ in range(len(partition))]
        for pair, among in zip(given, self._among, strict=True):
            split = tasks.add("split", _split, partition, names, *pair, positions, group, among)
            for k, number in enumerate(among):
                parts[number].append(tasks.add("part", operator.getitem, split, k))
        self._chunks = tasks.delayed([tasks.add("chunk", _join, part) for part in parts])

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

    def run(self, plan: Plan, dtypes: dict[str, Any]) -> dict[str, Any]:
        """Return results as dask arrays.

        Parameters
        ----------
        plan : Plan
            The system.
        dtypes : dict of str to dtype
            Names of the results that `Plan.finish` gives, and their dtypes.

        Returns
        -------
        dict of dask arrays
            The results, shape (n,), with the order and the chunks of the input, and the scalar ``n_clusters``.
        """
        import dask.array as da

        tasks, locals_, frontiers, merged = self._merged(plan)
        # with its frontier as a second argument a slice is cut where the table is: the scheduler takes steps that need
        # nothing but the table for the first ones of a graph, spreads them, and sends all of the table everywhere
        slices = [tasks.add(f"{plan.name}-slice", _slice, merged, k, one) for k, one in enumerate(frontiers)]
        pairs = zip(locals_, slices, strict=True)
        parts = [tasks.add(f"{plan.name}-finish", _finish, plan, local, mine) for local, mine in pairs]
        if self._among is not None:
            parts = self._in_order(tasks, parts, plan.name, self._among)
        arrays = {}
        # dask leaves empty blocks out when it joins arrays, but not when it maps over them
        boxes = tasks.delayed([tasks.add(f"{plan.name}-result", _boxed, *part) for part in self._one_by_one(parts)])
        boxed = da.concatenate([da.from_delayed(box, (1,), dtype=object) for box in boxes])
        for name, dtype in dtypes.items():
            meta = self._meta.ravel()[:0].astype(dtype)
            step = {"chunks": (self._lengths,), "dtype": dtype, "meta": meta, "token": f"daskclust-{plan.name}-{name}"}
            arrays[name] = da.map_blocks(_from_box, boxed, name, **step)
        (count,) = tasks.delayed([tasks.add(f"{plan.name}-count", _n_clusters, slices[0])])
        arrays["n_clusters"] = da.from_delayed(count, (), dtype=np.int64)
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
        tasks, *_, merged = self._merged(plan)
        return tasks.delayed([merged])[0]

    def _merged(self, plan: WholePlan) -> tuple[Tasks, list[Any], list[Any], Any]:
        """Return the steps up to `merge`: all of them, those of local results and of frontiers, and `merge` itself."""
        measures = self.measures(plan)
        tasks = Tasks(measures, plan, [measure.key for measure in measures])
        carried = self._carried(tasks, plan, [measure.key for measure in measures])
        locals_ = [tasks.add(f"{plan.name}-local", plan.local, *pair) for pair in carried]
        frontiers = [tasks.add(f"{plan.name}-frontier", operator.getitem, local, 1) for local in locals_]
        return tasks, locals_, frontiers, tasks.add(f"{plan.name}-merge", plan.merge, frontiers)

    def _carried(self, tasks: Tasks, plan: WholePlan, measures: list[Any]) -> list[tuple[Any, ...]]:
        """Return each chunk's measures, and what the chunks before it carry to it."""
        if plan.carry is None:
            return [(measure,) for measure in measures]
        carried: list[Any] = [None]
        for measure in measures[:-1]:
            carried.append(tasks.add(f"{plan.name}-carry", plan.carry, measure, carried[-1]))
        return list(zip(measures, carried, strict=True))

    def _in_order(self, tasks: Tasks, parts: list[Any], name: str, among: list[list[int]]) -> list[Any]:
        """Return the results for each run of the input's chunks, put together from those of the partition's chunks."""
        pieces: list[list[Any]] = [[] for _ in self._runs]
        for number, part in enumerate(parts):
            runs = [run for run, reached in enumerate(among) if number in reached]
            cut = tasks.add(f"{name}-cut", _cut, part, [(self._starts[run], self._starts[run + 1]) for run in runs])
            for k, run in enumerate(runs):
                pieces[run].append(tasks.add(f"{name}-piece", operator.getitem, cut, k))
        sizes = np.diff(self._starts)
        given = zip(pieces, self._starts, sizes, strict=False)
        return [tasks.add(f"{name}-gather", _gather, piece, int(start), int(size)) for piece, start, size in given]

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


def reached_by(runs: list[tuple[int, int]], reached: list[Any] | None, count: int) -> list[list[int]]:
    """Return for each run of chunks the chunks of the partition that it has points for; none of these is left out."""
    if reached is None:
        return [list(range(count)) for _ in runs]
    among = [set(np.concatenate(reached[a:b]).tolist()) for a, b in runs]
    among[0] |= set(range(count)).difference(*among)
    return [sorted(numbers) for numbers in among]


# ---------------------------------------------------------------------------------------------------------- on a worker
def _as_chunk(names: list[str], columns: list[list[Any]], first: int) -> Chunk:
    named = _named(names, columns)
    X = named[names[0]]
    return Chunk(named, first + device_of(X).count_up(len(X)), as_given=True)


def _named(names: list[str], columns: list[list[Any]]) -> dict[str, Any]:
    """Return the columns by name, each of one or more blocks, all on the device of the first."""
    like = columns[0][0]
    return {name: _joined([on_device_of(like, x) for x in blocks]) for name, blocks in zip(names, columns, strict=True)}


def _joined(arrays: Sequence[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _split(
    partition: Partition,
    names: list[str],
    columns: list[list[Any]],
    first: int,
    positions: str,
    group: str,
    among: list[int],
) -> list[Chunk]:
    named = _named(names, columns)
    return partition.split(named, first, positions, named.get(group), np.array(among))


def _join(parts: Sequence[Chunk]) -> Chunk:
    """Put the parts of a chunk together; they come in the order of the data set."""
    columns = {name: _joined([part.columns[name] for part in parts]) for name in parts[0].columns}
    owned = None if parts[0].owned is None else _joined([part.owned for part in parts])
    return Chunk(columns, _joined([part.ids for part in parts]), owned, parts[0].region)


def _slice(merged: list[Any], k: int, _: Any) -> Any:
    return merged[k]


def _finish(plan: Plan, local_and_frontier: tuple[Any, Any], mine: Any) -> dict[str, Any]:
    local, _ = local_and_frontier
    return {"ids": plan.owned_ids(local), **plan.finish(local, mine)}


class Box(np.ndarray):
    """An array of one element, the results for a chunk by name: dask's arrays are made of arrays alone."""

    @property
    def nbytes(self) -> int:
        """How much memory it takes with its results, as dask wants to know."""
        return sum(int(values.nbytes) for results in self.ravel() for values in results.values())


def _boxed(results: dict[str, Any], begin: int = 0, end: int | None = None) -> Any:
    """Return an array of one element, the results for a chunk."""
    box = np.empty(1, object).view(Box)
    box[0] = results if end is None else {name: values[begin:end] for name, values in results.items()}
    return box


def _from_box(box: Any, name: str) -> Any:
    return box[0][name]


def _n_clusters(merged: Any) -> np.int64:
    return np.int64(merged.n_clusters)


def _cut(results: dict[str, Any], runs: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """Cut results at the borders of runs of the input's chunks."""
    device = device_of(results["ids"])
    ends = device.to_host(np.searchsorted(results["ids"], device.give(device.from_host(np.ravel(runs)))))
    return [{name: values[a:b] for name, values in results.items()} for a, b in ends.reshape(-1, 2)]


def _gather(pieces: Sequence[dict[str, Any]], start: int, size: int) -> dict[str, Any]:
    """Put the results for a run of the input's chunks in order; every point is in exactly one piece."""
    place = _joined([piece["ids"] for piece in pieces]) - start
    if len(place) != size:
        raise RuntimeError(f"{len(place)} results for the {size} points from {start} on: please report this")
    results = {}
    for name in pieces[0].keys() - {"ids"}:
        values = _joined([piece[name] for piece in pieces])
        results[name] = np.empty_like(values)
        results[name][place] = values
    return results


# ----------------------------------------------------------------------------------------------------- dask's own calls
def _blocks(array: Any) -> list[Any]:
    """Return the delayed blocks of a dask array that is cut along its first axis only."""
    return list(array.to_delayed(optimize_graph=False).ravel())
