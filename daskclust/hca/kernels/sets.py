"""What comes before and after the merges of sets of clusters: merges at distance zero, first shapes, sums, order."""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel, team_kernel
from daskclust.hca.kernels.shapes import at, share_of
from daskclust.hca.kernels.teams import own_part
from daskclust.hca.kernels.union import add_members

LAST, GONE = -1, -2  # in a queue: no id follows; the id is in no queue any more


@body
def append(one, k, queue, follower, last):
    """Put an id at the end of the queue of place k; ids are counted within the set, whose queues begin at `queue`."""
    if last[k] >= 0 and follower[queue + last[k]] != GONE:
        follower[queue + last[k]] = one
    follower[queue + one], last[k] = LAST, one


@kernel
def merge_equal(i, begin, new_begin, of_item, place_of, follower, last, place, ident, pairs):
    """Write the merges of set i, the ids that are left, in their order, and the place of each.

    Firsts of queues come up in ascending order, as the id of a union is the largest so far: one walk meets them all.
    """
    m, queue = begin[i + 1] - begin[i], 2 * begin[i]
    for one in range(m):
        place_of[queue + one] = of_item[begin[i] + one]
        append(one, place_of[queue + one], queue, follower, last)
    step, found = begin[i] - new_begin[i], new_begin[i]
    one, following = 0, m
    while one < following:
        other, k = follower[queue + one], place_of[queue + one]
        if other == LAST:
            place[found], ident[found] = k, one
            found += 1
        elif other != GONE:
            pairs[step, 0], pairs[step, 1] = one, other
            follower[queue + other] = GONE
            place_of[queue + following] = k
            append(following, k, queue, follower, last)
            step, following = step + 1, following + 1
        one += 1


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


@team_kernel
def close_set(i, rank, size, sets, clusters, shapes, merges, desk, total, scatter, ends):
    """Write the sums of the cluster that is left of a set, and where its members begin and end."""
    own, _, _ = own_part(i, 0, sets, clusters, shapes, merges, desk)
    share, d = share_of(rank, size), total.shape[1]
    slot = own.slot_of[2 * (sets.begin[i + 1] - sets.begin[i]) - 2]
    row = own.row[slot]
    p = share.row
    while p < d:
        if share.column == 0:
            total[i, p] = own.total[slot, p]
        q = share.column
        while q <= p:
            scatter[i, at(p, q)] = shapes.scatter[row, at(p, q)] if row >= 0 else 0.0
            q += share.columns
        p += share.rows
    if row < 0 and own.size[slot] > 1:
        add_members(own, scatter, slot, i, share, d)
    if rank == 0:
        ends[i, 0], ends[i, 1] = own.first[slot], own.last[slot]


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
