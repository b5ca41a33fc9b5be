"""Clusters that a level of the hierarchy starts from: points, or the roots of clusters below."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.arrays import HOST, Cuda, Host, device_of, is_cuda


class Items(NamedTuple):
    """Clusters and their members, in the order of their ids."""

    ref: NDArray[np.int64]  # (m,): number of the point, or -1 - k for the union of merge k of the levels below
    size: NDArray[np.int64]  # (m,)
    total: Any  # (m, d): sum of coordinates, on the host or a device
    scatter: NDArray[np.float64]  # (m, p); (0, p) where all are points
    first: NDArray[np.int64]  # (m,): members are a chain through `follower`
    last: NDArray[np.int64]  # (m,)
    follower: Any  # (points,), where `points` is
    points: Any  # (points, d), on the host or a device


def items_of_points(ref: NDArray[np.int64], points: Any, device: Host | Cuda = HOST) -> Items:
    """Return points as clusters of one."""
    n, d = points.shape
    place, ones = np.arange(n), np.ones(n, np.int64)
    follower = device.full(n, 0, np.int64)
    return Items(ref, ones, points, np.empty((0, d * (d + 1) // 2)), place, place, follower, points)


def on_device(device: Host | Cuda, array: Any) -> Any:
    """Return an array of the host or of the device as kernels there take it."""
    return device.argument(array) if is_cuda(array) else device.from_host(array)


def take(items: Items, rows: NDArray[np.int64]) -> Items:
    """Return some items; members stay as they are."""
    ref, size, first, last = (array[rows] for array in (items.ref, items.size, items.first, items.last))
    total = device_of(items.total).take(items.total, rows)
    scatter = items.scatter[rows] if len(items.scatter) else items.scatter
    return items._replace(ref=ref, size=size, total=total, scatter=scatter, first=first, last=last)


def joined(items: Items, others: Items) -> Items:
    """Return items and others with members among the same points; their sums come to the host."""
    scatter = np.zeros((len(items.ref) + len(others.ref), items.scatter.shape[1]))
    for part, begin in ((items, 0), (others, len(items.ref))):
        scatter[begin : begin + len(part.scatter)] = part.scatter
    total = np.concatenate([device_of(part.total).to_host(part.total) for part in (items, others)])
    ref, size, first, last = (
        np.concatenate([getattr(part, name) for part in (items, others)]) for name in ("ref", "size", "first", "last")
    )
    return Items(ref, size, total, scatter, first, last, items.follower, items.points)


def with_members(items: Items, others: Items) -> Items:
    """Return items and others of two chunks, all on the host."""
    shift = len(items.points)
    both = joined(items, others._replace(first=others.first + shift, last=others.last + shift))
    follower, points = (
        [device_of(array).to_host(array) for array in pair]
        for pair in ((items.follower, others.follower), (items.points, others.points))
    )
    return both._replace(follower=np.concatenate([follower[0], follower[1] + shift]), points=np.concatenate(points))


def moved(items: Items, device: Host | Cuda) -> Items:
    """Return items whose sums and members are on a device."""
    arrays = [
        array if is_cuda(array) or device is HOST else device.give(device.from_host(array))
        for array in (items.total, items.follower, items.points)
    ]
    return items._replace(total=arrays[0], follower=arrays[1], points=arrays[2])


def without_members(items: Items) -> Items:
    """Return items with one point in place of all members: distances of centroids need no more."""
    place = np.arange(len(items.ref))
    total = device_of(items.total).to_host(items.total)
    points = total / items.size[:, None]
    return items._replace(total=total, first=place, last=place, follower=np.zeros_like(place), points=points)
