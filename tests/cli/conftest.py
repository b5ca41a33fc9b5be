"""Fixtures of the tests of the command line."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest
from cases.files.writers import write_gmhc
from distributed import LocalCluster

from daskclust import datasets, io


@pytest.fixture
def summary(command):
    """Return a function that runs a line which succeeds, and gives what --json prints."""

    def run(*arguments):
        code, out, err = command(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    return run


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Return a folder with files of each field, to be read only."""
    folder = tmp_path_factory.mktemp("files")
    io.write_hits(datasets.hgcal_event(20, n_noise=1000, rng=0).drop_vars("truth"), folder / "hits.parquet")
    io.write_tpx3(datasets.timepix(20_000, kind="pion45", rng=0).drop_vars("truth"), folder / "run.tpx3")
    io.write_particles(datasets.cosmology_box(1500, rng=0).drop_vars("halo"), folder / "snapshot.hdf5")
    cells = datasets.cytometry(300, 3, rng=0).drop_vars("population")
    io.write_cells(cells.assign(apriori=("cell", np.arange(300) % 3)), folder / "cells.parquet")
    write_gmhc(datasets.cytometry(3000, 2, rng=0), folder / "data")
    return folder


@pytest.fixture
def files(made, tmp_path, monkeypatch):
    """Return a copy of that folder, as the working one."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path
