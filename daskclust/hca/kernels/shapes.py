"""Shapes of clusters: from the scatter of members to the matrix that makes the cluster round.

A symmetric or lower triangular matrix (d, d) is a row of d (d + 1) / 2 numbers, the lower triangle row by row. A shape
W has ``W.T @ W`` equal to the inverse covariance, so the Mahalanobis distance is the length of ``W @ x``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from daskclust.core.device.kernels import body
from daskclust.core.device.operations import square_root, times

PIVOT = 1e-13  # part of a channel's variance that must be its own, or the covariance counts as singular
RESOLUTION = 2.0**-48  # of coordinates: a spread below this part of the mean is rounding
TERMS = 400  # most steps of the iteration for the determinant's root; about 40 are usual


class Rule(NamedTuple):
    """How distances are measured."""

    threshold: float  # size from which on a cluster's shape counts in full
    mixes: int  # whether smaller clusters have shapes, drawn towards a sphere: mahal and mahal0
    unit_sphere: int  # mahal0: that sphere has radius 1
    waits: int  # euclid: shapes are used when all clusters have reached the threshold
    scales: int  # whether shapes have determinant 1 until then: all rules but thesis
    normalize: int  # and after it
    missing: int  # degrees of freedom taken off the number of members: 0 thesis, 1 others
    smallest: int  # fewest members that make a shape: 1 thesis, 3 others
    full: int  # distances are means over members, not those of centroids


class Shapes(NamedTuple):
    """Rows of matrices for the clusters that need them."""

    scatter: Any  # (k, p): sum of squared deviations from the centroid
    whiten: Any  # (k, p): W
    unscale: Any  # (k,): what W is multiplied by once sizes count
    free: Any  # (k,): its first elements are the rows that are not in use
    unused: Any  # (1,): how many these are
    matrix: Any  # (d, d), for the shape that is made
    factor: Any  # (d, d), likewise
    spare: Any  # (d, d), likewise


@body
def at(i, j):
    """Place of element (i, j), i >= j, in a row."""
    return i * (i + 1) // 2 + j


@body
def add_outer(scatter, row, weight, one, i, other, j, d):
    """Add weight x (a - b) (a - b)^T of rows a and b of two arrays."""
    k = 0
    for p in range(d):
        left = times(weight, one[i, p] - other[j, p])
        for q in range(p + 1):
            scatter[row, k] += times(left, one[i, q] - other[j, q])
            k += 1


@body
def factorise(matrix, factor, center, slot, d):
    """Write the Cholesky factor of a covariance; return whether it has one.

    A channel without a spread of its own, up to rounding, makes the matrix singular.
    """
    for j in range(d):
        spread = matrix[j, j]
        grain = times(RESOLUTION, center[slot, j])
        left = spread
        for k in range(j):
            left -= times(factor[j, k], factor[j, k])
        if not left > max(times(PIVOT, spread), times(grain, grain)):  # also where it is no number
            return False
        root = square_root(left)
        factor[j, j] = root
        for i in range(j + 1, d):
            total = matrix[i, j]
            for k in range(j):
                total -= times(factor[i, k], factor[j, k])
            factor[i, j] = total / root
    return True


@body
def mean_pivot(factor, d):
    """Return the geometric mean of the diagonal, det^(1/d) of a triangular matrix, by Newton's iteration.

    Of additions, multiplications and divisions only, so it has the same bits on every device.
    """
    mean = 0.0
    for i in range(d):
        mean += factor[i, i]
    mean /= d
    for _ in range(TERMS):
        ratio = 1.0
        for i in range(d):
            ratio = times(ratio, factor[i, i] / mean)
        lower = times(mean, 1.0 + (ratio - 1.0) / d)
        if not lower < mean:  # it comes from above
            break
        mean = lower
    return mean


@body
def invert(factor, scale, whiten, row, d):
    """Write the inverse of a triangular matrix times `scale`."""
    for j in range(d):
        whiten[row, at(j, j)] = scale / factor[j, j]
        for i in range(j + 1, d):
            total = 0.0
            for k in range(j, i):
                total -= times(factor[i, k], whiten[row, at(k, j)])
            whiten[row, at(i, j)] = total / factor[i, i]


@body
def widest(matrix, spare, d):
    """Return an upper bound of the largest eigenvalue: of a matrix to the fourth, the root of the Frobenius norm.

    The matrix is divided by its largest element first, or else its powers leave the range of numbers.
    """
    largest = 0.0
    for i in range(d):
        largest = max(largest, matrix[i, i])
    for i in range(d):
        for j in range(d):
            matrix[i, j] /= largest
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            for k in range(d):
                total += times(matrix[i, k], matrix[j, k])
            spare[i, j] = total
            spare[j, i] = total
    norm = 0.0
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            for k in range(d):
                total += times(spare[i, k], spare[j, k])
            norm += times(times(total, total), 1.0 if i == j else 2.0)
    return times(square_root(square_root(square_root(norm))), largest)


@body
def make_shape(rule, size, center, slot, shapes, row, d):
    """Write W of a cluster from its scatter; return (whether it has one, the least factor by which W stretches)."""
    weight = min(1.0, size / rule.threshold)
    if size < rule.smallest or (weight < 1.0 and not rule.mixes) or (weight == 1.0 and size <= d):
        return False, 1.0
    matrix, factor = shapes.matrix, shapes.factor
    freedom = 1.0 / (size - rule.missing)
    for i in range(d):
        for j in range(i + 1):
            value = times(shapes.scatter[row, at(i, j)], freedom)
            matrix[i, j] = value
            matrix[j, i] = value
    regular = False
    turn = 1 if weight == 1.0 or rule.unit_sphere or size <= d else 0
    while turn < 2:  # first as it is, for its determinant, then drawn towards a sphere
        if turn == 1 and weight < 1.0:
            radius = 1.0
            if regular:
                radius = mean_pivot(factor, d)
            for i in range(d):
                for j in range(d):
                    matrix[i, j] = times(weight, matrix[i, j])
                matrix[i, i] += times(1.0 - weight, times(radius, radius))
        regular = factorise(matrix, factor, center, slot, d)
        turn += 1
    if not regular:
        return False, 1.0
    scale = 1.0
    shapes.unscale[row] = 1.0
    if rule.scales:
        scale = mean_pivot(factor, d)
        shapes.unscale[row] = 1.0 / scale
    invert(factor, scale, shapes.whiten, row, d)
    return True, times(scale / square_root(widest(matrix, shapes.spare, d)), 1.0 - 1e-9)
