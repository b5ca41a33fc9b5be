"""Lines of the command line, all systems, and what they write with and without a GPU."""

from __future__ import annotations

import numpy as np
import pandas as pd

from daskclust import datasets, io

N = 120
LINES = {
    "clue": "clue hits.parquet --dc 2 --rhoc 0.3 -o out.parquet --table table.csv",
    "clue, another field": "clue points.parquet --dc 0.6 --rhoc cut -o out.parquet --quiet",
    "events": "events pixels.parquet --dt-max 100 --min-hits 2 --table table.parquet -o out.parquet",
    "dbscan": "dbscan points.parquet --eps 0.4 --min-samples 3 --weight cut -o out.parquet",
    "fof": "fof points.parquet --linking-length 0.4 --boxsize 40,2,none --table table.csv -o out.parquet",
    "hca": "hca cells.parquet --threshold 0.3 --n-clusters 3 --merges table.csv -o out.parquet",
}


def make_files(folder):
    """Make small files of each field."""
    rng = np.random.default_rng(0)
    hits = datasets.hgcal_event(2, n_noise=20, rng=0).drop_vars("truth").isel(hit=slice(None, None, 4))
    io.write_hits(hits, folder / "hits.parquet")
    pixels = datasets.timepix(N, rng=0, rate=2e4).drop_vars("truth")
    io.write_hits(pixels.assign(run=("hit", np.arange(N))), folder / "pixels.parquet")
    columns = {"x": rng.uniform(0, 40, N), "y": rng.uniform(0, 2, N), "z": rng.uniform(0, 1, N)}
    columns = {name: values.astype(np.float32) for name, values in columns.items()}
    points = pd.DataFrame(columns | {"cut": rng.integers(0, 4, N) / 2})
    points.to_parquet(folder / "points.parquet")
    cells = pd.DataFrame(rng.normal(size=(45, 3)), columns=["CD3", "CD4", "CD8"]).assign(apriori=np.arange(45) % 3)
    cells.to_parquet(folder / "cells.parquet")


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
