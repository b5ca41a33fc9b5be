"""Clusters into slots: those that are near each other into the same block."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.kernels import body, kernel
from daskclust.hca.kernels.blocks import FAR, HIGHEST, SIDE, WIDTH, Boxes, MatrixBlocks
from daskclust.hca.kernels.clusters import Clusters

SAMPLE = 128  # rows that tell along which axis a part is longest
YOUNG = np.int64(1) << 62  # later than any id
DOWN = np.float32(1.0 - 2.0**-20)  # stretches are rounded down
SMALLEST = 1e-290  # radius that coordinates are scaled by
BY_SLOT = ("ident", "size", "total", "center", "first", "last", "row", "is_shaped", "stretch")


@body
def longest_axis(rows, begin, end):
    """Return the axis along which a sample of rows extends most."""
    step = max(1, (end - begin) // SAMPLE)
    best, extent = 0, np.float32(-1.0)
    for f in range(rows.shape[1]):
        low, high = rows[begin, f], rows[begin, f]
        i = begin
        while i < end:
            low, high = min(low, rows[i, f]), max(high, rows[i, f])
            i += step
        if high - low > extent:
            best, extent = f, high - low
    return best


@body
def swap(rows, order, i, j):
    """Exchange two rows, and their places in the order."""
    for f in range(rows.shape[1]):
        rows[i, f], rows[j, f] = rows[j, f], rows[i, f]
    order[i], order[j] = order[j], order[i]


@body
def select_middle(rows, order, begin, end, middle, f):
    """Move rows so that those before `middle` are at most, those from it on at least, the one there."""
    left, right = begin, end - 1
    while left < right:
        one, two, three = rows[left, f], rows[(left + right) // 2, f], rows[right, f]
        pivot = max(min(one, two), min(max(one, two), three))
        i, j = left, right
        while i <= j:
            while rows[i, f] < pivot:
                i += 1
            while rows[j, f] > pivot:
                j -= 1
            if i <= j:
                swap(rows, order, i, j)
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return


@kernel
def divide(_once, rows, order, stack):
    """Order rows (m, d) so that each 64 of them are near each other: halves of halves, along the longest axis."""
    stack[0, 0], stack[0, 1] = 0, len(rows)
    depth = 1
    while depth:
        depth -= 1
        begin, end = stack[depth, 0], stack[depth, 1]
        blocks = (end - begin + SIDE - 1) // SIDE
        if blocks <= 1:
            continue
        middle = begin + blocks // 2 * SIDE
        select_middle(rows, order, begin, end, middle, longest_axis(rows, begin, end))
        stack[depth, 0], stack[depth, 1] = begin, middle
        stack[depth + 1, 0], stack[depth + 1, 1] = middle, end
        depth += 2


class Axes(NamedTuple):
    """How coordinates are turned and scaled, for all the time that a set is merged."""

    middle: NDArray[np.float64]  # (d,)
    turn: NDArray[np.float64]  # (d, d): to principal axes, scaled
    scale: NDArray[np.float64]  # (1,): what that multiplies distances by


@kernel
def turn_row(i, center, axes, rows):
    """Write the coordinates of centroid i."""
    d = rows.shape[1]
    for f in range(d):
        total = 0.0
        for k in range(d):
            total += (center[i, k] - axes.middle[k]) * axes.turn[k, f]
        rows[i, f] = np.float32(total)


def principal_axes(center: NDArray[np.float64]) -> Axes:
    """Return the principal axes of centroids (m, d), the longest first.

    Bounds hold for any axes, so the sample that they are found from changes no result.
    """
    middle = (center.min(axis=0) + center.max(axis=0)) / 2
    sample = center[:: max(1, len(center) // 4096)] - middle
    extent = np.abs(sample).max(initial=0.0) or 1.0
    _, axes = np.linalg.eigh(sample.T / extent @ (sample / extent))
    radius = np.sqrt(((center - middle) ** 2).sum(axis=1)).max(initial=0.0)
    scale = 1.0 / radius if radius > SMALLEST else 1.0
    return Axes(middle, np.ascontiguousarray(axes[:, ::-1]) * scale, np.array([scale]))


def arrange(clusters: Clusters, near: Any, partner: Any, axes: Axes) -> tuple[Clusters, MatrixBlocks]:
    """Give the clusters that there are new slots; return them and their blocks."""
    alive = np.flatnonzero(clusters.ident >= 0)
    m, d = len(alive), clusters.center.shape[1]
    rows = np.empty((m, d), np.float32)
    turn_row.run(m, clusters.center[alive], axes, rows, grain=4096)
    order = np.arange(m)
    divide.run(1, rows, order, np.empty((2 * m.bit_length() + 4, 2), np.int64))
    slots, source = -(-m // SIDE) * SIDE, alive[order]

    def moved(values: Any, empty: Any) -> Any:
        result = np.empty((slots, *values.shape[1:]), values.dtype)
        np.take(values, source, axis=0, out=result[:m], mode="clip")  # "raise" would make a copy
        result[m:] = empty
        return result

    placed = {name: moved(getattr(clusters, name), 0) for name in BY_SLOT}
    placed["ident"][m:] = -1
    clusters.slot_of[placed["ident"][:m]] = np.arange(m)
    clusters = clusters._replace(**placed)

    place = np.full((slots, d), FAR, np.float32)
    place[:m] = rows
    stretch = np.ones(slots, np.float32)
    stretch[:m] = np.minimum(clusters.stretch[:m], HIGHEST).astype(np.float32) * DOWN
    oldest = np.where(placed["ident"] < 0, YOUNG, placed["ident"])
    starts = np.arange(0, m, SIDE)
    low, high = np.minimum.reduceat(rows, starts), np.maximum.reduceat(rows, starts)
    least, first = np.minimum.reduceat(stretch, starts), np.minimum.reduceat(oldest, starts)
    boxes = _boxes(low, high, least, first)
    starts = starts[::SIDE] // SIDE
    nodes = _boxes(
        np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts), np.minimum.reduceat(least, starts),
        np.minimum.reduceat(first, starts),
    )  # fmt: skip
    near, partner = moved(near, np.inf), moved(partner, -1)
    block_near = _padded(near.reshape(-1, SIDE).min(axis=1), np.inf)
    node_near = np.minimum.reduceat(block_near, starts)
    place = np.ascontiguousarray(place.reshape(-1, SIDE, d).transpose(0, 2, 1)).ravel()
    firsts = np.full(len(block_near), -1), np.full(len(node_near), -1)
    bound = np.empty(slots, np.int64)
    return clusters, MatrixBlocks(place, boxes, nodes, near, partner, bound, block_near, node_near, *firsts, *axes)


def _boxes(low: Any, high: Any, stretch: Any, oldest: Any) -> Boxes:
    """Return boxes axis by axis, of as many as lanes take."""
    low, high = _padded(low, np.inf).T.ravel(), _padded(high, -np.inf).T.ravel()
    return Boxes(low, high, _padded(stretch, 1.0), _padded(oldest, YOUNG))


def _padded(values: Any, empty: Any) -> Any:
    result = np.full((-(-len(values) // WIDTH) * WIDTH, *values.shape[1:]), empty, values.dtype)
    result[: len(values)] = values
    return result
