"""Kruskal's algorithm on edges in their order, and the heaviest edges on the ways through a forest."""

from __future__ import annotations

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.unionfind import root_of


@body
def is_first(weight, length, way, a):
    """Return whether an edge comes before all that are not known from the points of set a."""
    return weight < way[a, 0] or (weight == way[a, 0] and length < way[a, 1])


@kernel
def mark_forest(_once, ends, weight, length, parent, way, is_kept, is_final):
    """Mark edges that join two sets, and those of them that are the first of all edges out of one of these.

    `parent`, of elements by themselves, becomes the smallest one of each set, and `way` of that the least of the set:
    of edges that are not known, the first begins with this weight and length, or later.
    """
    for e in range(len(ends)):
        a, b = root_of(parent, ends[e, 0]), root_of(parent, ends[e, 1])
        is_kept[e], is_final[e] = a != b, False
        if a != b:
            low, high = min(a, b), max(a, b)
            is_final[e] = is_first(weight[e], length[e], way, a) or is_first(weight[e], length[e], way, b)
            parent[high] = low
            if is_first(way[high, 0], way[high, 1], way, low):
                way[low, 0], way[low, 1] = way[high, 0], way[high, 1]
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
