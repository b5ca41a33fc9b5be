"""A first fit imports what it needs: libraries of other containers take longer than most fits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from daskclust import workers
from daskclust.datasets import timepix
from daskclust.io import open_tpx3, write_hits, write_tpx3
from daskclust.properties import cluster_table

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


def test_workers_of_a_raw_file_import_no_large_library(tmp_path: Path) -> None:
    """Each process would take half a second to a second for it: dask.array imports xarray, and that pandas."""
    file = tmp_path / "hits.tpx3"
    write_tpx3(timepix(5000, rng=0), file)
    with workers.start(2, dashboard=None) as client:
        hits = open_tpx3(file, chunks=1000).clust.events(100.0)
        write_hits(cluster_table(hits).drop_vars(["noise_size", "noise_weight"]), tmp_path / "table.parquet")
        write_hits(hits, tmp_path / "hits.parquet")
        found = client.run(
            lambda: [name for name in ("dask.array", "xarray", "pandas", "scipy.sparse") if name in sys.modules]
        )
        assert not any(found.values()), found
