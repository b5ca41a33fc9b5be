"""Hit streams for the tests of event building, and their clusters by brute force.

The definitions are those of design.md section 7, taken word by word: nothing of daskclust's event building is used for
the answers. Times are subtracted in float64 and compared with "at most dt_max", as the definition says.
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import dask
import dask.array as da
import numpy as np
import xarray as xr
from cases.lanes import on_host
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from daskclust import EventBuilder
from daskclust.events import numbering

VARIANTS = ("local", "global", "static")
TICK = 1.5625  # ns


# -------------------------------------------------------------------------------------------------------------- oracles
def in_time(hits: dict[str, np.ndarray]) -> np.ndarray:
    """Return the order (toa, input order)."""
    return np.lexsort((np.arange(len(hits["toa"])), hits["toa"]))


def touches(hits: dict[str, np.ndarray], i: Any, j: Any, connectivity: int) -> Any:
    """Return whether the pixels of hits i and j are the same or touch; of one chip, where there is a chip."""
    dx, dy = (np.abs(hits[name][i].astype(float) - hits[name][j].astype(float)) for name in ("x", "y"))
    near = (dx + dy <= 1) if connectivity == 4 else (np.maximum(dx, dy) <= 1)
    return near & (hits["chip"][i] == hits["chip"][j]) if "chip" in hits else near


def neighbours(hits: dict[str, np.ndarray], dt_max: float, connectivity: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of neighbours, of hits in the order of time: pairs k apart, for every k that can hold one."""
    n, toa = len(hits["toa"]), hits["toa"]
    first, second = [np.empty(0, int)], [np.empty(0, int)]
    for k in range(1, n):
        i = np.flatnonzero(toa[k:] - toa[:-k] <= dt_max)
        if len(i) == 0:
            break  # times ascend: those farther apart are no nearer in time
        i = i[touches(hits, i, i + k, connectivity)]
        first.append(i)
        second.append(i + k)
    return np.concatenate(first), np.concatenate(second)


def local_clusters(hits: dict[str, np.ndarray], dt_max: float, connectivity: int) -> np.ndarray:
    """Return the connected component of each hit, hits in the order of time."""
    n = len(hits["toa"])
    a, b = neighbours(hits, dt_max, connectivity)
    return connected_components(coo_array((np.ones(len(a), np.int8), (a, b)), shape=(n, n)), directed=False)[1]


def simulated_clusters(hits: dict[str, np.ndarray], dt_max: float, connectivity: int, variant: str) -> np.ndarray:
    """Return each hit's cluster by "global" or "static": hits come one by one, a cluster keeps all of its."""
    columns = [hits[name].tolist() for name in ("x", "y")] + [
        hits["chip"].tolist() if "chip" in hits else [0] * len(hits["toa"])
    ]
    x, y, chip = columns
    toa = hits["toa"].tolist()
    decides = max if variant == "global" else min

    def touch(i: int, j: int) -> bool:
        dx, dy = abs(x[i] - x[j]), abs(y[i] - y[j])
        near = dx + dy <= 1 if connectivity == 4 else max(dx, dy) <= 1
        return near and chip[i] == chip[j]

    closed: list[list[int]] = []
    clusters: list[list[int]] = []
    for i, time in enumerate(toa):
        still_open = [c for c in clusters if time - decides(toa[j] for j in c) <= dt_max]
        closed += [c for c in clusters if c not in still_open]
        joined = [c for c in still_open if any(touch(i, j) for j in c)]
        clusters = [c for c in still_open if c not in joined] + [sorted(itertools.chain([i], *joined))]
    labels = np.empty(len(toa), np.int64)
    for number, cluster in enumerate(closed + clusters):
        labels[cluster] = number
    return labels


def canonical(groups: np.ndarray, min_hits: int) -> np.ndarray:
    """Return groups numbered by their first hit, -1 for those of fewer than `min_hits`; hits in the order of time."""
    _, firsts, which, sizes = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    numbers, number = np.full(len(firsts), -1, np.int64), 0
    for group in np.argsort(firsts):
        if sizes[group] >= min_hits:
            numbers[group], number = number, number + 1
    return numbers[which]


def brute_force(
    hits: dict[str, np.ndarray], dt_max: float, variant: str = "local", connectivity: int = 8, min_hits: int = 1
) -> np.ndarray:
    """Return the labels of hits in any order, int64."""
    order = in_time(hits)
    hits = {name: values[order] for name, values in hits.items()}
    if variant == "local":
        groups = local_clusters(hits, dt_max, connectivity)
    else:
        groups = simulated_clusters(hits, dt_max, connectivity, variant)
    labels = np.empty(len(order), np.int64)
    labels[order] = canonical(groups, min_hits)
    return labels


# ---------------------------------------------------------------------------------------------------------------- cases
@dataclass
class Case:
    """Hits and parameters of `EventBuilder`; `quad`: coordinates are common to all chips."""

    hits: dict[str, np.ndarray]
    dt_max: float = 100.0
    others: dict[str, Any] = field(default_factory=dict)  # variant, connectivity, min_hits
    quad: bool = False

    def __len__(self) -> int:
        return len(self.hits["toa"])

    def estimator(self) -> EventBuilder:
        return EventBuilder(self.dt_max, **self.others)

    def dataset(self) -> xr.Dataset:
        attrs = {"field": "timepix", "layout": "quad" if self.quad else "chips"}
        return xr.Dataset({name: ("hit", values) for name, values in self.hits.items()}, attrs=attrs)

    def fit(self) -> EventBuilder:
        return self.estimator().fit(self.dataset())

    def chunked(self, rows: tuple[int, ...], partition: Any = "chunks") -> EventBuilder:
        """Fit to dask arrays with chunks of `rows` hits."""
        lazy = {name: ("hit", da.from_array(values, chunks=(rows,))) for name, values in self.hits.items()}
        return self.estimator().fit(xr.Dataset(lazy, attrs=self.dataset().attrs), partition=partition)

    def answer(self) -> np.ndarray:
        hits = {name: values for name, values in self.hits.items() if name != "chip" or not self.quad}
        return brute_force(hits, self.dt_max, **self.others)

    def reordered(self, order: np.ndarray) -> Case:
        return replace(self, hits={name: values[order] for name, values in self.hits.items()})


def assert_labels(got: EventBuilder, wanted: np.ndarray) -> None:
    """Demand these labels, int64, and their number of clusters."""
    labels, count = dask.compute(got.labels_, got.n_clusters_)
    labels = on_host(labels)
    np.testing.assert_array_equal(labels, wanted)
    assert labels.dtype == np.int64
    assert int(count) == wanted.max(initial=-1) + 1


@contextmanager
def tiny_pieces(hits: int, pieces: int):
    """Divide hits in memory into up to `pieces` parts for threads, each of `hits` or more."""
    with mock.patch.object(numbering, "PIECE", hits), mock.patch.object(numbering, "thread_count", return_value=pieces):
        yield


def dense(n: int, seed: int = 0, *, pixels: int = 6, ticks: int = 2000, chips: int = 2) -> dict[str, np.ndarray]:
    """Return hits in the order of time, many of each pixel, with ties where `ticks` are few."""
    rng = np.random.default_rng(seed)
    return {
        "x": rng.integers(0, pixels, n).astype(np.uint16),
        "y": rng.integers(0, pixels, n).astype(np.uint16),
        "toa": np.sort(rng.integers(0, ticks, n)) * TICK,
        "chip": rng.integers(0, chips, n).astype(np.uint8),
    }


# ----------------------------------------------------------------------------------------------------------- strategies
@st.composite
def cases(draw, most=150, variants=VARIANTS, is_sorted=None):
    """Draw dense streams: times with ties, at exactly dt_max, of bursts between quiet gaps, or any; and parameters."""
    n = draw(st.sampled_from([0, 1, 2, 5, 20, 60, 61, most - 1, most]))  # rather than any: most of those are few
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    pixels = draw(st.sampled_from([1, 3, 6, 12, 40]))
    kind = draw(st.sampled_from(["ticks", "floats", "few", "bursts"]))
    dt_max = draw(st.sampled_from([TICK, 4 * TICK, 25.0, 64 * TICK, 7.3, 33.333]))
    span = dt_max * draw(st.sampled_from([3, 20, 100]))
    if kind == "floats":
        toa = rng.uniform(-span, span, n)
    elif kind == "few":  # steps of a half and of a whole dt_max
        toa = rng.integers(0, 12, n) * (dt_max / 2)
    else:
        toa = np.round(rng.uniform(0, span, n) / TICK) * TICK
    if kind == "bursts":
        toa += rng.integers(0, 4, n) * 1e6 * TICK
    if draw(st.booleans()) if is_sorted is None else is_sorted:
        toa = np.sort(toa)
    hits = {
        "x": rng.integers(0, pixels, n).astype(np.uint16),
        "y": rng.integers(0, draw(st.sampled_from([1, pixels])), n).astype(np.uint16),
        "toa": toa,
    }
    quad = draw(st.booleans())
    chips = draw(st.sampled_from([0, 1, 3]))
    if quad:  # each chip has its half, and clusters cross the seam
        hits["chip"] = (hits["x"] * 2 // max(pixels, 2)).astype(np.uint8)
    elif chips:
        hits["chip"] = rng.integers(0, chips, n).astype(np.uint8)
    others = {
        "variant": draw(st.sampled_from(variants)),
        "connectivity": draw(st.sampled_from([4, 8])),
        "min_hits": draw(st.integers(1, 5)),
    }
    return Case(hits, dt_max, others, quad)


HITS = dense(90, 1)
WANTED = brute_force(HITS, 100.0)


def lazy(hits, rows=40):
    return {name: da.from_array(np.asarray(values), chunks=rows) for name, values in hits.items()}
