"""The nearest of some centres."""

from __future__ import annotations

import numpy as np

from daskclust.core.device.kernels import kernel
from daskclust.core.device.operations import times


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
