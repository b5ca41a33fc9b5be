"""The points of each part that a run of points is divided into: a stable sort by counting, in pieces side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.core.data.checks import check_count
from daskclust.core.device.arrays import HOST, Cuda, Host, fill
from daskclust.core.device.kernels import kernel
from daskclust.core.space.grid import lower_bound


def in_parts(
    device: Host | Cuda, home: Any, copied: Any, copy_block: Any, count: int
) -> tuple[Any, Any, NDArray[np.int64]]:
    """Return the rows of each part, ascending, and whether they are its own; on the host, where each part begins."""
    n = len(home) + len(copied)
    check_count(n)
    # for the many threads of a GPU; no more counts than points, so that many parts do not need much memory
    pieces = 1 if device is HOST else 1 + min(4096, len(home) // max(256, count))
    step = -(-len(home) // pieces)
    begins = device.scratch("begins of parts", count * pieces + 1, np.int32)
    device.run(fill, len(begins), begins, np.int32(0))
    given = step, pieces, home, copied, copy_block
    device.run(count_in_parts, pieces, *given, begins)
    device.running_sum(begins, begins)
    ends = device.to_host(begins)[::pieces].astype(np.int64)
    rows, owned = device.scratch("rows of parts", n, np.int32), device.scratch("owned", n, np.bool_)
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
