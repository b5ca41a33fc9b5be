"""The clusters of a cut, as new points see them: centroids, and shapes as the rule makes them."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from daskclust.core.data.lazy import map_points, map_with
from daskclust.core.device.arrays import HOST, device_of, is_dask, to_host
from daskclust.hca.clusters import LevelClusters
from daskclust.hca.kernels.centers import nearest_cluster
from daskclust.hca.kernels.shapes import Rule
from daskclust.hca.kernels.teams import shape_roots
from daskclust.hca.levels import tables_of


class CutShapes(NamedTuple):
    """Clusters that measure distances."""

    center: Any  # (k, d)
    row: Any  # (k,): of `whiten`, -1 for Euclidean distances
    whiten: Any  # (rows, p): W, as `kernels.shapes` has it


def shapes_of_cut(X: Any, labels: Any, rule: Rule) -> CutShapes:
    """Return the clusters of labelled points, noise left out."""
    labels = to_host(labels)
    is_member = labels >= 0
    label, points = labels[is_member], to_host(X)[is_member].astype(np.float64)
    count, d = int(label.max(initial=-1)) + 1, points.shape[1]
    if not count:
        raise ValueError("the cut has no clusters; give a smaller min_size")
    size = np.bincount(label)
    total = np.stack([np.bincount(label, column) for column in points.T], axis=1)
    steps = (points - (total / size[:, None])[label]).T
    scatter: Any = np.stack([np.bincount(label, steps[i] * steps[j]) for i in range(d) for j in range(i + 1)], axis=1)
    place = np.arange(count)
    clusters = LevelClusters(
        -1 - place, size, total, scatter, place, place, np.zeros(count, np.int64), total / size[:, None]
    )
    merges = np.empty((count - 1, 2), np.int64), np.empty(count - 1)
    tables = tables_of(clusters, np.array([0, count]), rule, HOST, *merges, 1, 1)
    shape_roots.run(1, rule, *tables[:5], grain=1)
    found = tables.clusters
    return CutShapes(found.center, np.where(found.is_shaped, found.row, -1), tables.shapes.whiten)


def predicted(X: Any, fitted: Any, labels: Any, rule: Rule) -> Any:
    """Return the nearest cluster (n,) of each point, lazily where the points or those of the clusters are."""
    if is_dask(fitted):
        return map_with(_nearest, X, shapes_of_cut, (fitted, labels, rule))
    near = functools.partial(_nearest, rows=None, shapes=shapes_of_cut(fitted, labels, rule))
    return map_points(near, X)


def _nearest(X: Any, rows: Any, shapes: CutShapes) -> Any:
    """Return the nearest cluster (n,) of each point, where X is."""
    device = device_of(X)
    labels = device.empty(len(X), np.int64)
    device.run(nearest_cluster, len(X), X, CutShapes(*map(device.from_host, shapes)), labels, grain=512)
    if len(X) and int(labels.min()) < 0:
        raise ValueError("X contains NaN, infinity or numbers above 1e150; predict the points that do not")
    return labels
