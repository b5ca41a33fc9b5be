"""The contract: what a clustering system is to the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from daskclust.core.partition import Chunk


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
            What stays on the worker for `finish`, and what goes up to `merge`.
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

    def owned_ids(self, local: Any) -> Any:
        """Return which points `finish` gives results for.

        Parameters
        ----------
        local : object
            The chunk's own result.

        Returns
        -------
        array of int64, shape (m,)
            Ids of points, ascending.
        """

    def finish(self, local: Any, merged: Any) -> dict[str, Any]:
        """Return, on a worker, results for the points that the chunk owns.

        Parameters
        ----------
        local : object
            The chunk's own result.
        merged : object or None
            Its slice of the merge table; None where one chunk holds all points.

        Returns
        -------
        dict of arrays
            Results by name, shape (m,), in the order of the data set.
        """
