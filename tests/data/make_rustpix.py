"""Make the files of `tests/data/rustpix` again: `python tests/data/make_rustpix.py`, with rustpix 1.4.1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

FOLDER = Path(__file__).parent / "rustpix"
SEED = 2026
DT_MAX = 100.0  # ns


def make() -> None:
    """Write hits as raw files, and the clusters that rustpix finds in them; triggers come first, it needs one."""
    import rustpix

    from daskclust import datasets
    from daskclust.io import write_tpx3

    trigger = xr.Dataset({"time": ("trigger", [0.0])})
    clustering = rustpix.ClusteringConfig(radius=1.5, temporal_window_ns=DT_MAX, min_cluster_size=1)
    one_chip = rustpix.DetectorConfig(enable_missing_tdc_correction=False, chip_transforms=[(1, 0, 0, 1, 0, 0)] * 4)
    FOLDER.mkdir(exist_ok=True)
    for kind, n in (("gamma", 300), ("pion45", 240)):
        hits = datasets.timepix(n, kind=kind, rate=1e7, start=1000.0, rng=SEED)
        write_tpx3(hits, FOLDER / f"{kind}.tpx3", triggers=trigger)
        batch = rustpix.read_tpx3_hits(str(FOLDER / f"{kind}.tpx3"), detector_config=one_chip)
        rustpix.cluster_hits(batch, clustering_config=clustering, algorithm="grid")
        table = batch.to_numpy()
        columns = [table[name] for name in ("x", "y", "tot", "cluster_id")]
        header = "x,y,tot,cluster_id"
        np.savetxt(FOLDER / f"{kind}.csv", np.column_stack(columns), "%d", delimiter=",", header=header, comments="")


if __name__ == "__main__":
    make()
