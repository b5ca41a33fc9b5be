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

from functools import partial
from typing import Any

import numpy as np

from daskclust.core.data.columns import named_for_kernels
from daskclust.core.data.lazy import meta_of
from daskclust.core.device.arrays import is_cuda, is_dask
from daskclust.core.device.machine_code.compiling import expecting
from daskclust.core.run import merging
from daskclust.core.run import steps as work
from daskclust.core.run.boxes import unboxed
from daskclust.core.run.division import divide
from daskclust.core.run.exchange import all_to_all, is_few, one_by_one, pieces_of
from daskclust.core.run.graph import Steps, keys_of
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
        return {name: whole(merged, partial(_attribute, name), *kind) for name, kind in results.items()}
    with expecting(plan.kernels):
        merged = plan.merge([plan.local(plan.measure(Chunk(named_for_kernels(columns))))[1]])
    return {name: getattr(merged, name) for name in results}


class Lazy:
    """A data set of dask arrays, divided for a plan: nothing is computed before a result is.

    What a step gives for each chunk is an element of a dask array of objects, (m, 1): see `core/run/graph.py`.

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
        self._like = meta_of(next(iter(columns.values())))
        self._layout = Layout.of(next(iter(columns.values())).chunks[0], division)
        partition, among = self._layout.partition, self._layout.among
        self._is_few = partition is None or is_cuda(self._like) or is_few(among, len(partition))
        self._chunks = self._divided(columns, plan.positions, plan.group)
        self._measures: Any = None

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
        width = merging.merge_width()
        steps, found = self._locals(plan, width)
        slices, count = merging.slices(steps, plan, found, self._layout, width)
        results = self._as_arrays(steps, self._finished(steps, plan, found, slices), plan.results)
        if plan.before_merge is not None:
            results |= self._as_arrays(steps, self._known_before(steps, plan), plan.results_before_merge)
        return results | {"n_clusters": whole(count, _count, (), np.int64)}

    def persist(self, plan: Plan) -> None:
        """Compute the measures now and keep them on the workers, for runs with other thresholds.

        Parameters
        ----------
        plan : Plan
            The system.
        """
        self._measures = self._measured(plan).persist()

    # ------------------------------------------------------------------------------------------------------- the steps
    def _divided(self, columns: dict[str, Any], positions: str, group: str) -> Any:
        """Return the chunks of the plan: runs of the input's chunks, or the parts that a partition makes of them."""
        names, layout = list(columns), self._layout
        arrays = [array.rechunk({0: layout.run_lengths()}, method="tasks") for array in columns.values()]
        steps, partition = Steps("", arrays, layout), layout.partition
        given = work.Given(names, layout.starts, partition, positions, group)
        if partition is None:
            return steps.of_rows("chunk", work.as_chunk, arrays, steps.shared("given", given))
        if self._is_few:
            its = steps.shared("given", given._replace(among=layout.among))
            splits = steps.of_rows("split", work.split, arrays, its)
            return steps.each("chunk", work.join, pieces_of(steps, "part", splits, layout.among, len(partition)))
        width = layout.together(len(partition))
        its = steps.shared("given", given._replace(width=width))
        groups = [min(width, len(partition) - a) for a in range(0, len(partition), width)]
        shares = all_to_all(steps.of_rows("split", work.share_out, arrays, its, row=len(groups)))
        return steps.apart("part", steps.each("chunk", work.chunks_of, shares, its, numbered=True, column=groups))

    def _measured(self, plan: WholePlan) -> Any:
        """Return what `measure` gives for each chunk; it is made once: a later plan gets that of the first one."""
        if self._measures is None:
            steps = Steps(f"{plan.name}-", plan, self._chunks.name)
            self._measures = steps.each("measure", plan.measure, self._chunks)
        return self._measures

    def _merged(self, plan: WholePlan) -> Any:
        """Return what `merge` makes of the frontiers of all chunks: results about the data set as a whole."""
        steps, found = self._locals(plan)
        return merging.merged(steps, plan, found)[0]

    def _locals(self, plan: WholePlan, width: int = 0) -> tuple[Steps, Any]:
        """Add the local step of each chunk, with what is carried to it; names tell the merge's `width`, too."""
        measures = self._measured(plan)
        steps = Steps(f"{plan.name}-", plan, measures.name, width)
        if plan.carry is None:
            return steps, steps.each("local", plan.local, measures)
        return steps, steps.each("local", plan.local, measures, steps.chain("carry", plan.carry, measures))

    def _finished(self, steps: Steps, plan: Plan, found: Any, slices: Any) -> Any:
        """Add what makes results of local results and slices, and return those of runs, or ranges, of the input."""
        layout = self._layout
        if layout.partition is None:
            return steps.each("finish", partial(work.finish, plan), found, slices)
        if self._is_few:
            runs, ends = layout.back()
            keys = list(zip(keys_of(found), keys_of(slices), strict=True))

            def give(k: int, p: int) -> tuple[Any, ...]:
                # piece by piece, when they are needed: all results at once take more memory than what waits for them
                return work.finish_piece, plan, *keys[k], *ends[k][p]

            pieces = one_by_one(steps, "finish", give, runs, len(layout.runs), found, slices)
            return self._put_back(steps, pieces, layout.starts)
        starts = layout.ranges()
        given = found, slices, steps.shared("ranges", starts)
        pieces = all_to_all(steps.each("finish", partial(work.finish_pieces, plan), *given, row=len(starts) - 1))
        return self._put_back(steps, pieces, starts)

    def _known_before(self, steps: Steps, plan: Plan) -> Any:
        """Add what makes results that do not wait for the merge, and return those of runs, or ranges, of the input."""
        layout, measures = self._layout, self._measured(plan)
        if layout.partition is None:
            return steps.each("early", partial(work.before_merge, plan), measures)
        if self._is_few:
            runs, ends = layout.back()
            early = [(work.pieces_before_merge, plan, *pair) for pair in zip(keys_of(measures), ends, strict=True)]
            lists = steps.one_by_one("early", early, measures)
            return self._put_back(steps, pieces_of(steps, "early", lists, runs, len(layout.runs)), layout.starts)
        starts = layout.ranges()
        function, ranges = partial(work.pieces_before_merge, plan), steps.shared("ranges", starts)
        rows = steps.each("early", function, measures, ranges, row=len(starts) - 1)
        return self._put_back(steps, all_to_all(rows), starts)

    def _put_back(self, steps: Steps, pieces: Any, starts: Any) -> Any:
        """Return the results for runs or ranges, put together from pieces."""
        return steps.each("gather", work.put_back, pieces, steps.shared("starts", starts), numbered=True)

    def _as_arrays(self, steps: Steps, found: Any, dtypes: Any) -> dict[str, Any]:
        """Return the results for all runs, or ranges, as arrays with the input's chunks."""
        import dask.array as da

        layout, arrays = self._layout, {}
        is_run = found.shape[0] == len(layout.runs)
        lengths = layout.run_lengths() if is_run else tuple(np.diff(layout.ranges()).tolist())
        for result, dtype in dtypes.items():
            meta = self._like.ravel()[:0].astype(self._like.dtype if dtype is None else dtype)
            kind = {"dtype": meta.dtype, "meta": meta, "adjust_chunks": {"a": lengths}, "concatenate": False}
            name = steps.name(result.replace("_", "-"))  # dashboards cut names at what is no letter
            array = da.blockwise(_result, "a", found, "ab", name=name, result=result, **kind)
            arrays[result] = array.rechunk((layout.lengths,), method="tasks")
        return arrays


def _result(box: Any, result: str) -> Any:
    """Return one of the results in a box."""
    return unboxed(box)[result]


def _count(box: Any) -> np.int64:
    return np.int64(unboxed(box))


def _attribute(name: str, box: Any) -> Any:
    return getattr(unboxed(box), name)
