"""Hit streams for the tests of event building, and what is asked of the answers."""

from __future__ import annotations

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
from oracles.brute import events as brute_force

from daskclust import EventBuilder
from daskclust.events import numbering

VARIANTS = ("local", "global", "static")
TICK = 1.5625  # ns


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


def bursts(n: int = 3000, every: int = 100, **more: Any) -> dict[str, np.ndarray]:
    """Return dense hits in the order of time, with a quiet gap after so many hits."""
    hits = dense(n, 3, **{"ticks": 40 * n, **more})
    return {**hits, "toa": hits["toa"] + np.arange(n) // every * 1e5}


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
