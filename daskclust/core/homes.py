"""In which block of a partition a point is, and whether other blocks may have it in their halo."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.cells import within_period
from daskclust.core.jit import kernel
from daskclust.core.ops import times

MARGIN = 2.0**-50  # halos are a little wider than said, in units of the coordinate: it may be rounded


class Level(NamedTuple):
    """The planes across one axis: a row for each block that the axes before it make."""

    planes: Any  # float64, ascending, rows filled up with infinity
    counts: Any  # (rows,) int64: blocks that each row makes
    first: Any  # (rows,) int64: the number of the first of them


@kernel
def find_home(i, X, levels, period, reach, home, is_near):
    """Find the block of point i, and whether it is within `reach` of one of its faces.

    A coordinate that is no number counts as below all planes: whatever is done with the block says so.
    """
    block = np.int64(0)
    near = False
    for axis in range(len(levels)):
        planes, counts, first = levels[axis]
        x = np.float64(within_period(X[i, axis], period[axis]))
        last = counts[block] - 1
        at = np.int64(0)
        while at < last and planes[block, at] <= x:
            at += 1
        is_ring = period[axis] > 0.0 and last > 0
        low = planes[block, at - 1] if at > 0 else (0.0 if is_ring else -np.inf)
        high = planes[block, at] if at < last else (period[axis] if is_ring else np.inf)
        margin = reach + times(MARGIN, abs(x))
        near = near or x - low <= margin or high - x <= margin
        block = first[block] + at
    home[i] = block
    is_near[i] = near
