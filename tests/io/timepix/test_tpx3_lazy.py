"""Raw Timepix3 files chunk by chunk: dask, the engine of xarray, and workers."""

from __future__ import annotations

import pathlib
import pickle

import dask
import numpy as np
import pytest
import xarray as xr
from cases.files.tpx3_words import stream

from daskclust.io import open_tpx3, open_tpx3_triggers
from daskclust.io.timepix.tpx3 import index as tpx3_index
from daskclust.io.timepix.tpx3 import read as tpx3_read
from daskclust.io.timepix.tpx3.xarray import Tpx3Entrypoint

ENGINES = (Tpx3Entrypoint, "tpx3")


@pytest.fixture
def run(write):
    """Return a file of some thousand hits."""
    return write(stream(np.random.default_rng(5), chunks=200, longest=60))


def test_lazy_reading_decodes_nothing_before_it_is_computed(run, monkeypatch):
    whole = open_tpx3(run)
    lazy = open_tpx3(run, chunks=500)
    assert lazy.chunks["hit"] == tuple(len(block) for block in dask.compute(*lazy["x"].data.to_delayed()))
    assert len(lazy.chunks["hit"]) > 4
    xr.testing.assert_identical(lazy.compute(), whole)
    xr.testing.assert_identical(open_tpx3(run, chunks="auto").compute(), whole)
    monkeypatch.setattr(tpx3_read, "read_columns", None)
    open_tpx3(run, chunks=500)
    xr.open_dataset(run, engine=Tpx3Entrypoint, chunks={})


def test_one_task_reads_all_columns_of_a_chunk(run, monkeypatch):
    read, calls = tpx3_read.read_columns, []
    monkeypatch.setattr(tpx3_read, "read_columns", lambda *args: (calls.append(1), read(*args))[1])
    lazy = open_tpx3(run, chunks=500)
    lazy.compute()
    assert len(calls) == len(lazy.chunks["hit"])
    calls.clear()
    xr.open_dataset(run, engine=Tpx3Entrypoint, hits_per_chunk=100_000).load()
    assert len(calls) == 1


def test_pages_of_a_large_file_are_given_back(run, monkeypatch):
    whole, resident, release = open_tpx3(run), [], tpx3_index.give_back

    def measured(data):
        assert data.any()
        release(data)
        resident.append(kilobytes_of(run))

    monkeypatch.setattr(tpx3_index, "give_back", measured)
    for large in (1 << 28, 0):
        monkeypatch.setattr(tpx3_index, "_LARGE", large)
        tpx3_index._index.cache_clear()
        xr.testing.assert_identical(open_tpx3(run, chunks=500).compute(), whole)
    assert len(resident) >= 4
    assert all(resident[: len(resident) // 2])
    assert not any(resident[len(resident) // 2 :])


def kilobytes_of(file):
    """Return how much of a file that is mapped takes memory of this process."""
    lines = iter(pathlib.Path("/proc/self/smaps").read_text().splitlines())
    return sum(
        int(next(x for x in lines if x.startswith("Rss")).split()[1]) for line in lines if line.endswith(str(file))
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_xarray_engine(run, engine):
    """By its name it is the entry point of the installed package: if this fails, ``pip install -e .``."""
    whole = open_tpx3(run)
    backed = xr.open_dataset(run, engine=engine, hits_per_chunk=700)
    slices = (slice(5, 3000, 7), slice(None, None, -3), slice(4, 4), slice(2000, 10, -9), slice(None))
    for rows in (*slices, [3, 2000, 5], -1):
        for name in ("x", "toa"):
            np.testing.assert_array_equal(backed[name][rows], whole[name][rows])
    xr.testing.assert_identical(pickle.loads(pickle.dumps(backed)).load(), whole)
    lazy = xr.open_dataset(run, engine=engine, hits_per_chunk=700, chunks={})
    assert lazy.chunks["hit"] == open_tpx3(run, chunks=700).chunks["hit"]
    xr.testing.assert_identical(lazy.compute(), whole)
    xr.testing.assert_identical(xr.open_dataset(run, engine=engine, group="tdc"), open_tpx3_triggers(run))
    quad = xr.open_dataset(run, engine=engine, layout="quad", gap=2, phase_correction=True).load()
    xr.testing.assert_identical(quad, open_tpx3(run, layout="quad", gap=2, phase_correction=True))
    assert "tot" not in xr.open_dataset(run, engine=engine, drop_variables=["tot"])
    with pytest.raises(ValueError, match="unknown group 'hits'"):
        xr.open_dataset(run, engine=engine, group="hits")


def test_xarray_guesses_the_engine(run, write):
    xr.testing.assert_identical(xr.open_dataset(run).load(), open_tpx3(run))
    guess = Tpx3Entrypoint().guess_can_open
    assert [guess("a.tpx3"), guess("A.TPX3"), guess("a.nc"), guess(3)] == [True, True, False, False]
    for path, error, message in [
        (write("x,y,toa\n1,2,3\n"), ValueError, "has no chunk of Timepix3 words"),
        ("none.tpx3", FileNotFoundError, "no such file"),
    ]:
        with pytest.raises(error, match=message):
            xr.open_dataset(path, engine="tpx3")


@pytest.mark.slow
def test_on_a_worker_process(run):
    from distributed import Client, LocalCluster

    options = {"n_workers": 1, "threads_per_worker": 2, "processes": True, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        for lazy in (xr.open_dataset(run, engine="tpx3", chunks={}, hits_per_chunk=900), open_tpx3(run, chunks=900)):
            assert len(lazy.chunks["hit"]) > 3
            xr.testing.assert_identical(lazy.compute(scheduler=client), open_tpx3(run))


def test_a_file_that_changes_is_not_read(run):
    lazy = open_tpx3(run, chunks=500)
    with open(run, "ab") as file:
        file.write(b"more")
    with pytest.raises(ValueError, match="has changed since it was opened"):
        lazy.compute()
