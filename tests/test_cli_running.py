"""Where commands cluster: on the workers of a scheduler that runs elsewhere, within a limit of memory, on GPUs."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pandas as pd
import pytest
from distributed import LocalCluster, Nanny

from daskclust import datasets, io, properties
from daskclust.workers import _start

pytestmark = pytest.mark.filterwarnings("ignore:Port .* is already in use")

LINES = {
    "clue": "clue hits.parquet --dc 2 --rhoc 0.3 --chunks 500 -o out.parquet --table table.csv",
    "events": "events run.tpx3 --dt-max 200 --min-hits 2 -o out.parquet",
    "dbscan": "dbscan snapshot.hdf5 0.3 --chunks 500 -o out.zarr",
    "fof": "fof snapshot.hdf5 --b 0.3 --chunks 500 -o out.parquet --labels labels.zarr",
    "hca": "hca cells.parquet 20 --chunks 100 --n-clusters 3 -o out.parquet --labels-out labels.csv",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder with small files of each field."""
    folder = tmp_path_factory.mktemp("files")
    io.write_hits(datasets.hgcal_event(5, n_noise=200, rng=0).drop_vars("truth"), folder / "hits.parquet")
    io.write_tpx3(datasets.timepix(3000, kind="pion45", rng=0).drop_vars("truth"), folder / "run.tpx3")
    io.write_particles(datasets.cosmology_box(1500, rng=0).drop_vars("halo"), folder / "snapshot.hdf5")
    cells = datasets.cytometry(300, 3, rng=0).drop_vars("population")
    io.write_cells(cells.assign(apriori=("cell", np.arange(300) % 3)), folder / "cells.parquet")
    return folder


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """Return the address of a scheduler whose worker runs in another folder, where it leaves nothing."""
    before, folder = os.getcwd(), tmp_path_factory.mktemp("elsewhere")
    os.chdir(folder)
    try:
        cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
    finally:
        os.chdir(before)
    with cluster:
        yield cluster.scheduler_address
    assert list(folder.iterdir()) == []


def table(path):
    """Return what is in a file or a store."""
    if path.suffix == ".zarr":
        return io.open_particles(path).to_dataframe()
    return (pd.read_csv if path.suffix == ".csv" else pd.read_parquet)(path)


@pytest.mark.parametrize("name", LINES)
def test_the_workers_of_a_scheduler_give_the_same(command, files, scheduler, tmp_path, monkeypatch, name):
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    given = set(tmp_path.iterdir())
    code, _, err = command(*LINES[name].split())
    assert code == 0, err
    made = set(tmp_path.iterdir()) - given
    wanted = {path: table(path) for path in made}
    for path in made:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    code, _, err = command(*LINES[name].split(), "--scheduler", scheduler)
    assert code == 0, err
    assert set(tmp_path.iterdir()) - given == made
    for path, frame in wanted.items():
        assert len(frame)
        pd.testing.assert_frame_equal(table(path), frame, check_like=True)


def test_workers_that_do_not_see_a_file(command, files, scheduler, tmp_path, monkeypatch):
    """As on another machine: the path of the file leads to nothing there."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(files / "hits.parquet", tmp_path / "here.parquet")

    def vanish(path, *_):
        raise FileNotFoundError(2, "No such file or directory", str(path))

    monkeypatch.setattr("daskclust.io.hits.read_parquet", vanish)
    code, out, err = command("clue", "here.parquet", "--dc", 1, "--rhoc", 1, "--scheduler", scheduler)
    assert (code, out) == (1, "")
    what, hint = err.splitlines()
    assert what == f"error: workers of {scheduler} see no here.parquet, which is here"
    assert hint == "hint: put it where all machines have it under the same name"


def test_a_limit_of_memory(command, files, tmp_path, monkeypatch):
    """It reaches the processes that are started."""
    asked, start = [], Nanny.__init__
    monkeypatch.setattr(
        Nanny, "__init__", lambda *args, **options: asked.append(options["memory_limit"]) or start(*args, **options)
    )
    arguments = (files / "cells.parquet", 20, "-o", tmp_path / "tree.npy", "--workers", 1, "--memory-limit", "0.25")
    code, _, err = command("hca", *arguments)
    assert code == 0, err
    assert asked == [0.25]


def test_a_scheduler_that_is_lost_after_the_computation(command, files, elsewhere, monkeypatch):
    """Its results are lost, too: an error in two lines, and no half of a file."""
    monkeypatch.setattr(_start, "_PATIENCE", 5)  # s until it gives up to find the scheduler again
    monkeypatch.chdir(files)
    address, scheduler = elsewhere
    before, table_of = set(files.iterdir()), properties.cluster_table

    def table_after_its_end(*args, **options):
        scheduler.kill()
        scheduler.wait()
        return table_of(*args, **options)

    monkeypatch.setattr(properties, "cluster_table", table_after_its_end)
    code, out, err = command("events", "run.tpx3", "--dt-max", 200, "-o", "lost.parquet", "--scheduler", address)
    assert (code, out) == (1, "")
    what, hint = err.splitlines()
    assert what == f"error: the scheduler at {address} was lost, and the results with it"
    assert hint == "hint: start it and its workers again, and run this again"
    assert set(files.iterdir()) == before
