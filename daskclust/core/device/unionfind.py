"""Union-find whose roots are the smallest index of their set, safe for any number of threads, on every target.

`parent` starts as 0, 1, 2, ... . Larger roots are hooked under smaller ones by compare-and-swap, so the outcome does
not depend on the order of unions.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import atomic_cas, atomic_load


@kernel
def start(i, parent):
    """Make every element the root of its own set."""
    parent[i] = i


@body
def find(parent, i):
    """Return the root of `i`, halving the path on the way: a parent is only ever lowered to an ancestor."""
    above = atomic_load(parent, i)
    while above != i:
        next_above = atomic_load(parent, above)
        if next_above != above:
            atomic_cas(parent, i, above, next_above)
        i = above
        above = next_above
    return i


@body
def root_of(parent, j):
    """Return the root of j, halving the path on the way; for one thread."""
    j = np.uint32(j)
    above = np.uint32(parent[j])
    while above != j:
        above = np.uint32(parent[above])
        parent[j] = above
        j = above
        above = np.uint32(parent[j])
    return j


@body
def unite(parent, a, b):
    """Join the sets of `a` and `b`, going on from what compare-and-swap read: what was loaded may be out of date."""
    while True:
        a = find(parent, a)
        b = find(parent, b)
        if a == b:
            return
        low, high = min(a, b), max(a, b)
        above = atomic_cas(parent, high, high, low)
        if above == high:
            return
        a, b = above, low


@kernel
def unite_edges(i, edge_from, edge_to, parent):
    """Join the ends of edge i."""
    unite(parent, edge_from[i], edge_to[i])


@kernel
def flatten(i, parent):
    """Point element i at its root; run it when all unions are done."""
    parent[i] = find(parent, i)
