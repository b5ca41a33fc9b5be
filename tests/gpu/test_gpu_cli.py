"""The command line with --cuda, all systems: the CPU's answer, here and on workers; data sets that go to a device."""

from __future__ import annotations

import dask
import numpy as np
import pytest
import xarray as xr
from cases.lines import LINES, assert_same_files, make_files
from distributed import LocalCluster

from daskclust import io
from daskclust.machine import gpus

pytestmark = pytest.mark.gpu


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with small files of each field, as the working one."""
    make_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


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


# ----------------------------------------------------------------------------------------------------------- data sets
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
