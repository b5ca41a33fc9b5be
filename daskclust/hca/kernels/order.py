"""The order of merges, and what they add up to."""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import kernel


@kernel
def count_members(_once, Z):
    """Write how many points each union has."""
    n = len(Z) + 1
    for s in range(len(Z)):
        total = 0.0
        for k in range(2):
            child = np.int64(Z[s, k])
            total += 1.0 if child < n else Z[child - n, 3]
        Z[s, 3] = total


@kernel
def rank_merges(i, begin, heights, rank, turn):
    """Write by which height each merge of set i is ordered: the largest of those up to it."""
    highest = 0.0
    for k in range(begin[i] - i, begin[i + 1] - i - 1):
        highest = max(highest, heights[k])
        rank[k] = highest
        turn[k] = k - begin[i] + i
