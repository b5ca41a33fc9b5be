"""The contract: what a clustering system is to the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from daskclust.core.merge.sets import merge_fragments
from daskclust.core.space.partition import Chunk, Halo, widened


class Cost(NamedTuple):
    """What a point costs a task, measured on one thread of a CPU.

    For blocks of 5e5 points of `docs/explanation/scaling/runs.py`; a hit's time for 2e6 of `chunks.py` there.
    """

    seconds: float
    size: float  # bytes of memory at the peak, its columns included


class WholePlan:
    """What a clustering system is to the engine if its results are about the data set as a whole, such as a hierarchy.

    Attributes
    ----------
    name : str
        What dask's dashboard calls its steps.
    positions, group : str
        The columns by which points are divided: coordinates, and numbers such as those of layers.
    carry : method or None
        ``carry(measures, before)`` returns, on a worker, what the next chunk must know, from a chunk's measures and
        what was carried to it. None where chunks do not follow each other.
    """

    name: str
    positions = "X"
    group = "layer"
    carry: Callable[[Any, Any], Any] | None = None

    @property
    def cost(self) -> Cost:
        """What a point costs a task."""
        return Cost(seconds=300e-9, size=100)

    @property
    def kernels(self) -> int:
        """About how many kernels a fit in memory needs, for who waits while they are compiled; 0: nobody knows."""
        return 0

    def measure(self, chunk: Chunk) -> Any:
        """Return, on a worker, what depends neither on other chunks nor on thresholds: `Lazy.persist` keeps it.

        Parameters
        ----------
        chunk : Chunk
            Its points, with a halo where the partition gives one.

        Returns
        -------
        object
            The measures.
        """
        return chunk

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
            What waits on the worker for `finish`, as little as it can be; what goes up to `merge`.
        """
        raise NotImplementedError

    def merge(self, frontiers: list[Any]) -> Any:
        """Return the results about the data set as a whole.

        Parameters
        ----------
        frontiers : list
            Those of all chunks, in their order.

        Returns
        -------
        object
            The results.
        """
        raise NotImplementedError


class Plan(WholePlan):
    """What a clustering system is to the engine if its results are values for each point.

    Attributes
    ----------
    results : mapping of str to dtype
        Names of the results that `finish` gives, and their dtypes; None is the dtype of the points.
    divisions : tuple of str
        How dask arrays may be divided: "space", "windows" (the same along one axis), "layers" or "chunks". The first
        that the data allows is the default.
    period : tuple of float
        Period of each axis, 0 where it is open.
    min_size : int or None
        How many elements a cluster has at least, where frontiers are `daskclust.core.merge.sets.Fragments`: the engine
        then merges those of many chunks in groups, on all workers. None where a plan's own `merge` alone can.
    before_merge : method or None
        ``before_merge(measures)`` returns, on a worker, ids of a chunk's own points, ascending, and results that do not
        wait for the merge. Ids may be None where one chunk holds all points.
    results_before_merge : mapping of str to dtype
        Names and dtypes of these results.
    halo_by : method or None
        ``halo_by(sample)`` returns the halo, given some of the points, where these say how wide it is best; any halo
        from `reach` on gives the same results.
    one_chunk : method or None
        ``one_chunk(measures)`` returns all results, with ``n_clusters``, where one chunk holds all points: a shorter
        way to the same as by `local`, `merge` and `finish`.
    """

    results: ClassVar[Mapping[str, Any]] = {}
    divisions: tuple[str, ...] = ("space", "chunks")
    period: tuple[float, ...] = ()
    min_size: int | None = None
    before_merge: Callable[[Any], tuple[Any, dict[str, Any]]] | None = None
    results_before_merge: ClassVar[Mapping[str, Any]] = {}
    halo_by: Callable[[Any], Halo] | None = None
    one_chunk: Callable[[Any], dict[str, Any]] | None = None

    @property
    def reach(self) -> Halo:
        """How far from a point others decide about it."""
        return 0.0

    @property
    def reach_name(self) -> str:
        """What that is, for messages."""
        return "the distance of neighbours"

    @property
    def halo(self) -> Halo:
        """How far around a block its chunk must reach, as distances are rounded."""
        return widened(self.reach)

    def merge(self, frontiers: list[Any]) -> list[Any]:
        """Return the slices of the merge table: of `Fragments`, unless a plan has frontiers of another kind.

        Parameters
        ----------
        frontiers : list
            As of `WholePlan.merge`.

        Returns
        -------
        list
            A slice for each chunk, which also tells ``n_clusters``.
        """
        assert self.min_size is not None
        return merge_fragments(frontiers, self.min_size)

    def rows_in(self, local: Any, rows: slice) -> Any:
        """Return what `local` says of some of the chunk's own points: `finish` is given such parts.

        Parameters
        ----------
        local : object
            The chunk's own result, with the attribute ``ids``: an `OwnIds` of its own points.
        rows : slice
            Which of these points.

        Returns
        -------
        object
            The result for them; `finish` does not use its ids.
        """
        raise NotImplementedError

    def finish(self, local: Any, merged: Any) -> dict[str, Any]:
        """Return, on a worker, results for the points that the chunk owns.

        Parameters
        ----------
        local : object
            The chunk's own result, or a part of it.
        merged : object
            Its slice of the merge table.

        Returns
        -------
        dict of arrays
            Results by name, a value for each of its own points, in the order of the data set.
        """
        raise NotImplementedError
