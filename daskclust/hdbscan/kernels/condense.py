"""Passes over a linkage and over condensed trees, see `daskclust.hdbscan.condensed`: each body runs once.

Merges of a linkage are after those below them, and clusters of a condensed tree are after their parents.
"""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import body, kernel
from daskclust.core.merge.labels import NOISE


@kernel
def find_steps(_once, Z, least, at_once, step, large, rest):
    """Find the step of each merge: the topmost one of those of equal height above it, or itself unless `at_once`.

    For each step, `large` counts the parts of at least `least` points, and `rest` the points of all others.
    """
    n = len(Z) + 1
    for row in range(n - 2, -1, -1):
        top = step[row]
        for side in range(2):
            child = np.int64(Z[row, side])
            if child >= n:
                if at_once and Z[child - n, 2] == Z[row, 2]:
                    step[child - n] = top
                    continue
                step[child - n] = child - n
            size = np.int64(Z[child - n, 3]) if child >= n else 1
            if size >= least:
                large[top] += 1
            else:
                rest[top] += size


@kernel
def condense(_once, Z, least, step, large, rest, cluster, left, parent, birth, death, size, stability, found):
    """Write the cluster of each node and 1 / height at which it left it; the clusters, and their number to `found`.

    A node that leaves no cluster has -1. Points leave one; those that were in none do so at 0.
    """
    n = len(Z) + 1
    cluster[2 * n - 2] = 0
    left[2 * n - 2] = -1.0 if n > 1 else 0.0
    parent[0], birth[0], size[0] = NOISE, np.inf, n
    count = 1
    for row in range(n - 2, -1, -1):
        top, height = step[row], Z[row, 2]
        own, at = cluster[n + row], left[n + row]
        is_in = at < 0
        is_join = height == np.inf  # of trees that have nothing to do with each other
        is_fork = is_join or large[top] > 1
        if is_in:
            at = 1.0 / height if height > 0 else np.inf
            if row == top:
                leaving = Z[row, 3] if is_fork or large[row] == 0 else rest[row]
                stability[own] += leaving * (at - 1.0 / birth[own])
                death[own] = at
        for side in range(2):
            child = np.int64(Z[row, side])
            members = np.int64(Z[child - n, 3]) if child >= n else 1
            cluster[child] = own
            left[child] = at
            if not is_in:
                continue
            if child >= n and step[child - n] == top:
                left[child] = -1.0
            elif members >= least or (is_join and child >= n):
                left[child] = -1.0
                if is_fork:
                    cluster[child] = count
                    parent[count], birth[count], size[count] = own, height, members
                    count += 1
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
