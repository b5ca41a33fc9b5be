"""Run a plan: on one chunk in memory, or lazily on dask.

A system is a plan: an object with four steps, and some that it may have beside. On dask the first two run once for each
chunk on a worker, `merge` runs once, on the small frontiers of all chunks, and `finish` on a worker again, with its
chunk's slice of the merge table. In memory there is one chunk, and the calls are the same:

    points -> divide -> chunk -> measure -> local -> frontier -+
                                    |         |               merge
                        (carry, before_merge) +---> finish <- slice
                                                       |
                                                    put back

Where chunks are many and frontiers are `Fragments`, `core/run/merging.py` has the merge in steps, on all workers.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from daskclust.core.data.columns import named_for_kernels
from daskclust.core.device.arrays import is_dask
from daskclust.core.device.machine_code.compiling import expecting
from daskclust.core.run import merging, steps
from daskclust.core.run.division import divide
from daskclust.core.run.exchange import Take, exchange, take_from
from daskclust.core.run.graph import Tasks
from daskclust.core.run.layout import Layout
from daskclust.core.run.lazy import whole
from daskclust.core.run.plan import Plan, WholePlan
from daskclust.core.space.partition import Chunk, Division, Partition


def run(plan: Plan, columns: dict[str, Any], partition: str | Partition = "auto") -> dict[str, Any]:
    """Return the results of a plan in the kind of its input.

    Parameters
    ----------
    plan : Plan
        The system.
    columns : dict of arrays
        One or more of shape (n,) or (n, d), numpy, cupy or dask, a row for each point. The first one's class and device
        are those of the results.
    partition : str or Partition, default "auto"
        How dask arrays are divided: one of ``plan.divisions``, or "auto".

    Returns
    -------
    dict of arrays
        Results of shape (n,) and the number ``n_clusters``; on dask lazy, with the chunks of the input.

    Raises
    ------
    ValueError
        For a partition that is not one of these, or does not fit the points.
    """
    lazy = lazily(plan, columns, partition)
    return run_in_memory(plan, columns) if lazy is None else lazy.run(plan)


def lazily(plan: Plan, columns: dict[str, Any], partition: str | Partition = "auto") -> Lazy | None:
    """Return a data set of dask arrays divided for a plan, to run it with several thresholds; None for other arrays."""
    if not is_dask(next(iter(columns.values()))):
        return None
    return Lazy(columns, divide(plan, columns, partition), plan)


def run_in_memory(plan: Plan, columns: dict[str, Any]) -> dict[str, Any]:
    """Return the results of a plan for points in memory, which are one chunk.

    Parameters
    ----------
    plan, columns
        As of `run`, arrays of numpy or cupy.

    Returns
    -------
    dict of arrays
        As of `run`.
    """
    with expecting(plan.kernels):
        measures = plan.measure(Chunk(named_for_kernels(columns)))
        if plan.one_chunk is not None:
            return plan.one_chunk(measures)
        local, frontier = plan.local(measures)
        (mine,) = plan.merge([frontier])
        results = {**plan.finish(local, mine), "n_clusters": mine.n_clusters}
        return results if plan.before_merge is None else results | plan.before_merge(measures)[1]


def gather(
    plan: WholePlan, columns: dict[str, Any], division: Division, results: dict[str, tuple[Any, Any]]
) -> dict[str, Any]:
    """Return results about the data set as a whole: attributes of what `merge` gives, with these shapes and dtypes."""
    if is_dask(next(iter(columns.values()))):
        merged = Lazy(columns, division, plan)._merged(plan)
        return {name: whole(merged, operator.attrgetter(name), *kind) for name, kind in results.items()}
    with expecting(plan.kernels):
        merged = plan.merge([plan.local(plan.measure(Chunk(named_for_kernels(columns))))[1]])
    return {name: getattr(merged, name) for name in results}


class Lazy:
    """A data set of dask arrays, divided for a plan: nothing is computed before a result is.

    Parameters
    ----------
    columns : dict of dask arrays
        As of `run`, all with the same chunks, of known size, along the points.
    division : Division
        How the points are divided for the plan.
    plan : WholePlan
        The system, which says by which columns.
    """

    def __init__(self, columns: dict[str, Any], division: Division, plan: WholePlan) -> None:
        first = next(iter(columns.values()))
        self._like = first._meta
        self._layout = Layout.of(first.chunks[0], division)
        self._chunks = self._divided(columns, plan.positions, plan.group)
        self._measures: list[Any] | None = None

    def run(self, plan: Plan) -> dict[str, Any]:
        """Return the results of a plan.

        Parameters
        ----------
        plan : Plan
            The system.

        Returns
        -------
        dict of dask arrays
            As of `run`: the function of this name.
        """
        import dask.array as da

        width = merging.merge_width()
        tasks, locals_ = self._locals(plan, width)
        slices = merging.slices(tasks, plan, locals_, self._layout, width)
        results = self._as_arrays(tasks, plan, self._finished(tasks, plan, locals_, slices), plan.results)
        if plan.before_merge is not None:
            results |= self._as_arrays(tasks, plan, self._known_before(tasks, plan), plan.results_before_merge)
        (count,) = tasks.delayed([tasks.add("count", steps.n_clusters, slices[0])])
        return results | {"n_clusters": da.from_delayed(count, (), dtype=np.int64)}

    def persist(self, plan: Plan) -> None:
        """Compute the measures now and keep them on the workers, for runs with other thresholds.

        Parameters
        ----------
        plan : Plan
            The system.
        """
        import dask

        self._measures = list(dask.persist(*self._measured(plan)))

    # ------------------------------------------------------------------------------------------------------- the steps
    def _divided(self, columns: dict[str, Any], positions: str, group: str) -> list[Any]:
        """Return the chunks of the plan: runs of the input's chunks, or the parts that a partition makes of them."""
        names, (_, runs, ranges, partition) = list(columns), self._layout
        blocks = [array.to_delayed(optimize_graph=False).ravel() for array in columns.values()]
        tasks = Tasks("", [column[0] for column in blocks], columns, partition, runs)
        pieces = [[_keys(column[a:b]) for column in blocks] for a, b in runs]
        given = list(zip(pieces, ranges.starts[:-1].tolist(), strict=True))
        if partition is None:
            return tasks.delayed([tasks.add("chunk", steps.as_chunk, names, *pair) for pair in given])
        # dask makes one task of reading and dividing, but only without another step before; planes of many are long
        its = tasks.add("partition", steps.itself, partition) if len(partition) > merging.WIDTH else partition
        splits = [
            tasks.add("split", steps.split, its, names, *pair, positions, group, numbers)
            for pair, numbers in zip(given, ranges.among, strict=True)
        ]
        parts = exchange(tasks, "part", take_from(tasks, "part", splits), ranges.among, len(partition))
        return tasks.delayed([tasks.add("chunk", steps.join, part) for part in parts])

    def _measured(self, plan: WholePlan) -> list[Any]:
        """Return what `measure` gives for each chunk; it is made once: a later plan gets that of the first one."""
        if self._measures is None:
            tasks = Tasks(f"{plan.name}-", self._chunks[:1], plan, _keys(self._chunks))
            self._measures = tasks.delayed([tasks.add("measure", plan.measure, key) for key in _keys(self._chunks)])
        return self._measures

    def _merged(self, plan: WholePlan) -> Any:
        """Return what `merge` makes of the frontiers of all chunks: results about the data set as a whole."""
        tasks, locals_ = self._locals(plan)
        table, _ = merging.merged(tasks, plan, locals_)
        return tasks.delayed([table])[0]

    def _locals(self, plan: WholePlan, width: int = 0) -> tuple[Tasks, list[Any]]:
        """Add the local step of each chunk, with what is carried to it; keys tell the merge's `width`, too."""
        measures = self._measured(plan)
        keys = _keys(measures)
        tasks = Tasks(f"{plan.name}-", measures, plan, keys, width)
        if plan.carry is None:
            return tasks, [tasks.add("local", plan.local, measure) for measure in keys]
        carried: list[Any] = [None]
        for measure in keys[:-1]:
            carried.append(tasks.add("carry", plan.carry, measure, carried[-1]))
        return tasks, [tasks.add("local", plan.local, *pair) for pair in zip(keys, carried, strict=True)]

    def _finished(self, tasks: Tasks, plan: Plan, found: list[Any], slices: list[Any]) -> list[Any]:
        """Add what makes results of local results and slices, and return those of each run of the input's chunks."""
        if self._layout.partition is None:
            return [tasks.add("finish", steps.finish, plan, *pair) for pair in zip(found, slices, strict=True)]
        ids = self._layout.ids_of_runs()

        def take(k: int, a: int, b: int) -> Any:
            # piece by piece, when they are needed: all results at once take more memory than what waits for them
            return tasks.add("finish", steps.finish_rows, plan, found[k], slices[k], ids[k][a:b])

        return self._put_back(tasks, "finish", take)

    def _known_before(self, tasks: Tasks, plan: Plan) -> list[Any]:
        """Add what makes results that do not wait for the merge, and return those of each run of the input's chunks."""
        measures = _keys(self._measured(plan))
        if self._layout.partition is None:
            return [tasks.add("early", steps.before_merge, plan, measure) for measure in measures]
        given = zip(measures, self._layout.ids_of_runs(), strict=True)
        pieces = [tasks.add("early", steps.rows_before_merge, plan, *pair) for pair in given]
        return self._put_back(tasks, "early", take_from(tasks, "early", pieces))

    def _put_back(self, tasks: Tasks, name: str, take: Take) -> list[Any]:
        """Return the results for each run of the input's chunks, put together from those of the partition's chunks."""
        starts = self._layout.ranges.starts
        pieces = exchange(tasks, name, take, self._layout.ranges.reached, len(self._layout.runs))
        given = zip(pieces, starts[:-1].tolist(), np.diff(starts).tolist(), strict=True)
        return [tasks.add(f"{name}-gather", steps.gather, *each) for each in given]

    def _as_arrays(self, tasks: Tasks, plan: Plan, runs: list[Any], dtypes: Any) -> dict[str, Any]:
        """Return the results for all runs of the input's chunks as arrays with the input's chunks."""
        import dask.array as da

        arrays = {}
        # dask leaves empty blocks out when it joins arrays, but not when it maps over them
        given = [(runs[run], a, b) for run, a, b in self._layout.within_runs()]
        boxes = tasks.delayed([tasks.add("result", steps.boxed, *each) for each in given])
        boxed = da.concatenate([da.from_delayed(box, (1,), dtype=object) for box in boxes])
        for result, dtype in dtypes.items():
            meta = self._like.ravel()[:0].astype(self._like.dtype if dtype is None else dtype)
            kind = {"chunks": (self._layout.lengths,), "dtype": meta.dtype, "meta": meta}
            arrays[result] = da.map_blocks(
                steps.from_box, boxed, result, **kind, token=f"daskclust-{plan.name}-{result}"
            )
        return arrays


def _keys(delayed: Any) -> list[Any]:
    return [each.key for each in delayed]
