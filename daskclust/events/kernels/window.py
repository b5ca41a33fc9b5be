"""Event building on CUDA: what is launched for a window of hits, in the order in which it is (`events/on_cuda.py`).

Each hit looks back through the hits before it, so no table of pixels is needed. Times that are out of order end a look
back, so a window that is not sorted costs no more than one that is; `facts` tells, and its clusters are not used.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel, team_kernel
from daskclust.core.device.operations import atomic_add, team_barrier
from daskclust.core.device.unionfind import find, unite
from daskclust.events.kernels.pixels import FARTHEST, bit_of
from daskclust.events.kernels.rules import join

DESCENTS, BAD, FAR, COUNT = range(4)  # in `facts`: hits before the one before, no times, far pixels; number of clusters
STRIP = 128  # hits of a thread where clusters are numbered
THREADS = 512  # of the block that adds up the strips
NOISE = -1
NO_HITS = (np.int32(-1),) * 9  # of a pixel and those that touch it


@kernel
def begin(i, parent, sizes, facts):
    """Make hit i a cluster of its own; `sizes` is empty where the number of hits does not matter."""
    parent[i] = i
    if len(sizes):
        sizes[i] = 0
    if i == 0:
        for k in range(len(facts)):
            facts[k] = 0


@kernel
def check_hit(i, hits, facts):
    """Note what is wrong with hit i. All threads that write write the same."""
    toa = hits.toa[i]
    if toa - toa != 0:  # infinite or NaN
        facts[BAD] = 1
    if i > 0 and toa < hits.toa[i - 1]:
        facts[DESCENTS] = 1
    if is_far(hits.x[i]) or is_far(hits.y[i]) or (len(hits.chip) and is_far(hits.chip[i])):
        facts[FAR] = 1


@body
def is_far(value):
    """Return whether 64 bits may not hold the difference of a coordinate to others."""
    return np.int64(value) <= -FARTHEST or np.int64(value) >= FARTHEST


@kernel
def join_window(i, hits, dt_max, touching, parent, facts):
    """Join hit i with the last hit of each touching pixel that is at most dt_max before it, local rule.

    Time and memory are those of the hits within dt_max, which neighbouring threads share. These look back together, and
    then join together: while one of a warp joins, the others wait.
    """
    check_hit(i, hits, facts)
    toa, after, wanted, found = hits.toa[i], hits.toa[i], touching, NO_HITS
    j = np.int32(i) - np.int32(1)
    while wanted != 0 and j >= 0:
        before = hits.toa[j]
        if not (before <= after and toa - before <= dt_max):
            break
        bit = bit_of(hits, i, j) & wanted
        if bit != 0:  # an earlier hit of a pixel that was met is joined with that one already
            wanted ^= bit
            found = (j,) + found[:-1]  # noqa: RUF005 (numba-cuda reads no star)
        after = before
        j -= np.int32(1)
    for j in found:
        if j >= 0:
            unite(parent, i, j)


@kernel
def join_quiet_window(i, hits, dt_max, touching, latest, parent, facts):
    """Join the hits from i up to the next quiet gap, any rule, if a quiet gap is before i.

    Each hit looks back until it has met the last hit of every touching pixel, or the gap.
    """
    check_hit(i, hits, facts)
    if i > 0 and hits.toa[i] - hits.toa[i - 1] <= dt_max:
        return
    k = i
    while k < len(hits.toa) and (k == i or 0 <= hits.toa[k] - hits.toa[k - 1] <= dt_max):
        latest[k] = k
        wanted, j = touching, k - 1
        while wanted != 0 and j >= i:
            bit = bit_of(hits, k, j)
            if wanted & bit:
                wanted &= ~bit
                join(hits, k, j, parent, latest, dt_max)
            j -= 1
        k += 1


# ------------------------------------------------------------------------------------------------------------ numbering
@kernel
def gather_hit(i, parent, sizes):
    """Point hit i at its root, and count it there."""
    root = find(parent, i)
    parent[i] = root
    if len(sizes):
        atomic_add(sizes, root, 1)


@body
def is_large(root, sizes, least):
    """Return whether a cluster has `least` hits or more."""
    return len(sizes) == 0 or sizes[root] >= least


@kernel
def count_strip(strip, parent, sizes, least, counts):
    """Count the clusters that begin in a strip of hits."""
    total = np.int32(0)
    for i in range(strip * STRIP, min((strip + 1) * STRIP, len(parent))):
        total += np.int32(parent[i] == i and is_large(i, sizes, least))
    counts[strip] = total


@team_kernel
def add_up(_once, rank, size, counts, sums, facts):
    """Replace the number of clusters of each strip by that of all strips before it; a thread has a row of strips."""
    width = np.int64(np.uint32(len(counts)) // np.uint32(size)) + 1
    first, end = min(rank * width, len(counts)), min((rank + 1) * width, len(counts))
    total = np.int32(0)
    for strip in range(first, end):
        total += counts[strip]
    sums[rank] = total
    team_barrier(1, sums)
    before = np.int32(0)
    for k in range(rank):
        before += sums[k]
    for strip in range(first, end):
        own = counts[strip]
        counts[strip] = before
        before += own
    if rank == size - 1:
        facts[COUNT] = before


@kernel
def number_strip(strip, parent, sizes, least, before):
    """Let the parent of each root of a strip be -2 - the number of its cluster, or -1 for noise."""
    code = np.int32(-2) - before[strip]
    for i in range(strip * STRIP, min((strip + 1) * STRIP, len(parent))):
        if parent[i] == i:
            parent[i] = NOISE
            if is_large(i, sizes, least):
                parent[i] = code
                code -= np.int32(1)


@kernel
def label_hit(i, parent, before, labels):
    """Write the number of hit i's cluster, `before` being the number of clusters of all windows before."""
    code = np.int64(parent[i])
    if code >= 0:
        code = np.int64(parent[code])
    labels[i] = before - 2 - code if code < NOISE else NOISE
