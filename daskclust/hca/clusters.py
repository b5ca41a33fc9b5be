"""Clusters that a level of the hierarchy starts from: points, or the roots of clusters below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.device.arrays import HOST, Cuda, Host, device_of, is_cuda, to_host


class LevelClusters(NamedTuple):
    """Clusters and their members, in the order of their ids."""

    ref: NDArray[np.int64]  # (m,): number of the point, or -1 - k for the union of merge k of the levels below
    size: NDArray[np.int64]  # (m,)
    total: Any  # (m, d): sum of coordinates, on the host or a device
    scatter: NDArray[np.float64]  # (u, p): of the unions among them, in their order
    first: NDArray[np.int64]  # (m,): members are a chain through `follower`
    last: NDArray[np.int64]  # (m,)
    follower: Any  # (points,), where `points` is
    points: Any  # (points, d), on the host or a device


def clusters_of_points(ref: NDArray[np.int64], points: Any, device: Host | Cuda = HOST) -> LevelClusters:
    """Return points as clusters of one."""
    n, d = points.shape
    place, ones = np.arange(n), np.ones(n, np.int64)
    follower = device.full(n, 0, np.int64)
    return LevelClusters(ref, ones, points, np.empty((0, d * (d + 1) // 2)), place, place, follower, points)


def on_device(device: Host | Cuda, array: Any) -> Any:
    """Return an array of the host or of the device as kernels there take it."""
    return array if is_cuda(array) else device.from_host(array)


def are_rows(ref: NDArray[np.int64], scatter: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which clusters are equal rows: points, and unions without scatter."""
    found = ref >= 0
    found[~found] = ~scatter.any(axis=1)
    return found


def centers(clusters: LevelClusters, is_row: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the centroids on the host; that of equal rows is the row, whatever rounding makes of their mean."""
    holder, owner = device_of(clusters.points), device_of(clusters.total)
    found: NDArray[np.float64] = holder.to_host(holder.take(clusters.points, clusters.first))
    others = np.flatnonzero(~is_row)
    found[others] = owner.to_host(owner.take(clusters.total, others)) / clusters.size[others, None]
    return found


def take(clusters: LevelClusters, rows: NDArray[np.int64]) -> LevelClusters:
    """Return some clusters; members stay as they are."""
    ref, size, first, last = (array[rows] for array in (clusters.ref, clusters.size, clusters.first, clusters.last))
    total = device_of(clusters.total).take(clusters.total, rows)
    scatter = clusters.scatter[(np.cumsum(clusters.ref < 0) - 1)[rows][ref < 0]]
    return clusters._replace(ref=ref, size=size, total=total, scatter=scatter, first=first, last=last)


def joined(parts: Sequence[LevelClusters]) -> LevelClusters:
    """Return clusters of several parts with members among the same points; their sums come to the host."""
    total = np.concatenate([to_host(part.total) for part in parts])
    ref, size, scatter, first, last = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("ref", "size", "scatter", "first", "last")
    )
    return parts[0]._replace(ref=ref, size=size, total=total, scatter=scatter, first=first, last=last)


def together(parts: Sequence[LevelClusters]) -> LevelClusters:
    """Return the clusters of several chunks, all on the host."""
    begin = np.cumsum([0, *[len(part.points) for part in parts]])
    shifted = [
        part._replace(first=part.first + shift, last=part.last + shift)
        for part, shift in zip(parts, begin, strict=False)
    ]
    points = [to_host(part.points) for part in parts]
    follower = [to_host(part.follower) + shift for part, shift in zip(parts, begin, strict=False)]
    return joined(shifted)._replace(follower=np.concatenate(follower), points=np.concatenate(points))


def moved(clusters: LevelClusters, device: Host | Cuda) -> LevelClusters:
    """Return clusters whose sums and members are on a device."""
    arrays = {name: on_device(device, getattr(clusters, name)) for name in ("total", "follower", "points")}
    return clusters._replace(**arrays)


def without_members(clusters: LevelClusters) -> LevelClusters:
    """Return clusters with one point in place of all members: distances of centroids need no more."""
    place = np.arange(len(clusters.ref))
    total = to_host(clusters.total)
    points = centers(clusters, are_rows(clusters.ref, clusters.scatter))
    return clusters._replace(total=total, first=place, last=place, follower=np.zeros_like(place), points=points)
