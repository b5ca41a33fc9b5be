"""Event building as a plan: what a worker does with a window of time, what is merged, what becomes of it.

Chunks follow each other in time. By the local rule each is clustered on its own; then its first hits are joined with
the *open* hits of the chunks before it, those that later ones may touch. By the other rules a chunk is clustered
together with the open hits: whole clusters there, as a hit's fate hangs on its cluster's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskclust.core.data.checks import check_count
from daskclust.core.device.arrays import HOST, Cuda, Host, device_of
from daskclust.core.device.kernels import Body
from daskclust.core.device.unionfind import flatten
from daskclust.core.merge.own_ids import OwnIds
from daskclust.core.run.plan import Cost, Plan
from daskclust.core.space.partition import Chunk
from daskclust.events import numbering, on_cuda
from daskclust.events.across_windows import WindowClusters, WindowSlice, merge_windows
from daskclust.events.borders import (
    NO_IDS,
    NOTHING,
    Ids,
    Open,
    Sorted,
    concatenated,
    distinct_pairs,
    first_hits,
    ids_in_time,
    on_host,
    part_of,
    place_of,
    time_of,
)
from daskclust.events.kernels import rules
from daskclust.events.kernels.pixels import EIGHT, FOUR, HASHED, PLACES, Hits, Matrix
from daskclust.events.kernels.window import COUNT, DESCENTS
from daskclust.events.matrix import MOST_CELLS, check_extent, extent_of, make_matrix, refuse

RULES: dict[str, Body] = {
    "local": rules.near_hit,
    "global": rules.near_latest,
    "static": rules.near_earliest,
}


BY_FRAME = 0.5
"""What `dt_max` is where numbers of frames take the place of times."""


class OwnClusters(NamedTuple):
    """A chunk's clusters, to be numbered, on the device of its hits; those of all chunks wait for the merge."""

    ids: OwnIds
    labels: Any  # (n,) int32 number of each hit's cluster in the chunk, in the order of the data set
    is_kept: Any  # (c,) whether a cluster that is not shared has enough hits
    shared: Any  # (k,) clusters that other chunks may have hits of


@dataclass(frozen=True)
class EventPlan(Plan):
    """Parameters of event building."""

    dt_max: float  # ns
    variant: str  # one of `RULES`
    connectivity: int  # 8 or 4
    min_hits: int
    clock: str = "toa"  # or "frame": the column whose values are the times

    name = "events"
    cost = Cost(seconds=50e-9, size=70)
    kernels = 5
    results: ClassVar = {"labels": np.int64}
    divisions = "chunks", "windows"
    positions = "toa"
    period = (0.0,)

    # ----------------------------------------------------------------------------------------------------- on a worker
    def measure(self, chunk: Chunk) -> Sorted:
        """Check the hits, put them in the order of time, and cluster them where that needs no other chunk."""
        device, chunk = device_of(chunk.columns["toa"]), _without_halo(chunk)
        columns = chunk.columns
        hits = Hits(columns["x"], columns["y"], columns.get("chip", device.empty(0, np.uint8)), columns["toa"])
        check_count(len(hits.toa))
        return self._measure_on_host(chunk, hits) if device is HOST else self._measure_on_cuda(device, chunk, hits)

    def _measure_on_host(self, chunk: Chunk, hits: Hits) -> Sorted:
        facts, order = self._survey(chunk, hits), None
        if facts[rules.DESCENTS]:
            order, hits = _in_time(HOST, chunk, hits)
        if self._is_chained(chunk):
            return Sorted(chunk, order, hits, None, 0)
        labels = np.empty(len(hits.toa), np.int64)
        count = self._cluster(hits, facts, labels)
        return Sorted(chunk, order, hits, labels, count, _firsts(HOST, chunk, labels, count))

    def _measure_on_cuda(self, device: Any, chunk: Chunk, hits: Hits) -> Sorted:
        """As on the host; hits are taken to be in the order of time, until the device tells that they are not."""
        labels, order = device.empty(len(hits.toa), np.int64), None
        if len(hits.toa) == 0:
            return Sorted(chunk, order, hits, labels, 0, _firsts(device, chunk, labels, 0))
        least = self.min_hits if chunk.ids is None else 1  # other chunks may have more of a cluster's hits
        look = partial(on_cuda.survey, device) if self._is_chained(chunk) else partial(self.join_on_cuda, device, least)
        parent, facts = look(hits)
        known = device.to_host(facts)
        if on_cuda.is_refused(known):
            refuse(Hits(*map(device.to_host, hits)), chunk.ids_on_host())
        if known[DESCENTS]:
            order, hits = _in_time(device, chunk, hits)
        if self._is_chained(chunk):
            return Sorted(chunk, order, hits, None, 0)
        if order is not None:
            parent, facts = look(hits)
            known = device.to_host(facts)
        count = int(known[COUNT])
        on_cuda.write_labels(device, parent, 0, labels)
        return Sorted(chunk, order, hits, labels, count, _firsts(device, chunk, labels, count))

    def _is_chained(self, chunk: Chunk) -> bool:
        """Return whether a chunk is clustered later, together with the open hits of those before it."""
        return self.variant != "local" and chunk.ids is not None

    def join_on_cuda(self, device: Cuda, least: int, hits: Hits, room: int = 0) -> on_cuda.Joined:
        """Join hits as `on_cuda.join` does, by this plan's rule."""
        return on_cuda.join(device, hits, RULES[self.variant], self.dt_max, self._touching, least, room)

    def one_chunk(self, measures: Sorted) -> dict[str, Any]:
        """Return all results where one chunk holds all hits."""
        device, labels = device_of(measures.chunk.columns["toa"]), measures.labels
        count = measures.n_clusters
        if device is HOST:  # on CUDA they are noise already
            count = self._drop_small(labels, count)
        labels = numbering.in_given_order(device, labels, measures.order)
        return {"labels": labels, "n_clusters": count}

    def carry(self, measures: Sorted, before: Open | None) -> Open:
        """Return the open hits after a chunk, from those before it."""
        before = before or NOTHING
        if len(measures.hits.toa) == 0:
            return before
        self._check_sequence(measures, before)
        latest = time_of(measures, -1)
        if self.variant != "local":
            joined, roots, ids = self._replay(before, measures)
            still = self._is_open(joined, roots)
            return Open(part_of(joined, still), ids[roots[still]], latest)
        device = device_of(measures.chunk.columns["toa"])
        late = slice(place_of(measures, np.nextafter(latest - self.dt_max, -np.inf)), None)
        root = ids_in_time(measures)[measures.firsts[measures.labels[late]]]
        since = slice(int(np.searchsorted(before.hits.toa, np.nextafter(latest - self.dt_max, -np.inf))), None)
        both = concatenated(part_of(before.hits, since), on_host(measures, late))
        return Open(both, np.concatenate([before.root[since], device.to_host(root)]), latest)

    def local(self, measures: Sorted, before: Open | None = None) -> tuple[OwnClusters, WindowClusters]:
        """Return the chunk's clusters and its frontier: edges to clusters of chunks before it, and the open ones."""
        before = before or NOTHING
        device = device_of(measures.chunk.columns["toa"])
        if len(measures.hits.toa) == 0:
            none = device.count_up(0)
            return OwnClusters(OwnIds.of(none), none, none > 0, none), NO_CLUSTERS
        self._check_sequence(measures, before)
        if self.variant == "local":
            labels, firsts = measures.labels, measures.firsts
            late = place_of(measures, np.nextafter(time_of(measures, -1) - self.dt_max, -np.inf))
            open_now, edges = np.unique(labels[late:]), self._edges(measures, before)
        else:
            replayed = self._split_replay(before, measures)
            labels, firsts, open_now = (device.from_host(part) for part in replayed[:3])
            edges = replayed[3]
        return self._clusters(device, measures, labels, firsts, open_now, edges)

    def _clusters(
        self, device: Host | Cuda, measures: Sorted, labels: Any, firsts: Any, open_now: Any, edges: Ids
    ) -> tuple[OwnClusters, WindowClusters]:
        """Return the chunk's clusters, and of those that are shared what goes up."""
        first_ids = ids_in_time(measures)[firsts]
        sizes = 1 + 0 * firsts  # all that matters where every size is large enough
        if self.min_hits > 1:
            sizes = np.bincount(labels, minlength=len(firsts))
        is_shared = firsts < 0
        is_shared[open_now] = True
        if len(edges):
            is_shared |= np.isin(first_ids, device.from_host(edges))
        shared = np.flatnonzero(is_shared)
        is_kept = (sizes >= self.min_hits) & ~is_shared
        ids, before, their_sizes = map(device.to_host, (first_ids[shared], np.cumsum(is_kept)[shared], sizes[shared]))
        window = WindowClusters(int(is_kept.sum()), ids, before, their_sizes, edges)
        given = numbering.in_given_order(device, labels, measures.order)
        ids = OwnIds.of(measures.chunk.ids)
        return OwnClusters(ids, device.cast(given, np.int32), is_kept, shared), window

    def merge(self, frontiers: list[WindowClusters]) -> list[WindowSlice]:
        """Join clusters across borders and number all by the time of their first hit."""
        return merge_windows(frontiers, self.min_hits)

    def rows_in(self, local: OwnClusters, rows: slice) -> OwnClusters:
        """Return what is known of some of the chunk's hits."""
        return local._replace(labels=local.labels[rows])

    def finish(self, local: OwnClusters, merged: WindowSlice) -> dict[str, Any]:
        """Return the labels of the chunk's hits, in the order of the data set."""
        device, contributes = device_of(local.labels), local.is_kept.copy()
        numbers, is_counted = (device.from_host(values) for values in (merged.numbers, merged.is_counted))
        contributes[local.shared] = is_counted
        table = np.where(contributes, merged.first + np.cumsum(contributes) - 1, -1)
        table[local.shared] = numbers
        return {"labels": table[local.labels]}

    # ------------------------------------------------------------------------------------------------------- its steps
    def _survey(self, chunk: Chunk, hits: Hits) -> NDArray[np.int64]:
        """Return the extent of the coordinates and the number of descents in time; refuse times that are no number."""
        n = len(hits.toa)
        if n == 0:
            return np.zeros(rules.FACTS, np.int64)
        begin = numbering.pieces_of(n)
        found = np.zeros((len(begin) - 1, rules.FACTS), np.int64)
        rules.survey_piece.run(len(found), begin, hits, found, grain=1)
        facts = np.concatenate([found[:, :3].min(axis=0), found[:, 3:6].max(axis=0), found[:, 6:].sum(axis=0)])
        if facts[rules.BAD]:
            refuse(hits, chunk.ids_on_host())
        check_extent(hits, facts)
        return facts

    def _cluster(self, hits: Hits, facts: Any, labels: Any) -> int:
        """Write the number of each hit's cluster; return how many there are."""
        n = len(labels)
        if n == 0:
            return 0
        parent = HOST.scratch(n, np.int32)
        matrix, cells = make_matrix(facts, self._touching, n)
        begin = self._windows(hits.toa, cells)
        roots = self._join_on_host(begin, hits, matrix, cells, parent)
        return numbering.number_on_host(begin, roots, parent, labels)

    @property
    def _touching(self) -> int:
        return EIGHT if self.connectivity == 8 else FOUR

    def _windows(self, toa: Any, cells: int) -> Any:
        """Return where each thread's hits begin, at quiet gaps where any are near; each has a table of `cells`."""
        begin = numbering.pieces_of(len(toa), MOST_CELLS // max(cells, 1))
        for k in range(1, len(begin) - 1):
            low, high = begin[k], min(begin[k + 1], begin[k] + numbering.PIECE // 2)
            gaps = np.flatnonzero(np.diff(toa[low - 1 : high]) > self.dt_max)
            if len(gaps):
                begin[k] = low + gaps[0]
            elif self.variant != "local" or cells == 0:
                begin[k] = begin[k - 1]  # one window: in order throughout
        return begin

    def _join_on_host(self, begin: Any, hits: Hits, matrix: Matrix, cells: int, parent: Any) -> NDArray[np.int64]:
        """Join hits; return the number of clusters that begin in each piece, -1 first where they are not counted."""
        pieces = len(begin) - 1
        roots = np.full(pieces, -1, np.int64)
        if self.variant != "local" or cells == 0:
            self._join_in_order(begin, hits, matrix, cells, parent)
            return roots
        last = HOST.scratch(pieces * cells, np.int32)
        rows = HOST.scratch(pieces * rules.ROWS, np.int32)
        masks = HOST.scratch(pieces * rules.MASKS, np.int32)
        work = (begin, hits, self.dt_max, matrix, cells, last)
        rules.join_recent.run(pieces, *work, rows, masks, parent, roots, grain=1)
        rules.join_borders.run(1, *work, parent, roots)
        return roots

    def _join_in_order(self, begin: Any, hits: Hits, matrix: Matrix, cells: int, parent: Any) -> None:
        """Join hits by the plain rule."""
        rule, places = rules.join_in_order.bind(may_join=RULES[self.variant]), cells * (len(begin) - 1)
        if cells == 0:
            rule, places = rule.bind(**HASHED), PLACES * len(parent)
        last = HOST.scratch(places, np.int32)
        latest = HOST.scratch(len(parent), np.int32)
        rule.run(len(begin) - 1, begin, hits, self.dt_max, matrix, cells, last, latest, parent, grain=1)

    def _drop_small(self, labels: Any, count: int) -> int:
        """Make clusters of less than `min_hits` hits noise; return how many are left."""
        if self.min_hits == 1 or count == 0:
            return count
        sizes, large = np.zeros(count, np.int32), np.empty(count, np.int32)
        HOST.run(rules.count_hits, len(labels), labels, sizes)
        HOST.run(rules.mark_large, count, sizes, self.min_hits, large)
        HOST.running_sum(large, large)
        HOST.run(rules.renumber, len(labels), sizes, self.min_hits, large, labels)
        return int(large[-1])

    # ----------------------------------------------------------------------------------------------- borders of chunks
    def _check_sequence(self, measures: Sorted, before: Open) -> None:
        earliest = time_of(measures, 0)
        if earliest < before.latest:
            raise ValueError(
                f"the chunk that begins with hit {measures.chunk.ids[0]} has a hit at {self.clock} {earliest}, earlier "
                f'than {before.latest} in a chunk before it; partition="windows" divides the hits again by time'
            )

    def _in_order(self, hits: Hits) -> NDArray[np.int32]:
        """Return the first hit of each one's cluster, by the plain rule; for hits on the host."""
        n = len(hits.toa)
        parent = np.empty(n, np.int32)
        matrix, cells = make_matrix(extent_of(hits), self._touching, n)
        self._join_in_order(np.array([0, n]), hits, matrix, cells, parent)
        flatten.run(n, parent)
        return parent

    def _edges(self, measures: Sorted, before: Open) -> Ids:
        """Return pairs of roots of clusters that the chunk's first hits join, local rule."""
        if len(before.hits.toa) == 0:
            return NO_IDS.reshape(0, 2)
        device = device_of(measures.chunk.columns["toa"])
        early = slice(place_of(measures, np.nextafter(before.latest + self.dt_max, np.inf), "right"))
        root = ids_in_time(measures)[measures.firsts[measures.labels[early]]]
        both = concatenated(before.hits, on_host(measures, early))
        return distinct_pairs(np.concatenate([before.root, device.to_host(root)]), self._in_order(both))

    def _replay(self, before: Open, measures: Sorted) -> tuple[Hits, NDArray[np.int32], Ids]:
        """Cluster the open hits and a chunk's together; return all, the first of each one's cluster, and roots' ids."""
        both = concatenated(before.hits, on_host(measures))
        ids = device_of(measures.chunk.ids).to_host(ids_in_time(measures))
        return both, self._in_order(both), np.concatenate([before.root, ids])

    def _is_open(self, hits: Hits, roots: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return whether each hit is of a cluster that a hit to come may join."""
        deciding = hits.toa.copy()  # by root: the earliest hit is the root itself
        if self.variant == "global":
            np.maximum.at(deciding, roots, hits.toa)
        return np.asarray(hits.toa[-1] - deciding[roots] <= self.dt_max)

    def _split_replay(self, before: Open, measures: Sorted) -> tuple[Ids, Ids, Ids, Ids]:
        """Return the chunk's own part of a replay: labels, first hits, open clusters, edges between roots."""
        joined, roots, known = self._replay(before, measures)
        carried = len(before.root)
        own_root, firsts, labels = np.unique(roots[carried:], return_index=True, return_inverse=True)
        order = np.argsort(firsts)  # clusters by their first own hit
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        labels, firsts, own_root = rank[labels], firsts[order], own_root[order]
        open_now = np.unique(labels[self._is_open(joined, roots)[carried:]])
        from_before = own_root < carried
        edges = np.stack([known[carried:][firsts[from_before]], known[own_root[from_before]]], axis=1)
        return labels, firsts, open_now, np.concatenate([edges, distinct_pairs(known[:carried], roots[:carried])])


NO_CLUSTERS = WindowClusters(0, NO_IDS, NO_IDS, NO_IDS, NO_IDS.reshape(0, 2))


# ---------------------------------------------------------------------------------------------------- a chunk's columns
def _without_halo(chunk: Chunk) -> Chunk:
    """Return the chunk with its own hits only: a partition by space gives those on a border to both sides."""
    if chunk.owned is None:
        return chunk
    device = device_of(chunk.columns["toa"])
    columns = {name: device.take(values, chunk.owned) for name, values in chunk.columns.items()}
    return chunk._replace(columns=columns, ids=chunk.ids[chunk.owned], owned=None)


def _in_time(device: Host | Cuda, chunk: Chunk, hits: Hits) -> tuple[Any, Hits]:
    """Return the order of a chunk's hits in time, and these in it."""
    order = device.order_of(chunk.columns["toa"])
    return order, Hits(*[device.take_at(values, order) if len(values) else values for values in hits])


def _firsts(device: Host | Cuda, chunk: Chunk, labels: Any, count: int) -> Any:
    """Return the first hit of each cluster, where chunks are merged."""
    return None if chunk.ids is None else first_hits(device, labels, count)
