"""How well clusterings agree: with the truth, with each other, and hierarchies by heights of points.

Purity and completeness compare with the truth, the Rand index and intersections over unions with any other clustering.

Noise is -1 on both sides. ``noise="ignore"`` (the default) means that noise is no cluster, but its points still count:

- a predicted cluster that has true noise in it is less pure;
- a true cluster whose points are labelled noise is less complete;
- what is noise on the side whose clusters are judged does not count: points labelled noise have no part in purity, true
  noise none in completeness.

``noise="cluster"`` means that -1 is a cluster like any other on both sides.
"""

from __future__ import annotations

from daskclust.core.hierarchy import point_heights

from ._agreement import (
    ClusterIoU,
    adjusted_rand_index,
    cluster_iou,
    completeness,
    f_score,
    point_height_correlation,
    purity,
)

__all__ = [
    "ClusterIoU", "adjusted_rand_index", "cluster_iou", "completeness", "f_score", "point_height_correlation",
    "point_heights", "purity",
]  # fmt: skip
