"""Chunks of a data set: what a worker gets, and which point goes to which chunk.

Chunks are groups of layers (or of apriori labels, or of events: any integer that neighbours share), blocks of space,
or both. A block is cut out by planes across the axes; its chunk holds the points inside, which it *owns*, and a halo:
those within a given distance of it, around periodic axes too.
"""

from __future__ import annotations

import math
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


@dataclass(frozen=True)
class Partition:
    """A division of points into ``len(self)`` chunks.

    Parameters
    ----------
    groups : int
        Chunks by group: a point goes to chunk ``group % groups``. No pass over the data is needed, and points of one
        group stay together.
    cuts : tuple of arrays
        Ascending coordinates of the planes across each axis; an axis without cuts is not divided.
    period : tuple of float
        Period of each axis, 0 where it is open.
    halo : float
        How far points outside a block may be to be part of its chunk.
    """

    groups: int = 1
    cuts: tuple[NDArray[np.float64], ...] = ()
    period: tuple[float, ...] = ()
    halo: float = 0.0
    blocks: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", tuple(len(cuts) + 1 for cuts in self.cuts))

    def __len__(self) -> int:
        return self.groups * math.prod(self.blocks)

    def region(self, chunk: int) -> tuple[tuple[float, float], ...]:
        """Return the extent of a chunk's block along each axis: [low, high), infinite where no block lies beyond."""
        extents = []
        for axis, at in enumerate(
            np.unravel_index(chunk % math.prod(self.blocks), self.blocks or (1,))[: len(self.cuts)]
        ):
            ends = (0.0, self.period[axis]) if self.period[axis] and self.blocks[axis] > 1 else (-np.inf, np.inf)
            edges = [ends[0], *self.cuts[axis], ends[1]]
            extents.append((float(edges[at]), float(edges[at + 1])))
        return tuple(extents)

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
            block = block + (device.to_host(group)[rows].astype(np.int64) % self.groups) * math.prod(self.blocks)
        order = np.argsort(block, kind="stable")
        ends = np.searchsorted(block[order], np.arange(len(self) + 1))
        chunks = []
        for number in range(len(self)):
            mine = order[ends[number] : ends[number + 1]]
            part = {name: device.take(values, rows[mine]) for name, values in columns.items()}
            halo = owned[mine] if self.cuts else None
            chunks.append(Chunk(part, first_id + rows[mine], halo, self.region(number)))
        return chunks

    def _spread(self, axis: int, positions: Any, rows: Any, block: Any, owned: Any) -> tuple[Any, Any, Any]:
        """Give each (point, block) pair one for every block along `axis` that holds the point or has it in its halo."""
        blocks = self.blocks[axis]
        if blocks == 1:
            return rows, block, owned
        x = positions[rows, axis].astype(np.float64)
        reach = self.halo + 4 * np.finfo(x.dtype).eps * np.abs(x)
        home, first, last = (self._block_at(axis, at) for at in (x, x - reach, x + reach))
        times = np.minimum(last - first + 1, blocks)  # around a short period a block may be met twice
        offset = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        here = (np.repeat(first, times) + offset) % blocks
        mine = here == np.repeat(home, times)
        return np.repeat(rows, times), np.repeat(block, times) * blocks + here, np.repeat(owned, times) & mine

    def _block_at(self, axis: int, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of the block at `x`; it goes on counting from one period to the next."""
        cycle = self.period[axis]
        turns = np.floor(x / cycle).astype(np.int64) if cycle else np.int64(0)
        return np.searchsorted(self.cuts[axis], x - turns * cycle, side="right") + turns * self.blocks[axis]


def balanced_cuts(
    sample: NDArray[Any], blocks: tuple[int, ...], period: tuple[float, ...]
) -> tuple[NDArray[np.float64], ...]:
    """Return planes across each axis that divide the sampled points (m, d) into as many parts as `blocks` says."""
    cuts = []
    for axis, count in enumerate(blocks):
        x = wrap_positions(sample[:, axis : axis + 1], period[axis : axis + 1])[:, 0].astype(np.float64)
        shares = np.arange(1, count) / count
        cuts.append(np.unique(np.quantile(x, shares)) if len(x) and count > 1 else np.empty(0))
    return tuple(cuts)
