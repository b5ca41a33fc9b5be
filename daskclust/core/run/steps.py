"""What workers do around a plan's steps: divide points into parts of chunks, join these, put results in order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.data.columns import for_kernels
from daskclust.core.device.arrays import device_of, on_device_of, put
from daskclust.core.merge.own_ids import OwnIds
from daskclust.core.merge.sets import Fragments, Ids
from daskclust.core.run.plan import Plan
from daskclust.core.space.partition import Chunk, Partition


class SplitSpec(NamedTuple):
    """What the steps that take the input's rows have to know."""

    names: list[str]  # of columns
    starts: Ids  # (runs + 1,) the first id of each run of the input's chunks, and one behind the last
    partition: Partition | None = None
    positions: str = ""
    group: str = ""
    among: Sequence[Sequence[int]] = ()  # for each run the chunks that its points go to, where these are few
    width: int = 1  # how many chunks are taken together, where they are many

    def named(self, columns: list[Any]) -> dict[str, Any]:
        """Return the columns by name, all on the device of the first."""
        pairs = zip(self.names, columns, strict=True)
        return {name: on_device_of(columns[0], for_kernels(name, column)) for name, column in pairs}


def as_chunk(columns: list[Any], run: int, given: SplitSpec) -> Chunk:
    """Return a run of the input's chunks as a chunk of the plan."""
    named = given.named(columns)
    X = named[given.names[0]]
    return Chunk(named, given.starts[run] + device_of(X).count_up(len(X)), as_given=True)


def split(columns: list[Any], run: int, given: SplitSpec) -> list[Chunk]:
    """Return the parts that a run of the input's chunks has of the chunks `among` (see `Partition.split`).

    Their ids are `OwnIds`, as parts wait for others and go from worker to worker.
    """
    assert given.partition is not None
    named, among = given.named(columns), np.array(given.among[run])
    parts = given.partition.split(named, given.starts[run], given.positions, named.get(given.group), among)
    return [part._replace(ids=OwnIds.of(part.ids)) for part in parts]


def join(parts: list[Chunk]) -> Chunk:
    """Put the parts of a chunk together; they come in the order of the data set."""
    columns = {name: _joined([part.columns[name] for part in parts]) for name in parts[0].columns}
    owned = None if parts[0].owned is None else _joined([part.owned for part in parts])
    device = device_of(next(iter(columns.values())))
    return Chunk(columns, _joined([part.ids.on(device) for part in parts]), owned, parts[0].region)


class Share(NamedTuple):
    """Points of a run of the input's chunks that go to some chunks, which follow each other."""

    columns: dict[str, Any]
    first: int  # the run's first id
    rows: Any  # (m,) int32 how far the id of each point is from that
    owned: Any  # (m,) or None: as of `Chunk`
    ends: Ids  # (chunks + 1,) where the points for each chunk begin, and one behind the last


def share_out(columns: list[Any], run: int, given: SplitSpec) -> list[Share]:
    """Return what a run of the input's chunks has for all chunks, `width` of these at a time."""
    partition, named = given.partition, given.named(columns)
    assert partition is not None
    rows, owned, ends = partition.parts(named[given.positions], named.get(given.group))
    device, shares = device_of(rows), []
    for a in range(0, len(partition), given.width):
        its = ends[a : a + given.width + 1]
        part = slice(its[0], its[-1])
        taken = {name: device.take_at(values, rows[part]) for name, values in named.items()}
        own = owned[part].copy() if partition.cuts else None
        shares.append(Share(taken, int(given.starts[run]), rows[part].copy(), own, its - its[0]))
    return shares


def chunks_of(shares: list[Share], given: SplitSpec, number: int) -> list[Chunk]:
    """Return the chunks that some shares, of all runs in their order, are for; `number` is their place.

    What each share has for each chunk is not looked at by itself: these may be a million.
    """
    assert given.partition is not None
    like = shares[0].rows
    device, count = device_of(like), len(shares[0].ends) - 1
    sizes = np.stack([np.diff(share.ends) for share in shares])
    place = np.repeat(np.tile(np.arange(count), len(shares)), sizes.ravel())
    order = device.from_host(np.argsort(place.astype(np.int16 if count < 2**15 else np.int64), kind="stable"))
    ends = np.concatenate([[0], np.cumsum(sizes.sum(axis=0))]).tolist()
    parts = [slice(*pair) for pair in itertools.pairwise(ends)]

    def divided(arrays: list[Any]) -> list[Any]:
        values = device.take_at(_joined(arrays), order)
        return [values[part].copy() for part in parts]  # each on its own: it goes on when the others are done

    columns = {name: divided([share.columns[name] for share in shares]) for name in shares[0].columns}
    ids = divided([share.first + device_of(share.rows).cast(share.rows, np.int64) for share in shares])
    owned = [None] * count if shares[0].owned is None else divided([share.owned for share in shares])
    return [
        Chunk({name: values[k] for name, values in columns.items()}, ids[k], owned[k], given.partition.region(region))
        for k, region in enumerate(range(number * given.width, number * given.width + count))
    ]


def _joined(arrays: Sequence[Any]) -> Any:
    """Return arrays as one on the device of the first."""
    return arrays[0] if len(arrays) == 1 else np.concatenate([on_device_of(arrays[0], each) for each in arrays])


def frontier(local_and_frontier: tuple[Any, Any]) -> Any:
    """Return what goes up of a chunk, without what only many chunks need."""
    _, found = local_and_frontier
    return found._replace(places=None) if isinstance(found, Fragments) else found


def wait_in_order(_frontier: Any, _before: None) -> None:
    """Do nothing: a placeholder task that makes Dask start chunks in order."""


def in_turn(function: Callable[..., Any], values: list[Any], _turn: None) -> Any:
    """Call a step whose values were made in order."""
    return function(values)


def cut_slice(merged: list[Any], _frontier: Any, k: int) -> Any:
    """Return a chunk's slice of what was merged."""
    return merged[k]


class PointResults(NamedTuple):
    """Results for points of a chunk."""

    ids: OwnIds
    results: dict[str, Any]


def finish(plan: Plan, local_and_frontier: tuple[Any, Any], mine: Any, *ends: int) -> Any:
    """Return the results for a chunk's own points, or the piece of those with ids between two ends."""
    local, _ = local_and_frontier
    if not ends:
        return plan.finish(local, mine)
    ids, rows = local.ids.within(*ends)
    return PointResults(ids, _narrow(plan.finish(plan.rows_in(local, rows), mine)))


def before_merge(plan: Plan, measures: Any) -> PointResults:
    """Return those of a chunk's results that do not wait for the merge."""
    assert plan.before_merge is not None
    ids, results = plan.before_merge(measures)
    return PointResults(OwnIds.of(ids), results)


def part_of(known: PointResults, *ends: int) -> Any:
    """Return the results that are known of a chunk's own points, or the piece of those with ids between two ends."""
    if not ends:
        return known.results
    ids, rows = known.ids.within(*ends)
    return PointResults(ids, _narrow({name: values[rows] for name, values in known.results.items()}))


def _narrow(results: dict[str, Any]) -> dict[str, Any]:
    """Return results with whole numbers in 32 bits where these serve: pieces wait, and go from worker to worker."""
    return {
        name: values.astype(np.int32) if values.dtype == np.int64 and _serve_32_bits(values) else values
        for name, values in results.items()
    }


def _serve_32_bits(values: Any) -> bool:
    """Return whether int32 holds all values."""
    lowest, highest = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    return np.iinfo(np.int32).min <= lowest and highest <= np.iinfo(np.int32).max


def pieces(piece_of: Callable[..., PointResults], *values: Any) -> list[PointResults]:
    """Return a chunk's piece for each range of ids, of which the last of the values says where they begin."""
    return [piece_of(*values[:-1], *ends) for ends in itertools.pairwise(values[-1].tolist())]


def put_back(pieces: list[PointResults], starts: Ids, number: int) -> dict[str, Any]:
    """Put the results for a range of ids in order; every point is in exactly one piece."""
    start, size = int(starts[number]), int(starts[number + 1] - starts[number])
    count = sum(piece.ids.size for piece in pieces)
    if count != size:
        raise RuntimeError(f"{count} results for the {size} points from {start} on: please report this")
    given = pieces[0].results
    like = next(iter(given.values()))
    device = device_of(like)
    dtypes = {name: np.dtype(np.int64) if values.dtype == np.int32 else values.dtype for name, values in given.items()}
    results = {name: device.empty(size, dtype) for name, dtype in dtypes.items()}
    for piece in pieces:
        ids = piece.ids.on(device)
        for name, target in results.items():
            values = device.cast(on_device_of(like, piece.results[name]), target.dtype)
            device.run(put, len(ids), values, ids, start, target)
    return results
