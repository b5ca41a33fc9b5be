"""Borůvka's rounds: each component finds its first edge to another, and components are merged along these edges.

Edges are in order of weight, squared length, smaller and larger row, so the tree is unique. The first rounds read the
lists of neighbours only; later ones search the tree. What bounds the search:

* `reach` of a point: no edge from it to another component weighs less, but for its list and `other`. It never falls.
* `bound` of a component: the weight of the lightest edge out of it so far, which all its points share.
* Subtrees of one component are left out, and one whose points have nothing within the bound is settled as a whole.
* The largest component does not ask: all others do, so they still halve, and most points are never searched again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import (
    atomic_cas,
    atomic_load,
    atomic_min,
    bits_of,
    highest,
    lane_width,
    load,
    lowest_bit,
    store,
)
from daskclust.core.device.unionfind import root_of
from daskclust.hdbscan.kernels.point_tree import (
    COMPONENT,
    END,
    LEAF,
    LEAF_OF,
    RIGHT,
    beside,
    box_distances2,
    distance2,
    distances2,
    gap2,
    lanes_of,
)


class PointStates(NamedTuple):
    """What is known of each sorted point, and of each leaf and node."""

    component: Any  # (n + PAD,) int32
    core: Any  # (n,) float64, squared core distances
    nearest: Any  # (n, kept) int32, its neighbours, ascending; -1 behind the last
    place: Any  # (n,) int8: up to there they are of its own component
    reach: Any  # (n,) float64
    other: Any  # (n,) int32: where its first edge out of the component leads; -1 if none is known
    weight: Any  # (n,) float64, of that edge
    length: Any  # (n,) float64, its squared length
    need: Any  # (leaves,) float64: the least `reach` of points whose first edge is not certain
    alive: Any  # (leaves,) bool: whether lists or known edges may still serve
    node_core: Any  # (nodes,) float64: the least core distance
    node_need: Any  # (nodes,) float64


class Components(NamedTuple):
    """What is known of each component in a round."""

    size: Any  # int32
    skip: Any  # bool: does not ask
    is_open: Any  # bool: may have a better edge than those of lists
    bound: Any  # float64
    best: Any  # int32: the point that its first edge begins at, -1 for none; in the end its number in the next round
    parent: Any  # int32


class FoundEdges(NamedTuple):
    """Edges that are found, in the order they are found."""

    ends: Any  # (n - 1, 2) int32, sorted points
    counts: Any  # (2,) int64: how many edges there are, and how many components


@body
def is_before(weight, length, s, t, o, points, tree):
    """Return whether an edge between points s and t comes before the one that point o has found."""
    if weight != points.weight[o] or length != points.length[o] or points.other[o] < 0:
        return weight < points.weight[o] or (weight == points.weight[o] and length < points.length[o])
    a, b, c, d = tree.order[s], tree.order[t], tree.order[o], tree.order[points.other[o]]
    return min(a, b) < min(c, d) or (min(a, b) == min(c, d) and max(a, b) < max(c, d))


@body
def is_certain(s, points, tree):
    """Return whether the first edge that point s has found is its first of all.

    It is, too, if none can weigh less than its core distance, and those that are not in the list are longer.
    """
    if points.other[s] < 0 or points.weight[s] < points.reach[s]:
        return points.other[s] >= 0
    last = points.nearest[s, points.nearest.shape[1] - 1]
    return points.weight[s] == points.core[s] and points.length[s] < distance2(s, last, tree)


@kernel
def write_node_core(leaf, points, tree):
    """Write the least core distance of a leaf's points to its node, and lower those above, infinite at first, to it."""
    t, least = np.int64(tree.leaf_node[leaf]), np.inf
    for s in range(tree.begin[leaf], tree.begin[leaf + 1]):
        least = min(least, points.core[s])
    points.node_core[t] = least
    lower_above(t, least, 1, 0, tree.above, points.node_core)


@body
def lower_above(t, value, width, k, above, values):
    """Lower column k, of so many, of the nodes above t to a value, up to one that is as low: who lowered it goes on."""
    while t > 0:
        t = np.int64(above[t])
        if atomic_min(values, width * t + k, value) <= value:
            break


# -------------------------------------------------------------------------------------------------------- by the lists
@kernel
def look_in_lists(leaf, points, components, tree):
    """Write the first edge of each point out of its component among its neighbours, unless it knows one already."""
    if not points.alive[leaf]:
        return
    least, is_alive = np.inf, False
    for s in range(tree.begin[leaf], tree.begin[leaf + 1]):
        c = points.component[s]
        if components.skip[c]:
            least, is_alive = min(least, points.reach[s]), True
            continue
        if points.other[s] < 0 or points.component[points.other[s]] == c:
            look_in_list(s, c, points, tree)
        is_alive |= points.other[s] >= 0
        if not is_certain(s, points, tree):
            is_alive |= points.place[s] < points.nearest.shape[1]
            least = min(least, points.reach[s])
    points.need[leaf], points.alive[leaf] = least, is_alive


@body
def look_in_list(s, c, points, tree):
    """Write the first edge of point s, of component c, among its neighbours."""
    kept, k = points.nearest.shape[1], np.int64(points.place[s])
    while k < kept and points.nearest[s, k] >= 0 and points.component[points.nearest[s, k]] == c:
        k += 1
    points.other[s], points.weight[s], points.length[s], points.place[s] = -1, np.inf, np.inf, k
    while k < kept and points.nearest[s, k] >= 0:
        t = np.int64(points.nearest[s, k])
        if points.component[t] != c:
            length = distance2(s, t, tree)
            if points.other[s] >= 0:
                is_lightest = points.weight[s] == max(points.length[s], points.core[s])
                if length > (points.length[s] if is_lightest else points.weight[s]):
                    return
            weight = max(max(length, points.core[s]), points.core[t])
            if is_before(weight, length, s, t, s, points, tree):
                points.weight[s], points.length[s], points.other[s] = weight, length, t
        k += 1


@kernel
def offer(leaf, most, points, components, tree):
    """Let the points of a leaf offer their edges to their components, unless these weigh more than `most`."""
    if not points.alive[leaf]:
        return
    for s in range(tree.begin[leaf], tree.begin[leaf + 1]):
        c, t = points.component[s], points.other[s]
        if t >= 0 and points.weight[s] <= most and not components.skip[c]:
            best = atomic_load(components.best, c)
            while best < 0 or is_before(points.weight[s], points.length[s], s, t, best, points, tree):
                found = atomic_cas(components.best, c, best, np.int32(s))
                if found == best:
                    break
                best = found


@kernel
def start_round(c, components):
    """Forget what a component knew in the round before."""
    components.best[c], components.is_open[c], components.parent[c] = -1, False, c


@kernel
def write_bound(c, most, points, components):
    """Write the weight of the first edge that a component has found, `most` if it has none."""
    best = components.best[c]
    components.bound[c] = points.weight[best] if best >= 0 else most


@kernel
def find_open(leaf, points, components, tree):
    """Mark the components of a leaf's points that may have a better edge than any from the lists."""
    if points.need[leaf] < np.inf:
        for s in range(tree.begin[leaf], tree.begin[leaf + 1]):
            c = points.component[s]
            if not components.skip[c] and points.reach[s] <= components.bound[c] and not is_certain(s, points, tree):
                components.is_open[c] = True


# --------------------------------------------------------------------------------------------------------- by the tree
@kernel
def describe_leaf(leaf, points, tree):
    """Write the component of a leaf's points, -1 for several, and the least that they need."""
    first, t = tree.begin[leaf], tree.leaf_node[leaf]
    c = points.component[first]
    for s in range(first + 1, tree.begin[leaf + 1]):
        if points.component[s] != c:
            c = np.int32(-1)
    tree.node[t, COMPONENT], points.node_need[t] = c, points.need[leaf]


@kernel
def describe_nodes(_once, points, tree):
    """Write the same of all other nodes."""
    node = tree.node
    for t in range(len(node) - 1, -1, -1):
        if node[t, LEAF_OF] < 0:
            right = node[t, RIGHT]
            node[t, COMPONENT] = node[t + 1, COMPONENT] if node[t + 1, COMPONENT] == node[right, COMPONENT] else -1
            points.node_need[t] = min(points.node_need[t + 1], points.node_need[right])


@kernel
def search(piece, points, components, tree, scratch):
    """Find the edges of all components that ask, for a piece of the nodes; pieces share `bound`, which only falls."""
    nodes, pieces = len(tree.node), len(scratch.radius)
    q, stop = nodes * piece // pieces, nodes * (piece + 1) // pieces
    while q < stop:
        c, leaf, end = tree.node[q, COMPONENT], np.int64(tree.node[q, LEAF_OF]), np.int64(tree.node[q, END])
        if c >= 0 and (components.skip[c] or points.node_need[q] > atomic_load(components.bound, c)):
            q = end
        elif leaf >= 0:
            search_leaf(leaf, q, points, components, tree, scratch.radius[piece], scratch.d2[piece])
            q += 1
        elif c >= 0 and end <= stop:
            bound = atomic_load(components.bound, c)
            if has_other(q, c, bound, points, tree):
                q += 1
            else:
                settle(q, end, bound, points, tree)
                q = end
        else:
            q += 1


@body
def has_other(q, c, bound, points, tree):
    """Return whether a leaf with points of another component than c lies within the bound of node q."""
    node = np.int64(q)
    while node > 0:
        t = beside(node, tree)
        end, node = np.int64(tree.node[t, END]), np.int64(tree.above[node])
        while t < end:
            if tree.node[t, COMPONENT] == c or points.node_core[t] > bound or gap2(t, q, tree) > bound:
                t = np.int64(tree.node[t, END])
            elif tree.node[t, LEAF_OF] >= 0:
                return True
            else:
                t += 1
    return False


@body
def settle(q, end, bound, points, tree):
    """Write that no edge out of node q weighs less than `bound`."""
    for t in range(q, end):
        leaf = np.int64(tree.node[t, LEAF_OF])
        if leaf >= 0:
            points.need[leaf] = bound
            for s in range(tree.begin[leaf], tree.begin[leaf + 1]):
                points.reach[s] = max(points.reach[s], bound)


@body
def search_leaf(leaf, q, points, components, tree, radius, d2):
    """Find the edges of the points of leaf q that ask, upwards from it, so that what is near comes first."""
    first, own = np.int64(tree.begin[leaf]), np.int32(-3)
    number = np.int64(tree.begin[leaf + 1]) - first
    for i in range(LEAF):
        radius[i] = -1.0
    for i in range(number):
        s = first + i
        c = points.component[s]
        bound = atomic_load(components.bound, c)
        if not components.skip[c] and points.reach[s] <= bound and not is_certain(s, points, tree):
            radius[i] = bound
            own = c if own == -3 or own == c else np.int32(-2)
    most, t, node, end = highest(load(radius, 0, lane_width())), np.int64(q), np.int64(q), np.int64(q) + 1
    while most >= 0:
        while t < end:
            if tree.node[t, COMPONENT] == own or points.node_core[t] > most or gap2(t, q, tree) > most:
                t = np.int64(tree.node[t, END])
                continue
            other = np.int64(tree.node[t, LEAF_OF])
            if other >= 0 and meet_leaf(first, other, t, points, components, tree, radius, d2):
                for i in range(number):
                    if radius[i] >= 0:
                        radius[i] = atomic_load(components.bound, points.component[first + i])
                most = highest(load(radius, 0, lane_width()))
            t += 1
        if node == 0:
            break
        t = beside(node, tree)
        end, node = np.int64(tree.node[t, END]), np.int64(tree.above[node])
    least = np.inf
    for i in range(number):
        s = first + i
        if radius[i] >= 0:
            points.reach[s] = atomic_load(components.bound, points.component[s])
            points.alive[leaf] |= points.other[s] >= 0
        if not is_certain(s, points, tree):
            least = min(least, points.reach[s])
    points.need[leaf] = least


@body
def meet_leaf(first, other, t, points, components, tree, radius, d2):
    """Let points that ask, from `first` on, meet those of a leaf; return whether a component's bound fell."""
    start, is_better = np.int64(tree.begin[other]), False
    asks = bits_of(box_distances2(first, t, tree) <= load(radius, 0, lane_width()))
    theirs, every = load(points.component, start, lane_width()), lanes_of(other, tree)
    while asks != 0:
        i = lowest_bit(asks)
        asks &= asks - 1
        s = first + i
        c = points.component[s]
        found = distances2(s, start, tree)
        bits = bits_of(found <= radius[i]) & bits_of(theirs != c) & every
        if bits != 0:
            store(d2, 0, lane_width(), found)
        while bits != 0:
            k = lowest_bit(bits)
            bits &= bits - 1
            weight = max(d2[k], points.core[s], points.core[start + k])
            if is_before(weight, d2[k], s, start + k, s, points, tree):
                points.weight[s], points.length[s], points.other[s] = weight, d2[k], start + k
                if weight < atomic_load(components.bound, c):
                    atomic_min(components.bound, c, weight)
                    is_better = True
    return is_better


# --------------------------------------------------------------------------------------------------------------- merge
@kernel
def merge(_once, points, components, edges):
    """Add the first edge of each component that is not open, and number the components anew.

    `best` becomes the number of each in the next round, and `counts` of `edges` is brought up to date.
    """
    number, parent = edges.counts[0], components.parent
    for c in range(len(parent)):
        s = components.best[c]
        if s >= 0 and not components.is_open[c]:
            a, b = root_of(parent, c), root_of(parent, points.component[points.other[s]])
            if a != b:
                parent[max(a, b)] = min(a, b)
                edges.ends[number, 0], edges.ends[number, 1] = s, points.other[s]
                number += 1
    left = 0
    for c in range(len(parent)):
        root = root_of(parent, c)
        if root == c:
            components.best[c], components.size[left] = left, components.size[c]
            left += 1
        else:
            new = components.best[root]
            components.best[c] = new
            components.size[new] += components.size[c]
    edges.counts[0], edges.counts[1] = number, left


@kernel
def renumber(s, component, new):
    """Write the new number of a point's component."""
    component[s] = new[component[s]]


@kernel
def weigh(i, ends, core, tree, length, weight):
    """Write the squared length of an edge and its weight."""
    s, t = np.int64(ends[i, 0]), np.int64(ends[i, 1])
    length[i] = distance2(s, t, tree)
    weight[i] = max(max(length[i], core[s]), core[t])
