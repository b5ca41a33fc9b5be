"""The page "After clustering": its `predict` gives each point the label of a core point that is near enough."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from daskclust import DBSCAN

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "after.md").read_text(encoding="utf-8")
(PREDICT,) = re.findall(r"^def predict\(new\):\n(?: .*\n|\n)+", PAGE, re.MULTILINE)


@given(n=st.integers(1, 60), seed=st.integers(0, 10**6), eps=st.sampled_from([0.5, 1.0, 3.0]), least=st.integers(1, 5))
def test_predict(n: int, seed: int, eps: float, least: int) -> None:
    rng = np.random.default_rng(seed)
    X, new = rng.integers(0, 12, (n, 2)) / 2, rng.integers(0, 14, (20, 2)) / 2
    dbscan = DBSCAN(eps=eps, min_samples=least).fit(X)
    names: dict[str, Any] = {"X": X, "dbscan": dbscan, "np": np}
    exec("from scipy.spatial import cKDTree\n" + PREDICT, names)
    if not dbscan.is_core_.any():
        return
    core, of_core = X[dbscan.is_core_], dbscan.labels_[dbscan.is_core_]
    np.testing.assert_array_equal(names["predict"](core), of_core)
    np.testing.assert_array_equal(names["predict"](X) < 0, dbscan.labels_ < 0)
    away = cdist(new, core)
    for label, distances in zip(names["predict"](new), away, strict=True):
        nearest = set(of_core[distances == distances.min()].tolist())
        assert label in (nearest if distances.min() <= eps else {-1})
