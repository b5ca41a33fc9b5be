"""Pieces of hits for threads, and the numbers of clusters, in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import Cuda, Host
from daskclust.core.device.threads import thread_count
from daskclust.events.kernels import rules

PIECE = 1 << 16  # hits that are worth a thread of their own


def pieces_of(n: int, most: int = 1 << 30) -> NDArray[np.int64]:
    """Return where the hits of each thread begin, of `most` threads at most, and n."""
    pieces = max(1, min(thread_count(), n // PIECE, most))
    return np.arange(pieces + 1) * n // pieces


def number_on_host(begin: Any, roots: Any, parent: Any, labels: Any) -> int:
    """Write the labels of hits in pieces that are joined; return the number of clusters.

    `roots` is how many clusters begin in each piece, -1 first where that is to be counted.
    """
    pieces = len(begin) - 1
    ends, crossing = np.empty(pieces, np.int64), begin[:-1].copy()
    if roots[0] < 0:
        rules.count_roots.run(pieces, begin, parent, roots, crossing, grain=1)
    base = np.cumsum(roots) - roots
    rules.number.run(pieces, begin, base, crossing, parent, labels, ends, grain=1)
    rules.resolve.run(pieces, begin, crossing, labels, grain=1)
    return int(ends[-1])


def in_given_order(device: Host | Cuda, labels: Any, order: Any) -> Any:
    """Return labels of sorted hits in the order in which these were given."""
    if order is None:
        return labels
    given = device.empty(len(labels), np.int64)
    device.run(rules.put_back, len(labels), order, labels, given)
    return given
