"""Kruskal's algorithm on edges in their order, and the heaviest edges on the ways through a forest."""

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
def find_homes(_once, ends, weight, large, parent, above, heaviest, home):
    """Find for each element one of the first ones, which are `large`, and the heaviest edge on the way to it.

    Edges are those of a tree, lightest first. `parent` and `above` hold each element itself; afterwards `above` is what
    an element was put under, and for large ones `heaviest` the weight of that edge: upwards these grow.
    """
    for e in range(len(ends)):
        a, b = root_of(parent, ends[e, 0]), root_of(parent, ends[e, 1])
        parent[max(a, b)] = above[max(a, b)] = min(a, b)
        heaviest[max(a, b)] = weight[e]
    for i in range(len(above)):
        if i < large:
            home[i] = i
        else:
            home[i] = home[above[i]]
            if above[i] >= large:
                heaviest[i] = max(heaviest[i], heaviest[above[i]])
