"""Numbers of groups, whatever the user calls them: counted without gaps where many numbers are no group's."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskclust.core.device.arrays import Cuda, Host, fill
from daskclust.core.device.kernels import kernel
from daskclust.core.space.extent import group_range


def without_gaps(device: Host | Cuda, group: Any) -> tuple[Any, int, int]:
    """Return groups (n,) as numbers in the same order, the first of them, and how many there are from it to the last.

    They are the user's own unless these go over more than twice as many as there are groups: a chunk may have every
    eighth layer only, and would have cells for all.
    """
    if len(group) == 0:  # no groups are given: all points are of one
        return group, 0, 1
    first, last = group_range(device, group)
    span = last - first + 1
    if span > 4 * len(group) + 1024:  # so far apart that they are not looked up in a table
        distinct, number = np.unique(device.to_host(group), return_inverse=True)
        return device.from_host(number.astype(np.int32)), 0, len(distinct)
    up_to = device.scratch("groups up to", span, np.int32)
    device.run(fill, span, up_to, np.int32(0))
    device.run(_mark, len(group), group, first, up_to)
    device.running_sum(up_to, up_to)
    count = int(device.to_host(up_to[span - 1 :])[0])
    if span <= 2 * count:
        return group, first, span
    number = device.scratch("groups", len(group), np.int32)
    device.run(_number, len(group), group, first, up_to, number)
    return number, 0, count


@kernel
def _mark(i, group, first, is_group):
    is_group[np.int64(group[i]) - first] = 1


@kernel
def _number(i, group, first, up_to, number):
    number[i] = up_to[np.int64(group[i]) - first] - 1
