"""Which rows of a data set the chunks of a plan hold: runs of the input's chunks, and the parts of a partition."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.merge.sets import Ids
from daskclust.core.space.partition import Division, Partition


class Ranges(NamedTuple):
    """Ranges of ids."""

    starts: Ids  # (m + 1,) first id of each, and one behind the last
    among: Sequence[Sequence[int]]  # for each range the chunks of the plan that have points of it, ascending
    reached: Sequence[Sequence[int]]  # for each chunk of the plan the ranges that it has points of, ascending

    def together(self, count: int) -> Ranges:
        """Return ranges that each are `count` of these."""
        last = len(self.among)
        begins = range(0, last, count)
        among = [_union(self.among[a : a + count]) for a in begins]
        few = range(len(begins))
        reached = [few if numbers == range(last) else sorted({n // count for n in numbers}) for numbers in self.reached]
        return Ranges(self.starts[[*begins, last]], among, reached)


class Layout(NamedTuple):
    """Which rows go where."""

    lengths: tuple[int, ...]  # rows of each chunk of the input
    runs: list[tuple[int, int]]  # consecutive chunks of the input that are taken together: first, and behind the last
    ranges: Ranges  # the runs as ids
    partition: Partition | None  # what divides the points of runs among chunks; None where runs are the chunks

    @classmethod
    def of(cls, lengths: tuple[int, ...], division: Division) -> Layout:
        """Return the layout of a division of chunks with so many rows each."""
        partition, rows, reached = division
        runs = runs_of(lengths, rows)
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)[[0, *(end for _, end in runs)]]
        if partition is None:
            own = [[run] for run in range(len(runs))]
            return cls(lengths, runs, Ranges(starts, own, own), None)
        among = reached_by(runs, reached, len(partition))
        return cls(lengths, runs, Ranges(starts, among, turned_round(among, len(partition))), partition)

    def ids_of_runs(self) -> list[list[tuple[int, int]]]:
        """Return for each chunk of the partition where the runs that it has points of begin and end, in ids."""
        ends = list(itertools.pairwise(self.ranges.starts.tolist()))
        return [[ends[run] for run in runs] for runs in self.ranges.reached]

    def within_runs(self) -> list[tuple[int, int, int]]:
        """Return for each chunk of the input its run, and from where to where its rows are there."""
        places = []
        for run, (a, b) in enumerate(self.runs):
            ends = [0, *itertools.accumulate(self.lengths[a:b])]
            places += [(run, *pair) for pair in itertools.pairwise(ends)]
        return places


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


def turned_round(among: Sequence[Sequence[int]], count: int) -> Sequence[Sequence[int]]:
    """Return for each of `count` chunks of a partition the runs that have it among theirs, ascending."""
    if all(len(numbers) == count for numbers in among):
        return [range(len(among))] * count
    runs: list[list[int]] = [[] for _ in range(count)]
    for run, numbers in enumerate(among):
        for number in numbers:
            runs[number].append(run)
    return runs


def _union(numbers: Sequence[Sequence[int]]) -> Sequence[int]:
    """Return the numbers in any of several, ascending; of ranges, which begin with 0, the longest."""
    if all(isinstance(each, range) for each in numbers):
        return max(numbers, key=len)
    return sorted(set().union(*numbers))
