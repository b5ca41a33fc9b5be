"""What workers do beside a plan's own steps: divide points into parts of chunks, join these, put results in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.data.columns import for_kernels
from daskclust.core.data.inputs import on_device_of
from daskclust.core.device.arrays import device_of, put
from daskclust.core.merge.own_ids import OwnIds
from daskclust.core.merge.sets import Fragments
from daskclust.core.run.exchange import unbundled
from daskclust.core.run.plan import Plan, WholePlan
from daskclust.core.space.partition import Chunk, Partition


def itself(value: Any) -> Any:
    """Return what a step of its own brings to each worker once, where there are many that need it."""
    return value


def as_chunk(names: list[str], columns: list[list[Any]], first: int) -> Chunk:
    """Return a run of the input's chunks, from the id `first` on, as a chunk of the plan."""
    named = _named(names, columns)
    X = named[names[0]]
    return Chunk(named, first + device_of(X).count_up(len(X)), as_given=True)


def _named(names: list[str], columns: list[list[Any]]) -> dict[str, Any]:
    """Return the columns by name, each of one or more blocks, all on the device of the first."""
    like = columns[0][0]
    given = zip(names, columns, strict=True)
    return {name: _joined([on_device_of(like, for_kernels(name, each)) for each in blocks]) for name, blocks in given}


def _joined(arrays: Sequence[Any]) -> Any:
    """Return arrays as one on the device of the first."""
    return arrays[0] if len(arrays) == 1 else np.concatenate([on_device_of(arrays[0], each) for each in arrays])


def split(
    partition: Partition,
    names: list[str],
    columns: list[list[Any]],
    first: int,
    positions: str,
    group: str,
    among: list[int],
) -> list[Chunk]:
    """Return the parts that a run of the input's chunks has of the chunks `among` (see `Partition.split`)."""
    named = _named(names, columns)
    return partition.split(named, first, positions, named.get(group), np.array(among))


def join(bundles: Sequence[Sequence[Chunk]]) -> Chunk:
    """Put the parts of a chunk together; they come in the order of the data set."""
    parts = unbundled(bundles)
    columns = {name: _joined([part.columns[name] for part in parts]) for name in parts[0].columns}
    owned = None if parts[0].owned is None else _joined([part.owned for part in parts])
    return Chunk(columns, _joined([part.ids for part in parts]), owned, parts[0].region)


def frontier(local_and_frontier: tuple[Any, Any]) -> Any:
    """Return what goes up of a chunk, without what only many chunks need."""
    _, found = local_and_frontier
    return found._replace(places=None) if isinstance(found, Fragments) else found


def turn(_before: None, _frontier: Any) -> None:
    """Do nothing, after the chunk before and a frontier."""


def merge(plan: WholePlan, frontiers: list[Any], _turns: None) -> Any:
    """Return what `plan` makes of all frontiers."""
    return plan.merge(frontiers)


def cut_slice(merged: list[Any], k: int, _: Any) -> Any:
    """Return a chunk's slice of what was merged."""
    return merged[k]


class Piece(NamedTuple):
    """Results for points of a chunk."""

    ids: OwnIds
    results: dict[str, Any]


def finish(plan: Plan, local_and_frontier: tuple[Any, Any], mine: Any) -> dict[str, Any]:
    """Return the results for all points of a chunk."""
    return plan.finish(local_and_frontier[0], mine)


def finish_rows(plan: Plan, local_and_frontier: tuple[Any, Any], mine: Any, runs: list[tuple[int, int]]) -> list[Piece]:
    """Return the results for a chunk's own points in each of some runs of ids."""
    local, _ = local_and_frontier
    parts = [local.ids.within(*run) for run in runs]
    return [Piece(ids, plan.finish(plan.rows_in(local, rows), mine)) for ids, rows in parts]


def before_merge(plan: Plan, measures: Any) -> dict[str, Any]:
    """Return those of a chunk's results that do not wait for the merge."""
    assert plan.before_merge is not None
    return plan.before_merge(measures)[1]


def rows_before_merge(plan: Plan, measures: Any, runs: list[tuple[int, int]]) -> list[Piece]:
    """Return the same for its own points in each of some runs of ids."""
    assert plan.before_merge is not None
    ids, results = plan.before_merge(measures)
    own = OwnIds.of(ids)
    parts = [own.within(*run) for run in runs]
    return [Piece(mine, {name: values[rows] for name, values in results.items()}) for mine, rows in parts]


class Box(np.ndarray):
    """An array of one element, the results for a chunk by name: dask's arrays are made of arrays alone."""

    @property
    def nbytes(self) -> int:
        """How much memory it takes with its results, as dask wants to know."""
        return sum(int(values.nbytes) for results in self.ravel() for values in results.values())


def boxed(results: dict[str, Any], begin: int, end: int) -> Any:
    """Return an array of one element, the results for the points from `begin` to `end` of a run."""
    box = np.empty(1, object).view(Box)
    box[0] = {name: values[begin:end] for name, values in results.items()}
    return box


def from_box(box: Any, name: str) -> Any:
    """Return one of the results in a box."""
    return box[0][name]


def n_clusters(merged: Any) -> np.int64:
    """Return the number of clusters that any slice tells."""
    return np.int64(merged.n_clusters)


def gather(bundles: Sequence[Sequence[Piece]], start: int, size: int) -> dict[str, Any]:
    """Put the results for a run of the input's chunks in order; every point is in exactly one piece."""
    pieces = unbundled(bundles)
    count = sum(piece.ids.size for piece in pieces)
    if count != size:
        raise RuntimeError(f"{count} results for the {size} points from {start} on: please report this")
    given = pieces[0].results
    like = next(iter(given.values()))
    device = device_of(like)
    results = {name: device.empty(size, values.dtype) for name, values in given.items()}
    for piece in pieces:
        ids = piece.ids.on(device)
        for name, target in results.items():
            device.run(put, len(ids), on_device_of(like, piece.results[name]), ids, start, target)
    return results
