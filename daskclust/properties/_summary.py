"""Summaries of clusters in some chunks of points: how several become one, and the rows that follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.merge.labels import NOISE

Array = npt.NDArray[Any]
Int = npt.NDArray[np.int64]
Columns = Mapping[str, Array]  # of m clusters: arrays (m,), or (axes, m)

# More rows than this for each point means that the labels are no cluster numbers, but some other ids.
MOST_ROWS_PER_POINT = 100


@dataclass(frozen=True, slots=True)
class Summary:
    """What is known of the clusters that have points in some chunks."""

    ids: Int  # (m,): numbers of the clusters, ascending
    columns: Columns
    noise_size: int = 0
    noise_weight: float = 0.0


@dataclass(frozen=True)
class TableSteps:
    """What makes one kind of table: three functions. Points in memory are one chunk."""

    summarise: Callable[..., Summary]  # arrays of one chunk by role, number of its first point -> summary
    merge: Callable[[Groups, Columns], Columns]  # columns of several summaries, end to end -> those of each cluster
    finish: Callable[[Columns], Columns]  # -> columns of the table
    zero: tuple[str, ...] = ()  # columns that are 0 in rows without points; others are -1 or NaN
    noise: str = "noise_weight"  # name of the sum of the weights of noise
    # A second pass over the chunks: arrays, first point and what is known of the chunk's clusters -> summary; merge.
    again: tuple[Callable[..., Summary], Callable[[Groups, Columns], Columns]] | None = None
    one_chunk: Callable[..., Columns] | None = None  # a faster way for arrays in memory, on a device
    # A faster way for a chunk: arrays, first point, the first cluster that no other chunk has and the one behind the
    # last -> rows of these, summary of the others.
    own_rows: Callable[..., tuple[Columns, Summary]] | None = None


def merged(parts: Sequence[Summary], merge: Callable[[Groups, Columns], Columns]) -> Summary:
    """Return the summary of all chunks of which some summaries are, in the order of the chunks."""
    if len(parts) == 1:
        return parts[0]
    every = joined(parts)
    groups = grouped(every.ids)
    return Summary(groups.ids, merge(groups, every.columns), every.noise_size, every.noise_weight)


def joined(parts: Sequence[Summary]) -> Summary:
    """Return summaries end to end."""
    columns = {name: np.concatenate([part.columns[name] for part in parts], axis=-1) for name in parts[0].columns}
    ids = np.concatenate([part.ids for part in parts])
    weight = float(np.sum([part.noise_weight for part in parts]))
    return Summary(ids, columns, sum(part.noise_size for part in parts), weight)


def finished(summary: Summary, rows: int | None, n_points: int, steps: TableSteps) -> dict[str, Array]:
    """Return the columns of the table, and the two numbers of noise."""
    rows = row_count(int(summary.ids.max(initial=-1)), n_points, rows)
    return in_rows([(summary.ids, steps.finish(summary.columns))], rows, steps.zero) | noise_of(summary, steps)


def in_rows(parts: Iterable[tuple[Int, Columns]], rows: int, zero: Sequence[str]) -> dict[str, Array]:
    """Return columns of so many rows, of parts that have some of them: the last one's, where several have a row.

    Rows without points are 0 in columns named in `zero` and in unsigned ones, -1 in other integers, NaN in floats.
    Columns of a part that has all rows are not copied.
    """
    columns: dict[str, Array] = {}
    for ids, many in parts:
        is_run = len(ids) > 0 and ids[-1] - ids[0] + 1 == len(ids)
        places = slice(ids[0], ids[-1] + 1) if is_run else ids  # copied as a whole
        for name, values in many.items():
            if len(ids) == rows:
                columns[name] = values
                continue
            if name not in columns:
                empty = 0 if name in zero or values.dtype.kind == "u" else NOISE if values.dtype.kind == "i" else np.nan
                columns[name] = np.full(rows, empty, values.dtype)
            elif not columns[name].flags.writeable:  # it came from another worker
                columns[name] = columns[name].copy()
            columns[name][places] = values
    return columns


def noise_of(summary: Summary, steps: TableSteps) -> dict[str, Array]:
    """Return the two numbers of noise, as the table has them."""
    return {"noise_size": np.asarray(summary.noise_size), steps.noise: np.asarray(summary.noise_weight)}


def row_count(largest: int, n_points: int, n_clusters: int | None) -> int:
    """Return the number of rows of the table."""
    rows = largest + 1 if n_clusters is None else int(n_clusters)
    if largest >= rows:
        raise ValueError(f"labels go up to {largest}, but n_clusters is {rows}; give at least {largest + 1}")
    if n_clusters is None and rows > max(1_000_000, MOST_ROWS_PER_POINT * n_points):
        raise ValueError(
            f"labels go up to {largest} for {n_points} points; number clusters from 0 first, "
            "with np.unique(labels, return_inverse=True)"
        )
    return rows


class Groups(NamedTuple):
    """Which of n rows are of the same cluster."""

    ids: Int  # (m,): the clusters, ascending
    group: Int  # (n,): the place of each row's cluster among them
    first: Int  # (m,): the first row of each
    rest: Int  # (n - m,): the other rows

    def reduced(self, operation: np.ufunc, values: Array) -> Array:
        """Return an operation's result for the values (..., n) of each cluster, in the order of rows."""
        if values.ndim > 1:
            return np.array([self.reduced(operation, row) for row in values]).reshape(len(values), len(self.ids))
        result: Array = values[self.first]
        operation.at(result, self.group[self.rest], values[self.rest])
        return result

    def lowest(self, key: Array) -> Int:
        """Return the row of each cluster with the smallest key, the first of several."""
        rows = np.flatnonzero(key == self.reduced(np.minimum, key)[self.group])
        result = self.first.copy()  # kept where the key is NaN
        result[self.group[rows[::-1]]] = rows[::-1]  # the last that is written stays
        return result


def grouped(labels: Int) -> Groups:
    """Return which rows have the same label."""
    ids, group = _distinct(labels)
    rows, first = np.arange(len(labels)), np.empty(len(ids), np.int64)
    first[group[::-1]] = rows[::-1]  # the last that is written stays
    return Groups(ids, group, first, np.flatnonzero(first[group] != rows))


def numbered(labels: Int) -> tuple[Int, Int]:
    """Return the clusters of a chunk, and for each point the place of its cluster among them, -1 for noise."""
    inside = labels > NOISE
    if inside.all():
        return _distinct(labels)
    if not inside.any():
        return labels[:0], np.full(len(labels), NOISE)
    noise = int(labels.view(np.uint64).min()) - 1  # negative ones are the largest there
    ids, place = _distinct(np.maximum(labels, noise))
    return ids[1:], place - 1


def _distinct(labels: Int) -> tuple[Int, Int]:
    """Return the distinct labels, ascending, and the place of each label among them."""
    first, last = (int(labels.min()), int(labels.max())) if len(labels) else (0, 0)
    if last - first > 4 * len(labels) + 1024:
        return np.unique(labels, return_inverse=True)
    # Cluster numbers are dense, so a table of them is some four times as fast as pandas.factorize or numpy.unique.
    is_there = np.zeros(last - first + 1, dtype=bool)
    offset = labels - first if first else labels
    is_there[offset] = True
    return np.flatnonzero(is_there) + first, (np.cumsum(is_there) - 1)[offset]
