"""Steps of the spanning tree on CUDA, where a thread for the points of a leaf would leave most threads idle.

A thread for each point goes through the tree. Of each leaf a thread tells the nodes above what it holds, and stops at
one that knows as much: who told it goes on. Components are merged in any order, as their first edges form no circle.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.device.operations import atomic_add, atomic_cas, atomic_load, atomic_max, atomic_min
from daskclust.core.device.unionfind import find, unite
from daskclust.core.space.grid import lower_bound, within_period
from daskclust.hdbscan.kernels.nearest import core_of
from daskclust.hdbscan.kernels.point_tree import COMPONENT, END, LEAF_OF, add_gap, beside, distance2
from daskclust.hdbscan.kernels.rounds import is_before, is_certain, lower_above

SEVERAL, UNKNOWN = -1, -2  # components of a node
_COLUMNS = 4  # of `LeafTree.node`


# ----------------------------------------------------------------------------------------------------------------- tree
@kernel
def write_position(i, places, X, period, order, positions):
    """Write a sorted point, or padding behind the last."""
    n, row = len(places), np.int64(-1)
    if i < n:
        row = np.int64(places[i])
    order[i] = row
    for k in range(len(period)):
        positions[k, i] = within_period(X[row, k], period[k]) if row >= 0 else 0.0


@kernel
def widen_boxes(leaf, tree, box):
    """Let the boxes above a leaf hold its own; `box` is that of `tree`, flat."""
    axes = len(tree.period)
    for k in range(axes):
        t = np.int64(tree.leaf_node[leaf])
        low, high = tree.box[t, k], tree.box[t, axes + k]
        lower_above(t, low, 2 * axes, k, tree.above, box)
        while t > 0:
            t = np.int64(tree.above[t])
            if atomic_max(box, 2 * axes * t + axes + k, high) >= high:
                break


@kernel
def describe_above(leaf, tree, node):
    """Let the nodes above a leaf know of its component; `node` is that of `tree`, flat, and they begin `UNKNOWN`."""
    t = np.int64(tree.leaf_node[leaf])
    component = tree.node[t, COMPONENT]
    while t > 0:
        t = np.int64(tree.above[t])
        at = _COLUMNS * t + COMPONENT
        before = atomic_cas(node, at, UNKNOWN, component)
        if before != UNKNOWN:
            is_other = before != component and before != SEVERAL
            if not is_other or atomic_cas(node, at, before, SEVERAL) != before:
                break
            component = np.int32(SEVERAL)


# --------------------------------------------------------------------------------------------------------------- search
@body
def leaf_of(s, tree):
    """Return the leaf of a point."""
    return lower_bound(tree.begin, len(tree.begin), s + 1) - 1


@body
def point_gap2(s, t, tree):
    """Return the squared distance of a point from the box of a node."""
    axes, total, width = len(tree.period), 0.0, np.int64(len(tree.order))
    for k in range(axes):
        x = tree.positions[np.uint64(k * width + s)]
        total = add_gap(total, tree.box[t, k] - x, x - tree.box[t, axes + k], tree.period[k])
    return total


@body
def is_left_out(t, bound, context):
    """Stand for what tells that no point of a node counts; folds are bound to real ones."""
    return False


@body
def meet(s, leaf, bound, tree, context):
    """Stand for the step of a fold: look at the points of a leaf, and return the new bound."""
    return bound


@body
def fold_leaves(s, bound, tree, context):
    """Fold `meet` over the leaves within the squared distance `bound` of point s, upwards from its own."""
    node = np.int64(tree.leaf_node[leaf_of(s, tree)])
    t, end = node, node + 1
    while t < end or node > 0:
        if t == end:
            t = beside(node, tree)
            end, node = np.int64(tree.node[t, END]), np.int64(tree.above[node])
        if is_left_out(t, bound, context) or point_gap2(s, t, tree) > bound:
            t = np.int64(tree.node[t, END])
        else:
            leaf = np.int64(tree.node[t, LEAF_OF])
            if leaf >= 0:
                bound = meet(s, leaf, bound, tree, context)
            t += 1
    return bound


@body
def put_in_list(s, leaf, bound, tree, context):
    """Put the points of a leaf into an ascending list of neighbours; the last falls out."""
    near, who = context
    for t in range(tree.begin[leaf], tree.begin[leaf + 1]):
        d2 = distance2(s, t, tree)
        if t != s and d2 < bound:
            k = len(near) - 1
            while k > 0 and near[k - 1] > d2:
                near[k], who[k] = near[k - 1], who[k - 1]
                k -= 1
            near[k], who[k] = d2, t
            bound = near[len(near) - 1]
    return bound


fold_nearest = fold_leaves.bind(meet=put_in_list)


@kernel
def find_nearest(piece, tree, count, min_samples, near, who, nearest, core, reach):
    """As `nearest.find_nearest`, of each so-many-th point; `near` and `who` (pieces, neighbours) are memory."""
    (n, kept), (pieces, listed) = nearest.shape, near.shape
    s = np.int64(piece)
    while s < n:
        for k in range(listed):
            near[piece, k], who[piece, k] = np.inf, -1
        fold_nearest(s, np.inf, tree, (near[piece], who[piece]))
        for k in range(kept):
            nearest[s, k] = who[piece, k]
        reach[s] = near[piece, kept - 1]
        if min_samples > 1:
            core[s] = core_of(s, 0, min_samples, count, near[piece], who[piece])
        s += pieces


@body
def is_own_or_far(t, bound, context):
    """Return whether all points of a node are of the component that asks, or have core distances beyond the bound."""
    points, _, node, c = context
    return node[t, COMPONENT] == c or points.node_core[t] > bound


@body
def find_edge(s, leaf, bound, tree, context):
    """Find the first edge from point s to those of a leaf, and let its component know of its weight."""
    points, components, _, c = context
    for t in range(tree.begin[leaf], tree.begin[leaf + 1]):
        d2 = distance2(s, t, tree)
        if points.component[t] != c and d2 <= bound:
            weight = max(max(d2, points.core[s]), points.core[t])
            if is_before(weight, d2, s, t, s, points, tree):
                points.weight[s], points.length[s], points.other[s] = weight, d2, t
                if weight < atomic_load(components.bound, c):
                    atomic_min(components.bound, c, weight)
    return atomic_load(components.bound, c)


fold_edges = fold_leaves.bind(meet=find_edge, is_left_out=is_own_or_far)


@kernel
def search_point(i, points, components, tree):
    """As `rounds.search`, of a point; those of a component share `bound`, which only falls."""
    s = np.int64(i)
    c = points.component[s]
    bound = atomic_load(components.bound, c)
    if components.skip[c] or points.reach[s] > bound or is_certain(s, points, tree):
        return
    fold_edges(s, bound, tree, (points, components, tree.node, c))
    points.reach[s] = atomic_load(components.bound, c)
    if points.other[s] >= 0:
        points.alive[leaf_of(s, tree)] = True


# --------------------------------------------------------------------------------------------------------------- merges
@kernel
def join(c, points, components, edges):
    """Join a component that is not open and the one that its first edge leads to.

    The edge is added once: by the smaller one, if it is the first of both.
    """
    s = components.best[c]
    if s < 0 or components.is_open[c]:
        return
    t = points.other[s]
    d = points.component[t]
    unite(components.parent, c, d)
    is_of_both = components.best[d] == t and not components.is_open[d] and points.other[t] == s
    if c < d or not is_of_both:
        number = atomic_add(edges.counts, 0, 1)
        edges.ends[number, 0], edges.ends[number, 1] = s, t


@kernel
def mark_root(c, parent, is_root):
    """Mark the components that are left."""
    is_root[c] = 1 if parent[c] == c else 0


@kernel
def number_component(c, up_to, sizes, components, edges):
    """Write the number of a component in the next round to `best`; `up_to` sums those that are left.

    `sizes` are those of the next round and start with zeros.
    """
    number = up_to[find(components.parent, c)] - 1
    components.best[c] = number
    atomic_add(sizes, number, components.size[c])
    if c == len(up_to) - 1:
        edges.counts[1] = up_to[c]
