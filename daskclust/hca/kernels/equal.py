"""The merges at distance zero, of items that are equal rows."""

from __future__ import annotations

from daskclust.core.device.kernels import body, kernel

LAST, GONE = -1, -2


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
