"""Run a plan: the whole algorithm, on one chunk in memory or on the chunks of a dask array.

A system is a plan: an object with four steps, and some optional ones. Only frontiers meet, which are small:
edges between global ids and summaries, never points. In memory there is one chunk, and the calls are the same.

    1 divide    points -> chunks            own points, and a halo of those that decide about them
    2 measure   chunk -> measures           what no threshold changes: densities, neighbours
    3 local     measures -> local, frontier sets of the chunk, and what of them other chunks may have, too
    4 merge     frontiers -> slices         connected components, and their numbers over all of the data
    5 finish    local, slice -> results     of own points, which go back to the order and the chunks of the input
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from daskclust.core.data.columns import named_for_kernels
from daskclust.core.data.lazy import meta_of, whole
from daskclust.core.device.arrays import is_dask
from daskclust.core.device.machine_code.compiling import expecting
from daskclust.core.run import merging
from daskclust.core.run import steps as work
from daskclust.core.run.division import divide
from daskclust.core.run.exchange import Layout, PieceOf, exchange_for
from daskclust.core.run.graph import ChunkSteps, unboxed
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
        chunk = Chunk(named_for_kernels(columns))  # 1: all points are its own, in their order
        measures = plan.measure(chunk)  # 2
        if plan.one_chunk is not None:
            return plan.one_chunk(measures)  # 3 to 5 of CLUE: its seeds are numbered as they come
        local, frontier = plan.local(measures)  # 3
        (mine,) = plan.merge([frontier])  # 4
        results = {**plan.finish(local, mine), "n_clusters": mine.n_clusters}  # 5
        return results if plan.before_merge is None else results | plan.before_merge(measures)[1]


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
        X = next(iter(columns.values()))
        self._like, self._layout = meta_of(X), Layout.of(X.chunks[0], division)
        self._exchange = exchange_for(self._layout, columns, plan.positions, plan.group)
        lengths = tuple(np.diff(self._layout.starts).tolist())
        runs = [array.rechunk({0: lengths}, method="tasks") for array in columns.values()]
        self._chunks = self._exchange.to_chunks(ChunkSteps("", runs, self._layout), runs)
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
        measures = self._measured(plan)
        steps, local = self._local(plan, measures, width)
        slices, count = merging.slices(steps, plan, local, self._layout, width)
        results = self.of_points(steps, "finish", partial(work.finish, plan), (local, slices), plan.results)
        if plan.before_merge is not None:  # these results wait for no other chunk
            known = steps.each("early", partial(work.before_merge, plan), measures)
            results |= self.of_points(steps, "early", work.part_of, (known,), plan.results_before_merge)
        return results | {"n_clusters": whole(count, _count, (), np.int64)}

    def steps(self, name: str, *content: Any) -> tuple[ChunkSteps, Any]:
        """Return steps for a system that merges more than once, and the chunks that they begin with.

        Parameters
        ----------
        name : str
            What dask's dashboard calls them.
        *content : object
            What decides about the results, besides the points.

        Returns
        -------
        ChunkSteps, dask array of Chunk, shape (m, 1)
        """
        return ChunkSteps(f"{name}-", *content, self._chunks.name), self._chunks

    def of_points(
        self, steps: ChunkSteps, step: str, piece_of: PieceOf, values: tuple[Any, ...], dtypes: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return results for each point in the order and the chunks of the input.

        Parameters
        ----------
        steps : ChunkSteps
        step : str
            Name of the step that gives them.
        piece_of : function
            ``piece_of(*values, *ends)``, see `PieceOf`.
        values : tuple of dask arrays of objects, shape (m, 1)
            One of each for each chunk.
        dtypes : mapping of str to dtype
            Names of the results and their dtypes; None is the dtype of the points.

        Returns
        -------
        dict of dask arrays
        """
        like, parts = self._like.ravel()[:0], self._exchange.back(steps, step, piece_of, *values)
        likes = {name: like.astype(like.dtype if dtype is None else dtype) for name, dtype in dtypes.items()}
        arrays = steps.by_name(parts, tuple(np.diff(self._exchange.starts).tolist()), likes)
        return {name: each.rechunk((self._layout.lengths,), method="tasks") for name, each in arrays.items()}

    def persist(self, plan: Plan) -> None:
        """Compute the measures now and keep them on the workers, for runs with other thresholds.

        Parameters
        ----------
        plan : Plan
            The system.
        """
        self._measures = self._measured(plan).persist()

    def _measured(self, plan: WholePlan) -> Any:
        """Return what `measure` gives for each chunk; it is made once: a later plan gets that of the first one."""
        if self._measures is None:
            steps = ChunkSteps(f"{plan.name}-", plan, self._chunks.name)
            self._measures = steps.each("measure", plan.measure, self._chunks)
        return self._measures

    def _local(self, plan: WholePlan, measures: Any, width: int = 0) -> tuple[ChunkSteps, Any]:
        """Add the local step of each chunk, with what is carried to it; names tell the merge's `width`, too."""
        steps = ChunkSteps(f"{plan.name}-", plan, measures.name, width)
        carried = () if plan.carry is None else (steps.chain("carry", plan.carry, measures),)
        return steps, steps.each("local", plan.local, measures, *carried)


def gather(
    plan: WholePlan, columns: dict[str, Any], division: Division, results: dict[str, tuple[Any, Any]]
) -> dict[str, Any]:
    """Return results about the data set as a whole: attributes of what `merge` gives, with these shapes and dtypes."""
    if is_dask(next(iter(columns.values()))):
        lazy = Lazy(columns, division, plan)
        steps, local = lazy._local(plan, lazy._measured(plan))
        return attributes(merging.merged(steps, plan, local)[0], results)
    with expecting(plan.kernels):
        merged = plan.merge([plan.local(plan.measure(Chunk(named_for_kernels(columns))))[1]])
    return {name: getattr(merged, name) for name in results}


def attributes(box: Any, results: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
    """Return attributes of what one step gives, (1, 1), as dask arrays of one chunk with these shapes and dtypes."""
    return {name: whole(box, partial(_attribute, name), *kind) for name, kind in results.items()}


def _count(box: Any) -> np.int64:
    return np.int64(unboxed(box))


def _attribute(name: str, box: Any) -> Any:
    return getattr(unboxed(box), name)
