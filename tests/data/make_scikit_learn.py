"""Make the files of `tests/data/scikit_learn` again: `python tests/data/make_scikit_learn.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "scikit_learn"
SEED = 2026


def make() -> None:
    """Write the points, rounded, and what scikit-learn says of them: a file NAME_EPS_MINSAMPLES.csv.gz for each set."""
    from sklearn.cluster import DBSCAN

    from daskclust import datasets

    hits = datasets.calorimeter(1, 600, size=60.0, rng=SEED)
    hits["weight"] = hits["x"].dims, np.random.default_rng(SEED).integers(-1, 8, hits.sizes["hit"]) / 4
    sets = {
        "moons_16_8": (datasets.moons(500, rng=SEED), ["x", "y"]),
        "blobs_18_8": (datasets.anisotropic_blobs(500, rng=SEED), ["x", "y"]),
        "calorimeter_2_4": (hits, ["x", "y", "weight"]),
        "particles_0.4_2": (datasets.cosmology_box(600, rng=SEED), ["x", "y", "z"]),
        "cells_0.7_5": (datasets.cytometry(400, 5, rng=SEED), None),
    }
    for name, (ds, columns) in sets.items():
        table = ds["X"].values if columns is None else np.stack([ds[column].values for column in columns], axis=1)
        table = table.astype(np.float64).round(3)
        weight = table[:, -1] if columns == ["x", "y", "weight"] else None
        X = table if weight is None else table[:, :-1]
        eps, min_samples = (float(part) for part in name.split("_")[1:])
        fitted = DBSCAN(eps=eps, min_samples=int(min_samples), algorithm="kd_tree").fit(X, sample_weight=weight)
        is_core = np.isin(np.arange(len(X)), fitted.core_sample_indices_)
        names = [f"x{k}" for k in range(X.shape[1])] + ["weight"] * (weight is not None)
        header = ",".join([*names, "is_core", "label"])
        rows = np.column_stack([table, is_core, fitted.labels_])
        np.savetxt(FOLDER / f"{name}.csv.gz", rows, "%.12g", delimiter=",", header=header, comments="")


if __name__ == "__main__":
    make()
