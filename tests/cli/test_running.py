"""Where commands cluster: on the workers of a scheduler that runs elsewhere, within a limit of memory, on GPUs."""

from __future__ import annotations

import re
import shutil

import dask
import pandas as pd
import pytest
from cases.lanes import quick_first
from distributed import default_client

from daskclust import io, properties, workers

LINES = {
    "clue": "clue hits.parquet --dc 2 --rhoc 0.3 --chunks 3000 -o out.parquet --table table.csv",
    "events": "events run.tpx3 --dt-max 200 --min-hits 2 --table out.parquet",
    "dbscan": "dbscan snapshot.hdf5 --eps 0.3 --chunks 500 -o out.zarr --table clusters.csv",
    "fof": "fof snapshot.hdf5 --b 0.3 --chunks 500 --table out.parquet -o labels.zarr",
    "hca": "hca cells.parquet --threshold 20 --chunks 100 --n-clusters 3 --merges out.parquet -o labels.csv",
}


def table(path):
    """Return what is in a file or a store."""
    if path.suffix == ".zarr":
        return io.open_particles(path).to_dataframe()
    return (pd.read_csv if path.suffix == ".csv" else pd.read_parquet)(path)


@pytest.mark.parametrize("name", LINES)
def test_the_workers_of_a_scheduler_give_the_same(summary, files, scheduler, name):
    given = set(files.iterdir())
    told = summary(*LINES[name].split())
    wanted = {path: table(path) for path in set(files.iterdir()) - given}
    for path in wanted:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    again = summary(*LINES[name].split(), "--scheduler", scheduler)
    assert [again.get(key) for key in ("output", "table")] == [told.get(key) for key in ("output", "table")]
    assert set(files.iterdir()) == given | set(wanted)
    for path, frame in wanted.items():
        assert len(frame)
        pd.testing.assert_frame_equal(table(path), frame, check_like=True)


@pytest.mark.parametrize(
    ("line", "earlier", "later"),
    [
        ("clue hits.parquet --rhoc 0.3 --dc", 2, 0.7),
        ("events run.tpx3 --dt-max", 200, 20),
        ("dbscan snapshot.hdf5 --min-samples 3 --eps", 0.6, 0.3),
        ("fof snapshot.hdf5 --linking-length", 0.6, 0.3),
        ("hdbscan snapshot.hdf5 --min-cluster-size", 5, 20),
    ],
)
@pytest.mark.parametrize("suffix", quick_first([".parquet", ".h5", ".zarr"], 1))
def test_results_in_the_file_are_replaced(summary, files, scheduler, line, earlier, later, suffix):
    """Of an output that is clustered anew, whatever columns of results it has."""
    command, source, *options = line.split()
    summary(command, source, *options, earlier, "-o", f"earlier{suffix}")
    found = []
    for where in ((), ("--scheduler", scheduler)):
        summary(command, f"earlier{suffix}", *options, later, "-o", "later.parquet", *where)
        rows = table(files / "later.parquet")
        found.append(rows.sort_values(list(rows), ignore_index=True))  # hits of events come by cluster, or as they were
    pd.testing.assert_frame_equal(*found)


@pytest.mark.parametrize(
    "line",
    [
        "clue hits.parquet --dc 1 --rhoc 1",
        "clue hits.h5 --dc 1 --rhoc 1",
        "events run.tpx3 --dt-max 200",
        "dbscan store.zarr --eps 0.3",
    ],
)
def test_workers_that_do_not_see_a_file(command, files, scheduler, monkeypatch, line):
    """As on another machine: it is not there while they compute."""
    io.write_hits(io.read_hits("hits.parquet"), "hits.h5")
    io.write_particles(io.open_particles("snapshot.hdf5"), "store.zarr")
    file = files / line.split()[1]

    def elsewhere(*given):
        hidden = file.rename(files / "hidden")
        try:
            return persist(*given)
        finally:
            hidden.rename(file)

    persist = workers.persist
    monkeypatch.setattr(workers, "persist", elsewhere)
    code, out, err = command(*line.split(), "--scheduler", scheduler)
    assert (code, out) == (1, "")
    what, hint = err.splitlines()
    assert what.startswith(f"error: workers of {scheduler} see no {file}")  # or an array in the store
    assert what.endswith(", which is here")
    assert hint == "hint: put it where all machines have it under the same name"


@pytest.mark.slow
def test_a_scheduler_that_is_lost_after_the_computation(command, files, elsewhere, monkeypatch):
    """Its results are lost, too: an error in two lines, and no half of a file."""
    address, scheduler = elsewhere
    before, table_of = set(files.iterdir()), properties.cluster_table

    def table_after_its_end(*args, **options):
        scheduler.kill()
        scheduler.wait()
        default_client()._timeout = 1  # s until it gives up to find the scheduler again
        return table_of(*args, **options)

    monkeypatch.setattr(properties, "cluster_table", table_after_its_end)
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        code, out, err = command(
            "events", "run.tpx3", "--dt-max", 200, "--table", "lost.parquet", "--scheduler", address
        )
    assert (code, out) == (1, "")
    what, hint = err.splitlines()
    assert re.fullmatch(
        f"error: the scheduler at {re.escape(address)} was lost( while it worked)?, and the results with it", what
    )
    assert hint.startswith("hint: start it and its workers again")
    assert set(files.iterdir()) == before


# ----------------------------------------------------------------------------------------------------------------- warm
@pytest.mark.slow
def test_warm_compiles_what_is_not_there(summary, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))  # workers have this, and no shipped machine code
    monkeypatch.setenv("DASKCLUST_SHIPPED", "0")
    first, second = (summary("warm", "events", "--workers", 2) for _ in range(2))
    assert first["systems"] == "events"
    assert first["compiled"] >= 5
    assert second["compiled"] == 0
    assert list(tmp_path.rglob("*.nbc"))
