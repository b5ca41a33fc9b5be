"""In which block of a partition a point is, whether other blocks may have it in their halo, and the points of each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.data.checks import check_count
from daskclust.core.device.arrays import HOST, Cuda, Host, fill
from daskclust.core.device.kernels import kernel
from daskclust.core.device.operations import times
from daskclust.core.space.grid import lower_bound, within_period

MARGIN = 2.0**-50  # halos are a little wider than said, in units of the coordinate: it may be rounded


class CutLevel(NamedTuple):
    """The planes across one axis: a row for each block that the axes before it make."""

    planes: Any  # float64, ascending, rows filled up with infinity
    counts: Any  # (rows,) int64: blocks that each row makes
    first: Any  # (rows,) int64: the number of the first of them


class BlockTree(NamedTuple):
    """Blocks and what they were before the last axes were cut: the whole of space first, then axis after axis."""

    first: Any  # (k,) int64: the first of the blocks that the next axis makes of one
    counts: Any  # (k,) int64: how many these are
    low: Any  # (k,) float64: where a block begins along the axis that was cut last
    high: Any  # (k,) float64: where it ends


def tree_of(levels: tuple[CutLevel, ...], period: tuple[float, ...]) -> BlockTree:
    """Return the tree of the blocks that planes make; the last blocks are the last of the tree."""
    first, counts, low, high = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.zeros(1)], [np.zeros(1)]
    begin = 1  # the whole of space is there already
    for level, cycle in zip(levels, (*period, *(0.0 for _ in levels)), strict=False):
        first.append(begin + level.first)
        counts.append(level.counts)
        begin += int(level.counts.sum())
        for planes, count in zip(level.planes, level.counts, strict=True):
            ends = (0.0, cycle) if cycle and count > 1 else (-np.inf, np.inf)
            low.append(np.array([ends[0], *planes[: count - 1]]))
            high.append(np.array([*planes[: count - 1], ends[1]]))
    return BlockTree(np.concatenate(first), np.concatenate(counts), np.concatenate(low), np.concatenate(high))


@kernel
def find_home(i, X, tree, period, reach, whole, home, is_near):
    """Find the block of point i, and whether one of its faces is within `reach` (by axis); the first block is `whole`.

    A coordinate that is no number counts as below all planes: whatever is done with the block says so.
    """
    block = np.uint64(0)  # unsigned: no place counts from the end
    near = False
    for axis in range(X.shape[1]):
        x = np.float64(X[i, axis])
        if period[axis] > 0.0 and not (x >= 0.0 and x < period[axis]):
            x = np.float64(within_period(X[i, axis], period[axis]))
        begin, end = np.uint64(tree.first[block]), np.uint64(tree.first[block] + tree.counts[block])
        block, next_block = begin, begin + np.uint64(1)
        while next_block < end:  # without a branch on coordinates, which cannot be foretold
            block += np.uint64(tree.low[next_block] <= x)
            next_block += np.uint64(1)
        margin = reach[axis] + times(MARGIN, abs(x))
        near = near | (x - tree.low[block] <= margin) | (tree.high[block] - x <= margin)
    home[i] = np.int64(block) - whole
    is_near[i] = near


def in_parts(
    device: Host | Cuda, home: Any, copied: Any, copy_block: Any, count: int
) -> tuple[Any, Any, NDArray[np.int64]]:
    """Return the rows of each part, ascending, and whether they are its own; on the host, where each part begins."""
    n = len(home) + len(copied)
    check_count(n)
    # for the many threads of a GPU; no more counts than points, so that many parts do not need much memory
    pieces = 1 if device is HOST else 1 + min(4096, len(home) // max(256, count))
    step = -(-len(home) // pieces)
    begins = device.scratch(count * pieces + 1, np.int32)
    device.run(fill, len(begins), begins, np.int32(0))
    given = step, pieces, home, copied, copy_block
    device.run(count_in_parts, pieces, *given, begins)
    device.running_sum(begins, begins)
    ends = device.to_host(begins)[::pieces].astype(np.int64)
    rows, owned = device.scratch(n, np.int32), device.scratch(n, np.bool_)
    device.run(put_into_parts, pieces, *given, begins, rows, owned)
    return rows, owned, ends


@kernel
def count_in_parts(piece, step, pieces, home, copied, copy_block, ends):
    """Count the points and copies of a piece of `step` points: those of block b in ends[b * pieces + piece + 1].

    Copies are in the order of their points.
    """
    begin, end = piece * step, min((piece + 1) * step, len(home))
    for i in range(begin, end):
        ends[home[i] * pieces + piece + 1] += 1
    copy = lower_bound(copied, len(copied), begin)
    while copy < len(copied) and copied[copy] < end:
        ends[copy_block[copy] * pieces + piece + 1] += 1
        copy += 1


@kernel
def put_into_parts(piece, step, pieces, home, copied, copy_block, begins, rows, owned):
    """Write the points and copies of a piece, in their order, from begins[b * pieces + piece] on for block b."""
    copy = lower_bound(copied, len(copied), piece * step)
    for i in range(piece * step, min((piece + 1) * step, len(home))):
        at = home[i] * pieces + piece
        rows[begins[at]] = i
        owned[begins[at]] = True
        begins[at] += 1
        while copy < len(copied) and copied[copy] == i:
            at = copy_block[copy] * pieces + piece
            rows[begins[at]] = i
            owned[begins[at]] = False
            begins[at] += 1
            copy += 1
