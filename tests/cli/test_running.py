"""Where commands cluster: on the workers of a scheduler that runs elsewhere, within a limit of memory, on GPUs."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pandas as pd
import pytest
from distributed import LocalCluster, Nanny, default_client

from daskclust import datasets, io, properties, workers

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
        cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0")
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


@pytest.mark.parametrize(
    "line",
    [
        "clue hits.parquet --dc 1 --rhoc 1",
        "clue hits.h5 --dc 1 --rhoc 1",
        "events run.tpx3 --dt-max 200",
        "dbscan store.zarr 0.3",
        "hca cells.fcs 20",
    ],
)
def test_workers_that_do_not_see_a_file(command, files, scheduler, tmp_path, monkeypatch, line):
    """As on another machine: it is not there while they compute."""
    monkeypatch.chdir(tmp_path)
    io.write_hits(io.read_hits(files / "hits.parquet"), "hits.h5")
    io.write_particles(io.open_particles(files / "snapshot.hdf5"), "store.zarr")
    io.write_cells(io.read_cells(files / "cells.parquet"), "cells.fcs")
    for name in ("hits.parquet", "run.tpx3"):
        shutil.copy(files / name, name)
    file = tmp_path / line.split()[1]

    def elsewhere(*given):
        hidden = file.rename(tmp_path / "hidden")
        try:
            return persist(*given)
        finally:
            hidden.rename(file)

    persist = workers.persist
    monkeypatch.setattr(workers, "persist", elsewhere)
    code, out, err = command(*line.split(), "--scheduler", scheduler)
    assert (code, out) == (1, "")
    what, hint = err.splitlines()
    assert what == f"error: workers of {scheduler} see no {file}, which is here"
    assert hint == "hint: put it where all machines have it under the same name"


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_scheduler_that_is_lost_after_the_computation(command, files, elsewhere, monkeypatch):
    """Its results are lost, too: an error in two lines, and no half of a file."""
    monkeypatch.chdir(files)
    address, scheduler = elsewhere
    before, table_of = set(files.iterdir()), properties.cluster_table

    def table_after_its_end(*args, **options):
        scheduler.kill()
        scheduler.wait()
        default_client()._timeout = 1  # s until it gives up to find the scheduler again
        return table_of(*args, **options)

    monkeypatch.setattr(properties, "cluster_table", table_after_its_end)
    code, out, err = command("events", "run.tpx3", "--dt-max", 200, "-o", "lost.parquet", "--scheduler", address)
    assert (code, out) == (1, "")
    what, hint = err.splitlines()
    assert what == f"error: the scheduler at {address} was lost, and the results with it"
    assert hint == "hint: start it and its workers again, and run this again"
    assert set(files.iterdir()) == before
