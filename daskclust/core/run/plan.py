"""The contract: what a clustering system is to the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from daskclust.core.merge.own_ids import OwnIds
from daskclust.core.space.partition import Chunk


class WholePlan(Protocol):
    """What a clustering system is to the engine if its results are about the data set as a whole, such as a hierarchy.

    Arrays may live on the host or on a CUDA device.
    """

    @property
    def name(self) -> str:
        """Return what dask's dashboard calls its steps."""

    @property
    def carry(self) -> Callable[[Any, Any], Any] | None:
        """Return, on a worker, what the next chunk must know, from a chunk's measures and what was carried to it.

        None where chunks do not follow each other.
        """

    def measure(self, chunk: Chunk) -> Any:
        """Compute, on a worker, what does not depend on other chunks.

        Parameters
        ----------
        chunk : Chunk
            Its points, with a halo where the partition gives one.

        Returns
        -------
        object
            The measures. `Lazy.persist` keeps them, so they should not depend on thresholds.
        """

    def local(self, measures: Any, before: Any = None) -> tuple[Any, Any]:
        """Return, on a worker, the chunk's own result and its frontier: edges and summaries, never points.

        Parameters
        ----------
        measures : object
            What `measure` gave.
        before : object, optional
            What was carried to the chunk: None to the first, and where the plan has no `carry`.

        Returns
        -------
        local, frontier : object
            What stays on the worker for `finish`, as little as it can be: that of all chunks waits for the merge. And
            what goes up to `merge`.
        """

    def merge(self, frontiers: list[Any]) -> Any:
        """Return the results, from the frontiers of all chunks.

        Parameters
        ----------
        frontiers : list
            Those of all chunks, in their order.

        Returns
        -------
        object
            The results about the data set as a whole.
        """


class Plan(WholePlan, Protocol):
    """What a clustering system is to the engine if its results are values for each point."""

    @property
    def min_size(self) -> int | None:
        """Return how many elements a cluster has at least, where frontiers are `daskclust.core.merge.sets.Fragments`.

        The engine then merges those of many chunks in groups, on all workers. None where `merge` alone can.
        """

    @property
    def before_merge(self) -> Callable[[Any], tuple[Any, dict[str, Any]]] | None:
        """Return, on a worker, from a chunk's measures, ids of its own points and results known before the merge.

        Ids are ascending, None where one chunk holds all points; `finish` has the other results. None where there are
        no such results.
        """

    def merge(self, frontiers: list[Any]) -> list[Any]:
        """Return the slices of the merge table.

        Parameters
        ----------
        frontiers : list
            Those of all chunks, in their order.

        Returns
        -------
        list
            A slice for each chunk.
        """

    def rows_in(self, local: Any, start: int, end: int) -> tuple[OwnIds, Any]:
        """Return what `local` says of those of the chunk's own points that have ids from `start` to `end - 1`.

        `finish` is given such parts where a partition divides the points, one for each chunk of the input.

        Parameters
        ----------
        local : object
            The chunk's own result.
        start, end : int
            Ids.

        Returns
        -------
        ids : OwnIds
            Those of the points.
        local : object
            The chunk's own result for them.
        """

    def finish(self, local: Any, merged: Any) -> dict[str, Any]:
        """Return, on a worker, results for the points that the chunk owns.

        Parameters
        ----------
        local : object
            The chunk's own result, or a part of it.
        merged : object or None
            Its slice of the merge table; None where one chunk holds all points.

        Returns
        -------
        dict of arrays
            Results by name, a value for each of its own points, in the order of the data set.
        """
