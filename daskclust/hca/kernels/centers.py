"""The nearest of some centres, and of some clusters."""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import kernel
from daskclust.core.device.operations import times
from daskclust.hca.kernels.clusters import length


@kernel
def nearest_center(i, points, centers, labels):
    """Label point i with its nearest centre, the first of several."""
    best, label = np.inf, 0
    for k in range(centers.shape[0]):
        total = 0.0
        for f in range(centers.shape[1]):
            step = np.float64(points[i, f]) - centers[k, f]
            total += times(step, step)
            if total > best:
                break
        if total < best:
            best, label = total, k
    labels[i] = label


@kernel
def nearest_cluster(i, points, clusters, labels):
    """Label point i with the cluster of the smallest distance, by its own shape, the first of several; -1: none."""
    best, label = np.inf, -1
    for k in range(clusters.center.shape[0]):
        away = length(clusters, clusters.row[k], points, i, clusters.center, k, clusters.center.shape[1])
        if away < best:
            best, label = away, k
    labels[i] = label
