"""Event building online: cluster tables from a running readout, with bounded memory (Celko et al., algorithm 3).

Hits come nearly in the order of time. Those of the last moments, within the disorder of the readout, wait for what may
still come before them; the others are clustered. Clusters that no later hit can join are put out, the hits of the
others go into the next round. So the tables are those of all hits clustered at once, whatever the rounds.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskclust.core.checks import check_positive
from daskclust.core.engine import run_in_memory
from daskclust.core.inputs import columns_of
from daskclust.core.timesort import order_of_ticks
from daskclust.events.estimator import EventBuilder
from daskclust.io.readout import WordReader
from daskclust.properties import cluster_table

_log = logging.getLogger(__name__)

_COLUMNS = ("x", "y", "toa")
_OPTIONAL = ("chip", "tot", "energy", "tof")
_EMPTY = {"x": np.uint16, "y": np.uint16, "toa": np.float64, "tot": np.float32, "chip": np.uint8}
Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Counters:
    """What a stream has done so far; ``hits_in == hits_out + backlog`` at any time, and at the end nothing is left.

    Parameters
    ----------
    hits_in, hits_out : int
        Hits received, and put out in clusters or as noise.
    clusters : int
        Clusters put out.
    noise_hits : int
        Hits among `hits_out` in clusters of less than ``min_hits`` hits.
    late_hits : int
        Hits that came later than `disorder` allows. They are clustered with what is still open then.
    split_clusters : int
        Clusters put out while they were still open, for want of memory.
    backlog : int
        Hits received and not yet put out.
    largest_backlog : int
        Largest `backlog` so far.
    waiting : int
        Items of the source that have been read and not yet taken.
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


class Batch(NamedTuple):
    """What one round puts out."""

    clusters: xr.Dataset  # along ``cluster``, numbered on from the batch before
    hits: xr.Dataset  # along ``hit``, with ``label``


class EventStream:
    """Clusters of a stream of hits, as tables in the order of time.

    Parameters
    ----------
    source : iterable
        Items of raw ``.tpx3`` bytes of any length, or of hits: Datasets, DataFrames or mappings with ``x``, ``y``,
        ``toa`` (ns) and perhaps ``chip``, ``tot``, ``energy``, ``tof``, the same in all. `daskclust.io.follow` and
        `daskclust.io.receive` make one of a growing file and of a socket.
    builder : EventBuilder
        What a cluster is.
    disorder : float, default 600_000.0
        How much earlier than one before it a hit may be (ns). 0: the hits are in the order of time.
    buffer : int, default 1_048_576
        Hits that make a round.
    latency : float, default 1.0
        Seconds after which a round begins though there are fewer.
    max_open : int, default 16 * `buffer`, at least 4_194_304
        Hits of open clusters, and of those behind them, that are kept at most. Beyond it all are put out, clusters cut,
        and counted: a pixel that fires without end makes a cluster without end.
    chip : bool, default True
        Whether chips are apart; False where coordinates are common to all.
    reader : WordReader, optional
        What makes hits of bytes; by default one for chips that are apart.
    prepare : function, optional
        Takes and returns a Dataset of hits before they are clustered: calibration, correction of time walk.

    Attributes
    ----------
    counters : Counters
        At any time, from any thread.
    reader : WordReader
        Its ``counts`` tell which words came.

    Notes
    -----
    The source is read by a thread of its own, a few items ahead and no more: a source that is too fast is made to wait,
    and so, through TCP, is its sender.

    Clusters come out in the order of their first hits and have the numbers that `EventBuilder` gives for all hits at
    once, unless there are late hits or split clusters. Rows wait for the earliest open cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from daskclust import EventBuilder
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
        reader: WordReader | None = None,
        prepare: Callable[[xr.Dataset], xr.Dataset] | None = None,
    ) -> None:
        if buffer < 1:
            raise ValueError(f"buffer must be a number of hits from 1 on, got {buffer!r}")
        self._source = source
        self._builder, self._min_hits = builder, builder.min_hits
        self._plan = replace(builder._plan(), min_hits=1)
        self._disorder = check_positive("disorder", disorder, zero=True)
        self._buffer, self._latency = buffer, latency
        self._max_open = max(16 * buffer, 1 << 22) if max_open is None else max_open
        self._chip = chip
        self.reader, self._prepare = reader or WordReader(), prepare
        self.counters = Counters()

    def __iter__(self) -> Iterator[xr.Dataset]:
        """Yield the tables of clusters."""
        for batch in self.batches():
            yield batch.clusters

    def batches(self) -> Iterator[Batch]:
        """Yield the tables of clusters with their hits."""
        held, is_first = _Held(), True
        for items, is_last in self._rounds():
            fresh = [columns for columns in map(self._decoded, items) if len(columns["toa"])]
            if is_last and len((rest := self.reader.close())["toa"]):
                fresh.append(self._decoded(rest))
            self._count(hits_in=sum(len(columns["toa"]) for columns in fresh))
            batch = self._round(held, fresh, is_last)
            if batch is not None:
                is_first = False
                yield batch
        if is_first:  # a stream without hits has an empty table
            nothing = {name: np.empty(0, dtype) for name, dtype in _EMPTY.items()}
            yield Batch(cluster_table(_dataset(nothing), np.empty(0, np.int64), n_clusters=0), _dataset(nothing))

    # ------------------------------------------------------------------------------------------------------- one round
    def _round(self, held: _Held, fresh: list[Columns], is_last: bool) -> Batch | None:
        """Cluster what is in order, and return what is complete."""
        waiting = _concatenated([held.waiting, *fresh])
        if waiting is None:
            return None
        toa = waiting["toa"]
        late = int(np.count_nonzero(toa[held.n_waiting :] < held.horizon))
        if len(toa):
            held.latest = max(held.latest, float(toa.max()))
        held.horizon = np.inf if is_last else held.latest - self._disorder
        if not _ascend(toa):
            waiting = _part(waiting, _order(toa))
        ready = int(np.searchsorted(waiting["toa"], held.horizon))
        hits = _concatenated([held.open, _part(waiting, slice(ready))])
        held.waiting = _part(waiting, slice(ready, None))
        if hits is None or len(hits["toa"]) == 0:
            self._count(late_hits=late, backlog=held.n_waiting)
            return None
        if late and not _ascend(hits["toa"]):
            hits = _part(hits, _order(hits["toa"]))
        labels = self._labels(hits)
        closed, split = self._closed(hits["toa"], labels, held.horizon)
        begin = _first(labels, closed)  # from here on some are of open clusters
        behind = labels[begin:] >= closed
        held.open = _part(hits, begin + np.flatnonzero(behind))
        goes = np.concatenate([np.arange(begin), begin + np.flatnonzero(~behind)])
        out = _part(hits, slice(begin)) if behind.all() else _part(hits, goes)
        self._count(late_hits=late, split_clusters=split, backlog=held.n_waiting + len(held.open["toa"]))
        return self._batch(out, labels[:begin] if behind.all() else labels[goes], closed)

    def _labels(self, hits: Columns) -> NDArray[np.int64]:
        names = ("toa", "x", "y", "chip") if self._chip and "chip" in hits else ("toa", "x", "y")
        labels: NDArray[np.int64] = run_in_memory(self._plan, {name: hits[name] for name in names})["labels"]
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
        begin = _first(labels, closed)
        if len(toa) - begin > self._max_open:
            cut = len(np.unique(labels[recent:]))
            _log.warning(
                "%d hits wait for clusters that do not end: %d are cut; a noisy pixel? Mask it, or set max_open higher",
                len(toa) - begin,
                cut,
            )
            return total, cut
        return closed, 0

    def _batch(self, hits: Columns, labels: NDArray[np.int64], count: int) -> Batch | None:
        """Return the table of complete clusters and their hits, numbered on from the last batch."""
        n = len(labels)
        if n == 0:
            return None
        noise = 0
        if self._min_hits > 1:
            is_large = np.bincount(labels, minlength=count) >= self._min_hits
            labels = np.where(is_large, np.cumsum(is_large) - 1, -1)[labels]
            noise, count = int(np.count_nonzero(labels < 0)), int(is_large.sum())
        dataset = _dataset(hits)
        table = cluster_table(dataset, labels, n_clusters=count)
        before, hits_before = self.counters.clusters, self.counters.hits_out
        table = table.assign_coords(cluster=table["cluster"] + before)
        if "seed" in table:
            table["seed"] = table["seed"] + hits_before
        numbered = np.where(labels < 0, labels, labels + before) if noise else labels + before
        self._count(hits_out=n, clusters=count, noise_hits=noise)
        return Batch(table, dataset.assign(label=("hit", numbered)))

    def _count(self, **changes: int) -> None:
        now = self.counters
        new = {name: getattr(now, name) + value for name, value in changes.items() if name != "backlog"}
        if "backlog" in changes:
            new["backlog"] = changes["backlog"]
            new["largest_backlog"] = max(now.largest_backlog, changes["backlog"])
        self.counters = replace(now, **new)

    # ----------------------------------------------------------------------------------------------------- the source
    def _rounds(self) -> Iterator[tuple[list[Any], bool]]:
        """Yield the items of each round, and whether it is the last."""
        items: queue.Queue[Any] = queue.Queue(maxsize=4)
        stop = threading.Event()
        reader = threading.Thread(target=_read, args=(self._source, items, stop), name="daskclust-source", daemon=True)
        reader.start()
        try:
            while True:
                taken, is_last = self._take(items)
                yield taken, is_last
                if is_last:
                    return
        finally:
            stop.set()

    def _take(self, items: queue.Queue[Any]) -> tuple[list[Any], bool]:
        """Return items for a round: of a buffer's hits, or what has come until time is up."""
        taken: list[Any] = []
        size, until = 0, time.monotonic() + self._latency
        while size < self._buffer:
            try:
                item = items.get(timeout=max(until - time.monotonic(), 0.001))
            except queue.Empty:
                break
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return taken, True
            taken.append(item)
            size += _count_hits(item)
        self.counters = replace(self.counters, waiting=items.qsize())
        return taken, False

    def _decoded(self, item: Any) -> Columns:
        """Return the hits of an item, by name."""
        if isinstance(item, bytes | bytearray | memoryview):
            item = self.reader.feed(item)
        if self._prepare is not None:
            item = self._prepare(_dataset(columns_of(item, _COLUMNS, _OPTIONAL)))
        columns = columns_of(item, _COLUMNS, _OPTIONAL)
        columns = {name: np.asarray(values) for name, values in columns.items()}
        columns["toa"] = columns["toa"].astype(np.float64, copy=False)
        bad = np.flatnonzero(~np.isfinite(columns["toa"]))
        if len(bad):
            raise ValueError(f"toa must be finite, got {columns['toa'][bad[0]]} in hit {bad[0]} of an item")
        return columns


class _Held:
    """Hits that go into the next round."""

    def __init__(self) -> None:
        self.waiting: Columns | None = None  # later than the horizon, in the order of time
        self.open: Columns | None = None  # of clusters that are not put out
        self.latest = -np.inf
        self.horizon = -np.inf  # no hit earlier than this is to come

    @property
    def n_waiting(self) -> int:
        return 0 if self.waiting is None else len(self.waiting["toa"])


class _End:
    """The last item of a source, with what it raised."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def _read(source: Iterable[Any], items: queue.Queue[Any], stop: threading.Event) -> None:
    """Put the items of a source into a queue, which makes it wait where it is too fast."""
    error: BaseException | None = None
    try:
        for item in source:
            while not stop.is_set():
                try:
                    items.put(item, timeout=0.1)
                    break
                except queue.Full:
                    continue
            if stop.is_set():
                return
    except BaseException as raised:
        error = raised
    finally:
        close = getattr(source, "close", None)
        if close is not None:
            close()
    while not stop.is_set():
        try:
            items.put(_End(error), timeout=0.1)
            return
        except queue.Full:
            continue


def _count_hits(item: Any) -> int:
    """Return about how many hits an item has."""
    if isinstance(item, bytes | bytearray | memoryview):
        return len(item) // 8
    if hasattr(item, "sizes"):
        return max(item.sizes.values(), default=0)
    return len(item["toa"] if isinstance(item, dict) else item)


def _concatenated(parts: list[Columns | None]) -> Columns | None:
    """Return the hits of all parts, with the columns of the first."""
    given = [part for part in parts if part is not None]
    if len(given) < 2:
        return given[0] if given else None
    for part in given[1:]:
        if part.keys() != given[0].keys():
            raise ValueError(
                f"hits with the columns {sorted(part)} follow hits with {sorted(given[0])}; give all the same"
            )
    full = [part for part in given if len(part["toa"])] or given[:1]
    if len(full) == 1:
        return full[0]
    return {name: np.concatenate([part[name] for part in full]) for name in given[0]}


def _part(hits: Columns, places: Any) -> Columns:
    return {name: values[places] for name, values in hits.items()}


def _first(labels: NDArray[np.int64], cluster: int) -> int:
    """Return the place of a cluster's first hit, the number of hits where there is none."""
    place = int(np.argmax(labels == cluster))
    return place if labels[place] == cluster else len(labels)


def _order(toa: NDArray[np.float64]) -> NDArray[Any]:
    """Return the order of time, earlier hits first among those with one time."""
    ticks = np.rint(toa * (1 / 1.5625))
    if np.array_equal(ticks * 1.5625, toa):  # Timepix3's own times: whole numbers sort faster
        return order_of_ticks(ticks.astype(np.int64))
    return np.argsort(toa, kind="stable")


def _ascend(toa: NDArray[np.float64]) -> bool:
    return bool((toa[1:] >= toa[:-1]).all())


def _dataset(hits: Columns) -> xr.Dataset:
    units = {"x": "pixel", "y": "pixel", "toa": "ns", "tot": "ns", "energy": "keV", "tof": "ns"}
    variables = {name: ("hit", values, {"units": units.get(name, "1")}) for name, values in hits.items()}
    return xr.Dataset(variables, attrs={"field": "timepix"})
