"""The command line with --cuda, all systems: the CPU's answer, here and on workers; data sets that go to a device."""

import dask
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from distributed import LocalCluster

from daskclust import datasets, io
from daskclust.machine import gpus

pytestmark = pytest.mark.gpu


N = 120
LINES = {
    "clue": "clue hits.parquet --dc 2 --rhoc 0.3 -o out.parquet --table table.csv",
    "clue, another field": "clue points.parquet --dc 0.6 --rhoc cut -o out.parquet --quiet",
    "events": "events pixels.parquet --dt-max 100 --min-hits 2 --table table.parquet -o out.parquet",
    "dbscan": "dbscan points.parquet --eps 0.4 --min-samples 3 --weight cut -o out.parquet",
    "fof": "fof points.parquet --linking-length 0.4 --boxsize 40,2,none --table table.csv -o out.parquet",
    "hdbscan": "hdbscan points.parquet --min-cluster-size 4 --table table.csv -o out.parquet",
    "hca": "hca cells.parquet --threshold 0.3 --n-clusters 3 --merges table.csv -o out.parquet",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with small files of each field, as the working one."""
    rng = np.random.default_rng(0)
    hits = datasets.hgcal_event(2, n_noise=20, rng=0).drop_vars("truth").isel(hit=slice(None, None, 4))
    io.write_hits(hits, tmp_path / "hits.parquet")
    io.write_hits(datasets.timepix(N, rng=0, rate=2e4).drop_vars("truth"), tmp_path / "pixels.parquet")
    points = pd.DataFrame(
        {name: rng.uniform(0, most, N).astype("f4") for name, most in (("x", 40), ("y", 2), ("z", 1))}
    )
    points.assign(cut=rng.integers(0, 4, N) / 2).to_parquet(tmp_path / "points.parquet")
    cells = pd.DataFrame(rng.normal(size=(45, 3)), columns=["CD3", "CD4", "CD8"]).assign(apriori=np.arange(45) % 3)
    cells.to_parquet(tmp_path / "cells.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(folder):
    """Return the tables that a command wrote."""
    tables = {path.name: path for path in folder.iterdir() if path.stem in ("out", "table")}
    return {n: (pd.read_csv if path.suffix == ".csv" else pd.read_parquet)(path) for n, path in tables.items()}


def in_order(frame):
    """Return a table of hits in the order of time: those of a file that goes through in windows are by cluster."""
    if "toa" not in frame:
        return frame
    return frame.drop(columns="seed", errors="ignore").sort_values(["toa", "x", "y"], ignore_index=True)


def assert_same_files(command, folder, name, *options):
    """Run a command on the CPU and with options; compare all that it writes."""
    assert command(*LINES[name].split())[0] == 0
    wanted = written(folder)
    for table in wanted:
        (folder / table).unlink()
    code, _, err = command(*LINES[name].split(), *options)
    assert (code, err) == (0, "")
    found = written(folder)
    assert found.keys() == wanted.keys()
    for table, frame in wanted.items():
        pd.testing.assert_frame_equal(*map(in_order, (found[table][frame.columns], frame)))
    assert wanted["out.parquet"]["label"].max() > 0


@pytest.fixture
def launches(monkeypatch):
    """Count the kernels that run on the device."""
    from daskclust.core.device.arrays import Cuda

    counted, run = [], Cuda.run
    monkeypatch.setattr(Cuda, "run", lambda *args, **options: counted.append(args[1]) or run(*args, **options))
    return counted


@pytest.mark.parametrize("name", LINES)
def test_in_this_process(command, folder, launches, name):
    assert_same_files(command, folder, name, "--cuda")
    assert launches


@pytest.mark.parametrize("name", LINES)
def test_on_the_workers_of_a_scheduler(command, folder, launches, name):
    chunks = () if name == "events" else ("--chunks", 50)
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster:
        assert_same_files(command, folder, name, "--cuda", "--scheduler", cluster.scheduler_address, *chunks)
    assert launches


def test_on_workers_that_are_started(command, folder):
    assert_same_files(command, folder, "fof", "--cuda", "--workers", 1, "--memory-limit", "8GB", "--chunks", 50)
    most = len(gpus())
    code, _, err = command(*LINES["fof"].split(), "--cuda", "--workers", most + 1)
    assert code == 1
    assert f"error: n_workers must be at most {most}, a worker for each GPU, got {most + 1}" in err


@pytest.fixture
def ds():
    return xr.Dataset(
        {
            "x": ("hit", np.arange(6, dtype=">f4"), {"units": "cm"}),
            "n": ("hit", np.arange(6, dtype=np.uint16)),
            "good": ("hit", np.arange(6) > 2),
            "X": (("hit", "channel"), np.ones((6, 2))),
            "name": ("hit", list("abcdef")),
        },
        coords={"channel": ["a", "b"], "hit": np.arange(6), "event": ("hit", np.arange(6) // 2), "run": 7},
        attrs={"boxsize": 3.0},
    )


def test_to_device_and_back(cupy, ds):
    before = ds.copy(deep=True)
    there = io.to_device(ds, "cuda")
    on_device = {name for name, variable in there.variables.items() if isinstance(variable.data, cupy.ndarray)}
    assert on_device == {"x", "n", "good", "X", "event", "run"}
    assert list(there.variables) == list(ds.variables)
    assert there["x"].dtype == np.float32
    xr.testing.assert_identical(ds, before)
    back = io.to_device(there, "cpu")
    assert all(type(variable.data) is np.ndarray for name, variable in back.variables.items() if name in on_device)
    xr.testing.assert_identical(back, ds)


def test_to_device_is_lazy_and_carries_what_is_needed(cupy, ds, monkeypatch):
    lazy = ds.chunk(hit=2)
    there = io.to_device(lazy, "cuda")
    assert there.chunks == lazy.chunks
    assert type(there["x"].data._meta) is cupy.ndarray
    sent, carry = [], cupy.asarray
    monkeypatch.setattr(cupy, "asarray", lambda values: sent.append(values.nbytes) or carry(values))
    sums = (there["x"] + there["n"]).sum().compute(scheduler="synchronous")
    assert type(sums.data) is cupy.ndarray
    assert sum(sent) == 6 * (4 + 2)  # x and n, nothing else
    with dask.config.set(scheduler="synchronous"):
        xr.testing.assert_identical(io.to_device(there, "cpu").compute(), ds)
    assert io.to_device(lazy, "cpu")["x"].data is lazy["x"].data
    again = io.to_device(there, "cuda")
    assert again["x"].data is there["x"].data


def test_to_device_refuses(ds):
    with pytest.raises(ValueError, match='device must be "cpu" or "cuda", got \'gpu\''):
        io.to_device(ds, "gpu")
    with pytest.raises(TypeError, match=r"ds must be an xarray.Dataset, got DataArray"):
        io.to_device(ds["x"], "cuda")
