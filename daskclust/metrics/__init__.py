"""How well clusterings agree: with the truth, with each other, and hierarchies by heights of points.

Purity, completeness and F1 of populations compare with the truth, the Rand index and intersections over unions with any
other clustering. `match_clusters` follows clusters from one step of time
to the next. It and `population_f1` tell of noise themselves; for the others:

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
from ._matching import Descendants, match_clusters
from ._populations import PopulationF1, population_f1

__all__ = [
    "ClusterIoU", "Descendants", "PopulationF1", "adjusted_rand_index", "cluster_iou", "completeness", "f_score",
    "match_clusters", "point_height_correlation", "point_heights", "population_f1", "purity",
]  # fmt: skip
