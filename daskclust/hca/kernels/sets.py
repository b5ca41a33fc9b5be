"""What comes before and after the merges of sets of clusters."""

from __future__ import annotations

from daskclust.core.device.kernels import kernel
from daskclust.hca.kernels.teams import own_part
from daskclust.hca.kernels.union import add_members, use_shape


@kernel
def place(slot, base, ident, size, total, first, last, row, is_row, clusters):
    """Put an item into its slot; the set it belongs to begins at base[slot]. The centroid of equal rows is the row."""
    clusters.ident[slot] = ident[slot]
    clusters.slot_of[2 * base[slot] + ident[slot]] = slot - base[slot]
    clusters.size[slot] = size[slot]
    clusters.first[slot] = first[slot]
    clusters.last[slot] = last[slot]
    clusters.row[slot] = row[slot]
    clusters.is_shaped[slot] = False
    clusters.stretch[slot] = 1.0
    for f in range(total.shape[1]):
        clusters.total[slot, f] = total[slot, f]
        clusters.center[slot, f] = clusters.points[first[slot], f] if is_row[slot] else total[slot, f] / size[slot]


@kernel
def shape_roots(i, rule, sets, clusters, shapes, merges):
    """Make the shapes that the clusters of a set begin with."""
    own, room, done = own_part(i, sets, clusters, shapes, merges)
    for slot in range(len(own.ident)):
        if own.row[slot] >= 0:
            use_shape(rule, own, room, done, slot, clusters.center.shape[1])


@kernel
def close_set(i, sets, clusters, shapes, merges, total, scatter, ends):
    """Write the sums of the cluster that is left of a set, and where its members begin and end."""
    own, _, _ = own_part(i, sets, clusters, shapes, merges)
    slot = own.slot_of[2 * (sets.begin[i + 1] - sets.begin[i]) - 2]
    row = own.row[slot]
    for f in range(total.shape[1]):
        total[i, f] = own.total[slot, f]
    for k in range(scatter.shape[1]):
        scatter[i, k] = shapes.scatter[row, k] if row >= 0 else 0.0
    if row < 0 and own.size[slot] > 1:
        add_members(own, scatter, slot, i, total.shape[1])
    ends[i, 0], ends[i, 1] = own.first[slot], own.last[slot]
