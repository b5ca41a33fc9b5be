"""Shapes of clusters: from the scatter of members to the matrix that makes the cluster round.

A symmetric or lower triangular matrix (d, d) is a row of d (d + 1) / 2 numbers, the lower triangle row by row. A shape
W has ``W.T @ W`` equal to the inverse covariance, so the Mahalanobis distance is the length of ``W @ x``.

The threads of a block make a shape together, each its `ThreadShare` of the elements. Every sum is one thread's, from
its first term to its last, so the result has the same bits for any number of threads; on the CPU one thread has all.
Between two barriers no thread reads what another writes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from daskclust.core.device.kernels import body
from daskclust.core.device.operations import block_barrier, square_root, times

PIVOT = 1e-13  # part of a channel's variance that must be its own, or the covariance counts as singular
RESOLUTION = 2.0**-48  # of coordinates: a spread below this part of the mean is rounding
TERMS = 1 << 20  # most steps of the iteration for the determinant's root: 40 are usual, 1000 where units differ much


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
    free: Any  # (k,): its first elements are the rows that are not in use
    unused: Any  # (1,): how many these are
    memory: Any  # (`numbers_for_shape`,): to make a shape in


class ThreadShare(NamedTuple):
    """The part of a block's work that is a thread's: of a list every `size`-th item from `rank` on.

    Of a matrix it is rows `row`, `row` + `rows`, ... and columns likewise; up to 16 threads share a row.
    """

    rank: int
    size: int
    row: int
    rows: int
    column: int
    columns: int


ALL = ThreadShare(0, 1, 0, 1, 0, 1)  # of a thread that works alone


def numbers_for_shape(d: int) -> int:
    """Return how many numbers of memory it takes to make a shape: two matrices, and two of each channel."""
    return 2 * d * d + 2 * d


@body
def share_of(rank, size):
    """Return the share of one of `size` threads, a power of two."""
    return ThreadShare(rank, size, rank >> 4, max(size >> 4, 1), rank & 15, min(size, 16))


@body
def at(i, j):
    """Place of element (i, j), i >= j, in a row."""
    return i * (i + 1) // 2 + j


@body
def add_outer(scatter, row, weight, one, i, other, j, share, d):
    """Add weight x (a - b) (a - b)^T of rows a and b of two arrays."""
    p = share.row
    while p < d:
        left = times(weight, one[i, p] - other[j, p])
        q = share.column
        while q <= p:
            scatter[row, at(p, q)] += times(left, one[i, q] - other[j, q])
            q += share.columns
        p += share.rows


@body
def covariance(scatter, row, freedom, matrix, share, d):
    """Write a covariance, both halves of it, from its scatter."""
    i = share.row
    while i < d:
        j = share.column
        while j <= i:
            value = times(scatter[row, at(i, j)], freedom)
            matrix[i * d + j] = value
            matrix[j * d + i] = value
            j += share.columns
        i += share.rows


@body
def draw_towards_sphere(matrix, weight, radius, share, d):
    """Mix a covariance, of part `weight`, with that of a sphere."""
    i = share.row
    while i < d:
        j = share.column
        while j <= i:
            value = times(weight, matrix[i * d + j])
            if i == j:
                value += times(1.0 - weight, times(radius, radius))
            matrix[i * d + j] = value
            matrix[j * d + i] = value
            j += share.columns
        i += share.rows


@body
def factorise(matrix, factor, numbers, center, slot, share, d):
    """Write the Cholesky factor of a covariance, a row a thread; return whether it has one.

    A channel without a spread of its own, up to rounding, makes the matrix singular. Every thread finds each pivot.
    """
    block_barrier()
    j = share.rank
    while j < d:
        grain = times(RESOLUTION, center[slot, j])
        numbers[j] = max(times(PIVOT, matrix[j * d + j]), times(grain, grain))
        j += share.size
    block_barrier()
    for j in range(d):
        left = matrix[j * d + j]
        for k in range(j):
            left -= times(factor[j * d + k], factor[j * d + k])
        if not left > numbers[j]:  # also where it is no number
            return False
        root = square_root(left)
        if share.rank == 0:
            factor[j * d + j] = root
        i = j + 1 + share.rank
        while i < d:
            total = matrix[i * d + j]
            for k in range(j):
                total -= times(factor[i * d + k], factor[j * d + k])
            factor[i * d + j] = total / root
            i += share.size
        block_barrier()
    return True


@body
def mean_pivot(factor, numbers, share, d):
    """Return the geometric mean of the diagonal, det^(1/d) of a triangular matrix, by Newton's iteration.

    Of additions, multiplications and divisions only, so it has the same bits on every device. Steps take turns with
    two places for quotients: one barrier a step is enough.
    """
    mean = 0.0
    for i in range(d):
        mean += factor[i * d + i]
    mean /= d
    first = 0
    for _ in range(TERMS):
        i = share.rank
        while i < d:
            numbers[first + i] = factor[i * d + i] / mean
            i += share.size
        block_barrier()
        ratio = 1.0
        for i in range(d):
            ratio = times(ratio, numbers[first + i])
        lower = times(mean, 1.0 + (ratio - 1.0) / d)
        if not lower < mean:  # it comes from above
            break
        mean = lower
        first = d - first
    return mean


@body
def invert(factor, scale, back, whiten, row, share, d):
    """Write the inverse of a triangular matrix times `scale`, then times `back`, a column a thread.

    A column without `back` is kept above the diagonal of `factor`, where it is a row.
    """
    j = share.rank
    while j < d:
        first = scale / factor[j * d + j]
        whiten[row, at(j, j)] = times(first, back)
        for i in range(j + 1, d):
            total = 0.0
            total -= times(factor[i * d + j], first)
            for k in range(j + 1, i):
                total -= times(factor[i * d + k], factor[j * d + k])
            total /= factor[i * d + i]
            factor[j * d + i] = total
            whiten[row, at(i, j)] = times(total, back)
        j += share.size


@body
def multiply(matrix, i, j, d):
    """Return element (i, j) of a symmetric matrix times itself."""
    total = 0.0
    for k in range(d):
        total += times(matrix[i * d + k], matrix[j * d + k])
    return total


@body
def widest(matrix, spare, share, d):
    """Return an upper bound of the largest eigenvalue: of a matrix to the fourth, the root of the Frobenius norm.

    The matrix is divided by its largest element first, or else its powers leave the range of numbers.
    """
    largest = 0.0
    for i in range(d):
        largest = max(largest, matrix[i * d + i])
    block_barrier()
    for step in range(3):
        i = share.row
        while i < d:
            j = share.column
            while j <= i:
                if step == 0:
                    matrix[i * d + j] /= largest
                    matrix[j * d + i] = matrix[i * d + j]
                elif step == 1:
                    spare[i * d + j] = multiply(matrix, i, j, d)
                    spare[j * d + i] = spare[i * d + j]
                else:
                    total = multiply(spare, i, j, d)
                    matrix[i * d + j] = times(times(total, total), 1.0 if i == j else 2.0)
                j += share.columns
            i += share.rows
        block_barrier()
    norm = 0.0
    for i in range(d):
        for j in range(i + 1):
            norm += matrix[i * d + j]
    return times(square_root(square_root(square_root(norm))), largest)


@body
def make_shape(rule, size, is_final, center, slot, shapes, row, share, d):
    """Write W of a cluster from its scatter; return (whether it has one, the least factor by which W stretches).

    Once it is final, sizes count where they did not before.
    """
    weight = min(1.0, size / rule.threshold)
    if size < rule.smallest or (weight < 1.0 and not rule.mixes) or (weight == 1.0 and size <= d):
        return False, 1.0
    n = d * d
    matrix, factor, numbers = shapes.memory[:n], shapes.memory[n : 2 * n], shapes.memory[2 * n :]
    block_barrier()  # threads may still read the norm of the shape before
    covariance(shapes.scatter, row, 1.0 / (size - rule.missing), matrix, share, d)
    regular = False
    turn = 1 if weight == 1.0 or rule.unit_sphere or size <= d else 0
    while turn < 2:  # first as it is, for its determinant, then drawn towards a sphere
        if turn == 1 and weight < 1.0:
            radius = 1.0
            if regular:
                radius = mean_pivot(factor, numbers, share, d)
            block_barrier()
            draw_towards_sphere(matrix, weight, radius, share, d)
        regular = factorise(matrix, factor, numbers, center, slot, share, d)
        turn += 1
    if not regular:
        return False, 1.0
    scale, back = 1.0, 1.0
    if rule.scales:
        scale = mean_pivot(factor, numbers, share, d)
        if is_final and not rule.normalize:
            back = 1.0 / scale
    invert(factor, scale, back, shapes.whiten, row, share, d)
    stretch = times(scale / square_root(widest(matrix, factor, share, d)), 1.0 - 1e-9)
    return True, times(stretch, back)
