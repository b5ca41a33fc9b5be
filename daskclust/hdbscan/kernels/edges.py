"""Edges in order of weight, squared length, smaller row and larger row; those between equal points among them."""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel

SHORT = 32  # edges of one key that are sorted one by one
KEPT_BITS = 15  # of a weight that its key leaves out


@kernel
def write_edge_keys(i, bits, least, keys):
    """Write the upper bits of an edge's weight, which is not negative, above those of the `least`."""
    keys[i] = (bits[i] - least) >> KEPT_BITS


@kernel
def gather_edge(i, places, ends, weight, length, order, edges, sorted_weight, sorted_length):
    """Write an edge in order of keys, the smaller row first."""
    k = places[i]
    a, b = np.int64(order[ends[k, 0]]), np.int64(order[ends[k, 1]])
    edges[i, 0], edges[i, 1] = min(a, b), max(a, b)
    sorted_weight[i], sorted_length[i] = weight[k], length[k]


@body
def comes_before(i, weight, length, a, b, edges, weights, lengths):
    """Return whether an edge comes before edge i."""
    if weight != weights[i]:
        return weight < weights[i]
    if length != lengths[i]:
        return length < lengths[i]
    return a < edges[i, 0] or (a == edges[i, 0] and b < edges[i, 1])


@kernel
def sort_run(i, keys, edges, weight, length, is_long):
    """Sort the edges of one key, if edge i is the first of them, or mark them where they are many."""
    n = len(keys)
    if i > 0 and keys[i - 1] == keys[i]:
        return
    end = np.int64(i) + 1
    while end < n and keys[end] == keys[i]:
        end += 1
    for k in range(i + 1, end if end - i <= SHORT else i + 1):
        w, d, a, b, at = weight[k], length[k], edges[k, 0], edges[k, 1], k
        while at > i and comes_before(at - 1, w, d, a, b, edges, weight, length):
            weight[at], length[at] = weight[at - 1], length[at - 1]
            edges[at, 0], edges[at, 1] = edges[at - 1, 0], edges[at - 1, 1]
            at -= 1
        weight[at], length[at], edges[at, 0], edges[at, 1] = w, d, a, b
    for k in range(i, end):
        is_long[k] = end - i > SHORT
