"""The demonstration: a calorimeter event, clustered on a Dask cluster and in memory, and a page with pictures."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

_PARAMETERS: dict[str, Any] = {"dc": 2.0, "rhoc": 0.3, "delta_c": 2.0, "delta_o": 3.0}  # cm, GeV
_RESULTS = ("label", "density", "delta", "nearest_higher", "is_seed")


@dataclass(frozen=True)
class Report:
    """What the demonstration found."""

    result: xr.Dataset
    clusters: xr.Dataset
    seconds_dask: float
    seconds_memory: float
    equal: bool
    page: Path

    def facts(self) -> dict[str, Any]:
        """Return the findings by name: numbers, times in seconds, the page."""
        from daskclust import metrics

        label, layer = self.result["label"].values, self.result["layer"].values.astype(np.int64)
        truth = self.result["truth"].values
        in_layer = np.where(truth >= 0, truth * (layer.max() + 1) + layer, -1)  # clusters are those of one layer
        energy = self.result["energy"].values
        return {
            "hits": int(label.size),
            "layers": len(np.unique(layer)),
            "clusters": int(self.clusters.sizes["cluster"]),
            "noise": int((label < 0).sum()),
            "purity": float(metrics.purity(in_layer, label, sample_weight=energy)),
            "completeness": float(metrics.completeness(in_layer, label, sample_weight=energy)),
            "seconds_dask": round(self.seconds_dask, 4),
            "seconds_memory": round(self.seconds_memory, 4),
            "equal": self.equal,
            "page": str(self.page),
        }

    def lines(self) -> list[str]:
        """Return the findings, a line each."""
        facts = self.facts()
        same = "are equal, element by element" if self.equal else "DIFFER"
        right = f"purity {facts['purity']:.3f}, completeness {facts['completeness']:.3f}"
        found = f"{facts['clusters']:,} clusters, {facts['noise']:,} hits in none (noise)"
        times = (
            f"on the Dask cluster in {self.seconds_dask:.2f} s, in this process in {self.seconds_memory * 1e3:.0f} ms"
        )
        return [
            f"{facts['hits']:,} hits on {facts['layers']} layers: {found}",
            f"by energy, against the true showers: {right}",
            f"{times} (so few hits gain nothing from workers); the two answers {same}",
            f"pictures, for a browser: {self.page}",
            "next, a file of your own: daskclust --help",
        ]


def _nobody(step: str) -> None:
    """Tell nobody which step begins."""


def run_demo(folder: Path, workers: int = 2, seed: int = 1, *, tell: Callable[[str], None] = _nobody) -> Report:
    """Make an event, cluster it by layers on a local Dask cluster, compare with memory, write a page.

    Parameters
    ----------
    folder : path
        Where ``daskclust-demo.html`` is written; made if it does not exist.
    workers : int, default 2
        Dask workers.
    seed : int, default 1
        Seed of the event.
    tell : function, optional
        Is called with a word on each step as it begins.

    Returns
    -------
    Report
        The result and what is to be said of it.
    """
    from daskclust.accessor import ClustAccessor
    from daskclust.datasets import hgcal_event
    from daskclust.properties import cluster_table
    from daskclust.workers import start

    folder.mkdir(parents=True, exist_ok=True)  # what cannot be written to is told before the work
    event = hgcal_event(rng=seed)
    tell("starting a Dask cluster")
    with start(workers):
        lazy = ClustAccessor(event.chunk(hit=-(-event.sizes["hit"] // 8))).clue(**_PARAMETERS, partition="layers")
        tell("loading kernels on the workers; the first time ever they are compiled")
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
    return Report(result, clusters, seconds_dask, seconds_memory, equal, page)


def _write_page(result: xr.Dataset, clusters: xr.Dataset, page: Path) -> None:
    from daskclust import plot

    busiest = int(np.bincount(result["layer"].values).argmax())
    pictures: Any = (
        plot.clusters(result, layer=busiest, links=True).opts(title=f"Clusters of layer {busiest}")
        + plot.decision(result, logx=True).opts(title="Decision plot")
        + plot.clusters(result, x="z", y="y", seeds=False).opts(title="The event from the side")
        + plot.energy_spectrum(clusters).opts(title="Energy of the clusters")
    )
    plot.save(pictures.cols(2).opts(shared_axes=False), page)
