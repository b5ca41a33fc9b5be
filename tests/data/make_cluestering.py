"""Make the files of `tests/data/cluestering` again: `python tests/data/make_cluestering.py`, with CLUEstering 1.4.0."""

from __future__ import annotations

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "cluestering"
SEED = 2026


def make() -> None:
    """Write points and what the program of CLUE's authors says of them: a file NAME_DC_RHOC_FACTOR.csv for each set.

    Weights are eighths, so that densities are exact in float32; a neighbour counts half. Two dimensions: in three, this
    version counts points of cells with the same number several times.
    """
    import CLUEstering

    from daskclust import datasets

    hits = datasets.calorimeter(1, 240, size=60.0, rng=SEED)
    blobs = datasets.anisotropic_blobs(200, rng=SEED)
    sets = {
        "calorimeter_1.6_1.5_2": np.stack([hits["x"], hits["y"]], axis=1),
        "blobs_12_3_2": np.stack([blobs["x"], blobs["y"]], axis=1),
    }
    for name, points in sets.items():
        X = points.astype(np.float64).round(3)
        weight = np.random.default_rng(SEED).integers(1, 16, len(X)) / 8
        dc, rhoc, factor = (float(part) for part in name.split("_")[1:])
        clue = CLUEstering.clusterer(dc, rhoc, factor, ppbin=2)
        clue.read_data([*X.astype(np.float32).T, weight.astype(np.float32)])
        clue.clust_data.coords = list(X.astype(np.float32).T)  # as they are: it divides them by their spread
        clue.choose_kernel("flat", [0.5])
        clue.run_clue()
        names = [f"x{k}" for k in range(X.shape[1])] + ["weight", "is_seed", "label"]
        rows = np.column_stack([X, weight, clue.clust_prop.is_seed, clue.clust_prop.cluster_ids])
        FOLDER.mkdir(exist_ok=True)
        np.savetxt(FOLDER / f"{name}.csv", rows, "%.12g", delimiter=",", header=",".join(names), comments="")


if __name__ == "__main__":
    make()
