"""What is read from a hierarchy of clusters: cuts, heights of points, orders of leaves, its top.

A hierarchy is SciPy's linkage Z, float64 of shape (n - 1, 4): row s is a merge, with the ids of the two clusters, its
height, and the number of points. Points are 0 .. n - 1, the cluster of row s is n + s. Heights may invert (a merge is
lower than one below it, as in centroid linkage), and are never repaired. All is linear in n.
"""

from daskclust.core.hierarchy.cuts import Top, condense, cut, least_size
from daskclust.core.hierarchy.kernels import SEVERAL
from daskclust.core.hierarchy.linkage import (
    check_linkage,
    is_monotone,
    leaf_order,
    members,
    node_labels,
    point_heights,
    single_linkage,
)

__all__ = [
    "SEVERAL",
    "Top",
    "check_linkage",
    "condense",
    "cut",
    "is_monotone",
    "leaf_order",
    "least_size",
    "members",
    "node_labels",
    "point_heights",
    "single_linkage",
]
