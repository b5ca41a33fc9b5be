"""Points go from the input's chunks to those of a plan, and results back: one exchange, and three ways for it.

A `Layout` says which rows go where: runs of the input's chunks, and the parts of a partition.
`exchange_for` chooses: nothing moves where the input's chunks are the plan's; where pairs of senders and receivers are
few, pieces go one by one; else all senders give to all receivers, by dask's own exchange.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.data.lazy import meta_of, workers_client
from daskclust.core.device.arrays import is_cuda
from daskclust.core.merge.sets import Ids
from daskclust.core.run import steps as work
from daskclust.core.run.graph import ChunkSteps, Lists, keys_of
from daskclust.core.space.partition import Division, Partition

# Chunks, or runs, that have pieces of their own, of 98 us each. Chunks that are taken together are made at once, and
# all groups of them before the first chunk is worked on, so that they fill memory; so do results of many runs.
_APART = 512
_FEW = 8  # pairs for each sender or receiver that go one by one; with 30 of both the exchange is faster

PieceOf = Callable[..., Any]
"""``piece_of(*values, start, end)`` is the `PointResults` of own points with ids from `start` to `end - 1`;
``piece_of(*values)`` are the results for all of them."""


class Layout(NamedTuple):
    """Which rows go where."""

    lengths: tuple[int, ...]  # rows of each chunk of the input
    runs: list[tuple[int, int]]  # consecutive chunks of the input that are taken together: first, and behind the last
    starts: Ids  # (runs + 1,) the first id of each run, and one behind the last
    partition: Partition | None  # what divides the points of runs among chunks; None where runs are the chunks
    among: Sequence[Sequence[int]]  # for each run the chunks that have points of it, ascending
    groups: int  # into how many groups chunks, or runs, are taken together for an exchange, at least

    @classmethod
    def of(cls, lengths: tuple[int, ...], division: Division) -> Layout:
        """Return the layout of a division of chunks with so many rows each."""
        partition, rows, reached, groups = division
        runs = runs_of(lengths, rows if any(lengths) else -1)  # dask joins no chunks of nothing
        few = 2 if partition is None else 8  # to join so many is a step for all, for which workers import dask.array
        if few * len(runs) > len(lengths):
            runs = runs_of(lengths, -1)
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)[[0, *(end for _, end in runs)]]
        among = [] if partition is None else reached_by(runs, reached, len(partition))
        return cls(lengths, runs, starts, partition, among, groups)

    def back(self) -> tuple[list[list[int]], list[list[tuple[int, int]]]]:
        """Return for each chunk of the partition the runs that it has points of, and where these begin and end."""
        assert self.partition is not None
        runs: list[list[int]] = [[] for _ in range(len(self.partition))]
        for run, chunks in enumerate(self.among):
            for chunk in chunks:
                runs[chunk].append(run)
        ends = list(itertools.pairwise(self.starts.tolist()))
        return runs, [[ends[run] for run in each] for each in runs]

    def ranges(self, runs: int = 0) -> Ids:
        """Return where ranges of ids begin, and one behind the last: each has so many runs, by default many."""
        return self.starts[[*range(0, len(self.runs), runs or self.together(len(self.runs))), -1]]

    def together(self, count: int) -> int:
        """Return how many of so many chunks, or runs, are taken together: few pieces, that are not small."""
        return -(-count // max(self.groups, math.isqrt(count)))

    def exchanged_together(self, count: int) -> int:
        """Return the same where pieces have points, or results of points."""
        return 1 if count <= _APART else self.together(count)


def exchange_for(layout: Layout, columns: dict[str, Any], positions: str, group: str) -> AsGiven:
    """Return how points are exchanged; `positions` and `group` name the columns that divide them (see `Plan`)."""
    given = work.SplitSpec(list(columns), layout.starts, layout.partition, positions, group)
    like = meta_of(next(iter(columns.values())))
    if layout.partition is None:
        return AsGiven(layout, given)
    if is_cuda(like) or is_few(layout.among, len(layout.partition)):
        return PieceByPiece(layout, given._replace(among=layout.among))
    return AllToAll(layout, given._replace(width=layout.exchanged_together(len(layout.partition))))


class AsGiven:
    """Runs of the input's chunks are the chunks of the plan.

    `starts` is where the ids of each part of the results, of a run or of several, begin, and one behind the last.
    """

    def __init__(self, layout: Layout, given: work.SplitSpec) -> None:
        self.layout, self.given, self.starts = layout, given, layout.starts

    def to_chunks(self, steps: ChunkSteps, runs: list[Any]) -> Any:
        """Return the chunks of the plan, of the columns of runs."""
        return steps.of_rows("chunk", work.as_chunk, runs, steps.shared("given", self.given))

    def back(self, steps: ChunkSteps, step: str, piece_of: PieceOf, *values: Any) -> Any:
        """Return for each part of the results what it is: arrays by name, in the order of the input."""
        return steps.each(step, piece_of, *values)


class PieceByPiece(AsGiven):
    """Each pair of a run and a chunk that has points of it is a piece of its own."""

    def to_chunks(self, steps: ChunkSteps, runs: list[Any]) -> Any:
        """Return the chunks of the plan, each joined from the parts that runs have of it."""
        splits = steps.of_rows("split", work.split, runs, steps.shared("given", self.given))
        targets, count = self.layout.among, len(self.layout.partition or ())
        return steps.each("chunk", work.join, pieces_of(steps, "part", splits, targets, count))

    def back(self, steps: ChunkSteps, step: str, piece_of: PieceOf, *values: Any) -> Any:
        """Return the results for each run, put together from the pieces of chunks.

        Pieces are made one by one, when they are needed: all results of a chunk at once take more memory than what
        waits for them.
        """
        runs, ends = self.layout.back()
        keys = list(zip(*map(keys_of, values), strict=True))

        def give(k: int, p: int) -> tuple[Any, ...]:
            return piece_of, *keys[k], *ends[k][p]

        return _put_back(steps, one_by_one(steps, step, give, runs, len(self.layout.runs), *values), self.starts)


class AllToAll(AsGiven):
    """Every run has something for every chunk: several chunks, or runs, that follow each other share their pieces."""

    def __init__(self, layout: Layout, given: work.SplitSpec) -> None:
        super().__init__(layout, given)
        self.starts = layout.ranges(layout.exchanged_together(len(layout.runs)))

    def to_chunks(self, steps: ChunkSteps, runs: list[Any]) -> Any:
        """Return the chunks of the plan, from the shares that all runs have for `width` of them."""
        shared, width, count = steps.shared("given", self.given), self.given.width, len(self.layout.partition or ())
        groups = [min(width, count - a) for a in range(0, count, width)]
        shares = all_to_all(steps.of_rows("split", work.share_out, runs, shared, row=len(groups)))
        return steps.apart("part", steps.each("chunk", work.chunks_of, shares, shared, numbered=True, column=groups))

    def back(self, steps: ChunkSteps, step: str, piece_of: PieceOf, *values: Any) -> Any:
        """Return the results for each range of several runs."""
        function, ranges = partial(work.pieces, piece_of), steps.shared("ranges", self.starts)
        rows = steps.each(step, function, *values, ranges, row=len(self.starts) - 1)
        return _put_back(steps, all_to_all(rows), self.starts)


def _put_back(steps: ChunkSteps, pieces: Any, starts: Any) -> Any:
    """Return the results for each part, put together from pieces."""
    return steps.each("gather", work.put_back, pieces, steps.shared("starts", starts), numbered=True)


def runs_of(lengths: Sequence[int], rows: int) -> list[tuple[int, int]]:
    """Return runs of chunks, first and behind the last, with up to `rows` points where there are several."""
    runs, begin, total = [], 0, 0
    for chunk, length in enumerate(lengths):
        if chunk > begin and total + length > rows:
            runs.append((begin, chunk))
            begin, total = chunk, 0
        total += length
    return [*runs, (begin, len(lengths))]


def reached_by(runs: list[tuple[int, int]], reached: list[Any] | None, count: int) -> list[Sequence[int]]:
    """Return for each run of chunks the chunks of the partition that it has points for; none of these is left out."""
    if reached is None:
        return [range(count) for _ in runs]
    among = [set(np.concatenate(reached[a:b]).tolist()) for a, b in runs]
    among[0] |= set(range(count)).difference(*among)
    return [range(count) if len(numbers) == count else sorted(numbers) for numbers in among]


# ----------------------------------------------------------------------------------------------------------- transports
def is_few(targets: Sequence[Sequence[int]], count: int) -> bool:
    """Return whether the pieces that some senders have for `count` receivers go one by one."""
    return sum(map(len, targets)) <= _FEW * (len(targets) + count)


Give = Callable[[int, int], tuple[Any, ...]]
"""``give(k, p)`` is the step, a function with its arguments, that gives the piece `p` of sender `k`."""


def one_by_one(
    steps: ChunkSteps, step: str, give: Give, targets: Sequence[Sequence[int]], count: int, *sources: Any
) -> Any:
    """Return for each of `count` receivers the list of its pieces, in the order of their senders.

    `targets` has for each sender the receivers of its pieces, ascending; what `give` needs is in `sources`.
    """
    name, pieces = steps.name(step), steps.name(f"{step}-piece")
    receivers: list[list[Any]] = [[] for _ in range(count)]
    tasks = []
    for sender, places in enumerate(targets):
        for p, place in enumerate(places):
            tasks.append(((pieces, sender, p), give(sender, p)))
            receivers[place].append((pieces, sender, p))
    return steps.from_tasks(name, [(list, each) for each in receivers], *sources, others=tasks)


def pieces_of(steps: ChunkSteps, step: str, lists: Any, targets: Sequence[Sequence[int]], count: int) -> Any:
    """Return the same as `one_by_one` of pieces that are in lists, one for each sender."""
    keys = keys_of(lists)
    return one_by_one(steps, step, lambda k, p: (_piece, keys[k], p), targets, count, lists)


def all_to_all(rows: Any) -> Lists:
    """Return for each of R receivers the list of its pieces, of rows (m, R) of pieces; they are as many for each.

    On workers this is dask's P2P exchange, with steps in proportion to m and R and pieces on disk; arrays of a process
    have them in its memory.
    """
    senders, receivers = rows.shape
    method = "tasks" if workers_client() is None else "p2p"
    return Lists(rows.rechunk(((senders,), (1,) * receivers), method=method))


def _piece(pieces: list[Any], number: int) -> Any:
    return pieces[number]
