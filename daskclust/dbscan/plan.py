"""DBSCAN and friends-of-friends as a plan: what a worker does with a chunk, what is merged, what becomes of it.

A chunk is a block of space with a halo. Where the number of neighbours decides what a core point is, the halo is 2 eps
wide: then core points are known as far as eps outside the block, and so is every link of an own point. Sets of linked
core points that reach out of the block go up with the ids of the points that other chunks see, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from daskclust.core.data.checks import check_count
from daskclust.core.device.arrays import HOST, Cuda, Host, Reused, device_of
from daskclust.core.merge.own_ids import OwnIds
from daskclust.core.merge.sets import Fragments, Slice
from daskclust.core.run.plan import Cost, Plan
from daskclust.core.space.equal_rows import equal_rows
from daskclust.core.space.extent import check_values, extent_of, without_gaps
from daskclust.core.space.grid import WIDER, wrap_positions
from daskclust.core.space.partition import Chunk
from daskclust.dbscan.block_search import BlockSearch, PointGroups
from daskclust.dbscan.equal_points import PlaceSearch
from daskclust.dbscan.kernels import bucket_sort, clusters, on_cuda
from daskclust.dbscan.pair_search import PairSearch, check_axes
from daskclust.dbscan.tree_search import TreeSearch

FINEST = 2.0**45  # of an axis: beyond, float64 coordinates hardly tell points within eps apart
Search = BlockSearch | TreeSearch | PairSearch | PlaceSearch
MOST_NEIGHBOURS = 2**31 - 1  # of a point: more than a chunk holds
_MOST_AXES = 3  # that cells serve
_SETS_IN_16_BITS = 2**15
_RUN = 64  # cells whose points are counted together, on the CPU


class LinkedSets(NamedTuple):
    """What a chunk knows before the merge, on the device of its points; all chunks' wait in memory for it."""

    ids: OwnIds  # of its own points
    set_of: Any  # (n,) int16 or int32 the set of each, -1 for none
    is_core: Any  # (n,) bool; None where all points of sets are
    others: Any  # (m, 2) int64 own points that further sets are within eps of, and those sets


@dataclass(frozen=True)
class DbscanPlan(Plan):
    """Parameters of DBSCAN."""

    eps: float  # in the unit of the coordinates
    min_samples: int
    min_size: int  # core points of a cluster
    period: tuple[float, ...]
    weighted: bool = False  # whether the sum of the column ``weight`` counts instead of the number of neighbours
    name: str = "dbscan"

    results: ClassVar = {"labels": np.int64, "is_core": np.bool_}
    divisions = "layers", "space", "chunks"
    group = "event"

    @property
    def cost(self) -> Cost:
        """What a point costs a task."""
        return Cost(seconds=180e-9 if self.links_alone else 350e-9, size=145)

    @property
    def kernels(self) -> int:
        """About how many kernels a fit in memory needs."""
        return 16 if self.links_alone else 19

    @property
    def links_alone(self) -> bool:
        """Whether any two neighbours are core points: then links tell all, and points that have none are sifted out."""
        return self.min_samples <= 2 and not self.weighted

    @property
    def reach(self) -> float:
        """How far from a point others decide about its links."""
        return self.eps if self.links_alone else 2 * self.eps

    @property
    def reach_name(self) -> str:
        """What that is, for messages."""
        return f"{'one' if self.links_alone else 'two'} times the distance of neighbours"

    # ------------------------------------------------------------------------------------------------- on a worker
    # Nothing is measured: whatever it takes to find core points would only wait in memory for the next step.

    def one_chunk(self, chunk: Chunk) -> dict[str, Any]:
        """Return all results where one chunk holds all points."""
        X = chunk.columns["X"]
        device = device_of(X)
        search = self._search(device, chunk)
        return self._results(device, X, search, self._linked(device, chunk, search))

    def local(self, chunk: Chunk, before: None = None) -> tuple[LinkedSets, Fragments]:
        """Find core points and sets of them that are linked."""
        X = chunk.columns["X"]
        device = device_of(X)
        if len(X) == 0:
            empty, nothing = device.count_up(0), np.empty(0, np.int64)
            ids = OwnIds.of(empty)
            none = LinkedSets(ids, empty.astype(np.int32), empty.astype(np.bool_), empty.reshape(0, 2))
            return none, Fragments(nothing, nothing, nothing, nothing, np.empty((0, len(chunk.region))))
        search = self._search(device, chunk)
        return self._sets(device, chunk, search, self._linked(device, chunk, search))

    def _linked(self, device: Host | Cuda, chunk: Chunk, search: Search) -> Any:
        """Find core points and link them; return the root of each cell's set."""
        if not self.links_alone:
            weight = None
            if self.weighted:
                weight = chunk.columns["weight"], device.empty(0, np.float64)
            exact_zone = (*_faces(chunk), self.eps * WIDER) if chunk.region else None
            search.find_core(self.min_samples, weight, exact_zone)
        return search.link()

    def rows_in(self, local: LinkedSets, rows: slice) -> LinkedSets:
        """Return what is known of some of the chunk's own points."""
        others = local.others[(local.others[:, 0] >= rows.start) & (local.others[:, 0] < rows.stop)]
        others[:, 0] -= rows.start
        is_core = None if local.is_core is None else local.is_core[rows]
        return LinkedSets(local.ids, local.set_of[rows], is_core, others)

    def finish(self, local: LinkedSets, merged: Slice) -> dict[str, Any]:
        """Return labels, and which points are core points, in the order of the data set.

        A border point takes the smallest label of the core points around it.
        """
        device = device_of(local.set_of)
        number = device.from_host(np.append(merged.numbers, -1))
        labels = number[local.set_of]
        given = local.others, number, labels
        device.run(clusters.lower_to_set, len(local.others), *given)
        in_cluster = labels >= 0
        return {"labels": labels, "is_core": in_cluster if local.is_core is None else in_cluster & local.is_core}

    # ------------------------------------------------------------------------------------------------------ its steps
    def _search(self, device: Host | Cuda, chunk: Chunk) -> Search:
        """Check the points and sort them for the search of neighbours."""
        X = chunk.columns["X"]
        check_count(len(X))
        low, high = extent_of(chunk)
        if self.weighted:
            check_values(chunk, "weight", "sample_weight")
        for axis, (a, b) in enumerate(zip(low, high, strict=True)):
            if b - a > FINEST * self.eps:
                raise ValueError(
                    f"X extends from {a:g} to {b:g} along axis {axis}, over 2**45 times eps = {self.eps:g}; remove far "
                    "outliers, or enlarge eps"
                )
        groups = self._groups(device, chunk)
        search: Callable[..., Search] = BlockSearch if X.shape[1] <= _MOST_AXES else self._of_many_axes
        if device is HOST and (self.weighted or X.shape[1] > _MOST_AXES):  # else points of a cell are not told apart
            places = equal_rows(X, groups.of_point)
            if not places.are_single:
                number = None if groups.of_point is None else groups.of_point[places.first]
                few = search(
                    device, X[places.first], self.eps, self.period, (low, high), groups._replace(of_point=number)
                )
                return PlaceSearch(few, places)
        return search(device, X, self.eps, self.period, (low, high), groups)

    def _groups(self, device: Host | Cuda, chunk: Chunk) -> PointGroups:
        """Return the events of points, numbered from 0."""
        if self.group not in chunk.columns:
            return PointGroups()
        number, first, count = without_gaps(device, chunk.columns[self.group])
        if count == 1:
            return PointGroups()
        return PointGroups(number - number.dtype.type(first) if first else number, count)

    def _of_many_axes(
        self, device: Host | Cuda, X: Any, eps: float, period: tuple[float, ...], extent: Any, groups: PointGroups
    ) -> TreeSearch | PairSearch:
        """Return the search in more than three dimensions; groups lie apart along one axis more.

        Distances within a group are the same to the bit: its points differ by 0 there.
        """
        if device is not HOST:
            check_axes(X.shape[1])
        if groups.of_point is not None:
            apart = 2.0 ** (math.frexp(eps)[1] + 1)  # times whole numbers it is exact
            X = np.column_stack([wrap_positions(X, period), apart * groups.of_point.astype(np.float64)])
            period = (*(period or (0.0,) * (X.shape[1] - 1)), 0.0)
        return (TreeSearch if device is HOST else PairSearch)(device, X, eps, period, extent)

    def _count(self, device: Host | Cuda, search: Search, parent: Any, owned: Any) -> tuple[Any, Any]:
        """Return, for each set's root, the first of its points and how many the chunk owns; parents become roots."""
        cells = search.n_cells
        first, size = (search.memory.empty(cells, np.int32) for _ in range(2))
        args = search.start, search.order, search.stop, search.in_order, owned, parent, first, size
        device.run(clusters.count_cells, cells, *args)
        length = _RUN if device is HOST else 1
        device.run(clusters.count_sets, -(-cells // length), length, parent, first, size, grain=8192 // length)
        return first, size

    def _results(self, device: Host | Cuda, X: Any, search: Search, parent: Any) -> dict[str, Any]:
        """Return the results where one chunk holds all points."""
        n, cells = len(X), search.n_cells
        first, size = self._count(device, search, parent, device.empty(0, np.bool_))
        least, words = np.int32(min(self.min_size, MOST_NEIGHBOURS)), -(-n // 64)
        points = clusters.FirstPoints(search.memory.zeros(words, np.uint64), search.memory.zeros(words, np.int32))
        sets = parent, first, size, least, points
        device.run(clusters.mark_first, cells, *sets)
        device.running_sum(points.up_to, points.up_to)
        number = search.memory.empty(cells, np.int32)
        device.run(clusters.number_cells, cells, *sets, number)
        label = search.memory.empty(0 if self.links_alone else n, np.int32)
        if not self.links_alone:
            search.label_border(number, device.empty(0, np.int32), label)
        if isinstance(search.memory, Reused):
            search.memory.add(search.positions)  # all distances are known
        labels, is_core = device.empty(n, np.int64), device.empty(n, np.bool_)
        if device is HOST:
            found, way_back = search.memory.empty(n, np.int32), search.way_back
            given = search.start, way_back.slot, search.stop, number, label, found
            device.run(clusters.write_found, cells, *given, grain=2048)
            device.run(bucket_sort.write_labels, len(way_back.begins), way_back, found, labels, is_core, grain=1)
        else:
            args = search.start, search.order, search.stop, number, label
            device.run(on_cuda.label_point, n, *args, labels, is_core)
        n_clusters = int(device.to_host(points.up_to[words - 1 :])[0])
        return {"labels": labels, "is_core": is_core, "n_clusters": n_clusters}

    def _sets(self, device: Host | Cuda, chunk: Chunk, search: Search, parent: Any) -> tuple[LinkedSets, Fragments]:
        """Return the sets that have own points or are within eps of one, and what goes up of them.

        Sets that no other chunk has a part of and that are too small are dropped here.
        """
        n, cells = len(chunk.ids), search.n_cells
        owned = device.full(n, True, np.bool_) if chunk.owned is None else chunk.owned
        first, size = self._count(device, search, parent, owned)
        order = search.order[:n]
        is_own = None if self.links_alone else owned[order]
        is_core, root, others = self._roots(device, search, parent, n, is_own)
        shared = np.flatnonzero(is_core & self._is_shared(device, chunk, search, owned))

        # the last is for no set
        is_used, goes_on = (device.full(cells + 1, False, np.bool_) for _ in range(2))
        is_used[:-1] = (size > 0) & (parent == device.count_up(cells))
        if is_own is not None:
            is_used[root[is_own & ~is_core]] = True
            is_used[others[:, 1]] = True
        goes_on[root[shared]] = True
        used = np.flatnonzero(is_used[:-1] & (goes_on[:-1] | (size >= self.min_size)))
        number = device.full(cells + 1, -1, np.int16 if len(used) < _SETS_IN_16_BITS else np.int32)
        number[used] = device.count_up(len(used))

        set_of, core = device.empty(n, number.dtype), None
        set_of[order] = number[root]
        if is_own is not None:
            core = np.empty_like(is_core)
            core[order] = is_core
            core, place = core[owned], np.cumsum(owned) - 1  # among the own points
            others = np.stack([place[order[others[:, 0]]], number[others[:, 1]]], axis=1)
        shared = shared[number[root[shared]] >= 0]
        sets = LinkedSets(OwnIds.of(chunk.ids[owned]), set_of[owned], core, others)
        places = chunk.columns["X"][order[shared], : len(chunk.region)]
        up = chunk.ids[first[used]], size[used], chunk.ids[order[shared]], number[root[shared]]
        ids = [device.to_host(values).astype(np.int64) for values in up]
        frontier = *ids, device.to_host(places), chunk.whole_groups(self.group)
        return sets, Fragments._make(frontier)

    def _roots(self, device: Host | Cuda, search: Search, parent: Any, n: int, is_own: Any) -> tuple[Any, Any, Any]:
        """Return which sorted points are core points, the root of each point's set, and further sets of border points.

        A root is the number of a cell, int32, or that of all cells for none. The last is (m, 2): own points that are
        within eps of several sets, and the roots of all but the first of these.
        """
        root = device.full(n, clusters.NONE, np.int32)
        device.run(clusters.label_core, search.n_cells, search.start, search.stop, parent, root)
        is_core = root != clusters.NONE
        others = device.count_up(0).reshape(0, 2)
        if is_own is not None:  # else there are no border points
            first, *further = self._near_roots(device, search, parent, np.where(is_own, np.int32(-1), clusters.NONE))
            root = np.where(is_core, root, first)
            points = [np.flatnonzero((roots != clusters.NONE) & ~is_core) for roots in further]
            pairs = [np.stack([at, roots[at]], axis=1) for at, roots in zip(points, further, strict=True)]
            others = np.concatenate([others, *pairs])
        return is_core, np.minimum(root, np.int32(search.n_cells)), others

    def _near_roots(self, device: Host | Cuda, search: Search, parent: Any, above: Any) -> list[Any]:
        """Return the smallest root of a set within eps of each border point, the next larger one, and so on.

        It is larger than `above`, `clusters.NONE` for points that do not matter.
        """
        found: list[Any] = []
        while not found or (above != clusters.NONE).any():
            label = device.full(len(above), clusters.NONE, np.int32)
            search.label_border(parent, above, label)
            found.append(label)
            above = label  # NONE where there is none: no root is larger
        return found

    def _is_shared(self, device: Host | Cuda, chunk: Chunk, search: Search, owned: Any) -> Any:
        """Return which sorted points other chunks may have as well."""
        is_shared = device.full(len(chunk.ids), False, np.bool_)
        if chunk.region:
            low, high = _faces(chunk)
            args = search.positions, search.order, owned, low, high, self.eps * WIDER, is_shared
            device.run(clusters.mark_shared, len(chunk.ids), *args)
        return is_shared


def _faces(chunk: Chunk) -> tuple[tuple[float, ...], tuple[float, ...]]:
    low, high = zip(*chunk.region, strict=True)
    return low, high
