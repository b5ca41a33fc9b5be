"""Apriori clusters: the user's, or k-means' where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.core.data.columns import column, groups
from daskclust.core.data.inputs import chunked_as, stack, table_of
from daskclust.core.data.lazy import map_points
from daskclust.core.device.arrays import device_of, is_dask, library, to_host
from daskclust.hca.kernels.centers import nearest_center

SAMPLE = 100_000  # points that k-means looks at, or 20 for each centre


def given_labels(X: Any, labels: Any) -> Any:
    """Return the user's labels, checked for shape and kind, as a dask array where X is one."""
    if library(labels) == "dask" and not is_dask(X):
        raise TypeError("apriori is a dask array and X is not; pass X as a dask array too, or apriori.compute()")
    levels = table_of(labels)
    if levels is not None:
        labels = stack(list(levels), list(levels.values()), groups)
    labels = column("apriori", labels, groups)
    if labels.ndim not in (1, 2) or labels.shape[0] != X.shape[0] or 0 in labels.shape[1:]:
        raise ValueError(
            f"apriori must have one label for each of the {X.shape[0]} points of X, or a column for each level, got "
            f"shape {labels.shape}"
        )
    return chunked_as(X, labels) if is_dask(X) else labels


def kmeans(X: Any, n_clusters: int) -> Any:
    """Return the labels (n,) of k-means clusters, an array of X's class; on dask they are lazy.

    scikit-learn's MiniBatchKMeans finds the centres in an evenly spaced sample of the points, so neither chunks nor
    threads play a part; on dask that sample is computed now.
    """
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    sample = X[:: max(1, len(X) // max(SAMPLE, 20 * n_clusters))]
    sample = sample.compute() if is_dask(sample) else sample
    sample = np.asarray(to_host(sample), np.float64)
    if not np.isfinite(sample).all():
        raise ValueError("X contains NaN or infinity; remove such points first, e.g. X[np.isfinite(X).all(axis=1)]")
    model = MiniBatchKMeans(min(n_clusters, len(sample)), random_state=0, n_init=1, batch_size=4096)
    with threadpool_limits(limits=1):
        centers = np.ascontiguousarray(model.fit(sample).cluster_centers_)
    return map_points(_assign, X, centers)


def _assign(X: Any, centers: NDArray[np.float64]) -> Any:
    device = device_of(X)
    labels = device.empty(len(X), np.int64)
    device.run(nearest_center, len(X), X, device.from_host(centers), labels, grain=512)
    return labels
