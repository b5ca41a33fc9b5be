"""Random points by their index: each is made from its own number alone, whatever chunk it is in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskclust.core.data.checks import check_whole
from daskclust.core.device.arrays import is_dask
from daskclust.core.merge.labels import NOISE
from daskclust.core.space.partition import block_sizes

from ._arguments import RNG, Float, Int

Bits = npt.NDArray[np.uint64]
Columns = npt.NDArray[Any]
Step = Callable[[Any, Bits], Columns]
"""Makes columns of shape (number of columns, m) from a table and the numbers of m points."""
Steps = Mapping[Step, tuple[int, npt.DTypeLike]]
"""Of each step the number of columns that it makes, and their type."""

# Points that are made at a time in memory: they and what is computed from them fit a cache better than all.
_BLOCK = 1 << 16
_ROUNDS = 4


class Order(NamedTuple):
    """The order of n points: those of clusters, cluster by cluster, and then the others; or any."""

    n: int
    n_inside: int  # in clusters
    shuffle: bool
    seed: int  # of the clusters
    own: Bits  # keys of the order, (4,)
    keys: Bits  # keys of the numbers that points are made from

    def places(self, first: Int, index: Bits) -> tuple[Bits, npt.NDArray[np.bool_], Int]:
        """Return the number of each point before they are shuffled, which are in clusters, and in which ones.

        `first` has the number of the first point of each cluster.
        """
        number = shuffled(self.own, index, self.n) if self.shuffle else index
        is_inside = number < self.n_inside
        return number, is_inside, np.searchsorted(first, number[is_inside].astype(np.int64), side="right") - 1


def clusters(table: Any, index: Bits) -> Int:
    """Return the cluster of each point as a column: a step for any table with `order` and `first`."""
    _, is_inside, cluster = table.order.places(table.first, index)
    out = np.full((1, len(index)), NOISE, np.int64)
    out[0, is_inside] = cluster
    return out


def draw(rng: RNG, n: int, noise: float, shuffle: bool, count: int) -> Order:
    """Return the order of n points with `count` keys."""
    random = np.random.default_rng(rng)
    seed = int(random.integers(1 << 63))
    keys = random.integers(0, 1 << 64, 4 + count, dtype=np.uint64)  # of independent streams of numbers
    return Order(int(n), int(n) - round(noise * n), bool(shuffle), seed, keys[:4], keys[4:])


def random_bits(key: np.uint64, index: Bits) -> Bits:
    """Return 64 random bits for each index, of the stream of a key.

    SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA (2014),
    doi:10.1145/2660193.2660195.
    """
    state = index * np.uint64(0x9E3779B97F4A7C15) + key
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def uniforms(key: np.uint64, index: Bits) -> Float:
    """Return a number from 0 to 1, without 1, for each index."""
    out: Float = (random_bits(key, index) >> np.uint64(11)).astype(np.float64)
    out *= 2.0**-53
    return out


def normals(keys: Bits, index: Bits) -> Float:
    """Return standard normal numbers, of shape (len(keys), len(index)), for an even number of keys (Box and Muller)."""
    out = np.empty((len(keys), len(index)))
    for k in range(0, len(keys), 2):
        radius = np.sqrt(-2 * np.log1p(-uniforms(keys[k], index)))
        angle = 2 * np.pi * uniforms(keys[k + 1], index)
        out[k], out[k + 1] = radius * np.cos(angle), radius * np.sin(angle)
    return out


def shuffled(keys: Bits, index: Bits, n: int) -> Bits:
    """Return where each index of 0 to n - 1 goes in a random order of these.

    A Feistel network permutes the numbers of an even count of bits, at most 4 n; what falls beyond n is permuted again
    until it does not.
    """
    half = np.uint64(max(1, -(-(n - 1).bit_length() // 2)))
    out = _permuted(keys, index, half)
    beyond = np.flatnonzero(out >= n)
    while len(beyond):
        out[beyond] = _permuted(keys, out[beyond], half)
        beyond = beyond[out[beyond] >= n]
    return out


def _permuted(keys: Bits, index: Bits, half: np.uint64) -> Bits:
    """Return the numbers of 2 * half bits in another order."""
    left, right = index >> half, index & ((np.uint64(1) << half) - np.uint64(1))
    for key in keys:
        left, right = right, left ^ (random_bits(key, right) >> (np.uint64(64) - half))
    return (left << half) | right


def make_blocks(table: Callable[[], Any], steps: Steps, n: int, chunks: int | None, name: str) -> list[Any]:
    """Return what each step makes of n points, shape (rows, n), in memory or by dask in blocks of `chunks` points."""
    likes = {step: np.empty((rows, 0), dtype) for step, (rows, dtype) in steps.items()}
    if chunks is None:
        made = table()
        return [_filled(step, made, 0, n, like) for step, like in likes.items()]
    check_whole("chunks", chunks, 1)
    import dask
    import dask.array as da
    from dask.base import tokenize

    token = tokenize(table, n, chunks)
    lazy_table = dask.delayed(table)(dask_key_name=f"{name}-table-{token}")
    return [
        da.map_blocks(  # type: ignore[no-untyped-call,unused-ignore]
            _block, step=step, like=like, table=lazy_table, chunks=((len(like),), block_sizes(n, chunks)),
            dtype=like.dtype, meta=like[:0], name=f"{name}-{step.__name__.strip('_')}-{token}",
        )
        for step, like in likes.items()
    ]  # fmt: skip


def as_rows(block: Any) -> Any:
    """Return a block (rows, n) as an array (n, rows), a point in a row."""
    return block.T.map_blocks(np.ascontiguousarray) if is_dask(block) else np.ascontiguousarray(block.T)


def _filled(step: Step, table: Any, start: int, stop: int, like: Columns) -> Columns:
    """Return the columns of points `start` to `stop`, as many as `like` has and of its type."""
    out = np.empty((len(like), stop - start), like.dtype)
    for first in range(start, stop, _BLOCK):
        last = min(first + _BLOCK, stop)
        out[:, first - start : last - start] = step(table, np.arange(first, last, dtype=np.uint64))
    return out


def _block(*, step: Step, like: Columns, table: Any, block_info: Mapping[Any, Any]) -> Columns:
    """Return the columns of one block; dask tells which one."""
    start, stop = block_info[None]["array-location"][1]
    return _filled(step, table, start, stop, like)


def directions(keys: Bits, index: Bits, d: int) -> Float:
    """Return random directions, unit vectors of shape (d, len(index)); `keys` are d, or one more where d is odd."""
    out = normals(keys, index)[:d]
    length = np.sqrt((out * out).sum(axis=0))
    return out / np.where(length > 0, length, 1.0)
