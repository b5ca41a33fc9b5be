"""Chunks of a data set: what a worker gets, and which point goes to which chunk.

Chunks are groups of layers (or of apriori labels, or of events: any integer that neighbours share), blocks of space,
or both. A block is cut out by planes across the axes; its chunk holds the points inside, which it *owns*, and a halo:
those within a given distance of it, around periodic axes too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.arrays import HOST, Cuda, Host, device_of
from daskclust.core.cells import wrap_positions
from daskclust.core.homes import MARGIN, Level, find_home


class Chunk(NamedTuple):
    """Points of one chunk in the order of the data set.

    Attributes
    ----------
    columns : dict of arrays
        Arrays with a row for each point: ``X``, and what else the system needs.
    ids : array of int64, shape (n,), or None
        Where each point stands in the data set, on the device of the columns; None where this is all of it.
    owned : array of bool, shape (n,), or None
        False for points of the halo; None where there is none.
    region : tuple of (float, float)
        Extent of the block along each cut axis, infinite where it is open.
    as_given : bool
        Whether it is the user's own chunk, said to hold all points of its groups.
    """

    columns: dict[str, Any]
    ids: Any = None
    owned: Any = None
    region: tuple[tuple[float, float], ...] = ()
    as_given: bool = False


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
    _levels: tuple[Level, ...] = field(init=False, repr=False, compare=False)

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
            levels.append(Level(planes, counts, np.cumsum(counts) - counts))
            count = int(counts.sum())
        object.__setattr__(self, "_levels", tuple(levels))
        object.__setattr__(self, "n_blocks", count)

    def __len__(self) -> int:
        return self.groups * self.n_blocks

    def for_points(self, period: tuple[float, ...], least: float, why: str, halo: float) -> Partition:
        """Return the partition with a halo that is wide enough for the points.

        Parameters
        ----------
        period : tuple of float
            Period of each axis of the points, 0 where it is open.
        least : float
            Halo that a user must have given.
        why : str
            What that is, for the message.
        halo : float
            `least`, and what rounding needs beyond it.

        Returns
        -------
        Partition
            With a halo of at least `halo`; itself where no axis is cut.

        Raises
        ------
        ValueError
            For a halo below `least`, and for axes or periods that are not those of the points.
        """
        cut = len(self.cuts)
        if not cut:
            return self
        if cut > len(period) or tuple(self.period[:cut]) != period[:cut]:
            raise ValueError(
                f"the partition cuts {cut} axes of periods {self.period}; X has {len(period)} axes, of periods "
                f"{period} (0: open)"
            )
        if self.halo < least:
            raise ValueError(f"the partition has a halo of {self.halo:g}; it must be at least {least:g}, {why}")
        return replace(self, halo=max(self.halo, halo))

    def region(self, chunk: int) -> tuple[tuple[float, float], ...]:
        """Return the extent of a chunk's block.

        Parameters
        ----------
        chunk : int
            Its number.

        Returns
        -------
        tuple of (float, float)
            Low and high along each cut axis, the high one not included; infinite where no block lies beyond.
        """
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

    def reached(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> list[NDArray[np.int64]]:
        """Return the chunks that points within a box may go to, for each of some boxes.

        Parameters
        ----------
        low, high : numpy.ndarray of float64, shape (m, d)
            Lowest and highest coordinates in each box; NaN or infinity where they are not known.

        Returns
        -------
        list of numpy.ndarray of int64
            Numbers of chunks for each box, ascending.
        """
        low, high = np.array(low, float), np.array(high, float)
        unknown = ~(np.isfinite(low) & np.isfinite(high)).all(axis=1)
        low[unknown], high[unknown] = -np.inf, np.inf
        rows, block = np.arange(len(low)), np.zeros(len(low), np.int64)
        for axis, level in enumerate(self._levels):
            a, b, period = low[:, axis], high[:, axis], self.period[axis]
            if period:  # where points are moved by periods, nothing is said of where they come to be
                moved = ~((a >= 0) & (b < period))
                a, b = np.where(moved, 0, a), np.where(moved, period, b)
            # a little wider, so that no point's own rounding takes it beyond
            a, b = a - MARGIN * np.abs(a), b + MARGIN * np.abs(b)
            rows, block = self._spread(HOST, axis, level, a[rows], b[rows], rows, block)
        groups = np.arange(self.groups)[:, None] * self.n_blocks
        return [np.unique(block[rows == row] + groups) for row in range(len(low))]

    def split(
        self,
        columns: dict[str, Any],
        first_id: int,
        positions: str = "X",
        group: Any = None,
        among: NDArray[np.int64] | None = None,
    ) -> list[Chunk]:
        """Return the part of every chunk in the given points.

        Parameters
        ----------
        columns : dict of arrays
            Arrays with a row for each point.
        first_id : int
            Id of the first point; the others' count up from it.
        positions : str, default "X"
            Name of the column, of shape (n, d) or (n,), that the planes cut.
        group : array of int, shape (n,), optional
            Group of each point, where the partition goes by groups.
        among : numpy.ndarray of int64, optional
            Numbers of the only chunks that the points go to. Default: all.

        Returns
        -------
        list of Chunk
            One for each chunk of the partition, or of those in `among`, with the points that it owns and those of its
            halo.

        Raises
        ------
        ValueError
            For points that go to other chunks.
        """
        X = columns[positions]
        X = X if X.ndim == 2 else X[:, None]
        device, n = device_of(X), len(X)
        block, copied, copy_block = self._blocks_of(device, X) if self.cuts else _all_in_one(device, n)
        if self.groups > 1:
            number = device.cast(group, np.int64) % self.groups * self.n_blocks
            block, copy_block = block + number, copy_block + number[copied]
        chunks = []
        by_block, ends = _sorted_by(device, block, len(self))
        copies, copy_ends = _sorted_by(device, copy_block, len(self))
        numbers = np.arange(len(self)) if among is None else among
        if among is not None:
            _check_among(among, np.diff(ends) + np.diff(copy_ends), first_id)
        for number in map(int, numbers):
            own = by_block[ends[number] : ends[number + 1]]
            halo = copied[copies[copy_ends[number] : copy_ends[number + 1]]]
            order = np.argsort(np.concatenate([own, halo]), kind="stable")
            rows = np.concatenate([own, halo])[order]
            part = {name: device.take(values, rows) for name, values in columns.items()}
            owned = order < len(own) if self.cuts else None
            chunks.append(Chunk(part, first_id + rows, owned, self.region(number)))
        return chunks

    def _blocks_of(self, device: Host | Cuda, X: Any) -> tuple[Any, Any, Any]:
        """Return the block of each point, and of each copy for a halo the point and the block."""
        cut, period = len(self.cuts), self.period[: len(self.cuts)]
        levels = tuple(Level(*map(device.from_host, level)) for level in self._levels)
        home, is_near = device.empty(len(X), np.int64), device.empty(len(X), np.bool_)
        device.run(find_home, len(X), device.argument(X[:, :cut]), levels, period, self.halo, home, is_near)
        home, near = device.give(home), np.flatnonzero(device.give(is_near))
        # a coordinate that is no number goes to any one chunk, which says so
        at = X[near, :cut]
        positions = wrap_positions(np.where(np.isfinite(at), at, 0), period)
        rows, block = device.count_up(len(near)), 0 * near
        for axis, level in enumerate(levels):
            x = positions[rows, axis].astype(np.float64)
            rows, block = self._spread(device, axis, Level(*map(device.give, level)), x, x, rows, block)
        is_copy = block != home[near[rows]]
        return home, near[rows[is_copy]], block[is_copy]

    def _spread(
        self, device: Host | Cuda, axis: int, level: Level, low: Any, high: Any, rows: Any, block: Any
    ) -> tuple[Any, Any]:
        """Give each (row, block) pair one for every block along `axis` that is within the halo of `low` to `high`."""
        low = _block_at(level, self.period[axis], low - self.halo - MARGIN * np.abs(low), block)
        high = _block_at(level, self.period[axis], high + self.halo + MARGIN * np.abs(high), block)
        # around a short period a block may be met twice
        times = np.minimum(high - low + 1, level.counts[block])
        end = np.cumsum(times)
        pair = device.count_up(int(end[-1]) if len(end) else 0)
        of = np.searchsorted(end, pair, side="right")  # as numpy.repeat, which CuPy has for one number only
        here = (low[of] + pair - (end - times)[of]) % level.counts[block[of]]
        return rows[of], level.first[block[of]] + here


def _block_at(level: Level, period: float, x: Any, block: Any) -> Any:
    """Return the number of the block at `x` within those of its row; it goes on counting beyond a period."""
    turns = np.floor(x / period).astype(np.int64) if period else 0 * block
    x = x - turns * period
    at = turns * level.counts[block]
    for plane in level.planes.T:
        at = at + (x >= plane[block])
    return at


def _check_among(among: NDArray[np.int64], counts: NDArray[np.int64], first_id: int) -> None:
    """Refuse points, or copies for halos, that go elsewhere: they would be lost."""
    others = np.setdiff1d(np.flatnonzero(counts), among)
    if len(others):
        raise ValueError(
            f"points of the chunk that begins at {first_id} lie elsewhere than when its extent was taken; its source "
            "gives other values each time: persist() the data first"
        )


def _all_in_one(device: Host | Cuda, n: int) -> tuple[Any, Any, Any]:
    nothing = device.count_up(0)
    return 0 * device.count_up(n), nothing, nothing


def _sorted_by(device: Host | Cuda, block: Any, count: int) -> tuple[Any, NDArray[np.int64]]:
    """Return the places of `block` sorted by its values, equal ones as they come; on the host, where each begins."""
    small = block.astype(np.uint16 if count < 1 << 16 else np.int64)  # NumPy sorts short numbers by counting
    ends = np.cumsum(device.to_host(np.bincount(block, minlength=count)))
    return np.argsort(small, kind="stable"), np.concatenate([[0], ends])


class Division(NamedTuple):
    """How a data set is divided for a plan.

    Attributes
    ----------
    partition : Partition or None
        Which point goes to which chunk; None takes the data set's chunks as they are.
    rows : int
        Up to how many points of consecutive chunks of the data set are taken together; 0: each chunk is on its own.
    reached : list of numpy.ndarray of int64, or None
        For each chunk of the data set, the chunks of the partition that its points may go to; None: all.
    """

    partition: Partition | None
    rows: int = 0
    reached: list[NDArray[np.int64]] | None = None


def block_sizes(rows: int, chunks: int) -> tuple[int, ...]:
    """Return the rows of each block: `chunks`, and what is left; one empty block without rows."""
    return (chunks,) * (rows // chunks) + ((rows % chunks,) if rows % chunks or not rows else ())


def balanced_cuts(sample: NDArray[Any], blocks: tuple[int, ...], period: tuple[float, ...]) -> tuple[Any, ...]:
    """Return planes that divide the sampled points (m, d) into blocks with as many points each.

    The first axis is cut into ``blocks[0]`` parts, each of them across the second axis into ``blocks[1]``, and so on;
    into fewer where points are equal.

    Parameters
    ----------
    sample : numpy.ndarray, shape (m, d)
        Points, or some of them.
    blocks : tuple of int
        Number of parts along each axis.
    period : tuple of float
        Period of each axis, 0 where it is open.

    Returns
    -------
    tuple
        Planes for `Partition`.
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
