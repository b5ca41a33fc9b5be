"""A minimum spanning forest from edges in their order, Kruskal's algorithm, and the heaviest edges on ways through it."""

from __future__ import annotations

from daskclust.core.device.kernels import kernel
from daskclust.core.device.unionfind import root_of


@kernel
def mark_forest(_once, ends, parent, is_kept):
    """Mark edges that join two sets; `parent`, a smaller element of each one's set or itself, becomes the smallest."""
    for e in range(len(ends)):
        a, b = root_of(parent, ends[e, 0]), root_of(parent, ends[e, 1])
        is_kept[e] = a != b
        parent[max(a, b)] = min(a, b)
    for i in range(len(parent)):
        parent[i] = parent[parent[i]]


@kernel
def find_heaviest(_once, ends, weight, parent, above, heaviest):
    """Find the weight of the heaviest edge on the way from each element to element 0; `heaviest` holds infinity.

    Edges are those of a forest, lightest first. A set's root keeps the weight with which it was put under another one:
    upwards these grow, and 0, the smallest, is under none.
    """
    for e in range(len(ends)):
        a, b = root_of(parent, ends[e, 0]), root_of(parent, ends[e, 1])
        parent[max(a, b)] = above[max(a, b)] = min(a, b)
        heaviest[max(a, b)] = weight[e]
    heaviest[0] = 0.0
    for i in range(1, len(above)):
        heaviest[i] = max(heaviest[i], heaviest[above[i]])
