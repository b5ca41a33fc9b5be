"""Chunks of a data set: what a worker gets, and which point goes to which chunk.

Chunks are groups of layers (or of apriori labels, or of events: any integer that neighbours share), blocks of space,
or both. A block is cut out by planes across the axes; its chunk holds the points inside, which it *owns*, and a halo:
those within a given distance of it, around periodic axes too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import HOST, Cuda, Host, device_of
from daskclust.core.space.block_of_point import MARGIN, BlockTree, CutLevel, find_home, in_parts, tree_of
from daskclust.core.space.grid import WIDER, along_axes, wrap_positions

Halo = float | tuple[float, ...]  # one length, or one for each axis
_ROUNDED = 2.0**-20  # of a coordinate and its period: what float32 may be off by where it is moved, and more


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
        Extent of the block along each cut axis, the high end not included; infinite where no block lies beyond.
    as_given : bool
        Whether it is the user's own chunk, said to hold all points of its groups.
    """

    columns: dict[str, Any]
    ids: Any = None
    owned: Any = None
    region: tuple[tuple[float, float], ...] = ()
    as_given: bool = False

    def whole_groups(self, name: str) -> NDArray[np.int64]:
        """Return the groups of a user's own chunk, which is to hold all of them; none where it was divided.

        Parameters
        ----------
        name : str
            Name of their column; without it all points are of one.

        Returns
        -------
        numpy.ndarray of int64
        """
        first = next(iter(self.columns.values()))
        if not self.as_given or len(first) == 0:
            return np.empty(0, np.int64)
        if name not in self.columns:
            return np.zeros(1, np.int64)
        return np.unique(device_of(first).to_host(self.columns[name])).astype(np.int64)

    def ids_on_host(self) -> NDArray[np.int64]:
        """Return where each point stands in the data set.

        Returns
        -------
        numpy.ndarray of int64, shape (n,)
        """
        first = next(iter(self.columns.values()))
        ids: NDArray[np.int64] = np.arange(len(first)) if self.ids is None else device_of(first).to_host(self.ids)
        return ids


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
    halo : float or tuple of float
        How far points outside a block may be to be part of its chunk, or how far along each axis.
    """

    groups: int = 1
    cuts: tuple[Any, ...] = ()
    period: tuple[float, ...] = ()
    halo: Halo = 0.0
    n_blocks: int = field(init=False)
    _levels: tuple[CutLevel, ...] = field(init=False, repr=False, compare=False)
    _tree: BlockTree = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        levels, count, count_axes = [], 1, len(self.cuts)
        for axis, cuts in enumerate(self.cuts):
            rows = list(cuts) if len(cuts) and np.ndim(cuts[0]) else [cuts] * count
            if len(rows) != count:
                raise ValueError(f"cuts[{axis}] must have planes for {count} blocks of axes before, got {len(rows)}")
            counts = np.array([len(row) + 1 for row in rows])
            planes = np.full((count, counts.max() - 1), np.inf)
            for row, values in zip(planes, rows, strict=True):
                row[: len(values)] = values
            levels.append(CutLevel(planes, counts, np.cumsum(counts) - counts))
            count = int(counts.sum())
        if isinstance(self.halo, Sequence | np.ndarray):
            object.__setattr__(self, "halo", tuple(map(float, self.halo)))
            if len(self.halo) < count_axes:
                raise ValueError(f"halo must be one length or one for each of {count_axes} axes, got {self.halo}")
        object.__setattr__(self, "_levels", tuple(levels))
        object.__setattr__(self, "_tree", tree_of(self._levels, self.period))
        object.__setattr__(self, "n_blocks", count)

    def __len__(self) -> int:
        return self.groups * self.n_blocks

    def region(self, chunk: int) -> tuple[tuple[float, float], ...]:
        """Return the extent of a chunk's block, as it is of a `Chunk`.

        Parameters
        ----------
        chunk : int

        Returns
        -------
        tuple of (float, float)
        """
        extents: list[tuple[float, float]] = []
        block = len(self._tree.low) - self.n_blocks + int(self._block_at_place[chunk % self.n_blocks])
        for _ in self.cuts:
            extents.append((float(self._tree.low[block]), float(self._tree.high[block])))
            block = int(np.searchsorted(self._tree.first, block, side="right")) - 1
        return tuple(reversed(extents))

    def reached(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> list[NDArray[np.int64]]:
        """Return the chunks that points within a box may go to, ascending, for each of some boxes.

        Parameters
        ----------
        low, high : numpy.ndarray of float64, shape (m, d)
            Lowest and highest coordinates in each box; NaN or infinity where they are not known.

        Returns
        -------
        list of numpy.ndarray of int64
        """
        low, high = np.array(low, float), np.array(high, float)
        unknown = ~(np.isfinite(low) & np.isfinite(high)).all(axis=1)
        low[unknown], high[unknown] = -np.inf, np.inf
        rows, block = np.arange(len(low)), np.zeros(len(low), np.int64)
        for axis, level in enumerate(self._levels):
            a, b, period = low[:, axis], high[:, axis], self.period[axis]
            if period:
                a, b = _wider_where_moved(a, b, period)
            # a little wider, so that no point's own rounding takes it beyond
            a, b = a - MARGIN * np.abs(a), b + MARGIN * np.abs(b)
            rows, block = self._spread(HOST, axis, level, a[rows], b[rows], rows, block)
        groups, block = np.arange(self.groups)[:, None] * self.n_blocks, self._place[block]
        return [np.unique(found + groups) for found in np.split(block, np.searchsorted(rows, np.arange(1, len(low))))]

    @cached_property
    def _place(self) -> NDArray[np.int64]:
        """Return where each block is on a Z-order curve through all of them (Morton, IBM technical report, 1966)."""
        coordinates = np.zeros((1, 0), np.int64)
        for level in self._levels:
            rows = np.repeat(np.arange(len(level.counts)), level.counts)
            along = np.arange(len(rows)) - level.first[rows]
            coordinates = np.concatenate([coordinates[rows], along[:, None]], axis=1)
        key = np.zeros(self.n_blocks, np.int64)
        axes = len(self._levels)
        for bit in range(62 // max(axes, 1)):
            for axis in range(axes):
                key |= (coordinates[:, axis] >> bit & 1) << (bit * axes + axis)
        return np.argsort(np.argsort(key, kind="stable"))

    @cached_property
    def _block_at_place(self) -> NDArray[np.int64]:
        """Return the block at each place of the curve."""
        return np.argsort(self._place)

    def halo_share(self, places: NDArray[Any]) -> float:
        """Return how many points halos have for each point.

        Parameters
        ----------
        places : numpy.ndarray of float, shape (m, d)
            Coordinates of some of the points.

        Returns
        -------
        float
        """
        rows, _ = self._blocks_near(HOST, places[:, : len(self.cuts)])
        return len(rows) / max(len(places), 1) - 1

    def seen_from(self, chunk: int, places: NDArray[Any]) -> NDArray[np.int64]:
        """Return the first and the last chunk that have each of a chunk's points.

        Parameters
        ----------
        chunk : int
        places : numpy.ndarray of float, shape (q, cut axes)
            Coordinates of the points, in the dtype in which they were divided: another one rounds in another way.

        Returns
        -------
        numpy.ndarray of int64, shape (q, 2)
        """
        if len(places) == 0:
            return np.empty((0, 2), np.int64)
        rows, block = self._blocks_near(HOST, places)
        place = chunk // self.n_blocks * self.n_blocks + self._place[block]
        begin = np.searchsorted(rows, np.arange(len(places)))
        return np.stack([np.minimum.reduceat(place, begin), np.maximum.reduceat(place, begin)], axis=1)

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
            One for each, with the points that it owns and those of its halo.

        Raises
        ------
        ValueError
            For points that go to other chunks.
        """
        rows, owned, ends = self.parts(columns[positions], group)
        if among is not None:
            _check_among(among, np.diff(ends), first_id)
        chunks, device = [], device_of(rows)
        for number in map(int, range(len(self)) if among is None else among):
            part = slice(ends[number], ends[number + 1])
            taken = {name: device.take_at(v, rows[part]) for name, v in columns.items()}
            ids = first_id + device.cast(rows[part], np.int64)
            is_own = owned[part].copy() if self.cuts else None
            chunks.append(Chunk(taken, ids, is_own, self.region(number)))
        return chunks

    def parts(self, X: Any, group: Any = None) -> tuple[Any, Any, NDArray[np.int64]]:
        """Return which points each chunk has, by number, its own and those of its halo.

        Parameters
        ----------
        X : array of float, shape (n, d) or (n,)
            Coordinates that the planes cut.
        group : array of int, shape (n,), optional
            Group of each point, where the partition goes by groups.

        Returns
        -------
        rows : array of int32, shape (m,)
            Numbers of points, those of one chunk after the other, ascending within each; valid until the next call.
        owned : array of bool, shape (m,)
            Whether the chunk owns the point; valid until the next call.
        ends : numpy.ndarray of int64, shape (chunks + 1,)
            Where those of each chunk begin, and one behind the last.
        """
        X = X if X.ndim == 2 else X[:, None]
        device = device_of(X)
        home, copied, copy_block = self._homes(device, X)
        if len(self.cuts):
            place = device.from_host(self._place.astype(np.int32))
            home, copy_block = device.take_at(place, home), device.take_at(place, copy_block)
        if self.groups > 1:
            wide = group if group.dtype.itemsize >= 4 else device.cast(group, np.int32)
            number = device.cast(wide % self.groups, np.int32) * self.n_blocks
            home, copy_block = home + number, copy_block + number[copied]
        return in_parts(device, home, copied, copy_block, len(self))

    def _homes(self, device: Host | Cuda, X: Any) -> tuple[Any, Any, Any]:
        """Return the block of each point, and of each copy for a halo the point and the block."""
        if not self.cuts:
            nothing = device.count_up(0)
            return device.full(len(X), 0, np.int32), nothing, nothing
        cut, period = len(self.cuts), self.period[: len(self.cuts)]
        reach, tree = along_axes(self.halo, cut), BlockTree(*map(device.from_host, self._tree))
        home, is_near = device.scratch(len(X), np.int32), device.scratch(len(X), np.bool_)
        whole = len(tree.low) - self.n_blocks
        device.run(find_home, len(X), X[:, :cut], tree, period, reach, whole, home, is_near)
        near = np.flatnonzero(is_near)
        rows, block = self._blocks_near(device, X[near, :cut])
        is_copy = block != home[near[rows]]
        return home, near[rows[is_copy]], block[is_copy]

    def _blocks_near(self, device: Host | Cuda, places: Any) -> tuple[Any, Any]:
        """Return pairs of a row of `places` (m, cut axes), ascending, and a block that it is in or within reach of."""
        # a coordinate that is no number goes to any one chunk, which says so
        positions = wrap_positions(np.where(np.isfinite(places), places, 0), self.period[: len(self.cuts)])
        rows = device.count_up(len(positions))
        block = 0 * rows
        for axis, level in enumerate(self._levels):
            x = positions[rows, axis].astype(np.float64)
            planes = CutLevel(*[device.from_host(values) for values in level])
            rows, block = self._spread(device, axis, planes, x, x, rows, block)
        return rows, block

    def _spread(
        self, device: Host | Cuda, axis: int, level: CutLevel, low: Any, high: Any, rows: Any, block: Any
    ) -> tuple[Any, Any]:
        """Give each (row, block) pair one for every block along `axis` that is within the halo of `low` to `high`."""
        halo = along_axes(self.halo, len(self.cuts))[axis]
        low = _block_at(level, self.period[axis], low - halo - MARGIN * np.abs(low), block)
        high = _block_at(level, self.period[axis], high + halo + MARGIN * np.abs(high), block)
        # around a short period a block may be met twice
        times = np.minimum(high - low + 1, level.counts[block])
        end = np.cumsum(times)
        pair = device.count_up(int(end[-1]) if len(end) else 0)
        of = np.searchsorted(end, pair, side="right")  # as numpy.repeat, which CuPy has for one number only
        along = (low[of] + pair - (end - times)[of]) % level.counts[block[of]]
        return rows[of], level.first[block[of]] + along


def widened(reach: Halo) -> Halo:
    """Return lengths with what the rounding of distances in float32 needs beyond them."""
    return tuple(length * WIDER for length in reach) if isinstance(reach, tuple) else reach * WIDER


def _block_at(level: CutLevel, period: float, x: Any, block: Any) -> Any:
    """Return the number of the block at `x` within those of its row; it goes on counting beyond a period."""
    turns = np.floor(x / period).astype(np.int64) if period else 0 * block
    x = x - turns * period
    at = turns * level.counts[block]
    if len(level.planes) == 1:  # these may be many
        return at + np.searchsorted(level.planes[0], x, side="right")
    for plane in level.planes.T:
        at = at + (x >= plane[block])
    return at


def _wider_where_moved(
    low: NDArray[np.float64], high: NDArray[np.float64], period: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ends of boxes so wide that points within are not beyond when they are moved by periods, which rounds."""
    moved = ~((low >= 0) & (high < period))
    all_around = ~(high - low < period)
    margin = np.where(moved & ~all_around, _ROUNDED * (np.abs(low) + np.abs(high) + period), 0)
    return np.where(all_around, 0, low - margin), np.where(all_around, period, high + margin)


def _check_among(among: NDArray[np.int64], counts: NDArray[np.int64], first_id: int) -> None:
    """Refuse points, or copies for halos, that go elsewhere: they would be lost."""
    others = np.setdiff1d(np.flatnonzero(counts), among)
    if len(others):
        raise ValueError(
            f"the chunk that begins at point {first_id} has other values than when it was first read; its source gives "
            "other values each time: persist() the data first"
        )


class Division(NamedTuple):
    """How a data set is divided for a plan."""

    partition: Partition | None  # which point goes to which chunk; None takes the data set's chunks as they are
    rows: int = 0  # up to how many points of consecutive chunks are taken together; 0: each chunk is on its own
    reached: list[NDArray[np.int64]] | None = None  # chunks that each chunk's points may go to; None: all
    groups: int = 1  # into how many groups, at least, chunks are taken together on their way


def block_sizes(rows: int, chunks: int) -> tuple[int, ...]:
    """Return the rows of each block: `chunks`, and what is left; one empty block without rows."""
    return (chunks,) * (rows // chunks) + ((rows % chunks,) if rows % chunks or not rows else ())
