"""Windows of host memory in lanes of a GPU: what is refused, and, with a lane's work done on the CPU, the lanes.

Kernels and copies are tested in the lane ``gpu``.
"""

from __future__ import annotations

import contextlib
import threading

import dask.array as da
import numpy as np
import pytest

from daskclust import EventBuilder
from daskclust.core.run.engine import run_in_memory
from daskclust.datasets import timepix
from daskclust.readout import gpu
from daskclust.readout.gpu import cluster_on_gpu


@pytest.fixture(scope="module")
def hits():
    return timepix(3000, kind="pion45", rate=1e6, chips=2, rng=0).drop_vars("truth")


def changed(hits, **columns):
    return {name: columns.get(name, hits[name].values) for name in ("x", "y", "toa", "chip")}


def at(hits, place, value):
    toa = hits["toa"].values.copy()
    toa[place] = value
    return toa


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"x": [1, 2]}, r"x must have one value for each of the 3000 points of X, got shape \(2,\)"),
        ({"y": np.full(3000, "7")}, "y must be numbers, got dtype <U1"),
        ({"toa": np.zeros((3000, 1))}, r"toa must have one dimension, got shape \(3000, 1\)"),
        ({"toa": np.full(3000, 2**60)}, "beyond 2\\*\\*53"),
    ],
)
def test_columns_are_checked_as_by_the_estimator(hits, columns, words):
    wrong = changed(hits, **columns)
    for call in (EventBuilder(200.0).fit, lambda wrong: cluster_on_gpu(wrong, EventBuilder(200.0))):
        with pytest.raises(ValueError, match=words):
            call(wrong)


def test_missing_columns_are_named():
    with pytest.raises(ValueError, match="there is no column 'toa'"):
        cluster_on_gpu({"x": [1], "y": [1]}, EventBuilder(200.0))


def test_hits_elsewhere_are_refused(hits):
    lazy = changed(hits, toa=da.from_array(hits["toa"].values))
    with pytest.raises(TypeError, match=r"must be in host memory, got .*dask.*; EventBuilder\.fit takes"):
        cluster_on_gpu(lazy, EventBuilder(200.0))


@pytest.mark.parametrize("name", ["window", "lanes"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_windows_and_lanes_are_counted_from_one(hits, name, value):
    with pytest.raises((ValueError, TypeError), match=f"{name} must be .*, got {value!r}"):
        cluster_on_gpu(hits, EventBuilder(200.0), **{name: value})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 1500, 2999])
def test_times_that_are_no_number_are_refused(hits, place, value):
    with pytest.raises(ValueError, match=rf"toa must be finite, got toa\[{place}\] = {value}"):
        cluster_on_gpu(changed(hits, toa=at(hits, place, value)), EventBuilder(200.0))


def test_hits_out_of_order_are_refused(hits):
    with pytest.raises(ValueError, match=r"toa\[7\] is before the hit before it, -1.0 after .*: sort them first"):
        cluster_on_gpu(changed(hits, toa=at(hits, 7, -1.0)), EventBuilder(200.0))


@pytest.fixture
def lanes_on_the_cpu(monkeypatch):
    """Let lanes work without a GPU; return the threads that worked, with how many windows each had."""
    worked = threading.local()
    seen = []

    def in_lane(plan, part, labels):
        worked.windows = getattr(worked, "windows", 0) + 1
        seen.append((threading.get_ident(), worked.device, worked.windows))
        results = run_in_memory(plan, part)
        labels[:] = results["labels"]
        return results["n_clusters"]

    gpu._threads.cache_clear()
    monkeypatch.setattr(gpu, "_in_lane", in_lane)
    monkeypatch.setattr(gpu, "own_stream", contextlib.nullcontext)
    monkeypatch.setattr(gpu, "_current_device", lambda: 3)
    monkeypatch.setattr(gpu, "_use_device", lambda number: setattr(worked, "device", number))
    yield seen
    gpu._threads.cache_clear()


@pytest.mark.parametrize("lanes", [1, 2, 5])
def test_lanes_are_kept_and_on_the_device_of_the_caller(hits, lanes_on_the_cpu, lanes):
    builder = EventBuilder(200.0, min_hits=2).fit(hits)
    for _ in range(2):
        labels, count = cluster_on_gpu(hits, builder, window=100, lanes=lanes)
        np.testing.assert_array_equal(labels, builder.labels_)
        assert count == builder.n_clusters_
    threads = {ident for ident, _, _ in lanes_on_the_cpu}
    assert len(threads) <= lanes
    assert {number for _, number, _ in lanes_on_the_cpu} == {3}
    # what a thread keeps, its pinned buffers, is there in the second call
    assert sum(windows == 1 for _, _, windows in lanes_on_the_cpu) == len(threads)


def test_an_error_in_a_lane_is_raised(hits, lanes_on_the_cpu):
    with pytest.raises(ValueError, match="x must be whole numbers"):
        cluster_on_gpu(changed(hits, x=hits["x"].values + 0.5), EventBuilder(200.0), window=100)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Grid size")
@pytest.mark.parametrize("variant", ["local", "global", "static"])
def test_on_a_gpu(variant):
    """Windows of several sizes one after the other in kept threads: buffers grow, and are used again."""
    hits = timepix(200_000, kind="pion45", chips=2, rng=1).drop_vars("truth")
    builder = EventBuilder(200.0, variant=variant, min_hits=2).fit(hits)
    for window in (5000, 30_000, 5000, 1 << 22):
        labels, count = cluster_on_gpu(hits, builder, window=window, lanes=3)
        np.testing.assert_array_equal(labels, builder.labels_)
        assert count == builder.n_clusters_
