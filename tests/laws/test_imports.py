"""A first fit imports what it needs: libraries of other containers take longer than most fits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dask
import numpy as np
import pytest
from distributed import Client

from daskclust import workers
from daskclust.core.merge.labels import count_clusters
from daskclust.datasets import cosmology_box, timepix
from daskclust.io import open_particles, open_tpx3, write_hits, write_particles, write_tpx3
from daskclust.properties import cluster_table, halo_table

FITS = """
import sys
import numpy as np
from daskclust import CLUE, DBSCAN, HDBSCAN, EventBuilder, FriendsOfFriends, MahalanobisHCA

others = ["dask", "distributed", "pandas", "sklearn", "xarray"]
for estimator in (CLUE(1.0, 1.0), EventBuilder(1.0), DBSCAN(), FriendsOfFriends(0.1), MahalanobisHCA(), HDBSCAN()):
    found = estimator.fit(np.arange(60.0).reshape(20, 3))
    assert len(found.labels_) == 20
    print(type(estimator).__name__, [name for name in others if name in sys.modules])
"""
ALL = """
import sys, daskclust.accessor, daskclust.core.data.nested, daskclust.io.hits
from daskclust import *
print([name for name in ["awkward"] if name in sys.modules])
"""


def told(code: str) -> list[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_fits_of_arrays_import_no_other_containers() -> None:
    names = ["CLUE", "EventBuilder", "DBSCAN", "FriendsOfFriends", "MahalanobisHCA", "HDBSCAN"]
    assert told(FITS) == [f"{name} []" for name in names]


def test_nothing_imports_awkward() -> None:
    assert told(ALL) == ["[]"]


LARGE = "dask.array", "xarray", "pandas", "scipy.sparse"
"""Each process takes half a second to a second for them: dask.array imports xarray, and that pandas."""


def large_libraries(client: Client) -> dict[str, list[str]]:
    found: dict[str, list[str]] = client.run(lambda: [name for name in LARGE if name in sys.modules])
    return {worker: names for worker, names in found.items() if names}


def test_workers_of_a_raw_file_import_no_large_library(tmp_path: Path) -> None:
    file = tmp_path / "hits.tpx3"
    write_tpx3(timepix(5000, rng=0), file)
    with workers.start(2, dashboard=None) as client:
        hits = open_tpx3(file, chunks=1000).clust.events(100.0)
        write_hits(cluster_table(hits).drop_vars(["noise_size", "noise_weight"]), tmp_path / "table.parquet")
        write_hits(hits, tmp_path / "hits.parquet")
        assert large_libraries(client) == {}


@pytest.mark.parametrize("suffix", ["hdf5", "zarr", "parquet", "npy"])
def test_workers_of_particles_import_no_large_library(suffix: str, tmp_path: Path) -> None:
    """The command counts clusters and noise, and writes points and a table; the plan divides space by a sample."""
    file, out = tmp_path / f"box.{suffix}", tmp_path / "out.parquet"
    box = cosmology_box(20_000, rng=0)
    if suffix == "npy":
        np.save(file, np.stack([box[axis].values for axis in "xyz"], axis=1))
    else:
        write_particles(box, file)
    with workers.start(2, dashboard=None) as client, dask.config.set({"daskclust.task-seconds": 1e-3}):
        particles = open_particles(file, chunks=5000)
        halos = particles.clust.fof(linking_length=0.2)
        count_clusters(halos["label"].data)
        write_hits(halo_table(halos), out)
        write_hits(halos, out)
        assert large_libraries(client) == {}
