"""The demonstration: a calorimeter event, clustered on a Dask cluster and in memory, and a page with pictures."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

_PARAMETERS: dict[str, Any] = {"dc": 2.0, "rhoc": 0.3, "delta_c": 2.0, "delta_o": 3.0}  # cm, GeV
_RESULTS = ("label", "density", "delta", "nearest_higher", "is_seed")


def run_demo(folder: Path, workers: int, seed: int, tell: Callable[[str], None]) -> tuple[xr.Dataset, dict[str, Any]]:
    """Make an event, cluster it on a local Dask cluster and in memory, compare, and write a page to a folder.

    Returns the table of clusters, and findings by name; `tell` is called with a word on each step as it begins.
    """
    from daskclust.accessor import ClustAccessor
    from daskclust.core.device.machine_code.compiling import Clock
    from daskclust.datasets import hgcal_event
    from daskclust.properties import cluster_table
    from daskclust.workers import start

    folder.mkdir(parents=True, exist_ok=True)  # what cannot be written to is told before the work
    event, clock = hgcal_event(rng=seed), Clock()
    tell("starting a Dask cluster")
    with start(workers):
        lazy = ClustAccessor(event.chunk(hit=-(-event.sizes["hit"] // 8))).clue(**_PARAMETERS, partition="layers")
        tell("loading kernels on the workers")
        lazy.compute()
        tell("clustering on the workers")
        begin = time.perf_counter()
        result = lazy.compute()
        seconds_dask = time.perf_counter() - begin
    tell("clustering in this process")
    ClustAccessor(event).clue(**_PARAMETERS)  # loads kernels
    begin = time.perf_counter()
    expected = ClustAccessor(event).clue(**_PARAMETERS)
    seconds_memory = time.perf_counter() - begin
    equal = all(np.array_equal(result[name].values, expected[name].values) for name in _RESULTS)
    tell("drawing")
    page = folder / "daskclust-demo.html"
    clusters = cluster_table(result)
    _write_page(result, clusters, page)
    return clusters, {
        **_quality(result),
        "clusters": int(clusters.sizes["cluster"]),
        "noise": int((result["label"] < 0).sum()),
        "seconds_dask": round(seconds_dask, 4),
        "seconds_memory": round(seconds_memory, 4),
        "seconds_compiling": round(clock.compiling, 3),
        "equal": equal,
        "page": str(page),
    }


def _quality(result: xr.Dataset) -> dict[str, Any]:
    """Compare clusters with the true showers, by energy: clusters are those of one layer."""
    from daskclust import metrics

    label, layer, truth = (result[name].values.astype(np.int64) for name in ("label", "layer", "truth"))
    energy, in_layer = result["energy"].values, np.where(truth >= 0, truth * (layer.max() + 1) + layer, -1)
    return {
        "hits": len(label),
        "layers": len(np.unique(layer)),
        "purity": float(metrics.purity(in_layer, label, sample_weight=energy)),
        "completeness": float(metrics.completeness(in_layer, label, sample_weight=energy)),
    }


def _write_page(result: xr.Dataset, clusters: xr.Dataset, page: Path) -> None:
    from daskclust import plot

    busiest = int(np.bincount(result["layer"].values).argmax())
    pictures: Any = (
        plot.clusters(result, layer=busiest, links=True).opts(title=f"Clusters of layer {busiest}", backend="bokeh")
        + plot.decision(result, logx=True).opts(title="Decision plot", backend="bokeh")
        + plot.clusters(result, x="z", y="y", seeds=False).opts(title="The event from the side", backend="bokeh")
        + plot.energy_spectrum(clusters).opts(title="Energy of the clusters", backend="bokeh")
    )
    plot.save(pictures.cols(2).opts(shared_axes=False, backend="bokeh"), page)
