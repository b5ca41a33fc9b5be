"""Which rows of a data set the chunks of a plan hold: runs of the input's chunks, and the parts of a partition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.merge.sets import Ids
from daskclust.core.space.partition import Division, Partition

GROUPS = 64  # into which chunks are taken together for an exchange, or the root of their number where that is more


class Layout(NamedTuple):
    """Which rows go where."""

    lengths: tuple[int, ...]  # rows of each chunk of the input
    runs: list[tuple[int, int]]  # consecutive chunks of the input that are taken together: first, and behind the last
    starts: Ids  # (runs + 1,) the first id of each run, and one behind the last
    partition: Partition | None  # what divides the points of runs among chunks; None where runs are the chunks
    among: Sequence[Sequence[int]]  # for each run the chunks that have points of it, ascending
    together: int  # how many chunks are taken together for an exchange

    @classmethod
    def of(cls, lengths: tuple[int, ...], division: Division) -> Layout:
        """Return the layout of a division of chunks with so many rows each."""
        partition, rows, reached, most = division
        runs = runs_of(lengths, rows if any(lengths) else -1)  # dask joins no chunks of nothing
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)[[0, *(end for _, end in runs)]]
        if partition is None:
            return cls(lengths, runs, starts, None, [], 1)
        together = min(most, together_in(len(partition)))
        return cls(lengths, runs, starts, partition, reached_by(runs, reached, len(partition)), together)

    def run_lengths(self) -> tuple[int, ...]:
        """Return the rows of each run."""
        return tuple(np.diff(self.starts).tolist())

    def back(self) -> tuple[list[list[int]], list[list[tuple[int, int]]]]:
        """Return for each chunk of the partition the runs that it has points of, and where these begin and end."""
        assert self.partition is not None
        runs: list[list[int]] = [[] for _ in range(len(self.partition))]
        for run, chunks in enumerate(self.among):
            for chunk in chunks:
                runs[chunk].append(run)
        ends = list(itertools.pairwise(self.starts.tolist()))
        return runs, [[ends[run] for run in each] for each in runs]

    def ranges(self) -> Ids:
        """Return where ranges of ids begin, and one behind the last: each has some runs."""
        return self.starts[[*range(0, len(self.runs), together_in(len(self.runs))), -1]]


def together_in(count: int) -> int:
    """Return how many of so many chunks, or runs, are taken together for an exchange."""
    return -(-count // max(GROUPS, math.isqrt(count)))


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
