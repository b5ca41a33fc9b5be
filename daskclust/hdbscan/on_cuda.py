"""The spanning tree on a CUDA device: what `spanning_tree` does there in its own way.

The tree of boxes is built on the host, from keys in order; its boxes, and all that is found by it, stay on the device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from daskclust.core.device.arrays import Cuda
from daskclust.core.space.grid import PAD
from daskclust.hdbscan.kernels import edges as edge_kernels
from daskclust.hdbscan.kernels import on_cuda as kernels
from daskclust.hdbscan.kernels import point_tree, rounds
from daskclust.hdbscan.kernels.nearest import KEPT
from daskclust.hdbscan.kernels.point_tree import COMPONENT, LeafTree

_THREADS, _MOST_BYTES = 1 << 18, 1 << 28  # of searches that need memory


def in_order_of_keys(device: Cuda, X: Any, keys: Any, period: tuple[float, ...]) -> tuple[Any, ...]:
    """Return keys in order, on the host, the row of each point, and coordinates (d, n + PAD)."""
    n, d = X.shape
    places = device.order_of(keys)
    order, positions = device.empty(n + PAD, np.int32), device.empty((d, n + PAD), np.float64)
    device.run(kernels.write_position, n + PAD, places, X, period, order, positions)
    return device.to_host(device.take_at(keys, places)), order, positions


def write_boxes(device: Cuda, tree: LeafTree) -> None:
    """Write the boxes of all nodes."""
    axes, leaves = len(tree.period), len(tree.leaf_node)
    tree.box[:, :axes] = np.inf
    tree.box[:, axes:] = -np.inf
    device.run(point_tree.write_leaf_box, leaves, tree)
    device.run(kernels.widen_boxes, leaves, tree, tree.box.reshape(-1))


def find_nearest(
    device: Cuda, tree: LeafTree, count: Any, min_samples: int, nearest: Any, core: Any, reach: Any
) -> None:
    """Write neighbours and, where `min_samples` is above 1, core distances, as `kernels.nearest` does."""
    listed = max(KEPT, min_samples - 1)
    shape = min(len(nearest), _THREADS, 1 + _MOST_BYTES // (12 * listed)), listed
    near, who = device.empty(shape, np.float64), device.empty(shape, np.int32)
    device.run(kernels.find_nearest, len(near), tree, count, min_samples, near, who, nearest, core, reach)


def search(device: Cuda, points: rounds.PointStates, components: rounds.Components, tree: LeafTree) -> None:
    """Find the edges of all components that ask, by the tree."""
    leaves = len(tree.leaf_node)
    tree.node[:, COMPONENT] = kernels.UNKNOWN
    device.run(rounds.describe_leaf, leaves, points, tree)
    device.run(kernels.describe_above, leaves, tree, tree.node.reshape(-1))
    device.run(kernels.search_point, len(points.core), points, components, tree)


def merge(device: Cuda, points: rounds.PointStates, components: rounds.Components, edges: rounds.FoundEdges) -> None:
    """Add the first edge of each component that is not open, and number the components anew, as `rounds.merge` does."""
    left = len(components.best)
    up_to, sizes = device.empty(left, np.int32), device.zeros(left, np.int32)
    device.run(kernels.join, left, points, components, edges)
    device.run(kernels.mark_root, left, components.parent, up_to)
    device.running_sum(up_to, up_to)
    device.run(kernels.number_component, left, up_to, sizes, components, edges)
    components.size[:] = sizes


def in_order(device: Cuda, ends: Any, weight: Any, length: Any, order: Any) -> tuple[Any, Any]:
    """Return edges between rows of `order`, and their weights, in order."""
    n = len(weight)
    places, edges = device.count_up(n), device.empty((n, 2), np.int64)
    spare = device.empty((2, n), np.float64)
    device.run(edge_kernels.gather_edge, n, places, ends, weight, length, order, edges, *spare)
    keys = edges[:, 1], edges[:, 0], length, weight
    for key in keys[:3] if weight is length else keys:  # the least important first
        places = device.take_at(places, device.order_of(device.take_at(key, places)))
    return device.take_at(edges, places), device.take_at(weight, places)
