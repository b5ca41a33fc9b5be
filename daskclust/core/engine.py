"""Run a plan: on one chunk in memory, or lazily on dask. Every dask call of the package's core is here.

A system is a plan, an object with four steps. On dask the first two run once for each chunk on a worker, `merge` runs
once, on the small frontiers of all chunks, and `finish` on a worker again, with its chunk's slice of the merge table:

    points -> split -> chunk -> measure -> local -> frontier -+
                                             |                merge
                                             +---> finish <- slice
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from daskclust.core.arrays import device_of
from daskclust.core.jit import one_thread
from daskclust.core.partition import Chunk, Partition, balanced_cuts


class Plan(Protocol):
    """What a clustering system is to the engine. Arrays may live on the host or on a CUDA device."""

    name: str

    def measure(self, chunk: Chunk) -> Any:
        """Compute, on a worker, what does not depend on other chunks."""

    def local(self, measures: Any) -> tuple[Any, Any]:
        """Return, on a worker, the chunk's own result and its frontier: edges and summaries, never points."""

    def merge(self, frontiers: list[Any]) -> list[Any]:
        """Return, from the frontiers of all chunks, the slice of the merge table for each."""

    def owned_ids(self, local: Any) -> Any:
        """Return the ids of the points that `finish` gives results for, ascending."""

    def finish(self, local: Any, merged: Any) -> dict[str, Any]:
        """Return, on a worker, the result arrays for the points the chunk owns, in the order of the data set.

        `merged` is None where one chunk holds all points.
        """


def run_in_memory(plan: Plan, columns: dict[str, Any]) -> dict[str, Any]:
    """Return the results of `plan` for arrays, one row a point."""
    local, _ = plan.local(plan.measure(Chunk(columns)))
    return plan.finish(local, None)


class Lazy:
    """A plan on a data set divided into dask chunks: nothing is computed before a result is.

    Parameters
    ----------
    columns : dict of dask arrays
        ``X`` (n, d) and others (n,), all with the same chunks, of known size, along the points.
    partition : Partition or None
        How the points are divided for the plan; None takes the chunks as they are.
    group : str
        Column whose values keep points together where the partition goes by groups.
    """

    def __init__(self, columns: dict[str, Any], partition: Partition | None, group: str) -> None:
        self._lengths = columns["X"].chunks[0]
        self._meta = columns["X"]._meta
        self._starts = np.concatenate([[0], np.cumsum(self._lengths)]).astype(np.int64)
        pieces = [
            dict(zip(columns, blocks, strict=True)) for blocks in zip(*map(_blocks, columns.values()), strict=True)
        ]
        firsts = [int(start) for start in self._starts[:-1]]
        self._moved = partition is not None
        if partition is None:
            whole = _step(_as_chunk, "daskclust-chunk")
            self._chunks = [whole(piece, first) for piece, first in zip(pieces, firsts, strict=True)]
        else:
            split = _step(_split, "daskclust-split", outputs=len(partition))
            parts = [split(partition, piece, first, group) for piece, first in zip(pieces, firsts, strict=True)]
            join = _step(_join, "daskclust-chunk")
            self._chunks = [join([part[k] for part in parts]) for k in range(len(partition))]
        self._measures: list[Any] | None = None

    def measures(self, plan: Plan) -> list[Any]:
        """Return the delayed measures of each chunk."""
        if self._measures is None:
            measure = _step(plan.measure, f"daskclust-{plan.name}-measure")
            self._measures = [measure(chunk) for chunk in self._chunks]
        return self._measures

    def persist(self, plan: Plan) -> None:
        """Compute the measures now and keep them on the workers, for runs with other thresholds."""
        import dask

        self._measures = list(dask.persist(*self.measures(plan)))

    def run(self, plan: Plan, dtypes: dict[str, Any]) -> dict[str, Any]:
        """Return results as dask arrays with the order and the chunks of the input, and the scalar ``n_clusters``.

        `dtypes` names the results that the plan gives and their dtypes.
        """
        import dask.array as da

        prefix = f"daskclust-{plan.name}"
        pairs = [_step(plan.local, f"{prefix}-local", outputs=2)(measures) for measures in self.measures(plan)]
        merged = _step(plan.merge, f"{prefix}-merge", outputs=len(pairs))([frontier for _, frontier in pairs])
        finish = _step(_finish, f"{prefix}-finish")
        parts = [finish(plan, local, mine) for (local, _), mine in zip(pairs, merged, strict=True)]
        if self._moved:
            parts = self._in_order(parts, f"{prefix}-gather")
        arrays = {}
        for name, dtype in dtypes.items():
            meta = self._meta.ravel()[:0].astype(dtype)
            blocks = [
                da.from_delayed(part[name], (length,), meta=meta)
                for part, length in zip(parts, self._lengths, strict=True)
            ]
            arrays[name] = da.concatenate(blocks)
        count = _step(_n_clusters, f"{prefix}-count")(merged[0])
        arrays["n_clusters"] = da.from_delayed(count, (), dtype=np.int64)
        return arrays

    def _in_order(self, parts: list[Any], name: str) -> list[Any]:
        """Return the results for each input chunk, put together from those of all chunks of the partition."""
        cut = _step(_cut, f"{name}-cut", outputs=len(self._lengths))
        pieces = [cut(part, self._starts) for part in parts]
        gather = _step(_gather, name)
        return [gather([piece[i] for piece in pieces], int(start)) for i, start in enumerate(self._starts[:-1])]


def balanced_partition(X: Any, count: int, period: tuple[float, ...], halo: float) -> Partition | None:
    """Return blocks of space for a dask array (n, d), about `count` with as many points each.

    This computes: one pass over X takes a sample of each of its chunks.
    """
    import dask

    if count == 1:
        return None
    sample = np.concatenate(dask.compute(*[_step(_sample, "daskclust-sample")(block) for block in _blocks(X)]))
    blocks = [1] * min(X.shape[1], 3)
    extent = [np.ptp(x[np.isfinite(x)]) if np.isfinite(x).any() else 0.0 for x in sample.T[: len(blocks)]]
    while math.prod(blocks) < count:
        widest = int(np.argmax([length / parts for length, parts in zip(extent, blocks, strict=True)]))
        blocks[widest] += 1
    cuts = balanced_cuts(sample[np.isfinite(sample).all(axis=1)], tuple(blocks), period)
    return Partition(cuts=cuts, period=period, halo=halo)


# ---------------------------------------------------------------------------------------------------------- on a worker
def _sample(block: Any) -> Any:
    """Return up to 8192 points, evenly spaced, on the host."""
    points = block[:: max(1, len(block) // 8192)]
    device = device_of(points)
    return np.asarray(device.to_host(device.argument(points)))


def _as_chunk(columns: dict[str, Any], first: int) -> Chunk:
    return Chunk(columns, first + np.arange(len(columns["X"])), as_given=True)


def _split(partition: Partition, columns: dict[str, Any], first: int, group: str) -> list[Chunk]:
    return partition.split(columns, first, columns.get(group))


def _join(parts: Sequence[Chunk]) -> Chunk:
    """Put the parts of a chunk together; they come in the order of the data set."""
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    owned = None if parts[0].owned is None else np.concatenate([part.owned for part in parts])
    return Chunk(columns, np.concatenate([part.ids for part in parts]), owned, parts[0].region)


def _finish(plan: Plan, local: Any, mine: Any) -> dict[str, Any]:
    return {"ids": plan.owned_ids(local), **plan.finish(local, mine)}


def _n_clusters(merged: Any) -> np.int64:
    return np.int64(merged.n_clusters)


def _cut(results: dict[str, Any], starts: Any) -> list[dict[str, Any]]:
    """Cut results at the borders of the input's chunks."""
    ends = np.searchsorted(results["ids"], starts)
    return [{name: values[a:b] for name, values in results.items()} for a, b in itertools.pairwise(ends)]


def _gather(pieces: Sequence[dict[str, Any]], start: int) -> dict[str, Any]:
    """Put the results for one chunk of the input in order; every point is in exactly one piece."""
    place = np.concatenate([piece["ids"] for piece in pieces]) - start
    results = {}
    for name in pieces[0].keys() - {"ids"}:
        values = np.concatenate([piece[name] for piece in pieces])
        results[name] = np.empty_like(values)
        results[name][place] = values
    return results


# ----------------------------------------------------------------------------------------------------- dask's own calls
def _blocks(array: Any) -> list[Any]:
    """Return the delayed blocks of a dask array that is cut along its first axis only."""
    return list(array.to_delayed(optimize_graph=False).ravel())


def _step(function: Callable[..., Any], name: str, outputs: int | None = None) -> Callable[..., Any]:
    """Return `function` as a lazy step: on one thread, under a name that the dashboard shows."""
    from dask import delayed
    from dask.base import tokenize

    @functools.wraps(function)
    def on_worker(*args: Any) -> Any:
        with one_thread():
            return function(*args)

    lazy = delayed(on_worker, nout=outputs, pure=False, traverse=True)

    def call(*args: Any) -> Any:
        return lazy(*args, dask_key_name=f"{name}-{tokenize(function, args)}")

    return call
