"""Passes over a linkage and over condensed trees, see `daskclust.hdbscan.condensed`: each body runs once.

Merges of a linkage are after those below them. Those that are arranged, and clusters of a condensed tree, are before.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.merge.labels import NOISE


@kernel
def arrange(_once, Z, at, height, size, larger, place):
    """Put merges in the order in which one walks down their tree, into the larger part first.

    The merges of a part of m points are m - 1 that follow each other, after the merge above. `at` is memory for the
    position and the first point of each merge, `place` gets the position of each point.
    """
    n = len(Z) + 1
    if n == 1:
        place[0] = 0
    else:
        at[n - 2, 0] = at[n - 2, 1] = 0
    for row in range(n - 2, -1, -1):
        position, first = at[row, 0], at[row, 1]
        a, b = np.int64(Z[row, 0]), np.int64(Z[row, 1])
        members = np.int64(Z[row, 3])
        part = np.int64(Z[a - n, 3]) if a >= n else np.int64(1)
        if 2 * part < members:
            a, b, part = b, a, members - part
        height[position], size[position], larger[position] = Z[row, 2], members, part
        if a >= n:
            at[a - n, 0], at[a - n, 1] = position + 1, first
        else:
            place[a] = first
        if b >= n:
            at[b - n, 0], at[b - n, 1] = position + part, first + part
        else:
            place[b] = first + part


@kernel
def count_parts(_once, height, size, larger, least, at_once, step, large, rest):
    """Find the step of each merge: the topmost one of those of equal height above it, or itself unless `at_once`.

    For each step, `large` counts the parts of at least `least` points, and `rest` the points of all others. `step`
    holds each merge itself before.
    """
    row = 0
    while row < len(height):
        if size[row] < least and height[row] < np.inf:
            row += size[row] - 1
            continue
        top, members, child = step[row], larger[row], row + 1
        for _side in range(2):
            is_same = at_once and members > 1 and height[child] == height[row]
            if is_same and (members >= least or height[row] == np.inf):
                step[child] = top
            elif members >= least:
                large[top] += 1
            else:
                rest[top] += members
            child, members = row + larger[row], size[row] - larger[row]
        row += 1


@kernel
def condense(
    _once, height, size, larger, least, at_once, step, large, rest, own, first,
    cluster, left, parent, birth, death, members_of, stability, found,
):  # fmt: skip
    """Write the cluster of each point and the density, 1 / height, at which it left it; clusters, and their number.

    `own` holds -1, and gets the cluster of each merge that is part of one; `first` gets its first point. Points that
    are in no such merge leave at 0.
    """
    n = len(height) + 1
    parent[0], birth[0], members_of[0] = NOISE, np.inf, n
    count, row = 1, 0
    if n == 1:
        cluster[0], left[0] = 0, 0.0
    else:
        own[0] = first[0] = 0
    while row < n - 1:
        members, c, begin = size[row], own[row], first[row]
        if c < 0:
            row += members - 1
            continue
        top, h = step[row], height[row]
        is_join = h == np.inf  # of trees that have nothing to do with each other
        is_fork = is_join or large[top] > 1
        at = 1.0 / h if h > 0 else np.inf
        if row == top:
            leaving = members if is_fork or large[row] == 0 else rest[row]
            stability[c] += leaving * (at - 1.0 / birth[c])
            death[c] = at
        part, child = larger[row], row + 1
        for _side in range(2):
            is_same = at_once and part > 1 and height[child] == h
            if part > 1 and (part >= least or is_join):
                own[child], first[child] = c, begin
                if is_same:
                    step[child] = top
                elif is_fork:
                    own[child] = count
                    parent[count], birth[count], members_of[count] = c, h, part
                    count += 1
            else:
                for k in range(begin, begin + part):
                    cluster[k], left[k] = c, at
            begin, child, part = begin + part, row + part, members - part
        row += 1
    found[0] = count


@kernel
def carry_largest(_once, parent, values):
    """Carry the largest of the values of clusters up."""
    for c in range(len(parent) - 1, 0, -1):
        values[parent[c]] = max(values[parent[c]], values[c])


@body
def sort(values, first, end):
    """Sort ``values[first:end]``, ascending (Shell, with Knuth's gaps)."""
    gap = 1
    while 3 * gap < end - first:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, end):
            value, j = values[i], i
            while j >= first + gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


@kernel
def choose_stable(_once, parent, first, allowed, stability, below, filled, chosen):
    """Choose clusters at least as stable as those chosen below them, whose stabilities are added in ascending order.

    Stabilities of the children of cluster c go to ``below[first[c] : first[c + 1]]``, where `filled` counts them.
    """
    for c in range(len(parent) - 1, -1, -1):
        sort(below, first[c], first[c + 1])
        total = 0.0
        for k in range(first[c], first[c + 1]):
            total += below[k]
        chosen[c] = allowed[c] and stability[c] >= total
        if c > 0:
            above = parent[c]
            below[first[above] + filled[above]] = stability[c] if chosen[c] else total
            filled[above] += 1


@kernel
def find_wide(_once, parent, birth, epsilon, single, wide):
    """Find the lowest cluster above each, or itself, that is born at `epsilon` or higher; `wide` holds each itself.

    The topmost ones, children of roots, stand for all of their tree unless the root may be a `single` cluster.
    """
    for c in range(1, len(parent)):
        above = parent[c]
        if birth[c] < epsilon and (single or birth[above] < np.inf):
            wide[c] = wide[above]


@kernel
def find_owners(_once, parent, chosen, owner):
    """Find the topmost chosen cluster around each, -1 where there is none."""
    for c in range(len(parent)):
        above = owner[parent[c]] if c > 0 else NOISE
        owner[c] = c if above == NOISE and chosen[c] else above


@kernel
def label_points(_once, cluster, left, owner, since, death, deepest, number, labels, probability, score):
    """Write the label of each point, its probability and its outlier score; clusters get a `number`, which is -1.

    Points that left their cluster before ``since[cluster]`` are noise.
    """
    used = 0
    for i in range(len(labels)):
        at, most = left[i], deepest[cluster[i]]
        score[i] = 0.0
        if 0 < at < most:
            score[i] = (most - at) / most if most < np.inf else 1.0
        c = owner[cluster[i]]
        labels[i] = NOISE
        probability[i] = 0.0
        if c >= 0 and at >= since[c]:
            if number[c] < 0:
                number[c] = used
                used += 1
            labels[i] = number[c]
            probability[i] = at / death[c] if at < death[c] else 1.0
