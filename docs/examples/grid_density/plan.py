"""Density on a grid as a plan: chunks are as they come, and send up a count for each of their cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from daskclust.core.data.checks import check_count, check_extent
from daskclust.core.device.arrays import device_of
from daskclust.core.merge.labels import NOISE
from daskclust.core.merge.sets import Slice, smallest_connected
from daskclust.core.run.plan import Plan
from daskclust.core.space.extent import extent_of
from daskclust.core.space.partition import Chunk

from .kernels import find_cell, take_label


class Occupied(NamedTuple):
    """The frontier: cells of a chunk that hold points."""

    cells: Any  # (k, d) int64
    counts: Any  # (k,) points of the chunk in each
    firsts: Any  # (k,) the smallest id of a point in each


class Local(NamedTuple):
    """A chunk, and the place of each of its points among its occupied cells."""

    chunk: Chunk
    place: Any  # (n,) int64, on the host


@dataclass(frozen=True)
class GridPlan(Plan):
    """Parameters of density on a grid: side of the cells, points in a dense cell, whether cells touch at corners."""

    width: float
    min_samples: int
    corners: bool

    name = "grid"  # of the steps on dask's dashboard
    results: ClassVar = {"labels": np.int64}
    divisions = ("chunks",)  # any part of the points is a chunk

    def measure(self, chunk: Chunk) -> tuple[Chunk, Any]:
        """Find the cell of each point."""
        X = chunk.columns["X"]
        device = device_of(X)
        check_count(len(X))
        check_extent(*extent_of(chunk), self.width)
        cell = device.empty(X.shape, np.int64)
        device.run(find_cell, len(X), X, X.dtype.type(self.width), cell)
        return chunk, device.to_host(cell)

    def local(self, measures: tuple[Chunk, Any], before: None = None) -> tuple[Local, Occupied]:
        """Count the points in each occupied cell."""
        chunk, cell = measures
        first, place, counts = distinct(cell)
        occupied = Occupied(cell[first], counts, chunk.ids_on_host()[first])
        return Local(chunk, place), occupied

    def merge(self, frontiers: list[Occupied]) -> list[Slice]:
        """Add up counts, join dense cells that touch, and number clusters by the smallest id of a point."""
        cells, counts, firsts = (np.concatenate(column) for column in zip(*frontiers, strict=True))
        one_of, place, _ = distinct(cells)
        total = np.zeros(len(one_of), np.int64)
        np.add.at(total, place, counts)
        first = np.full(len(one_of), np.iinfo(np.int64).max)
        np.minimum.at(first, place, firsts)

        dense = np.flatnonzero(total >= self.min_samples)
        cluster, n_clusters = self._clusters(cells[one_of[dense]], first[dense])
        number = np.full(len(one_of), NOISE)
        number[dense] = cluster
        ends = np.cumsum([len(frontier.cells) for frontier in frontiers])
        return [Slice(mine, n_clusters) for mine in np.split(number[place], ends[:-1])]

    def _clusters(self, cells: Any, first: Any) -> tuple[Any, int]:
        """Return the cluster number of each dense cell, and how many clusters there are."""
        if len(cells) == 0:
            return np.empty(0, np.int64), 0
        pairs = cKDTree(cells).query_pairs(1.0, p=np.inf if self.corners else 1, output_type="ndarray")
        root = smallest_connected(pairs, len(cells))
        smallest = first.copy()
        np.minimum.at(smallest, root, first)
        numbers, cluster = np.unique(smallest[root], return_inverse=True)
        return cluster, len(numbers)

    def finish(self, local: Local, merged: Slice) -> dict[str, Any]:
        """Return the label of each point."""
        device, n = device_of(local.chunk.columns["X"]), len(local.place)
        labels = device.empty(n, np.int64)
        device.run(take_label, n, device.from_host(local.place), device.from_host(merged.numbers), labels)
        return {"labels": labels}


def distinct(cells: Any) -> tuple[Any, Any, Any]:
    """Return the first place of each distinct row of `cells` (n, d), the number of each row, and how often each is."""
    number = np.zeros(len(cells), np.int64)
    for column in cells.T:
        _, along = np.unique(column, return_inverse=True)
        _, number = np.unique(number * (along.max(initial=0) + 1) + along, return_inverse=True)
    _, first, number, counts = np.unique(number, return_index=True, return_inverse=True, return_counts=True)
    return first, number, counts
