"""The demonstration: a calorimeter event, clustered on a Dask cluster and in memory, and a page with pictures."""

from __future__ import annotations

import time
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

    def lines(self) -> list[str]:
        """Return the findings, a line each."""
        from daskclust import metrics

        label, layer = self.result["label"].values, self.result["layer"].values.astype(np.int64)
        truth = self.result["truth"].values
        in_layer = np.where(truth >= 0, truth * (layer.max() + 1) + layer, -1)  # clusters are those of one layer
        energy = self.result["energy"].values
        purity = metrics.purity(in_layer, label, sample_weight=energy)
        completeness = metrics.completeness(in_layer, label, sample_weight=energy)
        same = "are equal, element by element" if self.equal else "DIFFER"
        hits = f"{label.size:,} hits on {len(np.unique(layer))} layers"
        times = f"on the Dask cluster {self.seconds_dask:.2f} s, in memory {self.seconds_memory * 1e3:.1f} ms"
        return [
            f"{hits}: {self.clusters.sizes['cluster']:,} clusters, {(label < 0).sum():,} hits are noise",
            f"of the energy, purity {purity:.3f}, completeness {completeness:.3f} against the showers' hits of a layer",
            f"{times}; the two answers {same}",
            f"pictures: {self.page}",
        ]


def run_demo(folder: Path, workers: int = 2, seed: int = 1) -> Report:
    """Make an event, cluster it by layers on a local Dask cluster, compare with memory, write a page.

    Parameters
    ----------
    folder : path
        Where ``daskclust-demo.html`` is written; made if it does not exist.
    workers : int, default 2
        Dask workers.
    seed : int, default 1
        Seed of the event.

    Returns
    -------
    Report
        The result and what is to be said of it.
    """
    from daskclust.accessor import ClustAccessor
    from daskclust.datasets import hgcal_event
    from daskclust.properties import cluster_table
    from daskclust.workers import start

    event = hgcal_event(rng=seed)
    with start(workers):
        lazy = ClustAccessor(event.chunk(hit=-(-event.sizes["hit"] // 8))).clue(**_PARAMETERS, partition="layers")
        lazy.compute()  # workers import and load their kernels
        begin = time.perf_counter()
        result = lazy.compute()
        seconds_dask = time.perf_counter() - begin
    ClustAccessor(event).clue(**_PARAMETERS)  # compiles
    begin = time.perf_counter()
    expected = ClustAccessor(event).clue(**_PARAMETERS)
    seconds_memory = time.perf_counter() - begin
    equal = all(np.array_equal(result[name].values, expected[name].values) for name in _RESULTS)
    folder.mkdir(parents=True, exist_ok=True)
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
