"""The demonstrations: data are made, clustered on a Dask cluster and in this process, compared, and shown on a page."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from daskclust.demo.cases import CASES, Case

_CHUNKS = 8


def run_demo(
    system: str, folder: Path, workers: int, seed: int, tell: Callable[[str], None]
) -> tuple[xr.Dataset, dict[str, Any]]:
    """Cluster the data of a system on a local Dask cluster and in memory, compare, and write a page to a folder.

    Returns the table of clusters, and findings by name; `tell` is called with a word on each step as it begins. The
    lines that are run are those that the page shows.
    """
    from daskclust.core.device.machine_code.compiling import Clock
    from daskclust.demo.page import write_page
    from daskclust.workers import start

    folder.mkdir(parents=True, exist_ok=True)  # what cannot be written to is told before the work
    case, clock = CASES[system], Clock()
    ds = case.run(case.data.format(seed=seed))
    dim = next(iter(ds.variables.values())).dims[0]
    tell("starting a Dask cluster")
    with start(workers):
        lazy = case.run(case.cluster, ds=ds.chunk({dim: -(-ds.sizes[dim] // _CHUNKS)}))
        tell("loading kernels on the workers")
        lazy.compute()
        tell("clustering on the workers")
        begin = time.perf_counter()
        result = lazy.compute()
        seconds_dask = time.perf_counter() - begin
    tell("clustering in this process")
    case.run(case.cluster, ds=ds)  # loads kernels
    begin = time.perf_counter()
    expected = case.run(case.cluster, ds=ds)
    seconds_memory = time.perf_counter() - begin
    tell("drawing")
    table = case.run(case.table, found=result)
    points, page = folder / f"{system}.parquet", folder / f"{system}.html"
    case.write(ds, points)
    facts = {
        "points": int(ds.sizes[dim]),
        "clusters": int(table.sizes["cluster"]),
        "noise": int((result["label"] < 0).sum()),
        **_quality(case, result),
        "seconds_dask": round(seconds_dask, 4),
        "seconds_memory": round(seconds_memory, 4),
        "seconds_compiling": round(clock.compiling, 3),
        "equal": all(np.array_equal(result[name].values, expected[name].values) for name in set(expected) - set(ds)),
    }
    write_page(page, case, facts, workers, seed, case.names(result, table), points)
    return table, {**facts, "page": str(page)}


def _quality(case: Case, found: xr.Dataset) -> dict[str, float]:
    """Compare clusters with those that were made."""
    from daskclust import metrics

    truth, weight = case.truth(found)
    return {
        name: float(getattr(metrics, name)(truth, found["label"].values, sample_weight=weight))
        for name in ("purity", "completeness")
    }
