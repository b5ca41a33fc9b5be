"""Friends-of-friends in redshift space as a plan: chunks are blocks with halos, and send up sets that share points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from daskclust.core.data.checks import check_count, check_extent
from daskclust.core.device.arrays import device_of
from daskclust.core.device.unionfind import flatten, start
from daskclust.core.merge.labels import NOISE
from daskclust.core.merge.own_ids import OwnIds
from daskclust.core.merge.sets import NONE, Fragments, Slice, merge_fragments
from daskclust.core.run.plan import Plan
from daskclust.core.space.extent import extent_of
from daskclust.core.space.grid import PAD, make_grid
from daskclust.core.space.partition import Chunk, widened
from daskclust.core.space.sorting import sort_into_cells

from .kernels import first_in_set, link, link_friends, take_label


class Groups(NamedTuple):
    """A chunk's own result."""

    ids: OwnIds  # of its own points
    set_of: Any  # (n,) the set of each of them, -1 for none, on the host
    device: Any  # where labels are to be


@dataclass(frozen=True)
class RedshiftPlan(Plan):
    """Parameters: linking lengths across and along the line of sight, members of a group."""

    across: float
    along: float
    min_size: int

    name = "redshift_fof"  # of the steps on dask's dashboard
    results: ClassVar = {"labels": np.int64}
    period = (0.0, 0.0, 0.0)  # open axes

    @property
    def reach(self) -> tuple[float, float, float]:
        """How far friends of a point may be along each axis: the halo that makes a chunk's links complete."""
        return self.across, self.across, self.along

    def local(self, chunk: Chunk, before: None = None) -> tuple[Groups, Fragments]:
        """Link friends; what goes up are the sets of own points, and of the points that other chunks have as well."""
        X = chunk.columns["X"]
        device, ids = device_of(X), chunk.ids_on_host()
        first = self._first_of_set(chunk)
        is_own = np.ones(len(ids), bool) if chunk.owned is None else device.to_host(chunk.owned)
        members = np.flatnonzero(self._is_shared(chunk, device.to_host(X).astype(np.float64), is_own))

        roots, set_of = np.unique(first, return_inverse=True)
        firsts, sizes = np.full(len(roots), NONE), np.bincount(set_of[is_own], minlength=len(roots))
        np.minimum.at(firsts, set_of, ids)
        goes_on = np.zeros(len(roots), bool)
        goes_on[set_of[members]] = True
        is_kept = goes_on | (sizes >= self.min_size)  # the others are noise for sure
        set_of = np.where(is_kept, np.cumsum(is_kept) - 1, NOISE)[set_of]

        places = device.to_host(X)[members, : len(chunk.region)]
        frontier = Fragments(firsts[is_kept], sizes[is_kept], ids[members], set_of[members], places)
        return Groups(OwnIds.of(ids[is_own]), set_of[is_own], device), frontier

    def _first_of_set(self, chunk: Chunk) -> Any:
        """Return one of the points of each point's set, the same for all of them, on the host."""
        X, period, reach = chunk.columns["X"], self.period, widened(self.reach)
        device, n = device_of(X), len(X)
        check_count(n)
        low, high = extent_of(chunk)
        if n == 0:
            return np.empty(0, np.int32)
        check_extent(low, high, reach)
        grid = make_grid(low, high, reach, period, device.empty(0, np.int64))
        cells = sort_into_cells(device, X, device.empty(0, np.int32), 1, grid)
        parent, first = device.empty(n + PAD, np.int32), device.empty(n, np.int32)
        device.run(start, n + PAD, parent)
        limits = X.dtype.type(self.across) ** 2, X.dtype.type(self.along)
        links = link.bind(visit=link_friends)
        device.run(links, n, cells.row, cells, reach, *limits, parent)
        device.run(flatten, n, parent)
        device.run(first_in_set, n, cells.order, parent, first)
        return device.to_host(first)

    def _is_shared(self, chunk: Chunk, X: Any, is_own: Any) -> Any:
        """Return which points other chunks may have as well: those of the halo, and own ones near a face."""
        is_shared = ~is_own
        for axis, ends in enumerate(chunk.region):
            for face in ends:
                is_shared |= np.abs(X[:, axis] - face) <= widened(self.reach)[axis]
        return is_shared

    def merge(self, frontiers: list[Fragments]) -> list[Slice]:
        """Join sets that share a point; groups are numbered by the smallest id of a point."""
        return merge_fragments(frontiers, self.min_size)

    def rows_in(self, local: Groups, rows: slice) -> Groups:
        """Return what is known of some of the chunk's own points."""
        return local._replace(set_of=local.set_of[rows])

    def finish(self, local: Groups, merged: Slice) -> dict[str, Any]:
        """Return the label of each point."""
        device, n = local.device, len(local.set_of)
        labels, numbers = device.empty(n, np.int64), np.append(merged.numbers, NOISE)  # -1 takes the last
        device.run(take_label, n, device.from_host(local.set_of), device.from_host(numbers), labels)
        return {"labels": labels}
