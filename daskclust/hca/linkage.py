"""All merges of a set of clusters on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskclust.hca.blocks import SIDE
from daskclust.hca.clusters import Clusters
from daskclust.hca.layout import arrange
from daskclust.hca.loop import merge_down_to
from daskclust.hca.search import find_all
from daskclust.hca.shapes import Rule, Shapes
from daskclust.hca.union import Merges

FEW = 256  # clusters that are not given new slots any more


def link(points: NDArray[np.float64], rule: Rule) -> Merges:
    n, d = points.shape
    clusters = _of_points(points)
    shapes = _room(rule, n, d)
    state = np.array([0, n, 0, rule.threshold <= 1.0])
    merges = Merges(np.empty((n - 1, 2), np.int64), np.empty(n - 1), state)
    clusters, blocks = arrange(clusters)
    find_all.run(len(clusters.ident), rule, clusters, shapes, blocks, grain=64)
    least = blocks.near.reshape(-1, SIDE).min(axis=1)
    blocks.block_near[: len(least)] = least
    blocks.node_near[:] = np.minimum.reduceat(least, np.arange(0, len(least), SIDE))
    left = n
    while left > 1:
        left = int(0.6 * left) if left > FEW else 1
        merge_down_to.run(1, left, rule, clusters, shapes, blocks, merges)
        if left > 1:
            clusters, blocks = arrange(clusters, blocks.near, blocks.partner)
    return merges


def _of_points(points: NDArray[np.float64]) -> Clusters:
    n, d = points.shape
    ident, ones = np.arange(n), np.ones(n, np.int64)
    return Clusters(ident, ones, points, points, ident, ident, np.full(n, -1), np.zeros(n, np.bool_), np.ones(n),
        np.full(2 * n - 1, -1), np.zeros(n, np.int64), points)


def _room(rule: Rule, n: int, d: int) -> Shapes:
    least = max(rule.smallest, 3 if rule.mixes else int(np.ceil(rule.threshold)), 1)
    k, p = n // least + 2, d * (d + 1) // 2
    return Shapes(np.empty((k, p)), np.empty((k, p)), np.empty(k), np.arange(k), np.array([k]),
        np.empty((d, d)), np.empty((d, d)), np.empty((d, d)))
