"""Names of tasks, which the dashboard shows: those that the page says."""

from __future__ import annotations

import functools
import itertools
import re
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
from cases.lanes import quick_first
from dask.utils import key_split
from distributed import SchedulerPlugin

from daskclust import HDBSCAN, io, workers
from daskclust.core.run import exchange
from daskclust.properties import cluster_table
from daskclust.systems import SYSTEMS

PAGE = Path(__file__).parents[2] / "docs/howto/dask.md"
DASKS_OWN = (
    "aggregate", "arange", "array", "barrier", "blocks", "concatenate", "finalize", "from", "getitem",
    "hlgfinalizecompute", "map", "merge", "p2p", "rechunk", "shuffle", "split", "store", "transfer", "unique",
    "unique_internal", "value",
)  # fmt: skip
RESULTS = ["density", "delta", "nearest-higher", "is-seed", "is-core"]


@pytest.fixture(scope="module")
def client():
    with workers.start(2, processes=False) as found:
        yield found


@pytest.fixture
def names(client):
    """Return the set of names that the scheduler has heard of so far."""
    found: set[str] = set()

    class Names(SchedulerPlugin):
        def update_graph(self, scheduler, *, tasks, **_):
            found.update(map(key_split, tasks))

    scheduler = client.cluster.scheduler
    scheduler.add_plugin(Names(), name="names")
    with dask.config.set(scheduler=client):
        yield found
    scheduler.remove_plugin("names")


@functools.cache
def known():
    """Return the pattern of names that the page has, of one step or several."""
    lines = PAGE.read_text().split("## What the dashboard shows")[1].splitlines()
    rows = [re.findall(r"`([a-z-]+)`", line.split("|")[1]) if line.startswith("|") else [] for line in lines]
    divide = lines.index("| *with the system* | |")
    own, of_systems = itertools.chain(*rows[:divide]), itertools.chain(RESULTS, *rows[divide:])
    names = [f"daskclust-({'|'.join(own)}|(io|properties)[a-z-]*|({'|'.join(SYSTEMS)})-({'|'.join(of_systems)}))"]
    return re.compile(f"(-({'|'.join([*names, *DASKS_OWN])}))+")


def strange(names):
    """Return the names that the page does not have."""
    return sorted(name for name in names if not known().fullmatch(f"-{name}"))


@pytest.mark.parametrize("few", quick_first([True, False]))
@pytest.mark.parametrize("name", quick_first(SYSTEMS, 2))
def test_each_task_of_a_fit_has_a_name_of_the_page(names, monkeypatch, name, few):
    """One by one and merged at once, or exchanged and merged in a tree."""
    monkeypatch.setattr(exchange, "_FEW", 32 if few else 0)
    system = SYSTEMS[name]
    with dask.config.set({"daskclust.task-seconds": 0, "daskclust.merge-width": 64 if few else 2}):
        for run in system.runs:
            sample = system.sample(240 if few else 250, run, np.float64)  # other points: tasks have other keys
            given = sample.map(lambda values: da.from_array(values, chunks=(40, *values.shape[1:])))
            fitted = system.estimator(**run.parameters).fit(given.X, **given.columns)
            dask.compute(fitted.labels_, optimize_graph=False)  # steps that Dask does in one are seen, too
            dask.compute(fitted.labels_)
    assert len(names) > 5
    assert strange(names) == []


def test_each_task_of_events_of_a_spanning_tree_has_a_name_of_the_page(names):
    X = np.random.default_rng(0).uniform(0, 9, (200, 2))
    fitted = HDBSCAN(5).fit(da.from_array(X, chunks=(40, 2)), event=np.arange(200) % 7)
    dask.compute(fitted.labels_, fitted._tree.core, optimize_graph=False)
    assert len(names) > 5
    assert strange(names) == []


def test_each_task_of_a_table_and_of_files_has_a_name_of_the_page(names, tmp_path):
    rng = np.random.default_rng(0)
    hits = xr.Dataset({axis: ("hit", rng.uniform(0, 9, 300)) for axis in ("x", "y", "energy")})
    hits["layer"] = ("hit", rng.integers(0, 4, 300))
    io.write_hits(hits, tmp_path / "hits.parquet")
    found = io.read_hits(tmp_path / "hits.parquet", chunks=100).clust.clue(dc=1.0, rhoc=1.0)
    cluster_table(found, weight="energy").compute()
    io.write_hits(found, tmp_path / "found.parquet")
    assert len(names) > 5
    assert strange(names) == []
