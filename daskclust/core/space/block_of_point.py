"""In which block of a partition a point is, and whether other blocks may have it in their halo."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import kernel
from daskclust.core.device.operations import times
from daskclust.core.space.grid import within_period

MARGIN = 2.0**-50  # halos are a little wider than said, in units of the coordinate: it may be rounded


class Level(NamedTuple):
    """The planes across one axis: a row for each block that the axes before it make."""

    planes: Any  # float64, ascending, rows filled up with infinity
    counts: Any  # (rows,) int64: blocks that each row makes
    first: Any  # (rows,) int64: the number of the first of them


class Tree(NamedTuple):
    """Blocks and what they were before the last axes were cut: the whole of space first, then axis after axis."""

    first: Any  # (k,) int64: the first of the blocks that the next axis makes of one
    counts: Any  # (k,) int64: how many these are
    low: Any  # (k,) float64: where a block begins along the axis that was cut last
    high: Any  # (k,) float64: where it ends


def tree_of(levels: tuple[Level, ...], period: tuple[float, ...]) -> Tree:
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
    return Tree(np.concatenate(first), np.concatenate(counts), np.concatenate(low), np.concatenate(high))


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
