"""Event building online: cluster tables from a running readout, with bounded memory (Celko et al., algorithm 3).

Hits come nearly in the order of time. Those of the last moments, within the disorder of the readout, wait for what may
still come before them; the others are clustered. Clusters that no later hit can join are put out, the hits of the
others go into the next round. So the tables are those of all hits clustered at once, whatever the rounds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskclust.core.data.checks import check_positive, check_whole
from daskclust.core.data.datasets import variable_of
from daskclust.core.device.machine_code.compiling import Clock
from daskclust.core.device.timesort import order_of_times
from daskclust.core.merge.labels import NOISE, without_small
from daskclust.core.run.engine import run_in_memory
from daskclust.events.estimator import EventBuilder
from daskclust.io.timepix.katherine import KatherineReader
from daskclust.io.timepix.sources import Break, Cut
from daskclust.io.timepix.tpx3.stream import WordReader
from daskclust.io.timepix.tpx3.triggers import time_of_flight
from daskclust.properties import cluster_table
from daskclust.readout.columns import (
    Columns,
    checked,
    concatenated,
    count_hits,
    dataset_of,
    detector_of,
    first_place,
    named,
    part_of,
    without_places,
)
from daskclust.readout.gpu import cluster_in_lanes
from daskclust.readout.prefetch import Prefetch

_log = logging.getLogger(__name__)

_EMPTY = {"x": np.uint16, "y": np.uint16, "toa": np.float64, "tot": np.float32, "chip": np.uint8}
_WINDOW, _LANES = 1 << 18, 2  # on a GPU: hits of a window, of which some make a round, and windows under way at once


@dataclass(frozen=True)
class Counters:
    """What a stream has done so far; between rounds ``hits_in == hits_out + backlog``.

    Parameters
    ----------
    hits_in, hits_out, clusters : int
        Hits received, hits put out in clusters or as noise, and clusters put out.
    noise_hits : int
        Hits among `hits_out` in clusters of less than ``min_hits`` hits.
    late_hits : int
        Hits that came later than `disorder` allows. They are clustered with what is still open then.
    split_clusters : int
        Clusters put out while they were still open, for want of memory.
    backlog, largest_backlog : int
        Hits received and not yet put out, and the most so far.
    waiting : int
        Items of the source that have been read and not yet taken.
    reconnections : int
        Connections that came after one that was lost, with what was sent between them.
    """

    hits_in: int = 0
    hits_out: int = 0
    clusters: int = 0
    noise_hits: int = 0
    late_hits: int = 0
    split_clusters: int = 0
    backlog: int = 0
    largest_backlog: int = 0
    waiting: int = 0
    reconnections: int = 0


class Batch(NamedTuple):
    """What one round puts out.

    Attributes
    ----------
    clusters : xarray.Dataset
        Along ``cluster``, numbered on from the batch before.
    hits : xarray.Dataset
        Along ``hit``, with ``label``.
    """

    clusters: xr.Dataset
    hits: xr.Dataset


class EventStream:
    """Clusters of a stream of hits, as tables in the order of time.

    Parameters
    ----------
    source : iterable
        Items of raw bytes of any length (``.tpx3``, or of the `reader`), or of hits: Datasets, DataFrames or mappings
        with ``x``, ``y``, ``toa`` (ns) and perhaps ``chip``, ``tot``, ``energy``, ``tof``, the same in all.
        `daskclust.io.follow` and `daskclust.io.receive` make one of a growing file and of a socket.
    builder : EventBuilder
        What a cluster is. Without ``dt_max``, hits have a ``frame``, and need no ``toa``: the clusters of a frame come
        out when a later frame begins.
    disorder : float, default 600_000.0
        How much earlier than one before it a hit may be (ns). 0: the hits are in the order of time. Not for frames,
        which are taken to come in their order.
    buffer : int, default 1_048_576
        Hits that make a round.
    latency : float, default 1.0
        Seconds after which a round begins though there are fewer.
    max_open : int, default 16 * `buffer`, at least 4_194_304
        Hits of open clusters, and of those behind them, that are kept at most. Beyond it all are put out, clusters cut,
        and counted: a pixel that fires without end makes a cluster without end.
    chip : bool, default True
        Whether chips are apart; False where coordinates are common to all.
    reader : WordReader or KatherineReader, optional
        What makes hits of bytes; by default a WordReader for chips that are apart. With a ``trigger``, hits and
        clusters get times of flight.
    prepare : function, optional
        Takes and returns a Dataset of hits before they are clustered: calibration, correction of timewalk.
    cuda : bool, default False
        Cluster on the current GPU, as `daskclust.readout.gpu.cluster_on_gpu` does; all else stays on the CPU.

    Attributes
    ----------
    counters : Counters
        Those after the last table.
    complete_to : float
        Clusters whose last hit is earlier (ns), or whose frame is smaller, have all their hits; of the later ones the
        end may have cut some off.
    seconds : dict of str to float
        Seconds spent so far on ``"clustering"`` and on making each ``"table"``, without those of compiling kernels and
        of waiting for hits.
    reader : WordReader or KatherineReader
        Its ``counts`` tell which words came.

    Notes
    -----
    A thread reads a few items ahead: a source that is too fast is made to wait, and so, through TCP, is its sender.
    Clusters come out in the order of their first hits, with the numbers that `EventBuilder` gives for all hits at once,
    unless there are late hits or split clusters. Rows wait for the earliest open cluster.

    An error of the source, or of an item, is raised after all hits that came before it have been put out.

    Examples
    --------
    >>> from daskclust import EventBuilder, EventStream
    >>> from daskclust.datasets import timepix
    >>> hits = timepix(10_000, rng=0)
    >>> parts = [hits.isel(hit=slice(k, k + 1000)) for k in range(0, 10_000, 1000)]
    >>> stream = EventStream(parts, EventBuilder(200.0), disorder=0.0, buffer=2000)
    >>> sum(table.sizes["cluster"] for table in stream) == EventBuilder(200.0).fit(hits).n_clusters_
    True
    """

    def __init__(
        self,
        source: Iterable[Any],
        builder: EventBuilder,
        *,
        disorder: float = 600_000.0,
        buffer: int = 1 << 20,
        latency: float = 1.0,
        max_open: int | None = None,
        chip: bool = True,
        reader: WordReader | KatherineReader | None = None,
        prepare: Callable[[xr.Dataset], xr.Dataset] | None = None,
        cuda: bool = False,
    ) -> None:
        self._source = source
        self._min_hits = builder.min_hits
        self._plan = replace(builder._plan(), min_hits=1)
        disorder = check_positive("disorder", disorder, zero=True)
        self._disorder = disorder if self._plan.clock == "toa" else 0.0
        self._buffer = check_whole("buffer", buffer, 1, clamp=True)
        self._latency = check_positive("latency", latency, zero=True)
        least = max(16 * self._buffer, 1 << 22)
        self._max_open = least if max_open is None else check_whole("max_open", max_open, 0, clamp=True)
        self._chip, self._cuda = chip, cuda
        self.reader, self._prepare = reader or WordReader(), prepare
        self.counters, self.complete_to = Counters(), -np.inf
        self.seconds = {"clustering": 0.0, "table": 0.0}
        self._detector: dict[str, Any] = {}

    def __iter__(self) -> Iterator[xr.Dataset]:
        """Yield the tables of clusters."""
        for found in self._found():
            with self._timed("table"):
                table, _ = self._table(found)
            yield table

    def batches(self) -> Iterator[Batch]:
        """Yield the tables of clusters with their hits.

        Yields
        ------
        Batch
            What one round puts out, final.
        """
        for found in self._found():
            before = self.counters.clusters
            with self._timed("table"):
                table, labels = self._table(found)
            out = without_places(found.hits | {"label": labels}, found.stays)
            label = out.pop("label")
            numbered = variable_of("hit", np.where(label < 0, label, label + before))
            yield Batch(table, dataset_of(out, self._detector).assign(label=numbered))

    def _found(self) -> Iterator[_Round]:
        """Yield what each round completes, of a stream without hits one round without any."""
        held, empty = _Held(), {name: np.empty(0, dtype) for name, dtype in _EMPTY.items()}
        empty |= {"frame": np.empty(0, np.int64)} if self._plan.clock == "frame" else {}
        is_first = True
        error: Exception | None = None
        prefetch = Prefetch(self._source, count_hits)
        for items, is_last in prefetch.rounds(self._buffer, self._latency):
            self.counters = replace(self.counters, waiting=prefetch.waiting)
            decoded: list[Columns] = []
            try:
                for item in items:
                    decoded.append(self._decoded(item))
                if is_last and len((rest := self.reader.close())["x"]):
                    decoded.append(self._decoded(rest))
            except Exception as raised:  # what came before is given first
                error, is_last = raised, True
            empty = next((columns for columns in decoded if not len(columns["x"])), empty)
            fresh = [columns for columns in decoded if len(columns["x"])]
            if not fresh and not is_last:
                continue
            self._count(hits_in=sum(len(columns["x"]) for columns in fresh))
            with self._timed("clustering"):
                found = self._round(held, fresh, is_last)
            if found is not None:
                is_first = False
                yield found
            if error is not None:
                break
        if is_first:
            yield _Round(self._decoded(empty), np.empty(0, np.int64), np.empty(0, np.int64), 0)
        if error is not None:
            raise error

    # ------------------------------------------------------------------------------------------------------- one round
    def _round(self, held: _Held, fresh: list[Columns], is_last: bool) -> _Round | None:
        """Cluster what is in order, and return what is complete."""
        hits = concatenated([held.hits, *fresh])
        if hits is None or len(hits["x"]) == 0:
            return None
        toa = hits[self._plan.clock]
        late = int(np.count_nonzero(toa[held.n_hits :] < held.horizon))
        held.latest = max(held.latest, float(toa.max()))
        held.horizon = np.inf if is_last else held.latest - self._disorder
        self.complete_to = held.latest - self._disorder - self._plan.dt_max
        if (toa[1:] < toa[:-1]).any():
            hits = part_of(hits, order_of_times(toa.astype(np.float64, copy=False)))
        toa = hits[self._plan.clock]
        ready = int(np.searchsorted(toa, held.horizon))
        if ready == 0:
            held.hits = hits
            self._count(late_hits=late, backlog=held.n_hits)
            return None
        labels = self._labels(part_of(hits, slice(ready)))
        closed, split = self._closed(toa[:ready], labels, held.horizon)
        begin = first_place(labels, closed)  # from here on some are of open clusters
        stays = begin + np.flatnonzero(labels[begin:] >= closed)
        labels[stays] = NOISE
        held.hits = concatenated([part_of(hits, stays), part_of(hits, slice(ready, None))])
        self._count(late_hits=late, split_clusters=split, backlog=held.n_hits)
        return _Round(part_of(hits, slice(ready)), labels, stays, closed) if len(stays) < ready else None

    def _labels(self, hits: Columns) -> NDArray[np.int64]:
        names = ("x", "y", "chip") if self._chip and "chip" in hits else ("x", "y")
        columns = {"toa": hits[self._plan.clock].astype(np.float64, copy=False)} | {name: hits[name] for name in names}
        if self._cuda:
            return cluster_in_lanes(self._plan, columns, _WINDOW, _LANES)[0]
        labels: NDArray[np.int64] = run_in_memory(self._plan, columns)["labels"]
        return labels

    def _closed(self, toa: NDArray[np.float64], labels: NDArray[np.int64], horizon: float) -> tuple[int, int]:
        """Return the number of the first cluster that a later hit may join, and how many open ones are cut there."""
        total = int(labels.max()) + 1
        recent = int(np.searchsorted(toa, np.nextafter(horizon - self._plan.dt_max, -np.inf)))
        if recent == len(toa):
            return total, 0
        if self._plan.variant == "static":
            closed = int(labels[:recent].max(initial=-1)) + 1  # clusters whose first hit is recent are open
        else:
            closed = int(labels[recent:].min())
        begin = first_place(labels, closed)
        if len(toa) - begin > self._max_open:
            cut = len(np.unique(labels[recent:]))
            told = "%d hits wait for clusters that do not end: %d are cut; a noisy pixel? Mask it, or raise max_open"
            _log.warning(told, len(toa) - begin, cut)
            return total, cut
        return closed, 0

    def _table(self, found: _Round) -> tuple[xr.Dataset, NDArray[np.int64]]:
        """Return the table of complete clusters, numbered on from the last one, and the labels of hits from 0."""
        hits, labels, stays, count = found
        if isinstance(self.reader, WordReader) and self.reader.trigger is not None:
            toa = hits["toa"]
            hits["tof"] = time_of_flight(toa, self.reader.triggers(float(toa.min(initial=np.inf))))
        out, noise = len(labels) - len(stays), 0
        if self._min_hits > 1:
            labels = without_small(labels, self._min_hits)
            noise, count = int(np.count_nonzero(labels < 0)) - len(stays), int(labels.max(initial=NOISE)) + 1
        table = cluster_table(dataset_of(hits, self._detector), labels, n_clusters=count)
        before = self.counters
        table = table.assign_coords(cluster=table.indexes["cluster"] + before.clusters)
        seed = table["seed"].values  # a place among all hits of the round: those that stay do not count
        numbered = seed - np.searchsorted(stays, seed) + before.hits_out
        table["seed"] = variable_of("cluster", numbered, table["seed"].attrs)
        self._count(hits_out=out, clusters=count, noise_hits=noise)
        return table, labels

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        clock = Clock()
        yield
        self.seconds[stage] += clock.seconds

    def _count(self, backlog: int | None = None, **more: int) -> None:
        now = self.counters
        backlog = now.backlog if backlog is None else backlog
        counted = {name: getattr(now, name) + value for name, value in more.items()}
        self.counters = replace(now, backlog=backlog, largest_backlog=max(now.largest_backlog, backlog), **counted)

    def _decoded(self, item: Any) -> Columns:
        if isinstance(item, Break):
            self._count(reconnections=0 if isinstance(item, Cut) else 1)
            item = self.reader.close()
        elif isinstance(item, bytes | bytearray | memoryview):
            item = self.reader.feed(item)
        attrs = getattr(item, "attrs", getattr(self.reader, "attrs", {}))  # of columns, the reader's
        if self._prepare is not None:
            item = self._prepare(dataset_of(named(item, self._plan), detector_of(attrs)))
            attrs = getattr(item, "attrs", attrs)
        self._detector = detector_of(attrs)
        return checked(item, self._plan)


class _Round(NamedTuple):
    """Hits in the order of time, their clusters, and which are of clusters that are not complete."""

    hits: Columns
    labels: NDArray[np.int64]  # `NOISE` for hits that stay
    stays: NDArray[np.int64]  # places of hits that go into the next round
    n_clusters: int


@dataclass
class _Held:
    """Hits that go into the next round, in the order of time."""

    hits: Columns | None = None
    latest: float = -np.inf
    horizon: float = -np.inf  # no hit earlier than this is to come

    @property
    def n_hits(self) -> int:
        return 0 if self.hits is None else len(self.hits["x"])
