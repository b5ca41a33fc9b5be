"""Minimum spanning trees of what users give: of all points, or of each group by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from daskclust.core.data.checks import check_count, sides_of_box
from daskclust.core.data.columns import for_kernels, groups
from daskclust.core.data.inputs import EVENT, Points, read_points
from daskclust.core.device.arrays import is_dask, to_host
from daskclust.core.device.machine_code.compiling import expecting
from daskclust.core.hierarchy import single_linkage
from daskclust.core.space.extent import extent_of
from daskclust.core.space.partition import Chunk, Partition
from daskclust.hdbscan.event_trees import event_trees, joined, lazy_event_trees
from daskclust.hdbscan.plan import LazyTree, spanning_tree_of
from daskclust.hdbscan.spanning_tree import SpanningTree, spanning_tree

_LEAST_SIDE = 1e-150  # of a box
_KERNELS = 32  # about, of a fit


def read_forest(
    estimator: Any,
    X: Any,
    event: Any = None,
    min_samples: int = 1,
    alpha: float = 1.0,
    partition: str | Partition = "auto",
    has_events: bool = True,
) -> tuple[Points, SpanningTree | LazyTree]:
    """Return points that a user gives to an estimator with a `boxsize`, and their spanning tree.

    Edges of infinite weight join the trees of different events, and all points of those of fewer than `min_samples`.
    """
    points = read_points(estimator, X, EVENT)
    period = sides_of_box(points.box(estimator.boxsize), points.X.shape[1])
    for side in period:
        if side and not _LEAST_SIDE <= side <= 1 / _LEAST_SIDE:
            raise ValueError(
                f"boxsize must be from {_LEAST_SIDE:g} to {1 / _LEAST_SIDE:g}, so that squares of distances fit, got "
                f"{side:g}; give the coordinates in another unit"
            )
    own = points.event(event) if has_events else None
    if is_dask(points.X):
        if own is None:
            return points, spanning_tree_of(points.X, min_samples, period, alpha, partition)
        check_count(len(points.X))
        own = points.aligned("event", own, groups)
        return points, lazy_event_trees(points.X, own, min_samples, period, alpha, partition)
    array = for_kernels("X", points.X)
    check_count(len(array))
    _check_reach(array, alpha)
    with expecting(_KERNELS):
        if own is None:
            return points, _tree(array, min_samples, period, alpha)
        own = to_host(points.aligned("event", own, groups))
        return points, joined(event_trees(array, own, min_samples, period, alpha))


def linkage_of(tree: SpanningTree) -> npt.NDArray[np.float64]:
    """Return the single linkage of a tree."""
    return single_linkage(tree.edges, np.sqrt(tree.weight))


def lazy_linkage(tree: LazyTree) -> Any:
    """Return the same of dask arrays."""
    return tree.results(_as_result, {"Z": ((len(tree.edges), 4), np.float64)})["Z"]


def _as_result(tree: SpanningTree) -> dict[str, Any]:
    return {"Z": linkage_of(tree)}


def _tree(X: npt.NDArray[Any], min_samples: int, period: tuple[float, ...], alpha: float) -> SpanningTree:
    """Return the tree of all points; of fewer than `min_samples` points none is dense at any distance."""
    if len(X) < min_samples:
        tree = spanning_tree(X, 1, period, alpha)
        return SpanningTree(tree.edges, tree.weight + np.inf, tree.core + np.inf)
    return spanning_tree(X, min_samples, period, alpha)


def _check_reach(X: npt.NDArray[Any], alpha: float) -> None:
    """Refuse coordinates that are not finite, or so large that squares of distances are not."""
    low, high = extent_of(Chunk({"X": X}))
    with np.errstate(over="ignore", invalid="ignore"):
        square = (((high - low) / alpha) ** 2).sum()
    if not np.isfinite(square):
        raise ValueError(
            f"X reaches from {low.min():g} to {high.max():g}, and squares of such distances are not finite; give it in "
            "a larger unit"
        )
