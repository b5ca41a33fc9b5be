"""Chunks of a data set: what a worker gets, and which point goes to which chunk.

Chunks are groups of layers (or of apriori labels, or of events: any integer that neighbours share), blocks of space,
or both. A block is cut out by planes across the axes; its chunk holds the points inside, which it *owns*, and a halo:
those within a given distance of it, around periodic axes too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.arrays import device_of
from daskclust.core.cells import wrap_positions


class Chunk(NamedTuple):
    """Points of one chunk in the order of the data set."""

    columns: dict[str, Any]  # arrays with a row for each point: X, and what else the system needs
    ids: Any = None  # (n,) int64: where each point stands in the data set; None where this is all of it
    owned: Any = None  # (n,) bool: False for halo points; None where there is no halo
    region: tuple[tuple[float, float], ...] = ()  # extent of the block along each cut axis, infinite where it is open
    as_given: bool = False  # the user's own chunk, said to hold all points of its groups


class _Level(NamedTuple):
    """The planes across one axis: a row for each block that the axes before it make."""

    planes: NDArray[np.float64]  # ascending, rows filled up with infinity
    counts: NDArray[np.int64]  # blocks that each row makes
    first: NDArray[np.int64]  # the number of the first of them


@dataclass(frozen=True)
class Partition:
    """A division of points into ``len(self)`` chunks.

    Parameters
    ----------
    groups : int
        Chunks by group: a point goes to chunk ``group % groups``. No pass over the data is needed, and points of one
        group stay together.
    cuts : tuple
        Planes across each axis in turn: ascending coordinates, or a list of these, one for each block that the axes
        before it make. An axis without planes is not divided.
    period : tuple of float
        Period of each axis, 0 where it is open.
    halo : float
        How far points outside a block may be to be part of its chunk.
    """

    groups: int = 1
    cuts: tuple[Any, ...] = ()
    period: tuple[float, ...] = ()
    halo: float = 0.0
    n_blocks: int = field(init=False)
    _levels: tuple[_Level, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        levels, count = [], 1
        for axis, cuts in enumerate(self.cuts):
            rows = list(cuts) if len(cuts) and np.ndim(cuts[0]) else [cuts] * count
            if len(rows) != count:
                raise ValueError(f"cuts[{axis}] has planes for {len(rows)} blocks; the axes before it make {count}")
            counts = np.array([len(row) + 1 for row in rows])
            planes = np.full((count, counts.max() - 1), np.inf)
            for row, values in zip(planes, rows, strict=True):
                row[: len(values)] = values
            levels.append(_Level(planes, counts, np.cumsum(counts) - counts))
            count = int(counts.sum())
        object.__setattr__(self, "_levels", tuple(levels))
        object.__setattr__(self, "n_blocks", count)

    def __len__(self) -> int:
        return self.groups * self.n_blocks

    def region(self, chunk: int) -> tuple[tuple[float, float], ...]:
        """Return the extent of a chunk's block along each axis: [low, high), infinite where no block lies beyond."""
        block = chunk % self.n_blocks
        extents: list[tuple[float, float]] = []
        for axis in reversed(range(len(self.cuts))):
            planes, counts, first = self._levels[axis]
            row = int(np.searchsorted(first, block, side="right")) - 1
            ends = (0.0, self.period[axis]) if self.period[axis] and counts[row] > 1 else (-np.inf, np.inf)
            edges = [ends[0], *planes[row, : counts[row] - 1], ends[1]]
            extents.append((float(edges[block - first[row]]), float(edges[block - first[row] + 1])))
            block = row
        return tuple(reversed(extents))

    def split(self, columns: dict[str, Any], first_id: int, positions: str = "X", group: Any = None) -> list[Chunk]:
        """Return the part of every chunk in the given points, whose ids count up from `first_id`.

        `positions` names the column (n, d) or (n,) that the planes cut.
        """
        X = columns[positions]
        X = X if X.ndim == 2 else X[:, None]
        device, n = device_of(X), len(X)
        rows = np.arange(n)
        block = np.zeros(n, np.int64)
        owned = np.ones(n, bool)
        if self.cuts:
            at = device.to_host(X)[:, : len(self.cuts)]
            # a coordinate that is no number goes to any one chunk, which says so
            at = wrap_positions(np.where(np.isfinite(at), at, 0), self.period[: len(self.cuts)])
            for axis in range(len(self.cuts)):
                rows, block, owned = self._spread(axis, at, rows, block, owned)
        if self.groups > 1:
            block = block + (device.to_host(group)[rows].astype(np.int64) % self.groups) * self.n_blocks
        order = np.argsort(block * n + rows, kind="stable" if len(rows) == n else None)
        ends = np.searchsorted(block[order], np.arange(len(self) + 1))
        chunks = []
        for number in range(len(self)):
            mine = order[ends[number] : ends[number + 1]]
            part = {name: device.take(values, rows[mine]) for name, values in columns.items()}
            halo = owned[mine] if self.cuts else None
            chunks.append(Chunk(part, first_id + rows[mine], halo, self.region(number)))
        return chunks

    def _spread(self, axis: int, positions: Any, rows: Any, block: Any, owned: Any) -> tuple[Any, Any, Any]:
        """Give each (point, block) pair its block along `axis`, and one for each other that has the point in its halo.

        The pairs for halos stand behind all others.
        """
        planes, counts, first = self._levels[axis]
        if planes.shape[1] == 0:
            return rows, block, owned
        x = positions[rows, axis].astype(np.float64)
        reach = self.halo + 4 * np.finfo(x.dtype).eps * np.abs(x)
        home, low, high = (self._block_at(axis, at, block) for at in (x, x - reach, x + reach))
        near = np.flatnonzero(low < high)
        blocks = counts[block[near]]
        times = np.minimum(high[near] - low[near] + 1, blocks)  # around a short period a block may be met twice
        offset = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        here = (np.repeat(low[near], times) + offset) % np.repeat(blocks, times)
        near = np.repeat(near, times)
        other = here != home[near]
        near, here = near[other], here[other]
        return (
            np.concatenate([rows, rows[near]]),
            np.concatenate([first[block] + home, first[block[near]] + here]),
            np.concatenate([owned, np.zeros(len(near), np.bool_)]),
        )

    def _block_at(self, axis: int, x: NDArray[np.float64], block: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the block at `x` within those of its row; it goes on counting beyond a period."""
        planes, counts, _ = self._levels[axis]
        cycle = self.period[axis]
        turns = np.floor(x / cycle).astype(np.int64) if cycle else np.int64(0)
        x = x - turns * cycle if cycle else x
        at = np.zeros(len(x), np.int64)
        if len(planes) == 1:
            at = np.searchsorted(planes[0], x, side="right")
        else:
            for plane in planes.T:
                at += x >= plane[block]
        return at + turns * counts[block]


def balanced_cuts(sample: NDArray[Any], blocks: tuple[int, ...], period: tuple[float, ...]) -> tuple[Any, ...]:
    """Return planes that divide the sampled points (m, d) into blocks with as many points each.

    The first axis is cut into ``blocks[0]`` parts, each of them across the second axis into ``blocks[1]``, and so on;
    into fewer where points are equal.
    """
    parts = [wrap_positions(sample, period).astype(np.float64)]
    cuts: list[Any] = []
    for axis, count in enumerate(blocks):
        shares = np.arange(1, count) / count
        planes = [np.unique(np.quantile(x[:, axis], shares)) if len(x) and count > 1 else np.empty(0) for x in parts]
        cuts.append(planes[0] if axis == 0 else planes)
        parts = [
            x[np.searchsorted(cut, x[:, axis], side="right") == k]
            for x, cut in zip(parts, planes, strict=True)
            for k in range(len(cut) + 1)
        ]
    return tuple(cuts)
